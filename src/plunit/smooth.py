"""SmoothPLU(x) = x - sign(x) (1 - alpha) w r^2, r = (|x| - c + w) / (2 w), where ||x| - c| < w = rho c; elsewhere PLU.

PLU with its corners rounded by quadratics: the slope falls linearly from 1 to alpha, so it has no jumps. These are the
formulas for any array. As in `plunit.functional`, comparisons choose the piece. Points outside a corner are replaced by
its middle before the corner's formula is applied. So no gradient of a piece that is not chosen can be 0 * inf.
`plunit.jax` evaluates these formulas.

`plunit.invertible.SmoothPLU` is the same function for PyTorch, written with fewer and fused steps. With PyTorch's ops
the formulas here take about three times as long. At an infinite input the gradients of c and rho are right here, and
NaN in `plunit.invertible`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plunit import functional

Array = Any
"""A number, or an array of the namespace `xp`."""


def formula(xp: Any, x: Array, alpha: Array, c: Array, rho: Array) -> Array:
    """Evaluate SmoothPLU with the functions of the array namespace `xp`, on floating-point x."""
    near, at, w, d = _corner(xp, x, c, rho, end=1.0)
    r = (1 + d) / 2
    rounded = at - xp.sign(at) * (1 - alpha) * w * r * r
    return xp.where(near, rounded, functional.formula(xp, x, alpha, c))


def slope_formula(xp: Any, x: Array, alpha: Array, c: Array, rho: Array) -> Array:
    """Evaluate dSmoothPLU/dx, 1 - r + alpha r in the corners."""
    near, _, _, d = _corner(xp, x, c, rho, end=1.0)
    return xp.where(near, ((1 - d) + alpha * (1 + d)) / 2, functional.slope_formula(xp, x, alpha, c))


def log_slope_formula(xp: Any, x: Array, alpha: Array, c: Array, rho: Array) -> Array:
    """Evaluate log(dSmoothPLU/dx)."""
    return xp.log(slope_formula(xp, x, alpha, c, rho))


def inverse_formula(xp: Any, y: Array, alpha: Array, c: Array, rho: Array) -> Array:
    """Evaluate the inverse, alpha > 0: r = (1 + d) / (1 + s) with d = (|y| - c) / w and s^2 = alpha (1 + d) - d.

    s is the slope at the x that is sought. In a corner d < alpha, so that s^2 > 0 holds in floating point too.
    """
    near, at, w, d = _corner(xp, y, c, rho, end=alpha)
    s = xp.sqrt(alpha * (1 + d) - d)
    r = (1 + d) / (1 + s)
    rounded = (at - xp.sign(at) * (1 - alpha) * r * (c - w * (1 - r))) / s
    return xp.where(near, rounded, functional.inverse_formula(xp, y, alpha, c))


def check(alpha: Array, c: Array, rho: Array, **options: Any) -> None:
    """Raise ValueError unless alpha and c are as in `plunit.functional.check` and 0 <= rho <= 1."""
    functional.check(alpha, c, **options)
    if hasattr(rho, "shape") and not isinstance(rho, (np.ndarray, np.generic)):
        return
    if not np.all((np.asarray(rho) >= 0) & (np.asarray(rho) <= 1)):
        raise ValueError(f"rho must lie in [0, 1], got {rho}; start from 0.5, 0 is PLU")


def _corner(xp: Any, x: Array, c: Array, rho: Array, end: Array) -> tuple[Array, Array, Array, Array]:
    """Return where -1 < d < end for d = (|x| - c) / w, then x, w and d there.

    Elsewhere x is c and d is 0. A corner without width is nowhere: w, which is 0 there, is 1 instead.
    """
    w = rho * c
    has_width = w > 0
    w = xp.where(has_width, w, 1.0)
    d = (abs(x) - c) / w
    near = has_width & (d > -1) & (d < end)
    at = xp.where(near, x, c)
    return near, at, w, (abs(at) - c) / w
