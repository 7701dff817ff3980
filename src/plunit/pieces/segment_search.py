"""Places for the knots of least-squares segments: a start by dynamic programming, exchanges of knots, single moves.

The start follows Bellman (1961; docs/literature.md).
"""

from __future__ import annotations

import numpy as np

from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.segment_steps import CLOSEST, refined
from plunit.pieces.segment_sums import Chains, Parabola, Sums, chains, extended, joined

PLACES = 96
"""The number of places for knots at the start, about."""

EXCHANGES = 6
"""The most rounds of exchanges."""

PASSES = 3
"""The most passes of single moves after the first."""

WORTH = 1e-4
"""An exchange must lower the error by this part."""

WINDOW, SHRINK, MOVES = 128.0, 0.3, 7
"""The first window for single moves, in mean distances of two points; how it shrinks, and how often it is used."""

_OFFSETS = np.linspace(-1, 1, 49)[:, None]


def places(x: Floats, segments: int) -> Floats:
    """Return places for knots, PLACES or two for each segment: quantiles of the distinct x, or all and some between."""
    count = max(PLACES, 2 * segments)
    if len(x) <= count:
        between = max(1, count // len(x))
        return np.interp(np.arange((len(x) - 1) * between + 1) / between, np.arange(len(x)), x)
    return x.take(np.round(np.linspace(0, len(x) - 1, count)).astype(int))


def starts(sums: Sums, where: Floats, most: int) -> list[Floats]:
    """Return knots for 1, ..., most segments, by dynamic programming over the places.

    For each place and each number of segments one parabola is kept: that of the best place for the knot before. For
    another value at this knot another place could be better. So the result is not the optimum, but a start.
    """
    later = np.arange(len(where)) > np.arange(len(where))[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = sums.between(where[:, None], where)
    first = np.arange(len(where)) == 0
    parabola = Parabola(np.full(len(where), sums.ridge), np.zeros(len(where)), np.where(first, 0.0, np.inf))
    before: list[Ints] = []
    at = np.arange(len(where))
    for _ in range(most):
        with np.errstate(all="ignore"):
            new = extended(Parabola(*(part[:, None] for part in parabola)), parts, sums.ridge)
            least = new.c - new.b * new.b / (new.a + sums.ridge)
        origin = np.argmin(np.where(later & ~np.isnan(least), least, np.inf), axis=0)
        parabola = Parabola(*(part[origin, at] for part in new))
        parabola = parabola._replace(c=np.where(later[origin, at], parabola.c, np.inf))
        before.append(origin)
    return [where[_trace(before[: count + 1])] for count in range(most)]


def _trace(before: list[Ints]) -> Ints:
    """Return the places of the knots that end at the last place."""
    at = [len(before[0]) - 1]
    for origin in reversed(before):
        at.append(int(origin[at[-1]]))
    return np.array(at[::-1])


def exchanged(sums: Sums, knots: Floats, where: Floats) -> tuple[Floats, float]:
    """Return better knots [k + 1] and their squared error: take a knot out, put it in elsewhere, while that helps."""
    found, errors = refined(sums, knots[None], 8)
    knots, error = found[0], float(errors[0])
    # few points: time does not matter, and there are many local minima
    width = 2 if len(sums.x) > PLACES else 6
    for _ in range(EXCHANGES if len(knots) > 2 else 0):
        trials = np.concatenate([inserted(sums, fewer, where, width) for fewer in removed(sums, knots, 2 * width)])
        found, errors = refined(sums, trials, 8)
        lowest = int(np.argmin(errors))
        if not errors[lowest] < error * (1 - WORTH):
            break
        knots, error = found[lowest], float(errors[lowest])
    return settled(sums, knots)


def settled(sums: Sums, knots: Floats) -> tuple[Floats, float]:
    """Return better knots [k + 1] and their squared error: single moves and steps of all, while that helps."""
    knots, error = shifted(sums, knots)
    for _ in range(PASSES if len(knots) > 3 else 0):
        trial, found = shifted(sums, refined(sums, knots[None], 8)[0][0])
        if not found < error * (1 - 1e-7):
            break
        knots, error = trial, found
    return knots, error


def removed(sums: Sums, knots: Floats, keep: int) -> Floats:
    """Return the sets of knots with one inner knot less whose errors are least, [keep, k]."""
    chain = chains(sums, knots)
    across = extended(Parabola(*chain.before[:, :-2]), sums.between(knots[:-2], knots[2:]), sums.ridge)
    errors = joined(across, Parabola(*chain.behind[:, 2:]), sums.ridge)
    return np.stack([np.delete(knots, j + 1) for j in np.argsort(errors, kind="stable")[:keep]])


def inserted(sums: Sums, knots: Floats, where: Floats, keep: int) -> Floats:
    """Return the sets with one knot more whose errors are least, [keep, k + 1]; the new knot is one of the places.

    The places are local minima of the error, so that the sets differ.
    """
    free = where[np.abs(where[:, None] - knots).min(axis=1) > 8 * CLOSEST]
    at = np.searchsorted(knots, free) - 1
    error = _through(sums, chains(sums, knots), knots, at, free, at + 1)
    around = np.concatenate([[np.inf], error, [np.inf]])
    low = np.flatnonzero((error <= around[:-2]) & (error <= around[2:]))
    best = low[np.argsort(error[low], kind="stable")[:keep]]
    return np.sort(np.concatenate([np.broadcast_to(knots, (len(best), len(knots))), free[best, None]], axis=1), axis=1)


def _through(sums: Sums, chain: Chains, knots: Floats, before: Ints, place: Floats, behind: Ints) -> Floats:
    """Return the errors of curves that go from the knot `before` to a knot at `place`, then to the knot `behind`."""
    left = extended(Parabola(*chain.before[:, before]), sums.between(knots[before], place), sums.ridge)
    right = extended(Parabola(*chain.behind[:, behind]), sums.between(place, knots[behind]).reversed(), sums.ridge)
    return sums.total + joined(left, right, sums.ridge)


def shifted(sums: Sums, knots: Floats) -> tuple[Floats, float]:
    """Return better knots [k + 1] and their squared error: single moves within a window that shrinks.

    The error has a kink, and may have a minimum, at every point of the data that a knot crosses. Gauss-Newton steps do
    not see that. The last window is a fraction of the distance of two points.
    """
    chain = chains(sums, knots)
    window, inner = WINDOW / len(sums.x), np.arange(1, len(knots) - 1)
    for _ in range(MOVES if len(inner) else 0):
        room = 0.45 * (np.diff(knots) - CLOSEST)
        place = knots[inner] + np.clip(window * _OFFSETS, -room[:-1], room[1:])
        errors = _through(sums, chain, knots, inner - 1, place, inner + 1)
        low = np.argmin(errors, axis=0)
        best = int(np.argmin(errors[low, inner - 1]))
        every, single = knots.copy(), knots.copy()
        every[inner], single[best + 1] = place[low, inner - 1], place[low[best], best]
        for trial in (every, single):
            found = chains(sums, trial)
            if found.error < chain.error:
                chain, knots = found, trial
                break
        window *= SHRINK
    return knots, chain.error
