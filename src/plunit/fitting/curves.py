"""Curves of one input: with few pieces, near a function or rows, and as the start of a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from plunit.base.errors import UserError
from plunit.ensemble.arrays import Array
from plunit.ensemble.mlp import MLP
from plunit.fitting.problems import Problem, root_mean_square
from plunit.pieces import Curve

if TYPE_CHECKING:
    from plunit.expressions import Expression

KNOTS = 2001
"""Number of points of the dense curve that interpolates a function before it is simplified."""

SLIGHT = 1e-9
"""A curve need not be closer than this fraction of the function's largest value."""

_MARGIN = 0.9  # fraction of the inner piece that a unit which only passes values on uses


class Reduced(NamedTuple):
    """A curve with few pieces.

    Attributes:
        curve: the curve.
        of: what the curve approximates: "f", "the rows" or "the network".
        error: its largest distance from `of`; for "the rows" the root mean square error.
        bound: a proved bound of the error, if there is one.
        note: why there is no bound, or where the function jumps.
    """

    curve: Curve
    of: str
    error: float
    bound: float | None = None
    note: str = ""


def reduce_pieces(problem: Problem, curve: Curve, pieces: int | None, error: float | None) -> Reduced:
    """Return the curve with `pieces` pieces, or with the fewest within `error`; by default with few pieces.

    For a function, the curve approximates the function itself. For a table with `error`, it is within the error of the
    network; otherwise it is fitted to the rows.
    """
    from plunit.pieces import fit_segments, simplify

    try:
        if problem.expression is not None:
            return _of_function(problem.expression, curve, pieces, error)
        if error is not None:
            found = simplify(curve, tolerance=error)
            return Reduced(found.curve, "the network", found.error)
        fitted = fit_segments(problem.x[:, 0], problem.y, pieces).curve
    except ValueError as wrong:
        raise UserError(str(wrong)) from None
    return Reduced(fitted, "the rows", root_mean_square(fitted(problem.x[:, 0])[:, 0] - problem.y))


def _of_function(f: Expression, curve: Curve, pieces: int | None, error: float | None) -> Reduced:
    from plunit.expressions import sup_error
    from plunit.pieces import simplify

    low, high = float(curve.knots[0]), float(curve.knots[-1])
    dense = _interpolate(f, low, high)
    y = dense.values
    if pieces is None:
        away = sup_error(f, dense, [(low, high)])
        reach = away.value if away.bound is None else away.bound
        allowed = error
        if allowed is None:  # as good as the network; for a straight line both errors are rounding
            allowed = max(sup_error(f, curve, [(low, high)]).value, min(2 * reach, SLIGHT * np.abs(y).max()))
        if reach >= allowed:
            away_from = f"a curve of {KNOTS - 1} pieces through the function is {reach:.3g} away from it"
            if error is None:
                raise UserError(f"no curve with the fewest pieces was found: {away_from}. Use a shorter interval")
            raise UserError(
                f"an error of {error:.3g} is too small: {away_from}. Use a larger error or a shorter interval"
            )
        found = simplify(dense, tolerance=allowed - reach).curve
    else:
        found = simplify(dense, pieces=pieces).curve
    distance = sup_error(f, found, [(low, high)])
    return Reduced(found, "f", distance.value, distance.bound, distance.note)


def _interpolate(f: Callable[[Array], Array], low: float, high: float) -> Curve:
    """Return the curve through `KNOTS` points of a function."""
    x = np.linspace(low, high, KNOTS)
    y = f(x)
    return Curve(x, y[:, None], (np.diff(y) / np.diff(x))[:, None])


def start_from_curve(
    network: MLP, values: Callable[[Array], Array], box: Array, alpha: float, c: float
) -> Array | None:
    """Return the parameters [parameters] of a network that is the closest curve with as many knots as it can hold.

    The first unit of each hidden layer passes on what the layer before it knows, and each other one has a knot: it is
    at -c on the knot, and reaches c beyond the interval. Least squares, which are exact here, find the weights.

    Args:
        network: the form of the network. None is returned unless it has one input, PLU with alpha below 1
            and one or two hidden layers.
        values: the function, of points [n, 1] to [n, 1].
        box: the ends of the input [1, 2].
        alpha: the outer slope of PLU.
        c: the half-width of its inner piece.
    """
    from plunit.pieces import simplify

    if network.widths[0] != 1 or network.depth not in (2, 3) or network.activation != "plu" or alpha == 1:
        return None
    hidden = network.widths[1:-1]
    dense = _interpolate(lambda x: values(x[:, None])[:, 0], *box[0].tolist())
    if not np.isfinite(dense.values).all():
        return None
    curve = simplify(dense, pieces=1 + sum(hidden) - len(hidden)).curve
    u = (curve.knots - curve.low) / (curve.high - curve.low)

    def ramps(at: Array) -> Array:
        return np.asarray(c * (2 * (u - at[:, None]) - 1))

    first, second = np.split(u[1:-1], [hidden[0] - 1])
    wanted = [ramps(np.append(0.0, first))]
    if len(hidden) > 1:
        bends = np.diff(curve.slopes[:, 0])
        # a ramp that bends by 1 has the slope alpha / (1 - alpha) before its knot
        straight = curve.slopes[0, 0] - alpha / (1 - alpha) * bends[len(first) :].sum()
        passed = straight * u + bends[: len(first)] @ np.maximum(0.0, u - first[:, None])
        passed -= passed.min() / 2 + passed.max() / 2
        passed *= _MARGIN * c / max(np.abs(passed).max(), np.finfo(float).tiny)
        wanted.append(np.concatenate([passed[None], ramps(second)]))
    theta, h = [], u[None]
    for units, z in zip(hidden, wanted, strict=True):
        z = np.concatenate([z, np.zeros((units - len(z), len(u)))])
        theta += _layer(h, z)
        h = network.function.value(z, alpha, c)
    scale, shift = curve.high - curve.low, curve.low
    theta[0], theta[1] = theta[0] / scale, theta[1] - theta[0][:, 0] * shift / scale  # from u to x
    return np.concatenate([part.ravel() for part in (*theta, *_layer(h, curve.values.T))])


def _layer(h: Array, z: Array) -> list[Array]:
    """Return the weights [out, in] and biases [out] of a layer that turns h [in, n] into z [out, n]."""
    found = np.linalg.lstsq(np.vstack([h, np.ones_like(h[:1])]).T, z.T, rcond=None)[0]
    return [found[:-1].T, found[-1]]
