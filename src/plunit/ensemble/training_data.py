"""The data of a training run, checked, and its validation rows.

Members are trained on one batch for all steps, on a stream of new batches, or on the rows of a table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit.base.ranges import as_count
from plunit.ensemble.arrays import Array, as_array
from plunit.ensemble.mlp import MLP
from plunit.ensemble.nonlinearities import PROBABILITIES

Data = tuple[Any, Any]
"""Inputs [in, batch] and targets [out, batch], shared by the members; or [in, batch, S] and [out, batch, S]."""

Stream = Callable[[int], Data]
"""Called with n, returns the batches of the next n steps: [n, in, batch, S] and [n, out, batch, S]."""


@dataclass(frozen=True)
class Rows:
    """The rows of a table, for all members.

    Attributes:
        x: inputs [n, in].
        y: targets [n, out].
        weight: the weight of each row [n], with mean 1 to keep the scale of the loss; None means 1 for all.
        batch: rows of each step, drawn separately for each member; 0 uses all rows at each step. In one pass over the
            table a member sees each row once; shuffle the rows first.
        seeds: the seeds of the members' draws, [S].
        held: the number of validation rows of each member, which it does not draw (see `search_networks`); needs a
            batch.
        firsts: the first of them for each member [S]; row 0 follows the last row.
    """

    x: Any
    y: Any
    weight: Any = None
    batch: int = 0
    seeds: Sequence[int] = ()
    held: int = 0
    firsts: Sequence[int] = ()

    def __post_init__(self) -> None:
        as_count("batch", self.batch)
        if self.held and not (self.batch and 0 < self.held < len(self.x)):
            raise ValueError(
                f"held must be from 1 to {len(self.x) - 1}, so that rows are left to draw, with batch > 0; got "
                f"{self.held} with batch {self.batch}"
            )

    def draw(self, member: int, first: int, count: int) -> Array:
        """Return the rows that a member draws at positions first, ..., first + count - 1: start + stride i mod n.

        Start and stride are hashes of (seed, pass). Rows are counted from the end of the held ones;
        programs/csrc/rows.h has the same formula.
        """
        n = len(self.x) - self.held
        position = np.arange(first, first + count)
        found = np.empty(count, dtype=np.int64)
        for number in range(first // n, (first + count - 1) // n + 1):
            start, stride = _progression(int(self.seeds[member]), number, n)
            inside = position // n == number
            found[inside] = (start + stride * (position[inside] % n)) % n
        return self._behind(found + self.held, self.firsts[member]) if self.held else found

    def _behind(self, rows: Array, first: Any) -> Array:
        """Return the row numbers counted from `first`; row 0 follows the last row."""
        return np.asarray((rows + first) % len(self.x))

    def without_held(self, first: int) -> tuple[Rows, Rows]:
        """Return the training rows and the held rows of a member whose held rows begin at `first`."""
        tests, train = np.split(self._behind(np.arange(len(self.x)), first), [self.held])
        x, y = np.asarray(self.x), np.asarray(self.y)
        if self.weight is None:
            return Rows(x[train], y[train], batch=self.batch), Rows(x[tests], y[tests])
        weight = np.asarray(self.weight, np.float64)
        held = weight[tests] / weight[tests].mean()
        return Rows(x[train], y[train], weight[train], self.batch), Rows(x[tests], y[tests], held)


def _progression(seed: int, number: int, n: int) -> tuple[int, int]:
    golden = 0x9E3779B97F4A7C15
    x = _mix(seed + golden * (number + 1))
    start = _mix(x) % n
    while True:
        x = _mix(x + golden)
        if np.gcd(x % n, n) == 1:
            return start, x % n


def _mix(x: int) -> int:
    """Return the output function of splitmix64."""
    x &= 2**64 - 1
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


@dataclass(frozen=True)
class Validation:
    """Validation rows, and the rule for early stopping.

    Attributes:
        x: inputs [n, in]; None if each member has its own held rows, see `Rows.held`.
        y: targets [n, out]; None as for x.
        weight: the weight of each row [n]; None means 1 for all.
        every: steps between validations.
        patience: a member stops after this number of validations in a row without a gain of `tolerance`.
        tolerance: see `patience`.
        average: validate and keep the running mean of the parameters over about this fraction of the steps so far;
            0 uses the parameters themselves, 1 the mean of all steps.
    """

    x: Any = None
    y: Any = None
    weight: Any = None
    every: int = 10
    patience: float = math.inf
    tolerance: float = 0.0
    average: float = 0.0

    def __post_init__(self) -> None:
        as_count("every", self.every, 1)
        if not self.patience > 0 or not 0 <= self.tolerance < math.inf:
            raise ValueError(f"patience must be > 0 and tolerance >= 0, got {self.patience} and {self.tolerance}")
        if not 0 <= self.average <= 1:
            raise ValueError(f"average must be a fraction of the steps, from 0 to 1, got {self.average}")

    def rows(self) -> Rows:
        """Return the validation rows."""
        return Rows(self.x, self.y, self.weight)


@dataclass(frozen=True)
class StepData:
    """The points of some steps, for the engines: x [steps or 1, in, n, members or 1]; y and weight have the same axes.

    The arrays may be views with any strides. `rows` holds the table if its rows are drawn.
    """

    x: Array
    y: Array
    weight: Array | None = None
    rows: Rows | None = None


def points(data: Data | Stream | Rows, steps: int, network: MLP, theta: Array) -> StepData:
    """Return the points of the next steps in the dtype of theta, after checking their shapes."""
    rows, streamed, members = data if isinstance(data, Rows) else None, callable(data), theta.shape[1]
    given: Any = (rows.x, rows.y) if rows else data(steps) if callable(data) else data
    try:
        x, y = given
    except (TypeError, ValueError):
        kind = type(given).__name__
        raise ValueError(f"data must be Rows, a pair (inputs, targets) or a function of pairs, got {kind}") from None
    found: list[Array] = []
    for name, part, units in (("inputs", x, network.widths[0]), ("targets", y, network.widths[-1])):
        array = as_array(part, theta.dtype, name)
        whole = array if streamed else (array.T if rows else array)[None]
        whole = whole[..., None] if whole.ndim == 3 and not streamed else whole
        fits = whole.ndim == 4 and whole.shape[:2] == (steps if streamed else 1, units)
        count = found[0].shape[2] if found else max(1, whole.shape[2]) if fits else 0
        fits = fits and whole.shape[2] == count and whole.shape[3] in {1, members}
        if not fits or (rows and array.ndim != 2):
            batch = f"[{units}, batch] or [{units}, batch, {members}], in a stream with a first axis of {steps} steps"
            form = f"[rows, {units}]" if rows else batch
            raise ValueError(
                f"{name} must be {form}, with at least one point and the same number in inputs and targets; got "
                f"{array.shape}"
            )
        found.append(whole)
    x, y = found
    return StepData(x, y, *(_weight_and_draws(rows, x.shape[2], theta) if rows else ()))


def held_points(rows: Rows, theta: Array) -> StepData:
    """Return the held rows of each member, [1, in or out, held, S], with weights of mean 1."""
    chosen = rows._behind(np.arange(rows.held)[:, None], np.asarray(rows.firsts, np.int64))
    x, y = (
        np.ascontiguousarray(np.moveaxis(as_array(part, theta.dtype, name)[chosen], -1, 0))[None]
        for name, part in (("inputs", rows.x), ("targets", rows.y))
    )
    if rows.weight is None:
        return StepData(x, y)
    weight = np.asarray(rows.weight, np.float64)[chosen]
    return StepData(x, y, (weight / weight.mean(0)).astype(theta.dtype)[None, None])


def _weight_and_draws(rows: Rows, count: int, theta: Array) -> tuple[Array | None, Rows | None]:
    if rows.batch and len(rows.seeds) != theta.shape[1]:
        raise ValueError(
            f"draws need one seed for each of {theta.shape[1]} members, got {len(rows.seeds)} with batch {rows.batch}"
        )
    if rows.held and len(rows.firsts) != theta.shape[1]:
        raise ValueError(f"firsts must have one row for each of {theta.shape[1]} members, got {len(rows.firsts)}")
    drawn = rows if rows.batch else None
    if rows.weight is None:
        return None, drawn
    weight = as_array(rows.weight, theta.dtype, "weight")
    if weight.shape != (count,):
        raise ValueError(f"weight must be [{count}], one for each row; got {weight.shape}")
    return weight[None, None, :, None], drawn


def check_numbers(data: StepData, loss: str, *, table: bool) -> None:
    """Raise ValueError, with the place, if a number is invalid for training."""
    axes = ("row", "column") if table else ("point", "unit")
    drop = f"drop such {axes[0]}s"
    for name, part in (("inputs", data.x), ("targets", data.y), ("weight", data.weight)):
        if part is not None and not _is_finite(part):
            rule = f"{name} must be finite in {part.dtype}"
            raise ValueError(_text(rule, part, ~np.isfinite(part), axes, f"{drop}, or scale the numbers"))
    y, weight = data.y, data.weight
    if loss in PROBABILITIES and (y.min() < 0 or y.max() > 1):
        rule = f"targets of the loss {loss} must be from 0 to 1"
        raise ValueError(_text(rule, y, (y < 0) | (y > 1), axes, 'scale them, or use the loss "square"'))
    if weight is not None and weight.min() < 0:
        raise ValueError(_text("weight must not be negative", weight, weight < 0, axes, drop))
    others = [seed for seed in data.rows.seeds if not hasattr(seed, "__index__")] if data.rows else []
    if others:
        raise ValueError(f"seeds must be integers, got {others[0]!r}; pass range(members), for example")


def _text(rule: str, part: Array, bad: Array, axes: tuple[str, str], remedy: str) -> str:
    """Return the message: the rule, the first bad number of a part, its place and the remedy."""
    step, unit, point, member = place = tuple(np.argwhere(bad)[0].tolist())
    parts = ((axes[0], point, 0), (axes[1], unit, part.shape[1]), ("member", member, part.shape[3]))
    where = [f"{axis} {i}" for axis, i, length in parts if length != 1]
    where += [f"step {step}"] if len(part) > 1 else []
    return f"{rule}, got {part[place]} in {', '.join(where)}; {remedy}"


def _is_finite(part: Array) -> bool:
    """Return whether all numbers are finite; a finite sum shows it quickly."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(part.sum()) or np.isfinite(part).all())
