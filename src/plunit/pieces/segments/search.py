"""Knots of least-squares segments: found by dynamic programs, moved by Gauss-Newton steps, tuned in windows.

The programs over places in the whole interval follow Bellman (1961; docs/glossary.md). The error has a kink, and may
have a minimum, at every data point that a knot crosses. So there are many local minima, and neighbouring knots must
move together to leave one: programs over windows around the knots do that (`tune`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plunit.pieces.arrays import Bools, Floats, Ints
from plunit.pieces.segments.sums import Parabola, Parts, Sums, chain_parabolas, extend, join_parabolas

PLACES = 64
"""The approximate number of places for knots; with few points, these are the places, up to twice as many."""

PATHS = 6
"""Maximum number of sets of knots that a program returns."""

_STEPS = 5
"""The number of Gauss-Newton steps for each set."""

_ROUNDS, WORTH = 8, 1e-4
"""Maximum number of rounds of programs; a round with a smaller relative gain is the last."""

_MANY = 240
"""Maximum of rounds times segments, because a round with many segments is slow; there are at least two rounds."""

TUNED, SPREAD, WORSE = 3, 0.006, 6.0
"""Maximum number of sets of knots to tune; their minimum distance, as a fraction of half the interval; and how much
their errors may exceed the smallest, as a fraction times the number of points."""

CLOSEST = 1e-6
"""The smallest distance between two knots, as a fraction of half the interval."""

NEWTON_STEPS, _NEWTON_WORTH = 20, 1e-7
"""Maximum number of steps; they end when none lowers an error by more than this fraction."""

EVEN, GROWING = np.arange(17.0), np.append(0, np.geomspace(1 / 64, 3, 16))
DISTANCES = (6 * EVEN, EVEN / 2, EVEN / 8, GROWING)
"""Distances from the places of a window to its knot, one program for each list; 1 is the distance between two data
points. With growing distances, one knot can move far while its neighbours move a little."""

_WINDOW_ROUNDS, _WINDOW_WORTH, _WINDOW_STEPS = 4, 1e-8, 6
"""Maximum number of rounds, the relative gain below which a round is the last, and the number of steps of a round."""


def knot_places(x: Floats, segments: int, shift: bool = False, knots: Floats | None = None) -> Floats:
    """Return places for knots: even steps through the distinct x, or the middles of these steps; and given knots."""
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
    """Return the parts of the segments between all pairs of places, [from, to]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return sums.between(where[:, None], where)


def sweep_places(parts: Parts, ridge: float, count: int) -> tuple[list[Parabola], list[Ints]]:
    """Return the least errors from the first place to all places, and the places of the previous knots.

    The lists are for 0, ..., count and 1, ..., count segments. Each place keeps one parabola, that of the best place
    for the previous knot. For another value at this knot another place could be better, so the result is only a start.
    """
    at = np.arange(len(parts.a))
    later = at > at[:, None]
    found = [Parabola(np.full(len(at), ridge), np.zeros(len(at)), np.where(at == 0, 0.0, np.inf))]
    before: list[Ints] = []
    for _ in range(count):
        with np.errstate(all="ignore"):
            new = extend(Parabola(*(part[:, None] for part in found[-1])), parts, ridge)
            least = np.where(later, new.c - new.b * new.b / (new.a + ridge), np.inf)
        origin = np.argmin(least, axis=0)
        reached = least[origin, at] < np.inf
        a, b, c = (np.where(reached, part[origin, at], other) for part, other in zip(new, (0, 0, np.inf), strict=True))
        found.append(Parabola(a, b, c))
        before.append(origin)
    return found, before


def start_knots(sums: Sums, where: Floats, most: int) -> list[Floats]:
    """Return knots for 1, ..., most segments."""
    _, before = sweep_places(parts_between(sums, where), sums.ridge, most)
    return [where[trace_back(before[: count + 1], len(where) - 1)] for count in range(most)]


def trace_back(before: list[Ints], last: int) -> list[int]:
    """Return the places of all knots up to the last one."""
    at = [last]
    for origin in reversed(before):
        at.append(int(origin[at[-1]]))
    return at[::-1]


