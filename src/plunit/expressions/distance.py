"""sup |f(x) - g(x)| over a box, for an expression f and a curve or network g: a value that is attained, and a bound.

In a box with middle m, f is c + s t +- e (`forms`), and g lies between two linear functions of x - m. So f - g and
g - f are below linear functions, which are largest at a corner. Boxes whose bound exceeds the largest error found by
more than the closeness are halved, those with the largest bounds first.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from plunit.base.errors import quote
from plunit.base.ranges import as_positive
from plunit.expressions.expression import Expression, finite_values
from plunit.expressions.forms import halves, linear_enclosure
from plunit.expressions.intervals import between, enclosure
from plunit.pieces.arrays import Floats, blocks
from plunit.pieces.boxes import box_array, check_size
from plunit.pieces.exact.line_curves import Curve
from plunit.pieces.networks import Network, check_network, network
from plunit.pieces.proofs.branching import Effort
from plunit.pieces.proofs.linear_bounds import LinearBounds

MOST_VARIABLES = 4
"""Maximum number of variables for which the error is bounded."""

PER_PIECE = 16  # initial parts of each piece of a curve
_SAMPLES, _PEAKS, _STEPS, _TRIES = 2**14, 64, 36, 8
"""The number of random starting points, of the highest ones that climb, of steps, and of random tries in a step."""

_BATCH, _MOST = 4096, 2**22
"""The maximum number of boxes that are halved at once, and of numbers stored for all boxes."""

DEEPEST, UNBOUNDED = 2.0**-64, 2**15
"""Sides are not cut below the first, a fraction of the box; the search ends if more boxes than the second have no
bound."""

_NEAR = 1e-9
"""A change of more than a tenth of the error within this fraction of the box counts as a jump."""

_EPS = float(np.finfo(np.float64).eps)
_ROUNDING = 256 * _EPS
_TINY = float(np.finfo(np.float64).tiny)

LineBounds = Callable[[Floats, Floats], tuple[Floats, Floats]]
"""y [n, 2] and a [n, 2, in] for boxes low, high [n, in]: y + a (x - m) is above and below g, m = low / 2 + high / 2."""

SearchProgress = Callable[[float, str], object]
"""Called with the fraction done, from 0 to 1, and a summary; if it returns true, the search ends."""


class SupError(NamedTuple):
    """The largest |f(x) - g(x)|.

    Attributes:
        value: the largest one found.
        x: the point where it was found, a number for each variable.
        bound: no |f(x) - g(x)| in the box exceeds it, or None if no bound was found.
        parts: the number of parts of the box that were bounded.
        note: why no bound, or no close one, was found, or where f jumps; else empty.
    """

    value: float
    x: tuple[float, ...]
    bound: float | None
    parts: int
    note: str = ""


def sup_error(
    expression: Expression,
    function: Curve | Network,
    box: Any,
    *,
    closeness: float = 1e-3,
    time_limit: float | None = 60.0,
    progress: SearchProgress | None = None,
) -> SupError:
    """Return the largest |f(x) - g(x)| found in a box, and an upper bound of all of them.

    Args:
        expression: f, a function of at most four variables.
        function: g, a curve or a network with one output. The inputs are the variables in the order of `names`.
        box: a pair (low, high) for each variable; for a curve it must lie in the curve's domain.
        closeness: the search ends when the bound is within this fraction of the largest error found.
        time_limit: in seconds, after which the best bound so far is returned; None for no limit.
        progress: called with the fraction of the time used and a summary; if it returns true, the search ends.

    The bound holds for f and g in exact arithmetic, with the numbers of the text and the weights as float64, wherever f
    is defined. It assumes that NumPy's functions are within 4 units in the last place. It is None if f is unbounded
    (tan(x) at pi / 2), or if intervals cannot show a bound (sin(x) / x and mod(x, x) at 0). If the search finds a point
    where f is not finite, such as the 0 of 1 / x, it raises ValueError. If samples cannot tell the error from 0, it is
    bounded to 1e-3 `closeness` of the first bound.

    >>> from plunit.expressions import parse
    >>> from plunit.pieces import activation, network
    >>> saddle = network([([[1.0, 1.0], [1.0, -1.0]], [0.0, 0.0]), activation.relu(), ([[1.0, -1.0]], [0.0])])
    >>> found = sup_error(parse("x * y"), saddle, [(0, 1), (0, 1)])
    >>> found.value, found.bound < 1.001
    (1.0, True)
    """
    seconds = Effort.of(time_limit, None).seconds
    search = begin_search(expression, function, box, closeness=closeness)
    search.refine(seconds, progress)
    return search.outcome()


def begin_search(
    expression: Expression, function: Curve | Network, box: Any, *, closeness: float = 1e-3
) -> ErrorSearch:
    """Return the search of `sup_error` before its first step; `outcome` returns its result at any time."""
    as_positive("closeness", closeness, 0.001)
    names = expression.names
    if len(names) > MOST_VARIABLES:
        raise ValueError(
            f"{quote(expression.text)} has {len(names)} variables; the largest error can be bounded for at most "
            f"{MOST_VARIABLES}"
        )
    if isinstance(function, Curve):
        inputs, outputs = 1, function.values.shape[1]
    else:
        check_network(function)
        inputs, outputs = function.inputs, function.outputs
    if names and len(names) != inputs:
        raise ValueError(
            f"{quote(expression.text)} has the variables {', '.join(names)}, but the other function has "
            f"{inputs} input{'s' * (inputs > 1)}; their numbers must be equal"
        )
    if outputs != 1:
        raise ValueError(f"the function must have one output, got {outputs}; choose one, for a curve with .output(i)")
    if isinstance(function, Curve):
        return _of_curve(expression, function, box, closeness)
    sides = box_array(function, box)
    check_size(function, np.abs(sides).max(axis=1))
    ends = sides[:, 0][None], sides[:, 1][None]
    return ErrorSearch(expression, lambda x: function(x)[:, 0], LinearBounds(function, sides), sides, ends, closeness)


def _of_curve(expression: Expression, curve: Curve, box: Any, closeness: float) -> ErrorSearch:
    sides = box_array(network([([[1.0]], [0.0])]), box)
    low, high = sides[0].tolist()
    if not curve.low <= low < high <= curve.high:
        raise ValueError(f"low < high must lie in the curve's domain [{curve.low}, {curve.high}], got {low} and {high}")
    ends = np.concatenate([[low], curve.knots[(curve.knots > low) & (curve.knots < high)], [high]])
    parts = ends[:-1, None] + np.diff(ends)[:, None] * (np.arange(PER_PIECE) / PER_PIECE)
    cuts = np.unique(np.append(parts, high))[:, None]
    lines = partial(_curve_lines, curve)
    return ErrorSearch(expression, lambda x: curve(x[:, 0])[:, 0], lines, sides, (cuts[:-1], cuts[1:]), closeness)


def _curve_lines(curve: Curve, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return, for parts of pieces, the line through the values at both ends of the piece, as `LineBounds`."""
    low, high = low[:, 0], high[:, 0]
    middle = low / 2 + high / 2
    piece = np.searchsorted(curve.knots[1:-1], middle, side="right")
    start, end, value, last = (
        between(part, part)
        for part in (curve.knots[piece], curve.knots[piece + 1], curve.values[piece, 0], curve.values[piece + 1, 0])
    )
    slope = (last - value) / (end - start)
    at, steep = value + slope * (between(middle, middle) - start), slope.low / 2 + slope.high / 2
    # the slope is known up to a few roundings, which act over half the part
    lost = (slope.high - slope.low) * (high - low)
    y = np.stack([at.high + lost, at.low - lost], axis=1)
    y += _EPS * np.abs(y) * [1.0, -1.0]
    return y, np.repeat(steep[:, None, None], 2, axis=1)


