"""sup |f(x) - g(x)| over a box: an expression against a curve or a network, a value that is reached and a bound."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plunit.base.errors import quoted
from plunit.expressions.expression import Expression, enclosure
from plunit.expressions.intervals import Interval, between
from plunit.expressions.searching import NEAR, Compared, Progress, Search, place
from plunit.pieces.arrays import Floats
from plunit.pieces.exact_curves import Curve
from plunit.pieces.limits import box_array
from plunit.pieces.networks import Network, check_network, check_size, network
from plunit.pieces.proofs.relaxation import LinearBounds

CLOSENESS = 1e-3
SECONDS = 60.0
PER_PIECE = 16  # parts of each piece of a curve, at first
MOST_VARIABLES = 4
"""`sup_error` bounds the error of formulas with at most so many variables."""

_EPS = float(np.finfo(np.float64).eps)


class SupError(NamedTuple):
    """The largest |f(x) - g(x)|.

    Attributes:
        value: the largest one found, at `x`.
        x: where it is, a number for each variable.
        bound: no |f(x) - g(x)| in the box exceeds it, or None if no bound was found.
        parts: how many parts of the box were looked at for the bound.
        note: why there is no bound, or no close one, or where f jumps; else empty.
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
    closeness: float = CLOSENESS,
    time_limit: float | None = SECONDS,
    progress: Progress | None = None,
) -> SupError:
    """Return the largest |f(x) - g(x)| in a box: the largest one found, and a bound that none exceeds.

    Args:
        expression: f, a function of at most four variables.
        function: g, a curve or a network with one output. The inputs are the variables in the order of `names`.
        box: a pair (low, high) for each variable; that of a curve lies in its domain.
        closeness: the search for the bound ends when it is within this part of the largest error found.
        time_limit: in seconds; then the bound so far is returned. None for no limit.
        progress: is called with the part of the time and what is known; if it returns true, the search ends.

    The bound holds for f and g in exact arithmetic, with the numbers of the text and the weights as float64, wherever f
    is defined. It assumes that NumPy's functions are within 4 units in the last place. It is None where f has no bound
    (tan(x) at pi / 2), or where intervals do not show it (sin(x) / x and mod(x, x) at 0). A place at which f is not
    finite, such as that of 1 / x, is an error if it is found. An error that samples do not tell apart from 0 is bounded
    to 1e-3 `closeness` of the first bound.

    >>> from plunit.expressions import parse
    >>> from plunit.pieces import activation, network
    >>> saddle = network([([[1.0, 1.0], [1.0, -1.0]], [0.0, 0.0]), activation.relu(), ([[1.0, -1.0]], [0.0])])
    >>> found = sup_error(parse("x * y"), saddle, [(0, 1), (0, 1)])
    >>> found.value, found.bound < 1.001
    (1.0, True)
    """
    search = comparison(expression, function, box, closeness=closeness)
    search.run(time_limit, progress)
    return outcome(search)


def comparison(expression: Expression, function: Curve | Network, box: Any, *, closeness: float = CLOSENESS) -> Search:
    """Return the search of `sup_error` before its first step; `outcome` says what it has found at any time."""
    if len(expression.names) > MOST_VARIABLES:
        raise ValueError(
            f"the largest error is bounded for {MOST_VARIABLES} variables at most, and {quoted(expression.text)} has "
            f"{len(expression.names)}"
        )
    inputs, outputs = _widths(function)
    if expression.names and len(expression.names) != inputs:
        raise ValueError(
            f"{quoted(expression.text)} has the variables {', '.join(expression.names)}, and the other function has "
            f"{inputs} input{'s' * (inputs > 1)}; both need the same number"
        )
    if outputs != 1:
        raise ValueError(f"the function must have one output, got {outputs}; pick one, of a curve with .output(i)")
    if isinstance(function, Curve):
        return _of_curve(expression, function, box, closeness)
    sides = box_array(function, box)
    check_size(function, np.abs(sides).max(axis=1))
    compared = Compared(expression, lambda x: function(x)[:, 0], LinearBounds(function), sides, closeness)
    return Search(compared, (sides[:, 0][None], sides[:, 1][None]))


def _of_curve(expression: Expression, function: Curve, box: Any, closeness: float) -> Search:
    sides = box_array(network([([[1.0]], [0.0])]), box)
    low, high = sides[0].tolist()
    if not function.low <= low < high <= function.high:
        raise ValueError(
            f"low < high must lie in the curve's domain [{function.low}, {function.high}], got {low} and {high}"
        )
    ends = np.concatenate([[low], function.knots[(function.knots > low) & (function.knots < high)], [high]])
    parts = ends[:-1, None] + np.diff(ends)[:, None] * (np.arange(PER_PIECE) / PER_PIECE)
    cuts = np.unique(np.append(parts, high))[:, None]
    lines = _CurveLines(function)
    compared = Compared(expression, lambda x: function(x[:, 0])[:, 0], lines, sides, closeness)
    return Search(compared, (cuts[:-1], cuts[1:]))


def outcome(search: Search) -> SupError:
    """Return what a search has found."""
    f, x, bound = search.compared.expression, search.x, search.bound
    note = search.note
    if not note and f.names:  # within a billionth of the box around the largest error
        ends = search.compared.box
        near = NEAR * (ends[:, 1] - ends[:, 0])
        values = enclosure(f.steps, *(np.clip(x + step, *ends.T)[:, None] for step in (-near, near)))
        jump = float(values.high[0] - values.low[0])
        if jump > 0.1 * search.value > 1e-6 * jump:
            note = f"the function jumps by {jump:.3g} near {place(f, x)}"
    known = np.isfinite(bound)
    return SupError(search.value, tuple(x.tolist()), bound if known else None, search.parts, note)


def _widths(function: Curve | Network) -> tuple[int, int]:
    """Return the numbers of inputs and outputs."""
    if isinstance(function, Curve):
        return 1, function.values.shape[1]
    check_network(function)
    return function.inputs, function.outputs


class _CurveLines:
    """The line of a curve through the values at both ends of a piece, on parts of pieces."""

    def __init__(self, curve: Curve) -> None:
        self.curve = curve

    def __call__(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        low, high, curve = low[:, 0], high[:, 0], self.curve
        middle = low / 2 + high / 2
        piece = np.searchsorted(curve.knots[1:-1], middle, side="right")
        start, value = _exact(curve.knots[piece]), _exact(curve.values[piece, 0])
        rise = _exact(curve.values[piece + 1, 0]) - value
        slope = rise / (_exact(curve.knots[piece + 1]) - start)
        at, steep = value + slope * (_exact(middle) - start), slope.low / 2 + slope.high / 2
        # the slope is known to a few roundings, which count over half the part
        lost = (slope.high - slope.low) * (high - low)
        y = np.stack([at.high + lost, at.low - lost], axis=1)
        y += _EPS * np.abs(y) * [1.0, -1.0]
        return y, np.repeat(steep[:, None, None], 2, axis=1)


def _exact(x: Floats) -> Interval:
    return between(x, x)
