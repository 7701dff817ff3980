"""Places for the knots of least-squares segments: dynamic programs over places in all of the interval.

The programs follow Bellman (1961; docs/literature.md).
"""

from __future__ import annotations

import numpy as np

from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.segment_steps import CLOSEST, fit_values, refined
from plunit.pieces.segment_sums import Parabola, Parts, Sums, extended, joined
from plunit.pieces.segment_windows import tuned

PLACES = 64
"""The number of places for knots, about; up to twice as many for few points, because then the points are places."""

PATHS = 6
"""The number of sets of knots that each program gives."""

STEPS = 5
"""The Gauss-Newton steps of each set."""

ROUNDS, WORTH = 8, 1e-4
"""The most rounds of programs, and the part by which a round must lower the error if another one is to follow."""

MANY = 240
"""The most rounds times segments, because a round takes long for many segments; but two rounds at least."""

TUNED, SPREAD, NEAR = 3, 0.006, 6.0
"""The most sets of knots that are tuned; how far apart they are, as a part of half the interval; and how much larger
their errors may be than the least, as a part and times the number of points."""


def places(x: Floats, segments: int, shift: bool = False, knots: Floats | None = None) -> Floats:
    """Return places for knots: even steps through the distinct x, or the middles of these steps, and given knots."""
    last, few = len(x) - 1, 2 * PLACES
    steps = last * (few // last) if last <= few else max(PLACES, 2 * segments)
    at = np.linspace(0, last, steps + 1)
    if shift:
        at = np.concatenate([at[:1], (at[1:] + at[:-1]) / 2, at[-1:]])
    where = np.interp(at, np.arange(len(x)), x)
    # segments of clusters of points are too short for running sums
    thin = where[np.unique(np.floor(where / (8 * CLOSEST)), return_index=True)[1]]
    if len(thin) > segments:
        where = np.append(thin[:-1], where[-1])
    if knots is None:
        return where
    far = np.abs(where[:, None] - knots).min(axis=1) > 8 * CLOSEST
    return np.sort(np.concatenate([where[far], knots]))


def parts_between(sums: Sums, where: Floats) -> Parts:
    """Return the parts of the segments between all places, [from, to]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return sums.between(where[:, None], where)


def sweep(parts: Parts, ridge: float, count: int) -> tuple[list[Parabola], list[Ints]]:
    """Return the least errors from the first place to all places, and the places of the knots before.

    The lists hold 0, ..., count and 1, ..., count segments. One parabola is kept for each place: that of the best place
    for the knot before. For another value at this knot another place could be better. So the result is a start.
    """
    at = np.arange(len(parts.a))
    later = at > at[:, None]
    found = [Parabola(np.full(len(at), ridge), np.zeros(len(at)), np.where(at == 0, 0.0, np.inf))]
    before: list[Ints] = []
    for _ in range(count):
        with np.errstate(all="ignore"):
            new = extended(Parabola(*(part[:, None] for part in found[-1])), parts, ridge)
            least = np.where(later, new.c - new.b * new.b / (new.a + ridge), np.inf)
        origin = np.argmin(least, axis=0)
        reached = least[origin, at] < np.inf
        a, b, c = (np.where(reached, part[origin, at], other) for part, other in zip(new, (0, 0, np.inf), strict=True))
        found.append(Parabola(a, b, c))
        before.append(origin)
    return found, before


def starts(sums: Sums, where: Floats, most: int) -> list[Floats]:
    """Return knots for 1, ..., most segments."""
    _, before = sweep(parts_between(sums, where), sums.ridge, most)
    return [where[trace(before[: count + 1], len(where) - 1)] for count in range(most)]


def trace(before: list[Ints], last: int) -> list[int]:
    """Return the places of the knots up to the last one."""
    at = [last]
    for origin in reversed(before):
        at.append(int(origin[at[-1]]))
    return at[::-1]


def paths(sums: Sums, where: Floats, count: int) -> Floats:
    """Return up to PATHS sets of knots [sets, count + 1] with small errors, by a program from each end.

    Both together give the least error of the curves with any one knot at any one place. Local minima of this error over
    the place give sets that differ.
    """
    parts, last = parts_between(sums, where), len(where) - 1
    if count == 1:
        return where[[[0, last]]]
    left, before = sweep(parts, sums.ridge, count - 1)
    mirrored = Parts(*(part.T[::-1, ::-1] for part in parts.reversed()))
    right, behind = sweep(mirrored, sums.ridge, count - 1)
    errors = np.full((count - 1, last + 3), np.inf)
    for j in range(1, count):
        errors[j - 1, 1:-1] = joined(left[j], Parabola(*(part[::-1] for part in right[count - j])), sums.ridge)
    error = errors[:, 1:-1]
    rows, columns = np.nonzero((error <= errors[:, :-2]) & (error <= errors[:, 2:]) & (error < np.inf))
    found: dict[tuple[int, ...], None] = {}
    for i in np.argsort(error[rows, columns], kind="stable").tolist():
        j, place = int(rows[i]) + 1, int(columns[i])
        ahead = trace(behind[: count - j], last - place)[-2::-1]
        found[(*trace(before[:j], place), *(last - at for at in ahead))] = None
        if len(found) == PATHS:
            break
    return np.asarray(where[np.array(list(found))])


def searched(sums: Sums, distinct: Floats, count: int, knots: Floats | None = None) -> Floats:
    """Return the best knots [count + 1] found, from given knots or from none.

    The best knots of each round are among the places of the next one. So a program can exchange any of them for others.
    """
    sets = np.empty((0, count + 1)) if knots is None else knots[None]
    errors, lowest = fit_values(sums, sets).error, np.inf
    for turn in range(max(2, min(ROUNDS, MANY // count))):
        where = places(distinct, count, turn % 2 == 1, sets[0] if len(sets) else None)
        found, more = refined(sums, paths(sums, where, count), STEPS)
        sets, errors = np.concatenate([sets, found]), np.concatenate([errors, more])
        order = np.argsort(errors, kind="stable")
        sets, errors = sets[order], errors[order]
        lowest, before = errors[0], lowest
        if not before - lowest > WORTH * lowest:
            break
    near = sets[errors <= (1 + NEAR / len(sums.x)) * lowest]
    fits = [tuned(sums, distinct, one) for one in apart(near)]
    return min(fits, key=lambda fit: fit[1])[0]


def apart(sets: Floats) -> list[Floats]:
    """Return the first sets of knots, at most TUNED, that differ from each other by SPREAD in some knot."""
    chosen: list[Floats] = []
    for knots in sets:
        if len(chosen) < TUNED and all(np.abs(knots - other).max() > SPREAD for other in chosen):
            chosen.append(knots)
    return chosen
