"""min sum w (y - f(x))^2 over continuous piecewise-linear f with k segments and free knots, and the choice of k."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.curve_data import Curve
from plunit.pieces.layer import EPS
from plunit.pieces.segment_data import Data, checked_pieces, read_data
from plunit.pieces.segment_polish import polished
from plunit.pieces.segment_search import exchanged, inserted, places, starts
from plunit.pieces.segment_steps import refined
from plunit.pieces.segment_sums import Sums

MOST = 30
"""The most segments that are tried when their number is not given."""

FEW, WIDTH = 96, 12
"""Up to FEW points, WIDTH places for each of two knots are tried besides the usual start."""

PATIENCE = 3
"""The search ends when this many more segments have not lowered the criterion."""

PARAMETERS = 2
"""The cost of a segment in the criterion BIC (Schwarz, 1978): two parameters, a place and a value. Costs from 1 to 3
were tried: 1.75 and 2 find the number about equally often, smaller costs find too many segments, larger ones too
few."""


class Trial(NamedTuple):
    """A number of segments that was tried; the lowest criterion wins."""

    pieces: int
    squared_error: float
    criterion: float


class Segments(NamedTuple):
    """A least-squares fit: the curve, sum w (y - f(x))^2, and the numbers of segments that were tried."""

    curve: Curve
    squared_error: float
    tried: tuple[Trial, ...]


def fit_segments(x: Any, y: Any, pieces: int | None = None, weights: Any = None) -> Segments:
    """Return the continuous piecewise-linear curve with `pieces` segments that is closest to data by least squares.

    Args:
        x: [n], in any order; the curve reaches from the smallest to the largest. Equal x are allowed.
        y: [n].
        pieces: the number k of segments. If not given, it is the k with the least n log(squared error / n) +
            2 k log(n): each knot costs two parameters, its place and its value.
        weights: [n], >= 0, the factors of the squared errors; 1 if not given.

    The knots may lie between the points. They start from a dynamic program, and are then moved, taken out and put in
    elsewhere while that lowers the error. This finds a local optimum, which need not be the global one. The same data
    give the same bits.

    >>> import numpy as np
    >>> x = np.linspace(0, 4, 200)
    >>> found = fit_segments(x, np.abs(x - 1) + 0.01 * np.cos(50 * x))
    >>> len(found.curve.slopes), found.curve.knots.round(2).tolist()
    (2, [0.0, 1.0, 4.0])
    """
    data = read_data(x, y, weights)
    distinct = np.unique(data.x)
    sums = Sums.of(data.x, data.y, data.w)
    if pieces is None:
        return _result(data, sums, *_chosen(data, sums, distinct))
    count = checked_pieces(pieces, len(distinct))
    knots = distinct if count == len(distinct) - 1 else _best(sums, distinct, count)
    return _result(data, sums, knots, None)


def _best(sums: Sums, distinct: Floats, count: int) -> Floats:
    """Return the knots of the best fit found with this number of segments."""
    where = places(distinct, count)
    first = starts(sums, where, count)
    return exchanged(sums, first[-1] if len(sums.x) > FEW else _widely(sums, where, first), where)[0]


def _widely(sums: Sums, where: Floats, first: list[Floats]) -> Floats:
    """Return a start for few points, which have many local minima: also put the last two knots in one by one."""
    if len(first) < 3:
        return first[-1]
    pairs = [inserted(sums, knots, where, WIDTH) for knots in inserted(sums, first[-3], where, WIDTH)]
    found, errors = refined(sums, np.concatenate([first[-1][None], *pairs]))
    return np.asarray(found[np.argmin(errors)])


def _chosen(data: Data, sums: Sums, distinct: Floats) -> tuple[Floats, list[Trial]]:
    """Return the knots of the fit with the lowest criterion, and what was tried."""
    most = max(1, min(MOST, (len(distinct) - 1) // 2))
    where = places(distinct, most)
    first, tried = starts(sums, where, most), list[Trial]()
    fits: list[Floats] = []
    for count in range(1, most + 1):
        sets = first[count - 1][None]
        if count > 1:
            sets = np.concatenate([sets, inserted(sums, fits[-1], where, 3)])
        found, errors = refined(sums, sets)
        lowest = int(np.argmin(errors))
        fits.append(found[lowest])
        tried.append(_trial(data, count, float(errors[lowest])))
        if count - _lowest(tried) > PATIENCE:
            break
    searched: set[int] = set()
    # the best number and its neighbours are searched more thoroughly, until the best is among those
    while _lowest(tried) not in searched:
        near = {_lowest(tried) - 1, _lowest(tried), _lowest(tried) + 1} - searched
        for count in sorted(near & set(range(1, len(tried) + 1))):
            fits[count - 1], error = exchanged(sums, fits[count - 1], where)
            tried[count - 1] = _trial(data, count, error)
            searched.add(count)
    return fits[_lowest(tried) - 1], tried


def _trial(data: Data, count: int, error: float) -> Trial:
    n = len(data.x)
    floor = (64 * EPS) ** 2 * n
    value = n * np.log(max(error, floor) / n) + PARAMETERS * count * np.log(n)
    return Trial(count, error, float(value))


def _lowest(tried: list[Trial]) -> int:
    return min(tried, key=lambda trial: trial.criterion).pieces


def _result(data: Data, sums: Sums, knots: Floats, tried: list[Trial] | None) -> Segments:
    """Return the fit in the units of the data."""
    fit = polished(sums, data.y, knots)
    place, values = data.middle[0] + data.scale[0] * fit.knots, data.middle[1] + data.scale[1] * fit.values
    place[0], place[-1] = data.ends
    # knots may coincide where x has few digits
    apart = np.append((np.diff(place) > 0) & (place[:-1] < place[-1]), True)
    place, values = place[apart], values[apart]
    slopes = np.diff(values) / np.diff(place)
    curve = Curve(place, values[:, None], slopes[:, None])
    trials = tried or [_trial(data, len(slopes), fit.error)]
    table = tuple(trial._replace(squared_error=trial.squared_error * data.unit) for trial in trials)
    return Segments(curve, fit.error * data.unit, table)
