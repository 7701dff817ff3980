"""The knots of least-squares segments at their best near where they are: dynamic programs over windows.

The error has a kink, and may have a minimum, at every point of the data that a knot crosses. So there are many local
minima, and knots side by side must move together to leave one.
"""

from __future__ import annotations

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.segment_steps import fit_values, knot_step, moved, rooms, slopes_of
from plunit.pieces.segment_sums import Parabola, Parts, Sums, chains, extended, joined

EVEN, GROWING = np.arange(17.0), np.append(0, np.geomspace(1 / 64, 3, 16))
DISTANCES = (6 * EVEN, EVEN / 2, EVEN / 8, GROWING)
"""How far the places of a window are from its knot, one program for each; 1 is the distance of two points of the data.
With growing distances one knot can move far while its neighbours move a little."""

ROUNDS, ENOUGH = 4, 1e-8
"""The most rounds, and the part by which a round must lower the error if another one is to follow."""

STEPS = 6
"""The Gauss-Newton steps of each round."""


def tuned(sums: Sums, distinct: Floats, knots: Floats) -> tuple[Floats, float]:
    """Return better knots [k + 1] and their squared error."""
    error = chains(sums, knots).error
    for _ in range(ROUNDS if len(knots) > 2 else 0):
        for distances in DISTANCES:
            knots = chosen(sums, knots, windows(distinct, knots, distances))
        knots, found = settled(sums, distinct, knots)
        gain, error = error - found, found
        if not gain > ENOUGH * error:
            break
    return knots, error


def settled(sums: Sums, distinct: Floats, knots: Floats) -> tuple[Floats, float]:
    """Return better knots [k + 1] and their squared error, by Gauss-Newton steps that cross no point of the data.

    Knots at a point stay there.
    """
    at = np.searchsorted(distinct, knots[1:-1])
    low, high = distinct[at - 1], distinct[at]
    fit, damping = fit_values(sums, knots), 0.0
    for _ in range(STEPS):
        free = (low < knots[1:-1]) & (knots[1:-1] < high)
        trial = moved(knots, knot_step(slopes_of(knots, fit.values), fit, np.where(free, damping, 1e30)))
        trial[1:-1] = np.clip(trial[1:-1], low, high)
        new = fit_values(sums, trial)
        gain = fit.error - new.error
        if gain > 0:
            knots, fit, damping = trial, new, 0.0
        else:
            damping = 10 * damping + 0.3
        if 0 <= gain <= ENOUGH * fit.error:
            break
    return knots, float(fit.error)


def windows(distinct: Floats, knots: Floats, distances: Floats) -> Floats:
    """Return places [k - 1, 2 distances - 1] around the inner knots, which are the first; windows do not overlap."""
    index, inner, room = np.arange(len(distinct)), knots[1:-1, None], rooms(knots)[:, None]
    at = np.interp(inner, distinct, index)
    # half numbers make places of the points themselves, where the error has kinks
    at = np.round(2 * at) / 2 if distances[1] >= 0.5 else at
    place = np.interp(np.concatenate([at - distances, at + distances[1:]], axis=1), index, distinct)
    place[:, 0] = inner[:, 0]
    return np.where((place < inner - room[:-1]) | (place > inner + room[1:]), inner, place)


def chosen(sums: Sums, knots: Floats, place: Floats) -> Floats:
    """Return the best knots of the windows [k - 1, places], by a dynamic program; never worse than the knots.

    For each place of a knot the place of the knot before is that with the least error of the whole curve, if the knots
    behind stay where they are.
    """
    ridge, chain, columns = sums.ridge, chains(sums, knots), np.arange(place.shape[1])
    ends = Parabola(*(part[2:, None] for part in chain.behind))
    behind = extended(ends, sums.between(place, knots[2:, None]).reversed(), ridge)
    between = sums.between(place[:-1, :, None], place[1:, None])
    path = extended(Parabola(ridge, 0.0, 0.0), sums.between(knots[:1], place[0]), ridge)
    before = []
    for j in range(len(place) - 1):
        new = extended(Parabola(*(part[:, None] for part in path)), Parts(*(part[j] for part in between)), ridge)
        origin = np.argmin(joined(new, Parabola(*(part[j + 1] for part in behind)), ridge), axis=0)
        path = Parabola(*(part[origin, columns] for part in new))
        before.append(origin)
    at = [int(np.argmin(joined(path, Parabola(*(part[-1] for part in behind)), ridge)))]
    for origin in reversed(before):
        at.append(int(origin[at[-1]]))
    return np.concatenate([knots[:1], place[np.arange(len(place)), at[::-1]], knots[-1:]])