class ErrorSearch:
    """A search for sup |f - g|: the largest error so far, `value` at `x`, and the bounds of the remaining boxes.

    Args:
        expression: f.
        values: the function that returns g at x [n, in].
        lines: linear bounds of g.
        box: [in, 2].
        cells: the initial boxes, low and high, [n, in].
        closeness: see `sup_error`.
    """

    def __init__(
        self,
        expression: Expression,
        values: Callable[[Floats], Floats],
        lines: LineBounds,
        box: Floats,
        cells: tuple[Floats, Floats],
        closeness: float,
    ) -> None:
        self.expression, self.values, self.lines, self.box, self.closeness = expression, values, lines, box, closeness
        self.parts, self.note = len(cells[0]), ""
        self.low, self.high = cells
        self.x, self.value = self._first_peak(np.concatenate([*cells, (cells[0] + cells[1]) / 2]))
        self.top = np.concatenate(
            [self.bounds(*(end[part] for end in cells))[0] for part in blocks(self.parts, _BATCH)]
        )
        self.closed = 0.0
        finite = self.top[np.isfinite(self.top)].max(initial=0.0)
        self.size = float(np.abs(values(np.concatenate(cells))).max() + max(self.value, finite))
        self.rounding = max(self._rounding(), _ROUNDING * self.size, 1e-9 * closeness * self.size, _TINY)

    def errors(self, x: Floats) -> Floats:
        """Return |f(x) - g(x)| at x [n, in]; raise ValueError where f is not finite."""
        return np.abs(finite_values(self.expression, *x.T[: len(self.expression.names) or 1]) - self.values(x))

    def bounds(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return upper bounds of |f - g| on boxes [n, in], and the corners at which they are largest."""
        with np.errstate(all="ignore"):
            middle, half = halves(low, high)
            f = linear_enclosure(self.expression.steps, low.T, high.T)
            y, a = self.lines(low, high)
            slopes = a * half[:, None] - f.slopes.T[:, None]
            away = np.stack([y[:, 0] - f.centre, f.centre - y[:, 1]], axis=1)
            size = np.abs(f.centre)[:, None] + np.abs(y) + np.abs(a * half[:, None]).sum(axis=2)
            size += (np.abs(f.slopes).sum(axis=0) + f.error)[:, None]
            tops = away + np.abs(slopes).sum(axis=2) + f.error[:, None] + 16 * _EPS * size + _TINY
            rows, side = np.arange(len(tops)), np.argmax(tops, axis=1)
        top, slope = tops[rows, side], slopes[rows, side] * np.where(side == 0, 1.0, -1.0)[:, None]
        # where f is undefined, so is the error
        nothing = np.isnan(f.values.low) & np.isnan(f.values.high)
        top = np.where(nothing, 0.0, np.where(np.isnan(top), np.inf, top))
        return top, np.where(slope > 0, high, np.where(slope < 0, low, middle))

    @property
    def bound(self) -> float:
        """An upper bound of |f - g|; infinite if none is known."""
        return float(max(self.closed, self.top.max(initial=0.0), self.value))

    def refine(self, time_limit: float | None, progress: SearchProgress | None) -> None:
        """Halve boxes until the bound is close, or the time is over; then `note` says why it is not close."""
        start = time.monotonic()
        while not self.note and self._drop():
            passed = time.monotonic() - start
            if time_limit is not None and passed > time_limit:
                self.note = f"the search for a closer bound ended after {time_limit:g} s"
            elif progress is not None and progress(min(1.0, passed / (time_limit or np.inf)), self._summary()):
                self.note = "the search for a closer bound was stopped"
            elif 2 * self.low.size > _MOST:
                self.note = f"the search for a closer bound ended with {len(self.low):,} boxes left"
            else:
                self._split_boxes()

    def _summary(self) -> str:
        return f"error {self.value:.3g}, at most {self.bound:.3g}, {len(self.low):,} boxes left"

    def _drop(self) -> bool:
        """Close the boxes whose bound is low enough or which are too small; return whether any are left."""
        closeness = self.closeness
        # an error that cannot be told from 0 gives no scale
        nothing = 1e-3 * closeness * self.size if self.value <= _ROUNDING * self.size else 0.0
        enough = self.value * (1 + closeness) + max(self.rounding, nothing)
        left = self.top > enough
        small = left & (self._sides(self.low, self.high).max(axis=1) <= DEEPEST)
        if small.any() or (left & ~np.isfinite(self.top)).sum() > UNBOUNDED:
            worst = int(np.argmax(np.where(left, self.top, -np.inf)))
            self._say(self.low[worst], self.top[worst])
        left &= ~small
        self.closed = max(self.closed, float(self.top[~left].max(initial=0.0)))
        self.low, self.high, self.top = self.low[left], self.high[left], self.top[left]
        return bool(len(self.low)) and not np.isinf(self.closed)

    def _say(self, x: Floats, top: float) -> None:
        kind = "it has a pole, or intervals show no bound there" if np.isinf(top) else "it jumps there"
        self.note = f"the function has no closer bound near {self._place(x)}: {kind}"

    def _sides(self, low: Floats, high: Floats) -> Floats:
        """Return the sides of boxes as fractions of those of the whole box; 0 for a side that cannot be cut."""
        ends, middle = self.box, low / 2 + high / 2
        return np.where((low < middle) & (middle < high), (high - low) / (ends[:, 1] - ends[:, 0]), 0.0)

    def _split_boxes(self) -> None:
        """Halve the boxes with the largest bounds, across their longest sides."""
        order = np.argpartition(-self.top, _BATCH) if len(self.top) > _BATCH else np.arange(len(self.top))
        chosen, rest = order[:_BATCH], order[_BATCH:]
        low, high, rows = self.low[chosen], self.high[chosen], np.arange(len(chosen))
        axis = self._sides(low, high).argmax(axis=1)
        cut = low[rows, axis] / 2 + high[rows, axis] / 2
        left_high, right_low = high.copy(), low.copy()
        left_high[rows, axis], right_low[rows, axis] = cut, cut
        low, high = np.concatenate([low, right_low]), np.concatenate([left_high, high])
        top, corner = self.bounds(low, high)
        top = np.minimum(top, np.tile(self.top[chosen], 2))
        some = np.argsort(-top, kind="stable")[: _BATCH // 16]
        self._look(np.concatenate([corner[some], low[some] / 2 + high[some] / 2]))
        self.parts += len(low)
        kept = ((self.low, low), (self.high, high), (self.top, top))
        self.low, self.high, self.top = (np.concatenate([old[rest], new]) for old, new in kept)

    def _look(self, x: Floats) -> None:
        found = self.errors(x)
        best = int(found.argmax())
        if found[best] > self.value:
            self.x, self.value = x[best], float(found[best])

    def _place(self, x: Floats) -> str:
        return ", ".join(
            f"{name} = {value:.6g}" for name, value in zip(self.expression.names, x.tolist(), strict=False)
        )

    def outcome(self) -> SupError:
        """Return the result of the search so far."""
        f, x, note = self.expression, self.x, self.note
        if not note and f.names:  # within a billionth of the box around the largest error
            near = _NEAR * (self.box[:, 1] - self.box[:, 0])
            values = enclosure(f.steps, *(np.clip(x + step, *self.box.T)[:, None] for step in (-near, near)))
            jump, size = float(values.high[0] - values.low[0]), float(np.abs([values.low[0], values.high[0]]).max())
            if jump > 0.1 * self.value > 1e-6 * jump and jump > 1e-12 * size:  # less is rounding
                note = f"the function jumps by {jump:.3g} near {self._place(x)}"
        bound = self.bound if math.isfinite(self.bound) else None
        return SupError(self.value, tuple(x.tolist()), bound, self.parts, note)

    def _rounding(self) -> float:
        """Return by how much bounds on tiny boxes exceed the errors there: no bound can be closer than that."""
        low, high = self.box.T
        x = np.random.default_rng(1).uniform(low, high, (_PEAKS, len(low)))
        over = self.bounds(x, np.minimum(x + 2.0**-44 * (high - low), high))[0] - self.errors(x)
        return 2 * float(over[np.isfinite(over)].max(initial=0.0))

    def _first_peak(self, x: Floats) -> tuple[Floats, float]:
        """Return the point with the largest error: these and random points climb by ever smaller random steps."""
        rng, (low, high) = np.random.default_rng(0), self.box.T
        x = np.concatenate([x, rng.uniform(low, high, (_SAMPLES, len(low)))])
        found = self.errors(x)
        top = np.argsort(-found, kind="stable")[:_PEAKS]
        x, found, rows = x[top], found[top], np.arange(len(top))
        for step in np.geomspace(1e-2, 1e-9, _STEPS):
            away = step * (high - low) * rng.standard_normal((len(x), _TRIES, len(low)))
            tried = np.clip(x[:, None] + away, low, high)
            values = self.errors(tried.reshape(-1, len(low))).reshape(len(x), _TRIES)
            best = values.argmax(axis=1)
            better = values[rows, best] > found
            x = np.where(better[:, None], tried[rows, best], x)
            found = np.where(better, values[rows, best], found)
        highest = int(found.argmax())
        return x[highest], float(found[highest])
