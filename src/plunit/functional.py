"""PLU(x) = m + alpha * (x - m) with m = clip(x, -c, c): the definition, for any array (Nicolae, 2018).

The function has three straight pieces: slope 1 on |x| <= c, slope alpha outside. The kinks belong to the inner piece,
in value and in gradient. `formula` is the only definition for arrays; NumPy, PyTorch, JAX and Keras all evaluate it
with their own `where`.
"""

from __future__ import annotations

import sys
from typing import Any

ArrayLike = Any
"""A number, or an array of NumPy, PyTorch or JAX."""


def formula(xp: Any, x: ArrayLike, alpha: ArrayLike, c: ArrayLike) -> ArrayLike:
    """Return PLU(x) for floating-point x, with the functions of the array namespace `xp`.

    The values are those of the clip form. A comparison chooses the piece, for three reasons. Inside [-c, c] the result
    is x itself, signed zeros and NaN included. Every framework's automatic differentiation gives slope 1 at the kinks,
    where their clips disagree. The form also holds for alpha > 1, where the max/min form is wrong.
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


def inverse_formula(xp: Any, y: ArrayLike, alpha: ArrayLike, c: ArrayLike) -> ArrayLike:
    """Return the inverse, PLU with 1/alpha."""
    return formula(xp, y, 1.0 / alpha, c)


def slope_formula(xp: Any, x: ArrayLike, alpha: ArrayLike, c: ArrayLike) -> ArrayLike:
    """Return dPLU/dx."""
    one = xp.ones_like(x)
    return xp.where(abs(x) > c, one * alpha, one)


def log_slope_formula(xp: Any, x: ArrayLike, alpha: ArrayLike, c: ArrayLike) -> ArrayLike:
    """Return log(dPLU/dx)."""
    return xp.log(slope_formula(xp, x, alpha, c))


def check(alpha: ArrayLike, c: ArrayLike, *, invertible: bool = False, tiny: float = sys.float_info.min) -> None:
    """Raise ValueError unless alpha >= 0 and c >= 0 are finite and, if invertible, alpha and 1/alpha normal numbers.

    `tiny` is the smallest normal number of the precision in which the inverse is computed. Below it alpha is 0 in some
    frameworks and has few digits in others, so all of them refuse it. Numbers and NumPy arrays are checked; framework
    tensors are not, because reading them would stall a device or fail under a tracer.

    Numbers above the largest of a precision are allowed: every framework clamps them to it.
    """
    for name, value in (("alpha", alpha), ("c", c)):
        if not _is_between(name, value, 0.0, sys.float_info.max):
            raise ValueError(f"{name} must be finite and >= 0, got {value}; the defaults are alpha=0.1, c=1.0")
    if invertible and not _is_between("alpha", alpha, tiny, 1 / tiny):
        raise ValueError(
            f"the inverse needs alpha > 0, got {alpha}; a flat piece (alpha = 0) has no inverse, and in this precision "
            f"alpha must lie between {tiny:.2g} and {1 / tiny:.2g}"
        )


def _is_between(name: str, value: ArrayLike, low: float, high: float) -> bool:
    """Whether a number or NumPy array lies in [low, high]; True for framework tensors, which are not read."""
    if isinstance(value, (int, float)):  # compilers can trace a plain comparison
        return low <= value <= high
    import numpy as np  # imported here to keep `import plunit` fast for the command line

    if hasattr(value, "shape") and not isinstance(value, (np.ndarray, np.generic)):
        return True
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be a real number or an array of them, got {value!r}")
    # as float64: a Python number would be converted to the array's dtype, where it may round to 0 or infinity
    return bool(np.all((array >= np.float64(low)) & (array <= np.float64(high))))
