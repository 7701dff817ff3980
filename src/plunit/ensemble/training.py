"""Train an ensemble: many independent networks at once, each from its own start."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit.base.progress import Pace
from plunit.base.ranges import as_count
from plunit.ensemble import native_steps, numpy_steps
from plunit.ensemble.adam import ADAMS
from plunit.ensemble.arrays import Array, as_array, as_factors, as_many
from plunit.ensemble.mlp import MLP
from plunit.ensemble.training_data import Data, Rows, StepData, Stream, Validation, check_numbers, points
from plunit.ensemble.training_state import Engine, Steps, initial_state
from plunit.programs.libraries import choose_engine, why_not_native

ENGINES: dict[str, Engine] = {"native": native_steps.advance, "numpy": numpy_steps.advance}
"""The engines by name: the compiled program, and the same algorithm in NumPy."""

_STREAMED = 64  # batches requested from a stream at once


@dataclass(frozen=True)
class Trained:
    """An ensemble after training.

    Attributes:
        theta: the final parameters [parameters, S].
        history: the losses [ceil(steps / stride), S]; row k is the loss before step k * stride. NaN after a member
            has run out of patience.
        checkpoints: the parameters [len(checkpoints), parameters, S] after the requested steps.
        best: with validation, the parameters [parameters, S] with the lowest validation loss.
        best_loss: that loss [S].
        best_step: the number of steps after which it was found [S].
    """

    theta: Array
    history: Array
    checkpoints: Array
    best: Array
    best_loss: Array
    best_step: Array


def engine() -> str:
    """Return the fastest engine available: "native", or "numpy" if there is no compiled program."""
    return "numpy" if why_not_native() else "native"


def train(
    network: MLP,
    theta: Any,
    data: Data | Stream | Rows,
    *,
    steps: int,
    loss: str = "square",
    lr: Any = 0.01,
    decay: Any = 0.0,
    schedule: Any = 1.0,
    adam: str = "pytorch",
    alpha: Any = 0.1,
    c: Any = 1.0,
    validation: Validation | None = None,
    stride: int = 16,
    checkpoints: Sequence[int] = (),
    engine: str | None = None,
) -> Trained:
    """Minimise every member's loss by `steps` steps of Adam.

    Args:
        network: the form of the members.
        theta: the start [parameters, S], not changed; see `initial`. A member that is not finite does not affect the
            others; if none is finite, ValueError is raised.
        data: a fixed batch, a stream of new batches, or the `Rows` of a table; finite numbers. Of a stream, the first
            64 batches are checked.
        steps: the number of steps.
        loss: "square" (the mean square error), "logistic" (targets in [0, 1]) or "softmax" (targets with sum 1).
        lr: Adam's step size, a number or [S]; Adam's other settings are its defaults.
        decay: decoupled weight decay, a number or [S]: a weight w loses lr decay w at each step.
        schedule: the factor of lr, a number or one for each step.
        adam: "pytorch", or "tensorflow", which adds epsilon to the root of the uncorrected second moment. The two
            differ if gradients are small in the first thousand steps.
        alpha: the outer slope of PLU; a number, [S] or [depth - 1, S].
        c: the half-width of its inner piece, in the same shapes.
        validation: rows that select the best parameters of each member, and patience.
        stride: the loss is recorded every `stride` steps.
        checkpoints: steps after which the parameters are kept, in increasing order.
        engine: "native" (compiled, float32) or "numpy"; by default native if possible.

    Every bit of a member's result depends only on its own start and data, not on the other members or their number.
    The engines run the same algorithm but round differently. Rounding differences grow during training: a single
    member can end elsewhere, while statistics over many members agree.
    """
    _check_counts(steps, stride, checkpoints)
    if adam not in ADAMS:
        raise ValueError(f"unknown variant of Adam {adam!r}; choose one of {', '.join(ADAMS)}")
    theta = as_array(theta, name="theta")
    rates = as_many("schedule", as_factors("schedule", schedule, np.float64), steps)
    every = validation.every if validation else 0
    factors = {"lr": lr, "decay": decay, "alpha": alpha, "c": c}
    state = initial_state(network, theta, steps=steps, every=every, stride=stride, loss=loss, **factors)
    _check_start(theta)
    if theta.dtype != np.float32 and engine == "native":
        raise ValueError(f"the native engine needs float32, got {theta.dtype}; use engine='numpy'")
    advance = ENGINES[choose_engine(engine if theta.dtype == np.float32 else engine or "numpy")]
    tests = None if validation is None else _tests(validation, network, theta, loss)
    kept, pace = [], Pace()
    marks = {*checkpoints, steps, *(range(0, steps, _STREAMED) if callable(data) else ())}
    for first, last in itertools.pairwise(sorted({0, *marks})):
        if first in checkpoints:
            kept.append(state.theta.copy())
        given = points(data, last - first, network, theta)
        if first == 0:  # checking all of a stream would take up to a tenth of the time
            check_numbers(given, loss, table=isinstance(data, Rows))
        taken = first
        while taken < last:  # in parts, so that Ctrl-C takes effect
            stop = last if callable(data) else pace.next(taken, last)
            advance([(state, Steps(taken, rates[taken:stop], given, tests, validation, adam))])
            taken = stop
    if steps in checkpoints:
        kept.append(state.theta.copy())
    weights = np.stack(kept) if kept else np.empty((0, *theta.shape), theta.dtype)
    return Trained(state.theta, state.history, weights, state.best, state.best_loss, state.best_step)


def _check_counts(steps: int, stride: int, checkpoints: Any) -> None:
    for name, value, least in (("steps", steps, 0), ("stride", stride, 1)):
        as_count(name, value, least)
    whole = hasattr(checkpoints, "__iter__") and all(hasattr(k, "__index__") for k in checkpoints)
    if not whole or list(checkpoints) != sorted({k for k in checkpoints if 0 <= k <= steps}):
        raise ValueError(f"checkpoints must be increasing steps from 0 to {steps}, got {checkpoints!r}; pass a list")


def _check_start(theta: Array) -> None:
    bad = ~np.isfinite(theta)
    if bad.any(axis=0).all():
        place = tuple(np.argwhere(bad)[0].tolist())
        raise ValueError(f"theta must be finite in some member, got {theta[place]} at index {place}; use `initial`")


def _tests(validation: Validation, network: MLP, theta: Array, loss: str) -> StepData:
    try:
        found = points(validation.rows(), 1, network, theta)
        check_numbers(found, loss, table=True)
        if found.weight is not None and not found.weight.any():  # all losses would be 0, and the first the best
            raise ValueError("weight must be positive in some row, got 0 in all; leave it out for equal weights")
        return found
    except ValueError as error:
        raise ValueError(f"validation: {error}") from None


def gradient(network: MLP, theta: Any, data: Data, **options: Any) -> tuple[Array, Array]:
    """Return each member's loss [S] and gradient [parameters, S] on a batch, by NumPy; options as in `train`."""
    theta = as_array(theta)
    return numpy_steps.gradient(initial_state(network, theta, steps=0, **options), points(data, 1, network, theta))
