"""Outputs of trained networks in float64, row by row: by the compiled program (programs/csrc/outputs.h), or NumPy."""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Iterator

import numpy as np

from plunit.ensemble.arrays import Array
from plunit.ensemble.mlp import MLP, PIECEWISE, forward
from plunit.ensemble.native_steps import form
from plunit.programs.interface import Evaluation, call_program
from plunit.programs.libraries import library, why_not_native

NUMBERS = 2**16  # numbers in a block of rows that is evaluated at once: 0.5 MB stay in the caches


def row_blocks(rows: int, numbers: int) -> list[slice]:
    """Return blocks of rows of `numbers` numbers each; a block has at least 16 rows, unless there are fewer.

    >>> row_blocks(600, 256)
    [slice(0, 300, None), slice(300, 600, None)]
    """
    count = max(1, rows // max(16, NUMBERS // numbers))
    ends = [rows * i // count for i in range(count + 1)]
    return [slice(*pair) for pair in itertools.pairwise(ends)]


def output_blocks(
    network: MLP, theta: Array, x: Array, alpha: float = 0.1, c: float = 1.0
) -> Iterator[tuple[slice, Array]]:
    """Yield blocks of rows of x [rows, in], and the outputs [S, rows, out] of members theta [parameters, S] there.

    With the compiled program, the bits of a row do not depend on the other rows; with NumPy they may, because of BLAS.
    Numbers that overflow are inf or NaN.
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
    """Return the outputs for all rows, [S, rows, out], by a given build of the program."""
    shapes = network.alphas_and_cs(theta, alpha, c)
    members, rows = theta.shape[1], len(x)
    if theta.shape[0] != network.parameters or x.shape[1] != network.widths[0]:
        raise ValueError(f"theta {theta.shape} and x {x.shape} do not fit {network}")
    arrays = (theta.T, shapes[0].T, shapes[1].T, x)
    weights, alphas, cs, inputs = (np.ascontiguousarray(part, dtype=np.float64) for part in arrays)
    task = Evaluation(
        members=members,
        **form(network),
        parameters=network.parameters,
        rows=rows,
        theta=weights,
        alpha=alphas,
        c=cs,
        x=inputs,
        found=(found := np.empty((members, rows, network.widths[-1]))),
    )
    known = call_program(program.plunit_outputs, ctypes.byref(task))
    assert known, f"programs/csrc/activations.h has no straight {network.activation}"
    return found


@functools.cache
def _program() -> ctypes.CDLL | None:
    return None if why_not_native() else library()
