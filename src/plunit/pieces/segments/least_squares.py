"""`fit_segments`: the continuous curve of k segments with the least sum w (y - f(x))^2, for given k or by a criterion.

The search finds knots; `polish` gives the last digits of a fit. Running sums of y lose half of the digits, but running
sums of the residuals do not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.exact.line_curves import Curve
from plunit.pieces.rounding import EPS
from plunit.pieces.segments import search
from plunit.pieces.segments.sums import SortedData, Sums, check_segments, read_data

MOST_SEGMENTS = 30
"""Maximum number of segments to try if their number is not given."""

_PATIENCE = 3
"""The search ends when this many further segments have not lowered the criterion."""

PARAMETERS = 2
"""The cost of a segment in the criterion BIC (Schwarz, 1978): two parameters, a place and a value. Of costs from 1 to
3, 1.75 and 2 find the right number about equally often; smaller ones give too many segments, larger ones too few."""

_POLISH_STEPS, _ENOUGH = 12, 1e-12
"""Maximum number of final Gauss-Newton steps; they end when one lowers the error by less than this fraction."""


class Trial(NamedTuple):
    """One number of segments that was tried; the lowest criterion wins."""

    pieces: int
    squared_error: float
    criterion: float


class Segments(NamedTuple):
    """A least-squares fit: the curve, sum w (y - f(x))^2, and the numbers of segments that were tried."""

    curve: Curve
    squared_error: float
    tried: tuple[Trial, ...]


def fit_segments(x: Any, y: Any, pieces: int | None = None, weights: Any = None) -> Segments:
    """Return the continuous piecewise-linear curve with `pieces` segments that fits data best by least squares.

    Args:
        x: [n], in any order; the curve reaches from the smallest to the largest. Equal x are allowed.
        y: [n].
        pieces: the number k of segments. By default, k minimises n log(squared error / n) + 2 k log(n): each knot costs
            two parameters, its place and its value.
        weights: [n], >= 0, the factors of the squared errors; 1 by default.

    The knots may lie between the points. Dynamic programs over places in the whole interval find sets of knots, which
    Gauss-Newton steps and dynamic programs over windows then move. The error found is nearly always the global minimum,
    but that is not proved. The same data give the same bits.

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
        return _result(data, *_choose(data, sums, distinct))
    count = check_segments(pieces, len(distinct))
    fit = _fit(data, sums, distinct, count)
    return _result(data, fit, [_trial(data, count, fit.error)])


def _fit(data: SortedData, sums: Sums, distinct: Floats, count: int) -> Polished:
    """Return the fit with this number of segments; if points are too close, one with fewer, and a segment split."""
    fit = polish(sums, data.y, distinct if count == len(distinct) - 1 else search.best_knots(sums, distinct, count))
    if count == 1 or fit.error <= (1 + 1e-9) * polish(sums, data.y, distinct[[0, -1]]).error + _floor(data):
        return fit
    fewer = _fit(data, sums, distinct, count - 1)
    wide = int(np.argmax(np.diff(fewer.knots))) + 1
    knots, values = (np.insert(part, wide, part[wide - 1 : wide + 1].mean()) for part in (fewer.knots, fewer.values))
    return Polished(knots, values, fewer.error)


def _choose(data: SortedData, sums: Sums, distinct: Floats) -> tuple[Polished, list[Trial]]:
    """Return the fit with the lowest criterion, and all trials."""
    most = max(1, min(MOST_SEGMENTS, (len(distinct) - 1) // 2))
    sets, tried = list[Floats](), list[Trial]()
    for count, knots in enumerate(search.start_knots(sums, search.knot_places(distinct, most), most), 1):
        found, errors = search.refine(sums, knots[None], search.NEWTON_STEPS)
        sets.append(found[0])
        tried.append(_trial(data, count, float(errors[0])))
        if count - _lowest(tried) > _PATIENCE:
            break
    fits: dict[int, Polished] = {}
    # the best number and its neighbours are searched more thoroughly
    while near := {_lowest(tried) + step for step in (-1, 0, 1)} & set(range(1, len(tried) + 1)) - set(fits):
        for count in sorted(near):
            fits[count] = polish(sums, data.y, search.best_knots(sums, distinct, count, sets[count - 1]))
            tried[count - 1] = _trial(data, count, fits[count].error)
    return fits[_lowest(tried)], tried


def _trial(data: SortedData, count: int, error: float) -> Trial:
    n = len(data.x)
    value = n * np.log(max(error, _floor(data)) / n) + PARAMETERS * count * np.log(n)
    return Trial(count, error, float(value))


def _floor(data: SortedData) -> float:
    """Return the squared error that rounding explains."""
    return (64 * EPS) ** 2 * len(data.x)


def _lowest(tried: list[Trial]) -> int:
    return min(tried, key=lambda trial: trial.criterion).pieces


def _result(data: SortedData, fit: Polished, tried: list[Trial]) -> Segments:
    """Return the fit in the units of the data."""
    place, values = data.middle[0] + data.scale[0] * fit.knots, data.middle[1] + data.scale[1] * fit.values
    place[0], place[-1] = data.ends
    # knots may coincide where x has few digits
    apart = np.append((np.diff(place) > 0) & (place[:-1] < place[-1]), True)
    place, values = place[apart], values[apart]
    slopes = np.diff(values) / np.diff(place)
    curve = Curve(place, values[:, None], slopes[:, None])
    table = tuple(trial._replace(squared_error=trial.squared_error * data.unit) for trial in tried)
    return Segments(curve, fit.error * data.unit, table)


class Polished(NamedTuple):
    """A fit: knots and values [k + 1], and sum w (y - f)^2, computed from the data themselves."""

    knots: Floats
    values: Floats
    error: float


def polish(sums: Sums, y: Floats, knots: Floats) -> Polished:
    """Return the fit after Gauss-Newton steps of the knots, with optimal values."""
    best, left = _settle(sums, y, knots)
    damping = 1e-6
    for _ in range(_POLISH_STEPS if len(knots) > 2 else 0):
        step = search.knot_step(best.knots, best.values, left, np.array(damping))
        trial, trial_left = _settle(sums, y, search.move(best.knots, step))
        gain = best.error - trial.error
        if gain > 0:
            best, left, damping = trial, trial_left, damping / 10
        elif damping > 1e-3:
            break
        else:
            damping = 1e-2
        if 0 <= gain <= _ENOUGH * best.error:
            break
    return best


def _settle(sums: Sums, y: Floats, knots: Floats) -> tuple[Polished, search.Fit]:
    """Return the best values at the knots, corrected once by a fit of the residuals, and the remaining correction."""
    values, rest = np.zeros(len(knots)), y
    for _ in range(2):
        values = values + search.fit_values(sums.with_y(rest), knots).values
        rest = y - np.interp(sums.x, knots, values)
    left = sums.with_y(rest)
    return Polished(knots, values, left.total), search.fit_values(left, knots)
