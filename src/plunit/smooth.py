"""SmoothPLU: PLU with its corners rounded by quadratics, so that the slope falls linearly from 1 to alpha.

The formulas are for any array of the namespace `xp`, in a = |x| and b = |y|. In the bend |a - c| < w = rho c, r rises
from 0 to 1 and the slope goes from 1 to alpha. With R the integral of r,

    r = clip((a - c + w) / (2 w), 0, 1),    R = w r^2 + max(a - c - w, 0),    dR/dc = -r,    dR/dw = r (1 - r)
    |y| = a - (1 - alpha) R,                s = 1 - (1 - alpha) r

`plunit.densities` evaluates these. `plunit.invertible.SmoothPLU` is the same function by fewer and fused operations of
PyTorch, which round differently; a test compares the two.
"""

from __future__ import annotations

from typing import Any

from plunit.functional import ArrayLike


def bend(xp: Any, a: ArrayLike, c: ArrayLike, w: ArrayLike) -> tuple[ArrayLike, ArrayLike]:
    """Return r and R at a."""
    r = xp.clip((a - (c - w)) / (2 * w), 0, 1)
    return r, w * r**2 + xp.clip(a - (c + w), 0, None)


def slope(xp: Any, r: ArrayLike, alpha: ArrayLike) -> ArrayLike:
    """Return s; at the ends of the bend 1 and alpha to the bit."""
    return xp.where(r < 1, 1 - (1 - alpha) * r, alpha)


def log_slope_descent(xp: Any, r: ArrayLike, s: ArrayLike, alpha: ArrayLike, w: ArrayLike) -> ArrayLike:
    """Return -d log s / da, which is 0 outside of the bend."""
    return xp.where((r > 0) & (r < 1), (1 - alpha) / (2 * w * s), 0)


def unbend(xp: Any, b: ArrayLike, alpha: ArrayLike, c: ArrayLike, w: ArrayLike) -> tuple[ArrayLike, ArrayLike]:
    """Return the a whose value is b, and r there.

    r solves a quadratic equation: r = v / (1 + s) with v = (b - c + w) / w. The slope is the root of
    s^2 = 1 + (alpha - 1) v = alpha^2 + (1 - alpha) (1 + alpha - v), of which the form without cancellation is used.
    """
    inner, end = c - w, 1 + alpha
    v = xp.minimum(xp.clip((b - inner) / w, 0, None), end)
    s = xp.sqrt(xp.where(alpha < 1, alpha**2 + (1 - alpha) * (end - v), 1 + (alpha - 1) * v))
    r = xp.where(v < end, v / (1 + s), 1)  # the quotient may round to less than 1 at the end
    a = xp.where(r < 1, inner + 2 * w * r, c + (b - c) / alpha)
    return xp.where(r > 0, a, b), r