def paths(sums: Sums, where: Floats, count: int) -> Floats:
    """Return up to PATHS sets of knots [sets, count + 1] with small errors, from a program at each end.

    Together, the two programs give the least error of the curves with any one knot at any one place. Local minima of
    this error over the place give different sets.
    """
    parts, last = parts_between(sums, where), len(where) - 1
    if count == 1:
        return where[[[0, last]]]
    left, before = sweep_places(parts, sums.ridge, count - 1)
    mirrored = Parts(*(part.T[::-1, ::-1] for part in parts.reverse()))
    right, after = sweep_places(mirrored, sums.ridge, count - 1)
    errors = np.full((count - 1, last + 3), np.inf)
    for j in range(1, count):
        errors[j - 1, 1:-1] = join_parabolas(left[j], Parabola(*(part[::-1] for part in right[count - j])), sums.ridge)
    error = errors[:, 1:-1]
    rows, columns = np.nonzero((error <= errors[:, :-2]) & (error <= errors[:, 2:]) & (error < np.inf))
    found: dict[tuple[int, ...], None] = {}
    for i in np.argsort(error[rows, columns], kind="stable").tolist():
        j, place = int(rows[i]) + 1, int(columns[i])
        ahead = trace_back(after[: count - j], last - place)[-2::-1]
        found[(*trace_back(before[:j], place), *(last - at for at in ahead))] = None
        if len(found) == PATHS:
            break
    return np.asarray(where[np.array(list(found))])


