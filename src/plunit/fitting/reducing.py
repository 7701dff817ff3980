"""Curves with few pieces for problems of one input."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plunit.base.errors import UserError
from plunit.expressions import Expression, SupError, sup_error
from plunit.fitting.problems import Array, Problem, root_mean_square
from plunit.pieces import Curve, fit_segments, simplify

KNOTS = 2001
"""A function is followed by the straight lines between its values at so many points."""


class Reduced(NamedTuple):
    """A curve with few pieces.

    Attributes:
        curve: the curve.
        of: what it is close to: "f", "the rows" or "the network".
        error: its largest distance from it; for "the rows" the root mean square error.
        bound: a proved bound of the error, if there is one.
    """

    curve: Curve
    of: str
    error: float
    bound: float | None = None


def reduced(problem: Problem, curve: Curve, pieces: int | None, error: float | None) -> Reduced:
    """Return the curve with `pieces` pieces, or with the fewest within `error`, or what shows most with few pieces.

    For a function it is close to the function itself. For a table with `pieces`, or with neither, it is fitted to the
    rows. For a table with `error` it is within the error of the network.
    """
    try:
        if problem.expression is not None:
            return _of_function(problem.expression, curve, pieces, error)
        if error is not None:
            found = simplify(curve, tolerance=error)
            return Reduced(found.curve, "the network", found.error)
        fitted = fit_segments(problem.x[:, 0], problem.y, pieces)
    except ValueError as wrong:
        raise UserError(str(wrong)) from None
    return Reduced(fitted.curve, "the rows", root_mean_square(fitted.curve(problem.x[:, 0])[:, 0] - problem.y))


def _of_function(expression: Expression, curve: Curve, pieces: int | None, error: float | None) -> Reduced:
    low, high = float(curve.knots[0]), float(curve.knots[-1])
    dense = _followed(expression, np.linspace(low, high, KNOTS))
    away = sup_error(expression, dense, low, high)
    if pieces is None:
        # as good as the network by default
        allowed = sup_error(expression, curve, low, high).value if error is None else error
        reach = away.value if away.bound is None else away.bound
        if reach >= allowed:
            away_from = f"{KNOTS - 1} straight lines through the function are {reach:.3g} away from it"
            if error is None:
                raise UserError(f"no curve with the fewest pieces: {away_from}. Take a shorter interval")
            raise UserError(
                f"an error of {error:.3g} is too small: {away_from}. Take a larger error or a shorter interval"
            )
        found = simplify(dense, tolerance=allowed - reach).curve
    else:
        found = simplify(dense, pieces=pieces).curve
    shown: SupError = sup_error(expression, found, low, high)
    return Reduced(found, "f", shown.value, shown.bound)


def _followed(expression: Expression, x: Array) -> Curve:
    y = expression(x)
    return Curve(x, y[:, None], (np.diff(y) / np.diff(x))[:, None])
