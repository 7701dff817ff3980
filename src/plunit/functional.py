"""PLU(x) = m + alpha * (x - m) with m = clip(x, -c, c): the definition, for any array.

Three straight pieces: slope 1 on |x| <= c, slope alpha outside. The kinks belong to the inner piece, in value
and in gradient. `formula` is the only place where the function is written down for whole arrays; NumPy, PyTorch,
JAX and Keras all evaluate it through their own `where`.
"""

from __future__ import annotations

import math
import sys
from types import ModuleType
from typing import Any

import numpy as np

Array = Any
"""A number, or an array of NumPy, PyTorch or JAX."""


def formula(xp: Any, x: Array, alpha: Array, c: Array) -> Array:
    """Evaluate PLU with the functions of the array namespace `xp`, on floating-point x.

    This is the clip form with its pieces told apart by a comparison. The value is the same, and besides: inside
    [-c, c] the result is x itself, signed zeros and NaN included; every framework's automatic differentiation gives
    slope 1 at the kinks (their clips disagree there); and it holds for alpha > 1, where the max/min form collapses.
    """
    edge = xp.sign(x) * c
    reach = x - edge
    flat = alpha == 0
    if flat is True:
        outer = edge
    else:
        if flat is not False:  # 0 * inf is NaN, but a flat piece stays at the edge
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


def plu(x: Array, alpha: Array = 0.1, c: Array = 1.0) -> Array:
    """PLU(x) = m + alpha * (x - m), m = clip(x, -c, c), elementwise.

    Args:
        x: a number or an array of NumPy, PyTorch or JAX; floating-point (NumPy and JAX promote integers).
        alpha: the outer slope, alpha >= 0; a number or an array that broadcasts with x.
        c: the half-width of the inner piece, c >= 0; likewise.

    The derivative is 1 where |x| <= c and alpha elsewhere; so it is 1 at the kinks. NaN stays NaN, and an infinity
    stays one unless alpha = 0, where it becomes +-c.

    >>> plu([-2.0, 0.5, 2.0]).round(6).tolist()
    [-1.1, 0.5, 1.1]
    """
    return _home(x, alpha, c).plu(x, alpha, c)


def inverse(y: Array, alpha: Array = 0.1, c: Array = 1.0) -> Array:
    """PLU^-1(y; alpha, c) = PLU(y; 1/alpha, c), elementwise; alpha > 0.

    >>> inverse([-1.1, 0.5, 1.1]).round(6).tolist()
    [-2.0, 0.5, 2.0]
    """
    return _home(y, alpha, c).inverse(y, alpha, c)


def slope(x: Array, alpha: Array = 0.1, c: Array = 1.0) -> Array:
    """Slope dPLU/dx: alpha where |x| > c, else 1.

    >>> slope([-2.0, 1.0, 2.0]).tolist()
    [0.1, 1.0, 0.1]
    """
    return _home(x, alpha, c).slope(x, alpha, c)


def log_slope(x: Array, alpha: Array = 0.1, c: Array = 1.0) -> Array:
    """Log of the slope: log(alpha) where |x| > c, else 0; -inf on a flat piece.

    >>> log_slope([-2.0, 1.0, 2.0]).round(4).tolist()
    [-2.3026, 0.0, -2.3026]
    """
    return _home(x, alpha, c).log_slope(x, alpha, c)


def check(alpha: Array, c: Array, *, invertible: bool = False) -> None:
    """Raise ValueError unless alpha >= 0 (alpha > 0 if invertible) and c >= 0 are finite.

    Numbers and NumPy arrays are checked. The values of framework tensors are not: reading them would stall a device
    or fail under a tracer.
    """
    for name, value in (("alpha", alpha), ("c", c)):
        if not _at_least(name, value, 0.0):
            raise ValueError(f"{name} must be finite and >= 0, got {value}; the defaults are alpha=0.1, c=1.0")
    if invertible and not _at_least("alpha", alpha, sys.float_info.min):
        raise ValueError(f"the inverse needs alpha > 0, got {alpha}; a flat piece (alpha = 0) cannot be undone")


def _at_least(name: str, value: Array, low: float) -> bool:
    """Whether a number or NumPy array is finite and >= low; True for framework tensors, which are not read."""
    if isinstance(value, (int, float)):  # a bare comparison: compilers trace through it
        return low <= value < math.inf
    if hasattr(value, "shape") and not isinstance(value, (np.ndarray, np.generic)):
        return True
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be a real number or an array of them, got {value!r}")
    return bool(np.all(np.isfinite(array) & (array >= low)))


def _home(*arrays: Array) -> ModuleType:
    """Return the module that serves these arrays, among the frameworks already imported."""
    # import statements, because compilers trace them
    if _any_is(arrays, "torch", "Tensor"):
        from plunit import torch

        return torch
    if _any_is(arrays, "jax", "Array"):
        from plunit import jax

        return jax
    from plunit import numpy

    return numpy


def _any_is(arrays: tuple[Array, ...], framework: str, kind: str) -> bool:
    array_type = getattr(sys.modules.get(framework), kind, ())
    return any(isinstance(array, array_type) for array in arrays)
