"""PLU(x) = m + alpha * (x - m) with m = clip(x, -c, c): the definition, for any array (Nicolae, 2018).

Three straight pieces: slope 1 on |x| <= c, slope alpha outside. The kinks belong to the inner piece, in value
and in gradient. `formula` is the only place where the function is written down for whole arrays; NumPy, PyTorch,
JAX and Keras all evaluate it through their own `where`.
"""

from __future__ import annotations

import math
import sys
from typing import Any

Array = Any
"""A number, or an array of NumPy, PyTorch or JAX."""


def formula(xp: Any, x: Array, alpha: Array, c: Array) -> Array:
    """Evaluate PLU with the functions of the array namespace `xp`, on floating-point x.

    The values are those of the clip form. A comparison chooses the piece, for three reasons. Inside [-c, c] the result
    is x itself, signed zeros and NaN included. Every framework's automatic differentiation gives slope 1 at the kinks;
    their clips disagree there. The form holds for alpha > 1, where the max/min form is wrong.
    """
    edge = xp.sign(x) * c
    reach = x - edge
    flat = alpha == 0
    if flat is True:
        outer = edge
    else:
        if flat is not False:  # 0 * inf is NaN, but a flat piece has the value of its edge
            reach = xp.where(xp.isinf(x) & flat, 0.0, reach)
        outer = edge + reach * alpha
    return xp.where(abs(x) > c, outer, x)


def inverse_formula(xp: Any, y: Array, alpha: Array, c: Array) -> Array:
    """Evaluate the inverse, PLU with 1/alpha."""
    return formula(xp, y, 1.0 / alpha, c)


def slope_formula(xp: Any, x: Array, alpha: Array, c: Array) -> Array:
    """Evaluate dPLU/dx."""
    one = xp.ones_like(x)
    return xp.where(abs(x) > c, one * alpha, one)


def log_slope_formula(xp: Any, x: Array, alpha: Array, c: Array) -> Array:
    """Evaluate log(dPLU/dx)."""
    return xp.log(slope_formula(xp, x, alpha, c))


def check(alpha: Array, c: Array, *, invertible: bool = False) -> None:
    """Raise ValueError unless alpha >= 0 (alpha > 0 if invertible) and c >= 0 are finite.

    Numbers and NumPy arrays are checked. The values of framework tensors are not: reading them would stall a device
    or fail under a tracer.
    """
    for name, value in (("alpha", alpha), ("c", c)):
        if not _at_least(name, value, 0.0):
            raise ValueError(f"{name} must be finite and >= 0, got {value}; the defaults are alpha=0.1, c=1.0")
    if invertible and not _at_least("alpha", alpha, sys.float_info.min):
        raise ValueError(f"the inverse needs alpha > 0, got {alpha}; a flat piece (alpha = 0) has no inverse")


def _at_least(name: str, value: Array, low: float) -> bool:
    """Whether a number or NumPy array is finite and >= low; True for framework tensors, which are not read."""
    if isinstance(value, (int, float)):  # a bare comparison: compilers trace through it
        return low <= value < math.inf
    import numpy as np  # not on top: `import plunit`, which the command line begins with, takes milliseconds

    if hasattr(value, "shape") and not isinstance(value, (np.ndarray, np.generic)):
        return True
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be a real number or an array of them, got {value!r}")
    return bool(np.all(np.isfinite(array) & (array >= low)))