def best_knots(sums: Sums, distinct: Floats, count: int, knots: Floats | None = None) -> Floats:
    """Return the best knots [count + 1] found, starting from given knots or from none.

    The best knots of each round are among the places of the next one, so a program can replace any of them.
    """
    sets = np.empty((0, count + 1)) if knots is None else knots[None]
    errors, lowest = fit_values(sums, sets).error, np.inf
    for turn in range(max(2, min(_ROUNDS, _MANY // count))):
        where = knot_places(distinct, count, turn % 2 == 1, sets[0] if len(sets) else None)
        found, more = refine(sums, paths(sums, where, count), _STEPS)
        sets, errors = np.concatenate([sets, found]), np.concatenate([errors, more])
        order = np.argsort(errors, kind="stable")
        sets, errors = sets[order], errors[order]
        lowest, before = errors[0], lowest
        if not before - lowest > WORTH * lowest:
            break
    near = sets[errors <= (1 + WORSE / len(sums.x)) * lowest]
    fits = [tune(sums, distinct, one) for one in apart(near)]
    return min(fits, key=lambda fit: fit[1])[0]


def apart(sets: Floats) -> list[Floats]:
    """Return the first sets of knots, at most TUNED, that differ from each other by more than SPREAD in some knot."""
    chosen: list[Floats] = []
    for knots in sets:
        if len(chosen) < TUNED and all(np.abs(knots - other).max() > SPREAD for other in chosen):
            chosen.append(knots)
    return chosen


class Fit(NamedTuple):
    """Least-squares fits with given knots: values [..., k + 1], squared errors [...], parts, and inverse matrix."""

    values: Floats
    error: Floats
    parts: Parts
    inverse: Floats

    def replace_where(self, better: Bools, other: Fit) -> Fit:
        """Return the other fit where it is better."""
        parts = Parts(*(np.where(better[:, None], new, old) for new, old in zip(other.parts, self.parts, strict=True)))
        values = np.where(better[:, None], other.values, self.values)
        inverse = np.where(better[:, None, None], other.inverse, self.inverse)
        return Fit(values, np.where(better, other.error, self.error), parts, inverse)


def fit_values(sums: Sums, knots: Floats) -> Fit:
    """Return the fit of the best values at knots [..., k + 1], the solution of a tridiagonal system."""
    parts = sums.parts(knots)
    size = knots.shape[-1]
    gram, right = np.zeros((*knots.shape, size)), np.zeros(knots.shape)
    flat = gram.reshape(*knots.shape[:-1], size * size)
    flat[..., :: size + 1] = sums.ridge
    flat[..., : -1 : size + 1] += parts.a
    flat[..., size + 1 :: size + 1] += parts.c
    flat[..., 1 :: size + 1] = flat[..., size :: size + 1] = parts.b
    right[..., :-1] = parts.d
    right[..., 1:] += parts.e
    inverse = np.linalg.inv(gram)
    values = (inverse @ right[..., None])[..., 0]
    error = sums.total - (values * right).sum(axis=-1)
    return Fit(values, np.maximum(error, 0.0), parts, inverse)


def knot_step(knots: Floats, values: Floats, fit: Fit, damping: Floats) -> Floats:
    """Return the damped Gauss-Newton step of the inner knots [..., k - 1], with optimal values.

    The derivative of f with respect to knot j is -slope times its hat function, with the slope of each side. The values
    are eliminated from the equations (variable projection).

    The curve has the given values at its knots [..., k + 1]. The fit has the best values for the data, or for the
    residuals of the curve. The damping is [..., k - 1], or a shape that broadcasts to that.
    """
    slope = (values[..., 1:] - values[..., :-1]) / (knots[..., 1:] - knots[..., :-1])
    a, b, c, d, e = fit.parts
    v, count = fit.values, slope.shape[-1] - 1
    left, right = slope[..., :-1], slope[..., 1:]
    cross = np.zeros((*v.shape, count))
    flat = cross.reshape(*v.shape[:-1], -1)
    flat[..., :: count + 1][..., :count] = -left * b[..., :-1]
    flat[..., count :: count + 1][..., :count] = -(left * c[..., :-1] + right * a[..., 1:])
    flat[..., 2 * count :: count + 1] = -right * b[..., 1:]
    own = np.zeros((*v.shape[:-1], count, count))
    row = own.reshape(*v.shape[:-1], -1)
    row[..., :: count + 1] = left * left * c[..., :-1] + right * right * a[..., 1:]
    if count > 1:
        shared = slope[..., 1:-1] ** 2 * b[..., 1:-1]
        row[..., 1 :: count + 1] = row[..., count :: count + 1] = shared
    before = e[..., :-1] - b[..., :-1] * v[..., :-2] - c[..., :-1] * v[..., 1:-1]
    after = d[..., 1:] - a[..., 1:] * v[..., 1:-1] - b[..., 1:] * v[..., 2:]
    own -= np.swapaxes(cross, -1, -2) @ (fit.inverse @ cross)
    diagonal = row[..., :: count + 1]
    scale = np.maximum(diagonal, 1e-9 * diagonal.max(axis=-1, keepdims=True)) + np.finfo(np.float64).tiny
    row[..., :: count + 1] = diagonal + (damping + 1e-14) * scale
    return np.linalg.solve(own, -(left * before + right * after)[..., None])[..., 0]


def rooms(knots: Floats) -> Floats:
    """Return how far the two knots of each segment may move into it, [..., k]."""
    return np.maximum(0.45 * (knots[..., 1:] - knots[..., :-1] - CLOSEST), 0.0)


def move(knots: Floats, step: Floats) -> Floats:
    """Return the knots after a step of the inner ones, each by less than half the distance to its neighbours."""
    room, result = rooms(knots), knots.copy()
    result[..., 1:-1] += np.minimum(np.maximum(step, -room[..., :-1]), room[..., 1:])
    return result


def refine(sums: Sums, knots: Floats, steps: int) -> tuple[Floats, Floats]:
    """Return improved knots [sets, k + 1] and their squared errors [sets], by damped Gauss-Newton steps."""
    fit = fit_values(sums, knots)
    damping = np.full(len(knots), 1e-2)
    for _ in range(steps if knots.shape[-1] > 2 else 0):
        trial = move(knots, knot_step(knots, fit.values, fit, damping[:, None]))
        new = fit_values(sums, trial)
        better = new.error < fit.error
        gained = fit.error - new.error > _NEWTON_WORTH * fit.error
        knots, fit = np.where(better[:, None], trial, knots), fit.replace_where(better, new)
        if not (gained | ~better & (damping < 1)).any():
            break
        damping = np.where(better, damping * 0.2, damping * 8)
    return knots, fit.error


def tune(sums: Sums, distinct: Floats, knots: Floats) -> tuple[Floats, float]:
    """Return improved knots [k + 1] and their squared error, by programs over windows."""
    _, error = chain_parabolas(sums, knots)
    for _ in range(_WINDOW_ROUNDS if len(knots) > 2 else 0):
        for distances in DISTANCES:
            knots = choose_knots(sums, knots, windows(distinct, knots, distances))
        knots, found = settle(sums, distinct, knots)
        gain, error = error - found, found
        if not gain > _WINDOW_WORTH * error:
            break
    return knots, error


def settle(sums: Sums, distinct: Floats, knots: Floats) -> tuple[Floats, float]:
    """Return improved knots [k + 1] and their squared error, by Gauss-Newton steps that cross no data point.

    Knots at a data point stay there.
    """
    at = np.searchsorted(distinct, knots[1:-1])
    low, high = distinct[at - 1], distinct[at]
    fit, damping = fit_values(sums, knots), 0.0
    for _ in range(_WINDOW_STEPS):
        free = (low < knots[1:-1]) & (knots[1:-1] < high)
        trial = move(knots, knot_step(knots, fit.values, fit, np.where(free, damping, 1e30)))
        trial[1:-1] = np.clip(trial[1:-1], low, high)
        new = fit_values(sums, trial)
        gain = fit.error - new.error
        if gain > 0:
            knots, fit, damping = trial, new, 0.0
        else:
            damping = 10 * damping + 0.3
        if 0 <= gain <= _WINDOW_WORTH * fit.error:
            break
    return knots, float(fit.error)


def windows(distinct: Floats, knots: Floats, distances: Floats) -> Floats:
    """Return places [k - 1, 2 distances - 1] around the inner knots, each knot first; windows do not overlap."""
    index, inner, room = np.arange(len(distinct)), knots[1:-1, None], rooms(knots)[:, None]
    at = np.interp(inner, distinct, index)
    # rounding to halves makes the points themselves places, because the error has kinks there
    at = np.round(2 * at) / 2 if distances[1] >= 0.5 else at
    place = np.interp(np.concatenate([at - distances, at + distances[1:]], axis=1), index, distinct)
    place[:, 0] = inner[:, 0]
    return np.where((place < inner - room[:-1]) | (place > inner + room[1:]), inner, place)


def choose_knots(sums: Sums, knots: Floats, place: Floats) -> Floats:
    """Return the best knots from windows [k - 1, places], by a dynamic program; never worse than the given knots.

    For each place of a knot, the previous knot gets the place with the least error of the whole curve, if later knots
    stay where they are.
    """
    ridge, columns = sums.ridge, np.arange(place.shape[1])
    ends = Parabola(*(part[2:, None] for part in chain_parabolas(sums, knots)[0]))
    after = extend(ends, sums.between(place, knots[2:, None]).reverse(), ridge)
    between = sums.between(place[:-1, :, None], place[1:, None])
    path = extend(Parabola(ridge, 0.0, 0.0), sums.between(knots[:1], place[0]), ridge)
    before = []
    for j in range(len(place) - 1):
        new = extend(Parabola(*(part[:, None] for part in path)), Parts(*(part[j] for part in between)), ridge)
        origin = np.argmin(join_parabolas(new, Parabola(*(part[j + 1] for part in after)), ridge), axis=0)
        path = Parabola(*(part[origin, columns] for part in new))
        before.append(origin)
    at = [int(np.argmin(join_parabolas(path, Parabola(*(part[-1] for part in after)), ridge)))]
    for origin in reversed(before):
        at.append(int(origin[at[-1]]))
    return np.concatenate([knots[:1], place[np.arange(len(place)), at[::-1]], knots[-1:]])
