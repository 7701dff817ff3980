"""sup |f(x) - g(x)| over [low, high]: an expression against a curve, with a value that is reached and a proved bound.

The bound divides the interval. On a part [a, b] within one piece of g, e = f - g is enclosed in three ways:

    e([a, b]) = f([a, b]) - g([a, b])                   values by interval arithmetic (see `enclosure`)
    e(m) + e'([a, b]) [a - m, b - m]                    the mean value theorem, m in the middle
    e(a), e(b)                                          if e' keeps its sign: e is monotone

The closest of them counts. Parts whose bound exceeds the largest error found by more than the closeness are halved.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plunit.base.errors import quoted
from plunit.expressions.expression import CHUNK, Expression, enclosure, finite_values, slope_enclosure
from plunit.expressions.intervals import Interval, between, choose, hull, meet
from plunit.pieces.arrays import Floats, Ints, blocks
from plunit.pieces.exact_curves import Curve

SAMPLES, PER_PIECE = 4096, 16  # points on the interval, and on each piece of the curve
PEAKS = 256  # of the highest samples are followed to the top of their hill
CLOSENESS = 1e-3
WORK = 2**23  # parts times steps of the expression, at most
HALVINGS = 60
_ROUNDING = 256 * float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)


class SupError(NamedTuple):
    """The largest |f(x) - g(x)|.

    Args:
        value: the largest one found, at `x`.
        x: where it is.
        bound: no |f(x) - g(x)| in the interval exceeds it, or None if no bound was found.
        parts: how many parts of the interval were looked at for the bound.
    """

    value: float
    x: float
    bound: float | None
    parts: int


def sup_error(
    expression: Expression, curve: Curve, low: float, high: float, *, closeness: float = CLOSENESS
) -> SupError:
    """The largest |f(x) - g(x)| over low <= x <= high: the largest one found, and a bound that none exceeds.

    Args:
        expression: f, a function of at most one variable.
        curve: g, with one output.
        low: the left end of the interval, in the curve's domain.
        high: its right end.
        closeness: the search for the bound ends when it is within this part of the largest error found.

    The bound holds for f and g in exact arithmetic, with the numbers of the text rounded to float64, wherever f is
    defined. It assumes that NumPy's functions are within 4 units in the last place. It is None where f has no bound
    (tan(x) at pi / 2), or where intervals do not show it (sin(x) / x and mod(x, x) at 0). A place at which f is not
    finite, such as that of 1 / x, is an error if it is found. An error that samples do not tell apart from 0 is bounded
    to 1e-3 `closeness` of the first bound.
    """
    if len(expression.names) > 1:
        raise ValueError(f"a curve has one variable, but {quoted(expression.text)} has {', '.join(expression.names)}")
    if curve.values.shape[1] != 1:
        raise ValueError(f"the curve must have one output, got {curve.values.shape[1]}; pick one with .output(i)")
    if not curve.low <= low < high <= curve.high:
        raise ValueError(f"low < high must lie in the curve's domain [{curve.low}, {curve.high}], got {low} and {high}")
    ends = np.concatenate([[low], curve.knots[(curve.knots > low) & (curve.knots < high)], [high]])
    within = ends[:-1, None] + np.diff(ends)[:, None] * (np.arange(PER_PIECE) / PER_PIECE)
    cuts = np.unique(np.append(within, ends[-1]))
    x, value = _search(expression, curve, np.unique(np.append(np.linspace(low, high, SAMPLES + 1), cuts)))
    bound, parts, x, value = _bounded(expression, curve, cuts, x, value, closeness)
    return SupError(value, x, max(bound, value) if np.isfinite(bound) else None, parts)


def _errors(expression: Expression, curve: Curve, x: Floats) -> Floats:
    return np.abs(finite_values(expression, x) - curve(x)[..., 0])


def _search(expression: Expression, curve: Curve, x: Floats) -> tuple[float, float]:
    """Return the place and size of the largest error: samples, then a search by thirds around the highest ones."""
    error = _errors(expression, curve, x)
    top = np.argsort(error, kind="stable")[::-1][:PEAKS]
    a, b = x[np.maximum(top - 1, 0)], x[np.minimum(top + 1, len(x) - 1)]
    for _ in range(60):
        left, right = a + (b - a) / 3, b - (b - a) / 3
        rising = _errors(expression, curve, left) < _errors(expression, curve, right)
        a, b = np.where(rising, left, a), np.where(rising, b, right)
    places = np.concatenate([x[top], (a + b) / 2])
    sizes = _errors(expression, curve, places)
    best = int(np.argmax(sizes))
    return float(places[best]), float(sizes[best])


def _bounded(
    expression: Expression, curve: Curve, cuts: Floats, x: float, value: float, closeness: float
) -> tuple[float, int, float, float]:
    """Return the bound, the number of parts, and the largest error found with its place."""
    a, b = cuts[:-1], cuts[1:]
    size, bound, parts = float(np.abs(curve.values).max() + value), 0.0, 0
    # closer than this the bound is lost in the widths of the intervals
    rounding = max(_ROUNDING, 1e-9 * closeness) * size + _TINY
    for _ in range(HALVINGS):
        top = np.concatenate([_part_bounds(expression, curve, a[part], b[part]) for part in blocks(len(a), CHUNK)])
        parts += len(a)
        middle = a / 2 + b / 2
        found = _errors(expression, curve, middle)
        best = int(np.argmax(found))
        if found[best] > value:
            x, value = float(middle[best]), float(found[best])
        size = size if parts > len(a) else max(size, float(top[np.isfinite(top)].max(initial=0.0)))
        # an error that cannot be told apart from 0 has no size of its own
        nothing = 1e-3 * closeness * size if value <= _ROUNDING * size else 0.0
        enough = value * (1 + closeness) + max(rounding, nothing)
        split = (top > enough) & (a < middle) & (middle < b)
        bound = max(bound, float(top[~split].max(initial=0.0)))
        if bound == np.inf or not split.any():
            return bound, parts, x, value
        if parts + 2 * int(split.sum()) > WORK // len(expression.steps):
            break
        a, b = np.concatenate([a[split], middle[split]]), np.concatenate([middle[split], b[split]])
    return max(bound, float(top[split].max())), parts, x, value


def _part_bounds(expression: Expression, curve: Curve, a: Floats, b: Floats) -> Floats:
    """Return upper bounds of |f - g| on the parts [a, b], each within one piece of g."""
    middle = a / 2 + b / 2
    values, slopes = slope_enclosure(expression.steps, a[None], b[None])
    piece = np.searchsorted(curve.knots[1:-1], middle, side="right")
    with np.errstate(all="ignore"):
        at_a, at_m, at_b = (_point(expression, curve, x, piece) for x in (a, middle, b))
        line = _line(curve, piece, a, b)
        steep = slopes - _line_slope(curve, piece)
        wide = values - line
        mean = at_m + steep * hull(_exact(a) - _exact(middle), _exact(b) - _exact(middle))
        known = np.isfinite(steep.low) & np.isfinite(steep.high)
        wide = choose(known, meet(wide, mean), wide)
        sure = known & ((steep.low >= 0) | (steep.high <= 0))
        wide = choose(sure, hull(at_a, at_b), wide)
    size = np.maximum(np.abs(wide.low), np.abs(wide.high))
    # a part in which f has no value has no error either
    return np.where(np.isnan(size), 0.0, size)


def _exact(x: Floats) -> Interval:
    return between(x, x)


def _point(expression: Expression, curve: Curve, x: Floats, piece: Ints) -> Interval:
    return enclosure(expression.steps, x[None], x[None]) - _line(curve, piece, x, x)


def _line_slope(curve: Curve, piece: Ints) -> Interval:
    """Return the slope of the line through the values at both ends of a piece."""
    rise = _exact(curve.values[piece + 1, 0]) - _exact(curve.values[piece, 0])
    return rise / (_exact(curve.knots[piece + 1]) - _exact(curve.knots[piece]))


def _line(curve: Curve, piece: Ints, a: Floats, b: Floats) -> Interval:
    """Return the values of g on the parts [a, b]."""
    start = _exact(curve.knots[piece])
    at = [_exact(curve.values[piece, 0]) + _line_slope(curve, piece) * (_exact(x) - start) for x in (a, b)]
    return hull(*at)
