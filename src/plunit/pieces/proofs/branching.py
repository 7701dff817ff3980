"""Branch and bound: the best point found in a domain, and a bound on all values in it.

`search` keeps the parts of the domain (`Nodes`) that may still contain a larger value. In each round it bounds a batch
of them, evaluates the points that the bounds suggest, drops the parts that cannot matter, and halves the rest. Rounds
alternate between the parts with the largest bounds and those with the best points. A round depends only on the nodes,
so the answer is the same for any number of threads, unless the time runs out.

Two other searches halve boxes and have their own loops, because their nodes are only boxes: they have no splits of
units, no ranges to narrow, and no compiled step. `plunit.expressions.distance` bounds an expression, which has no
layers; `plunit.pieces.fixed.error_bounds` bounds all outputs at once, relative to the error at single points.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np

from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.exact.limits import MEMORY, Report
from plunit.pieces.proofs.bounding import Answer, Nodes, Query, bound_nodes, prover
from plunit.pieces.proofs.properties import Domain
from plunit.pieces.rounding import FLOOR

SECONDS = 60.0
"""The default time limit."""

POINTS = 64
STEPS = 20
"""Random points before the search, and how often each is moved along its gradient."""

WALKS = 6
"""The number of random points of each node, each moved uphill."""

CHECKED = 8
"""The number of best points of a round that are checked exactly."""

TRIED = 2**16
"""The largest number of inputs of a program that are tried in a round."""

INWARD = 1e-12
"""The fraction of the way to the centre of the domain by which a point is moved off the constraints."""


class Aim(Protocol):
    """A value to maximise, at points x [n, in]; -inf outside the domain.

    Inherit from this class. If several questions are asked at once, case [n] says which one a point belongs to. Floors
    [n, g] are the values that the goals of the query must reach for the value to exceed `least`.
    """

    @property
    def query(self) -> Query:
        """The network and the goals that are bounded."""

    @property
    def lattice(self) -> Lattice | None:
        """The inputs of a program, if only these count; then the answer is exact."""
        return None

    def values_and_gradients(self, x: Floats, case: Ints) -> tuple[Floats, Floats]:
        """Return the values at x, and their gradients."""

    def floors(self, case: Ints, least: float) -> Floats:
        """Return the values that the goals must reach."""

    def bounds(self, nodes: Nodes, answer: Answer, least: float) -> Floats:
        """Return the bound of each node."""


class Lattice(Protocol):
    """The inputs of a program, which are few enough in a small box to try them all."""

    def snap(self, boxes: Floats) -> Floats:
        """Shrink boxes [n, in, 2], in place, to the inputs in them, and return the number of inputs in each."""

    def widest(self, boxes: Floats) -> Ints:
        """Return, for each box, the index of the dimension with the most values."""

    def try_all(self, boxes: Floats, case: Ints) -> BestPoint:
        """Run the program on all inputs in the boxes, and return the best."""


@dataclass(frozen=True)
class Effort:
    """The time limit in seconds, and a function that is called with the progress."""

    seconds: float = np.inf
    progress: Report | None = None

    @classmethod
    def of(cls, time_limit: float | None, progress: Report | None) -> Effort:
        """Return the effort for a time limit, None for no limit; ValueError unless it is positive."""
        if time_limit is None:
            return cls(progress=progress)
        number = isinstance(time_limit, (int, float, np.number)) and not isinstance(time_limit, bool)
        if not number or not time_limit > 0:
            raise ValueError(
                f"time_limit must be a positive number of seconds, or None for no limit, got {time_limit!r}"
            )
        return cls(float(min(time_limit, 1e300)), progress)

    def after(self, start: float) -> Effort:
        """Return what is left of an effort that began at this time of `time.monotonic`."""
        return replace(self, seconds=max(self.seconds - (time.monotonic() - start), 0.0))


@dataclass(frozen=True, eq=False)
class Extreme:
    """x [in] with the largest value found, and its case; no value is above `bound`; scale: the largest |value| found.

    ended: whether the search continued until no part was left that could exceed `least`; found: whether `accept`
    accepted x.
    """

    x: Floats
    case: int
    value: float
    bound: float
    scale: float
    ended: bool
    found: bool = False


Accept = Callable[[Floats, int], Floats | None]
"""Returns, for x [in] and its case, the point at or near x that is sought, or None."""


def search(
    aim: Aim,
    boxes: Floats,
    effort: Effort,
    *,
    gap: float = 0.0,
    least: float = -np.inf,
    accept: Accept | None = None,
) -> Extreme:
    """Return the largest value over boxes [n, in, 2]; or, with `accept`, look for a value above `least`.

    Args:
        aim: the value to maximise.
        boxes: one for each case.
        effort: the time limit and the progress display.
        gap: parts whose bound exceeds the best value by at most this fraction of the scale are dropped.
        least: with `accept`, parts without a value above it are dropped, and the bound is never below it.
        accept: the search ends when it returns a point.
    """
    engine, query, lattice = prover(), aim.query, aim.lattice
    start = time.monotonic()
    end = start + effort.seconds
    best = _best(*_first_points(aim, boxes, end), accept, least, end)

    def level() -> float:
        """Return the level that bounds must exceed; FLOOR is in it because underflow widens bounds of a constant 0."""
        return least if accept else best.value + gap * best.scale + FLOOR

    rng = np.random.default_rng(0)
    pool, closed, batch, rounds = _Pool(Nodes.roots(query, boxes)), -np.inf, 2, 0
    while len(pool) and not best.found:
        # an uncertain value must not drop a part that may contain a better one
        top = max(level(), closed, pool.bound)
        unfinished = Extreme(best.x, best.case, best.value, max(top, best.value), best.scale, ended=False)
        if (seconds := end - time.monotonic()) <= 0:
            return unfinished
        if effort.progress is not None:
            _tell(effort, start, best.value, top, len(pool))
        nodes, before = pool.take(batch, by_value=rounds % 2 == 1)
        batch, rounds = min(2 * batch, query.batch), rounds + 1
        floor = level()
        nodes.floors[:] = aim.floors(nodes.case, floor)
        answer = bound_nodes(query, nodes, engine, seconds)
        if answer is None:
            return unfinished
        count = None if lattice is None else lattice.snap(nodes.box)
        bounds = np.fmin(aim.bounds(nodes, answer, floor), before)  # NaN is not a bound
        points, cases, values = _tries(aim, nodes, answer.x, rng)
        best = best.after(_best(points, cases, values, accept, least, end))
        pool.drop(level())
        left = bounds > level()
        if lattice is not None and count is not None:
            few = left & (count > 0) & (count <= TRIED // len(nodes))
            if few.any():
                best = best.after(lattice.try_all(nodes.box[few], nodes.case[few]))
            left &= (count > TRIED // len(nodes)) & (bounds > level())
            flat = left & (answer.branch[:, 0] < 0)
            answer.branch[flat, 0] = lattice.widest(nodes.box[flat])
        leaves = left & (answer.branch[:, 0] < 0)
        closed = max(closed, bounds[leaves].max(initial=-np.inf))
        left &= ~leaves
        halves = nodes[left].halves(answer.branch[left], query.net.tables.knots)
        pool.add(halves, np.repeat(bounds[left], 2), np.repeat(values[: len(nodes)][left], 2))
    if best.found:
        return Extreme(best.x, best.case, best.value, np.inf, best.scale, ended=False, found=True)
    return Extreme(best.x, best.case, best.value, max(level(), closed), best.scale, ended=True)


@dataclass(frozen=True, eq=False)
class BestPoint:
    """The best point so far, the largest |value| found, and whether `accept` accepted the point."""

    x: Floats
    case: int
    value: float
    scale: float
    found: bool

    def after(self, new: BestPoint) -> BestPoint:
        """Return the better of the two, with the larger scale."""
        return replace(new if new.found or new.value > self.value else self, scale=max(self.scale, new.scale))


def _best(x: Floats, case: Ints, values: Floats, accept: Accept | None, least: float, end: float) -> BestPoint:
    """Return the best of points x [n, in]; with `accept`, its point for the first of the best few that it accepts."""
    order = np.argsort(-values, kind="stable")
    scale = float(np.abs(values, where=np.isfinite(values), out=np.zeros_like(values)).max())
    if accept is not None:
        for i in order[:CHECKED]:
            near = accept(x[i], int(case[i])) if values[i] >= least - 1e-9 * scale else None
            if near is not None:
                return BestPoint(near, int(case[i]), float(values[i]), scale, found=True)
            if time.monotonic() > end:
                break
    return BestPoint(x[order[0]], int(case[order[0]]), float(values[order[0]]), scale, found=False)


def _first_points(aim: Aim, boxes: Floats, end: float) -> tuple[Floats, Ints, Floats]:
    """Move random points uphill, and return the best point on each path, with its case and value.

    They stop when the time runs out; if it has run out at the start, there is only one point.
    """
    x, case = _starts(aim.query.domain, boxes)
    if time.monotonic() > end:
        x, case = x[:1], case[:1]
    low, high = boxes[case, :, 0], boxes[case, :, 1]
    values, slopes = aim.values_and_gradients(x, case)
    best, top = x, values
    for step in np.geomspace(0.2, 1e-2, STEPS):
        if time.monotonic() > end:
            break
        x = np.clip(x + step * (high - low) * np.sign(slopes), low, high)
        values, slopes = aim.values_and_gradients(x, case)
        better = values > top
        best, top = np.where(better[:, None], x, best), np.where(better, values, top)
    return best, case, top


def _starts(domain: Domain, boxes: Floats) -> tuple[Floats, Ints]:
    if len(boxes) == 1:
        x = domain.points(POINTS)
        return x, np.zeros(len(x), dtype=np.int64)
    case = np.arange(len(boxes))
    return boxes.sum(axis=2) / 2, case


def _tries(aim: Aim, nodes: Nodes, x: Floats, rng: np.random.Generator) -> tuple[Floats, Ints, Floats]:
    """Return points, cases and values: x, x rounded to six digits, and random points with two steps uphill."""
    case = np.tile(nodes.case, WALKS)
    low, high = (np.tile(nodes.box[..., side], (WALKS, 1)) for side in (0, 1))
    walk = low + (high - low) * rng.random(low.shape)
    near = [x, _round(x)]
    if (centre := aim.query.centre) is not None:  # x lies on the constraints, which must hold exactly
        near.append(x + INWARD * (centre - x))
    points, cases = np.concatenate([*near, walk]), np.concatenate([*[nodes.case] * len(near), case])
    values, slopes = aim.values_and_gradients(points, cases)
    found, seen, slopes = [points], [values], slopes[len(near) * len(nodes) :]
    for step in (0.5, 0.25):
        walk = np.clip(walk + step * (high - low) * np.sign(slopes), low, high)
        value, slopes = aim.values_and_gradients(walk, case)
        found.append(walk)
        seen.append(value)
    return np.concatenate(found), np.concatenate([cases, case, case]), np.concatenate(seen)


def _round(x: Floats) -> Floats:
    """Return x rounded to six digits, none beyond 1e-300, so that a solution at a round number is met exactly."""
    places = 5 - np.floor(np.log10(np.where(x == 0, 1.0, np.abs(x))))
    digits = 10.0 ** np.minimum(places, 300.0)
    return np.asarray(np.round(x * digits) / digits)


def _tell(effort: Effort, start: float, value: float, top: float, parts: int) -> None:
    spent = time.monotonic() - start
    done = min(spent / effort.seconds, 1.0) if np.isfinite(effort.seconds) else 0.0
    assert effort.progress is not None
    effort.progress(done, f"between {value:.6g} and {top:.6g}, {parts:,} parts left after {spent:.0f} s")


class _Pool:
    """The nodes still to be bounded, in arrays that grow; their bounds, and the values at their parents' points."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes, self._used = nodes, np.ones(len(nodes), dtype=np.bool_)
        self._bounds, self._values = np.full(len(nodes), np.inf), np.full(len(nodes), -np.inf)

    def __len__(self) -> int:
        return int(self._used.sum())

    @property
    def bound(self) -> float:
        """The largest bound."""
        return float(self._bounds.max(where=self._used, initial=-np.inf))

    def take(self, count: int, *, by_value: bool) -> tuple[Nodes, Floats]:
        """Remove and return nodes with the largest bounds, or with the largest values, and their bounds.

        If there are more nodes than fit in memory, the newest are removed first, which keeps their number small.
        """
        places = np.flatnonzero(self._used)
        full = len(places) * self._bytes() > MEMORY
        key = np.arange(len(places)) if full else (self._values if by_value else self._bounds)[places]
        count = min(count, len(places))
        chosen = np.sort(places[np.argpartition(-key, count - 1)[:count]]) if count < len(places) else places
        self._used[chosen] = False
        return self._nodes[chosen], self._bounds[chosen]

    def drop(self, level: float) -> None:
        """Drop the nodes that cannot exceed the level."""
        self._used &= self._bounds > level

    def add(self, nodes: Nodes, bounds: Floats, values: Floats) -> None:
        """Add nodes to the pool."""
        splits = max(nodes.split_unit.shape[1], self._nodes.split_unit.shape[1])
        self._nodes, nodes = self._nodes.with_splits(splits), nodes.with_splits(splits)
        free = np.flatnonzero(~self._used)
        if len(free) < len(nodes):
            self._grow(len(self._used) + len(nodes))
            free = np.flatnonzero(~self._used)
        places = free[: len(nodes)]
        for field in fields(nodes):
            getattr(self._nodes, field.name)[places] = getattr(nodes, field.name)
        self._bounds[places], self._values[places], self._used[places] = bounds, values, True

    def _grow(self, more: int) -> None:
        def longer(array: Any) -> Any:
            return np.concatenate([array, np.zeros((more, *array.shape[1:]), dtype=array.dtype)])

        self._nodes = replace(
            self._nodes, **{field.name: longer(getattr(self._nodes, field.name)) for field in fields(self._nodes)}
        )
        self._used, self._bounds, self._values = longer(self._used), longer(self._bounds), longer(self._values)

    def _bytes(self) -> int:
        return sum(getattr(self._nodes, field.name)[:1].nbytes for field in fields(self._nodes))
