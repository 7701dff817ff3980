"""The closest curve with fewer pieces: the fewest lines through a tube f - e <= y <= f + e (Imai and Iri, 1986).

`simplify` finds the smallest e by bisection. For one e, the lines that pass through the tube up to x lie between a
steepest and a flattest one. At some x no line fits any more. The line that reaches farthest touches one wall of the
tube at P, and then meets the other wall at E. A chain that reaches farther crosses this line between P and E, so the
next line may start anywhere between them. One pass gives the fewest lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from plunit.base.ranges import as_count
from plunit.pieces.exact.line_curves import Curve, curve_distance
from plunit.pieces.rounding import EPS

SLACK = 4e-15
"""A line may leave the tube by this much; values are between -1 and 1."""

_CLOSE = 1e-13
"""The relative accuracy of the smallest error, at which the bisection ends."""

_ROUNDING = 1e-12
"""An error may exceed the tolerance by this fraction of the largest value."""

Point = tuple[float, float]


class Simplified(NamedTuple):
    """A curve with fewer pieces, and its largest distance from the original curve."""

    curve: Curve
    error: float


def simplify(curve: Curve, *, pieces: int | None = None, tolerance: float | None = None) -> Simplified:
    """Return the continuous curve with `pieces` pieces, or the fewest within `tolerance`, that is closest to a curve.

    Closest means the least sup |f - g| over the domain; the knots of g are free. With `tolerance`, the number of pieces
    is the smallest possible, and the error is the smallest for this number. Up to rounding, both hold among all
    possible knots (see the top of this file). The time grows with the number of pieces of f: 10,000 need some seconds.

    >>> tent = Curve([0, 1, 2, 3], [[0], [1], [1.25], [0]], [[1], [0.25], [-1.25]])
    >>> found = simplify(tent, pieces=2)
    >>> found.curve.pieces, round(found.error, 6)
    (2, 0.158494)
    >>> simplify(tent, tolerance=0.1).curve.pieces, simplify(tent, tolerance=0.2).curve.pieces
    (3, 2)
    """
    if not isinstance(curve, Curve):
        raise TypeError(f"simplify needs a Curve, got {type(curve).__name__}; curve(net, low, high) returns one")
    if curve.values.shape[1] != 1:
        raise ValueError(f"simplify needs one output, got {curve.values.shape[1]}; pick one with .output(i)")
    if (pieces is None) == (tolerance is None):
        raise ValueError(f"give pieces or tolerance, got pieces={pieces!r} and tolerance={tolerance!r}")
    most = None if pieces is None else as_count("pieces", pieces, 1, np.inf)
    if tolerance is not None and not 0 <= tolerance < np.inf:
        raise ValueError(f"tolerance must be a number >= 0, got {tolerance}")
    merged = curve.merge()
    bottom, top = float(merged.values.min()), float(merged.values.max())
    middle, half = bottom / 2 + top / 2, top / 2 - bottom / 2
    unit = half or 1.0
    x, y = merged.knots.tolist(), ((merged.values[:, 0] - middle) / unit).tolist()
    corners = _closest(x, y, most, None if tolerance is None else float(tolerance) / unit)
    found = merged if corners is None else _through(corners, middle, half)
    error = curve_distance(curve, found)
    if tolerance is not None and error > tolerance + _ROUNDING * float(np.abs(curve.values).max()):
        # on a very steep piece, the rounding of a knot exceeds the tolerance
        return Simplified(curve, 0.0)
    return Simplified(found, error)


def _closest(x: list[float], y: list[float], most: int | None, e: float | None) -> list[Point] | None:
    """Return the corners of the closest chain of lines, |y| <= 1; None if the curve has no more pieces than that."""
    pieces = len(x) - 1
    if pieces == 1 or (e is not None and e <= SLACK) or (most is not None and most >= pieces):
        return None
    high = 1.0 if e is None else min(e, 1.0)
    best = chain(x, y, high, pieces if most is None else most)
    if best is None or len(best) > pieces:
        return None
    low, most = 0.0, most or len(best) - 1
    while high - low > _CLOSE * high and high > SLACK:
        trial = (low + high) / 2
        found = chain(x, y, trial, most)
        if found is None:
            low = trial
        else:
            best, high = found, trial
    return best


def _through(corners: list[Point], middle: float, half: float) -> Curve:
    points = np.array(corners)
    # corners may coincide up to rounding
    points = points[np.append(np.diff(points[:, 0]) > 0, True)]
    knots, values = points[:, 0], middle + half * points[:, 1:]
    step = np.diff(knots)[:, None]
    slopes = np.diff(values, axis=0) / step
    reach = (np.abs(knots[1:]) + np.abs(knots[:-1]))[:, None]
    size = np.abs(values[1:]) + np.abs(values[:-1]) + np.abs(slopes) * reach
    return Curve(knots, values, slopes, tolerance=4 * EPS * size / step)


class Line(NamedTuple):
    """y + slope (t - x)."""

    x: float
    y: float
    slope: float

    def at(self, t: float) -> float:
        """Return the value at t."""
        return self.y + self.slope * (t - self.x)


class Hull:
    """The upper (side 1) or lower (side -1) convex hull of points with increasing x."""

    def __init__(self, side: int) -> None:
        self.side, self.first = side, 0
        self.points: list[Point] = []

    def add(self, x: float, y: float) -> None:
        """Add a point to the right of all others."""
        points = self.points
        while len(points) - self.first > 1:
            (a, f), (b, g) = points[-2:]
            if self.side * ((g - f) * (x - b) - (y - g) * (b - a)) > 0:
                break
            points.pop()
        points.append((x, y))

    def tangent(self, x: float, y: float) -> Line:
        """Return the tangent from a point to the right of the hull; later calls never look further left."""
        best = self.side * inf
        for i in range(self.first, len(self.points)):
            slope = (y - self.points[i][1]) / (x - self.points[i][0])
            if self.side * slope > self.side * best:
                break
            best, self.first = slope, i
        return Line(x, y, best)


class Funnel:
    """The lines through intervals low <= y <= high at increasing x, all between the steepest and the flattest."""

    def __init__(self) -> None:
        self.floor, self.roof = Hull(1), Hull(-1)
        self.steep, self.flat = Line(0.0, inf, 0.0), Line(0.0, -inf, 0.0)
        self.last = (-inf, -inf, inf)

    def add(self, x: float, low: float, high: float) -> tuple[Line, int] | None:
        """Add an interval, whose ends may be infinite, and return None.

        If no line passes through all intervals, return the last line that did, and the wall that it meets: 1 for the
        upper wall, -1 for the lower one.
        """
        if self.steep.at(x) < low - SLACK:
            return self.steep, -1
        if self.flat.at(x) > high + SLACK:
            return self.flat, 1
        if self.floor.points and self.steep.at(x) > high:
            self.steep = self.floor.tangent(x, high)
        if self.roof.points and self.flat.at(x) < low:
            self.flat = self.roof.tangent(x, low)
        if low > -inf:
            self.floor.add(x, low)
        if high < inf:
            self.roof.add(x, high)
        self.last = x, low, high
        return None

    def middle(self) -> Line:
        """Return the line between the steepest and the flattest."""
        steep, flat, x = self.steep, self.flat, self.last[0]
        return Line(x, (steep.at(x) + flat.at(x)) / 2, (steep.slope + flat.slope) / 2)


def chain(x: Sequence[float], y: Sequence[float], e: float, most: int) -> list[Point] | None:
    """Return the corners of a chain of fewest lines within e of the curve through (x, y); None if they exceed `most`.

    |y| <= 1, e > 0.

    >>> chain([0.0, 1.0, 2.0], [0.0, 1.0, 0.0], 0.5, 1)
    [(0.0, 0.5), (2.0, 0.5)]
    """
    funnel = Funnel()
    lines: list[Line] = []
    windows: list[tuple[Point, Point]] = []
    funnel.add(x[0], y[0] - e, y[0] + e)
    i = 1
    while i < len(x):
        blocked = funnel.add(x[i], y[i] - e, y[i] + e)
        if blocked is None:
            i += 1
            continue
        if len(lines) + 1 == most:
            return None
        line, side = blocked
        start, end = (line.x, line.y), _meets(funnel, line, side, x[i], y[i], e)
        lines.append(line)
        windows.append((start, end))
        funnel = _next_funnel(start, end, side, x, y, i, e)
    return _corners([*lines, funnel.middle()], windows, x[0], x[-1])


def _meets(funnel: Funnel, line: Line, side: int, x: float, y: float, e: float) -> Point:
    """Return where the last line meets the wall between the funnel's last interval and that around (x, y)."""
    before, low, high = funnel.last
    wall = high if side > 0 else low
    inside, outside = max(side * (wall - line.at(before)), 0.0), side * (line.at(x) - y) - e
    s = inside / (inside + outside)
    at = before + s * (x - before)
    if at >= x:
        return before, wall
    return at, (1 - s) * wall + s * (y + side * e)


