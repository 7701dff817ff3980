"""What the members are trained on: one batch for all steps, a stream of new ones, or the rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit.base.ranges import as_count
from plunit.ensemble.arrays import Array, as_array
from plunit.ensemble.losses import PROBABILITIES
from plunit.ensemble.mlp import MLP

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
        weight: of each row [n], with mean 1 to keep the scale of the loss; None is 1 for all.
        batch: rows of each step, drawn by each member for itself; 0 takes all rows at each step. In one pass over the
            table a member meets each row once; put the rows in random order first.
        seeds: of the members' draws, [S].
    """

    x: Any
    y: Any
    weight: Any = None
    batch: int = 0
    seeds: Sequence[int] = ()

    def __post_init__(self) -> None:
        as_count("batch", self.batch)

    def draw(self, member: int, first: int, count: int) -> Array:
        """Return the rows that a member meets at positions first, ..., first + count - 1: start + stride i mod n.

        Start and stride are hashes of (seed, pass); programs/csrc/rows.h has the same formula.
        """
        n = len(self.x)
        position = np.arange(first, first + count)
        found = np.empty(count, dtype=np.int64)
        for number in range(first // n, (first + count - 1) // n + 1):
            start, stride = _progression(int(self.seeds[member]), number, n)
            inside = position // n == number
            found[inside] = (start + stride * (position[inside] % n)) % n
        return found


def _progression(seed: int, number: int, n: int) -> tuple[int, int]:
    golden = 0x9E3779B97F4A7C15
    x = _mix(seed + golden * (number + 1))
    start = _mix(x) % n
    while True:
        x = _mix(x + golden)
        if np.gcd(x % n, n) == 1:
            return start, x % n


def _mix(x: int) -> int:
    """Return splitmix64's output function."""
    x &= 2**64 - 1
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


@dataclass(frozen=True)
class StepData:
    """The points of some steps, for the engines: x [steps or 1, in, n, members or 1], y and weight likewise.

    The arrays may be views with any strides. `rows` holds the table if its rows are drawn.
    """

    x: Array
    y: Array
    weight: Array | None = None
    rows: Rows | None = None

    @property
    def count(self) -> int:
        """The number of points."""
        return int(self.x.shape[2])


def check_numbers(data: StepData, loss: str, *, table: bool) -> None:
    """Raise ValueError if a number is one that no training survives, and say where."""
    axes = ("row", "column") if table else ("point", "unit")
    for name, part in (("inputs", data.x), ("targets", data.y), ("weight", data.weight)):
        if part is not None and not _is_finite(part):
            remedy = f"drop such {axes[0]}s, or scale the numbers"
            raise ValueError(_text(f"{name} must be finite in {part.dtype}", part, ~np.isfinite(part), axes, remedy))
    y, weight = data.y, data.weight
    if loss in PROBABILITIES and (y.min() < 0 or y.max() > 1):
        rule = f"targets of the loss {loss} must be from 0 to 1"
        raise ValueError(_text(rule, y, (y < 0) | (y > 1), axes, "scale them, or take the loss square"))
    if weight is not None and weight.min() < 0:
        raise ValueError(_text("weight must not be negative", weight, weight < 0, axes, f"drop such {axes[0]}s"))
    others = [seed for seed in data.rows.seeds if not hasattr(seed, "__index__")] if data.rows else []
    if others:
        raise ValueError(f"seeds must be integers, got {others[0]!r}; pass range(members), for example")


def _text(rule: str, part: Array, bad: Array, axes: tuple[str, str], remedy: str) -> str:
    """Return the rule, the first bad number of a part, its place and the remedy."""
    step, unit, point, member = place = tuple(np.argwhere(bad)[0].tolist())
    parts = ((axes[0], point, 0), (axes[1], unit, part.shape[1]), ("member", member, part.shape[3]))
    where = [f"{axis} {i}" for axis, i, length in parts if length != 1]
    where += [f"step {step}"] if len(part) > 1 else []
    return f"{rule}, got {part[place]} in {', '.join(where)}; {remedy}"


def _is_finite(part: Array) -> bool:
    """Return whether all numbers are finite: their sum is, except for large ones."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(part.sum()) or np.isfinite(part).all())


def points(data: Data | Stream | Rows, steps: int, network: MLP, theta: Array) -> StepData:
    """Return the points of the next steps, checked, in the dtype of theta."""
    if isinstance(data, Rows):
        return _table(data, network, theta)
    given = data(steps) if callable(data) else data
    try:
        x, y = given
    except (TypeError, ValueError):
        kind = type(given).__name__
        raise ValueError(f"data must be Rows, a pair (inputs, targets) or a function of such, got {kind}") from None
    x, y = as_array(x, theta.dtype, "inputs"), as_array(y, theta.dtype, "targets")
    if not callable(data):
        x, y = (part[None] if part.ndim == 3 else part[None, ..., None] for part in (x, y))
    shape = (steps if callable(data) else 1, max(1, x.shape[2]) if x.ndim == 4 else 0)
    for part, units, name in ((x, network.widths[0], "inputs"), (y, network.widths[-1], "targets")):
        if part.ndim != 4 or part.shape[:3] != (shape[0], units, shape[1]) or part.shape[3] not in {1, theta.shape[1]}:
            raise ValueError(
                f"{name} must be [{units}, batch] or [{units}, batch, {theta.shape[1]}], in a stream with a first axis "
                f"of {steps} steps, one point or more, and as many in inputs and targets; got {tuple(part.shape)}"
            )
    return StepData(x, y)


def _table(rows: Rows, network: MLP, theta: Array) -> StepData:
    x, y = as_array(rows.x, theta.dtype, "inputs"), as_array(rows.y, theta.dtype, "targets")
    for part, units, name in ((x, network.widths[0], "inputs"), (y, network.widths[-1], "targets")):
        if part.ndim != 2 or part.shape[1] != units or len(part) != len(x) or not len(part):
            raise ValueError(
                f"{name} must be [rows, {units}], one row or more, as many in inputs and targets; got {part.shape}"
            )
    weight = None if rows.weight is None else as_array(rows.weight, theta.dtype, "weight")
    if weight is not None and weight.shape != (len(x),):
        raise ValueError(f"weight must be [{len(x)}], one for each row; got {weight.shape}")
    if rows.batch and len(rows.seeds) != theta.shape[1]:
        raise ValueError(
            f"draws need one seed for each of {theta.shape[1]} members, got {len(rows.seeds)} with batch {rows.batch}"
        )
    return StepData(
        x.T[None, :, :, None],
        y.T[None, :, :, None],
        None if weight is None else weight[None, None, :, None],
        rows if rows.batch else None,
    )
