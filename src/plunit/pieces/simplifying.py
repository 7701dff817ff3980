"""Curves with fewer pieces: the fewest within a tolerance, or the best with a given number."""

from __future__ import annotations

from operator import index
from typing import NamedTuple

import numpy as np

from plunit.pieces.algebra import distance
from plunit.pieces.curve_data import Curve
from plunit.pieces.layer import EPS
from plunit.pieces.tube import SLACK, Point, chain

CLOSE = 1e-13
"""The search for the smallest error ends when it is known to this part of it."""

ROUNDING = 1e-12
"""An error above the tolerance by no more than this part of the largest value is within it."""


class Simplified(NamedTuple):
    """A curve with fewer pieces, and its largest distance from the one it was made from."""

    curve: Curve
    error: float


def simplify(curve: Curve, *, pieces: int | None = None, tolerance: float | None = None) -> Simplified:
    """Return the continuous curve with `pieces` pieces, or the fewest within `tolerance`, that is closest to a curve.

    Closest means the least sup |f - g| over the domain; the knots of g are free. With `tolerance`, the number of pieces
    is the least possible, and the error is the least for this number. Both hold to rounding among all possible knots:
    see `tube`. The time grows with the number of pieces of f: 10,000 take some seconds.

    >>> tent = Curve([0, 1, 2, 3], [[0], [1], [1.25], [0]], [[1], [0.25], [-1.25]])
    >>> found = simplify(tent, pieces=2)
    >>> found.curve.pieces, round(found.error, 6)
    (2, 0.158494)
    >>> simplify(tent, tolerance=0.1).curve.pieces, simplify(tent, tolerance=0.2).curve.pieces
    (3, 2)
    """
    if not isinstance(curve, Curve):
        raise TypeError(f"simplify needs a Curve, got {type(curve).__name__}; curve(net, low, high) makes one")
    if curve.values.shape[1] != 1:
        raise ValueError(f"simplify needs one output, got {curve.values.shape[1]}; pick one with .output(i)")
    if (pieces is None) == (tolerance is None):
        raise ValueError(f"give pieces or tolerance, got pieces={pieces!r} and tolerance={tolerance!r}")
    most = None if pieces is None else _checked_pieces(pieces)
    allowed = None if tolerance is None else _checked_tolerance(tolerance)
    merged = curve.merged()
    bottom, top = float(merged.values.min()), float(merged.values.max())
    middle, half = bottom / 2 + top / 2, top / 2 - bottom / 2
    x, y = merged.knots.tolist(), ((merged.values[:, 0] - middle) / (half or 1.0)).tolist()
    corners = _closest(x, y, len(merged.slopes), most, None if allowed is None else allowed / (half or 1.0))
    found = merged if corners is None else _through(corners, middle, half)
    error = distance(curve, found)
    if allowed is not None and error > allowed + ROUNDING * float(np.abs(curve.values).max()):
        # on a very steep piece the rounding of a knot is more than the tolerance
        return Simplified(curve, 0.0)
    return Simplified(found, error)


def _closest(x: list[float], y: list[float], all_of: int, most: int | None, e: float | None) -> list[Point] | None:
    """Return the corners of the closest chain of lines, |y| <= 1; None if the curve has no more pieces than that."""
    if all_of == 1 or (e is not None and e <= SLACK) or (most is not None and most >= all_of):
        return None
    high = 1.0 if e is None else min(e, 1.0)
    best = chain(x, y, high, all_of if most is None else most)
    if best is None or len(best) > all_of:
        return None
    low, most = 0.0, most or len(best) - 1
    while high - low > CLOSE * high and high > SLACK:
        trial = (low + high) / 2
        found = chain(x, y, trial, most)
        if found is None:
            low = trial
        else:
            best, high = found, trial
    return best


def _through(corners: list[Point], middle: float, half: float) -> Curve:
    points = np.array(corners)
    # corners may coincide to rounding
    points = points[np.append(np.diff(points[:, 0]) > 0, True)]
    knots, values = points[:, 0], middle + half * points[:, 1:]
    step = np.diff(knots)[:, None]
    slopes = np.diff(values, axis=0) / step
    reach = (np.abs(knots[1:]) + np.abs(knots[:-1]))[:, None]
    size = np.abs(values[1:]) + np.abs(values[:-1]) + np.abs(slopes) * reach
    return Curve(knots, values, slopes, tolerance=4 * EPS * size / step)


def _checked_pieces(pieces: int) -> int:
    try:
        count = index(pieces)
    except TypeError:
        raise TypeError(f"pieces must be a positive integer, got {pieces!r}") from None
    if count < 1:
        raise ValueError(f"pieces must be a positive integer, got {count}")
    return count


def _checked_tolerance(tolerance: float) -> float:
    if not 0 <= float(tolerance) < np.inf:
        raise ValueError(f"tolerance must be a number >= 0, got {tolerance}")
    return float(tolerance)