def _next_funnel(
    start: Point, end: Point, side: int, x: Sequence[float], y: Sequence[float], i: int, e: float
) -> Funnel:
    """Return the lines that cross the last one between `start` and `end`; the tube continues from knot i.

    They stay on the inner side of the wall that the last line touches, and within the tube at `end`.
    """
    first = i
    while first > 0 and x[first - 1] > start[0]:
        first -= 1
    near = [(x[k], y[k] - side * e) for k in range(first, i) if x[k] < end[0]]
    funnel = Funnel()
    for a, wall in [start] * (start[0] < end[0]) + near:
        funnel.add(a, *((wall, inf) if side > 0 else (-inf, wall)))
    low = end[1] - (1 + side) * e
    funnel.add(end[0], low, low + 2 * e)
    return funnel


def _corners(lines: list[Line], windows: list[tuple[Point, Point]], low: float, high: float) -> list[Point]:
    """Return where each line crosses the next, within its window, and the two ends."""
    corners = [(low, lines[0].at(low))]
    for (start, end), line in zip(windows, lines[1:], strict=True):
        first, second = abs(line.at(start[0]) - start[1]), abs(line.at(end[0]) - end[1])
        s = first / (first + second) if first + second > 0 else 1.0
        corners.append((start[0] + s * (end[0] - start[0]), (1 - s) * start[1] + s * end[1]))
    return [*corners, (high, lines[-1].at(high))]
