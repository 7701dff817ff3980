"""Outputs of trained members in float64: by the compiled program for piecewise-linear networks, else by NumPy."""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Iterator

import numpy as np

from plunit.ensemble.arrays import Array
from plunit.ensemble.mlp import MLP, PIECEWISE, forward, spread
from plunit.programs.interface import Evaluation, called
from plunit.programs.loading import library, why_not_native

NUMBERS = 2**16  # rows are evaluated in blocks of about so many numbers: 0.5 MB stay in the caches


def row_blocks(rows: int, numbers: int) -> list[slice]:
    """Return blocks of rows that have `numbers` numbers each; a block has at least 16 rows, unless there are fewer.

    >>> row_blocks(600, 256)
    [slice(0, 300, None), slice(300, 600, None)]
    """
    count = max(1, rows // max(16, NUMBERS // numbers))
    ends = [rows * i // count for i in range(count + 1)]
    return [slice(*pair) for pair in itertools.pairwise(ends)]


def output_blocks(
    network: MLP, theta: Array, x: Array, alpha: float = 0.1, c: float = 1.0
) -> Iterator[tuple[slice, Array]]:
    """Yield blocks of the rows of x [rows, in], and the outputs of members theta [parameters, S] there, [S, rows, out].

    By the program a row has the same bits beside any other rows; in NumPy that is up to BLAS. What overflows is inf or
    NaN.
    """
    program = _program() if network.activation in PIECEWISE else None
    kept = network.widths[-1] if program else max(network.widths[1:])
    for block in row_blocks(len(x), max(network.widths[0], theta.shape[1] * kept)):
        if program:
            values = native_outputs(program, network, theta, x[block], alpha, c)
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                values = np.moveaxis(forward(network, theta, x[block].T, alpha, c), (0, 1, 2), (2, 1, 0))
        yield block, values


def native_outputs(program: ctypes.CDLL, network: MLP, theta: Array, x: Array, alpha: float, c: float) -> Array:
    """Return the outputs at all rows, [S, rows, out], by a given build of the program."""
    shapes = network.alphas_and_cs(theta, *(spread(network, theta, value) for value in (alpha, c)))
    members, rows = theta.shape[1], len(x)
    if theta.shape[0] != network.parameters or x.shape[1] != network.widths[0]:
        raise ValueError(f"theta {theta.shape} and x {x.shape} do not belong to {network}")
    arrays = (theta.T, shapes[0].T, shapes[1].T, x)
    weights, alphas, cs, inputs = (np.ascontiguousarray(part, dtype=np.float64) for part in arrays)
    task = Evaluation(
        members=members,
        depth=network.depth,
        widths=np.array(network.widths, np.int64),
        activation=network.activation.encode(),
        parameters=network.parameters,
        rows=rows,
        theta=weights,
        alpha=alphas,
        c=cs,
        x=inputs,
        found=(found := np.empty((members, rows, network.widths[-1]))),
    )
    known = called(program.plunit_outputs, ctypes.byref(task))
    assert known, f"programs/csrc/outputs.h lacks {network.activation}"
    return found


@functools.cache
def _program() -> ctypes.CDLL | None:
    return None if why_not_native() else library()
