"""PLU on NumPy arrays and plain numbers."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np

from plunit.functional import check, formula, inverse_formula, log_slope_formula, slope_formula

__all__ = ["inverse", "log_slope", "plu", "slope"]


def sigmoid(z: Any) -> Any:
    """1 / (1 + exp(-z)), through exp(-|z|), which cannot overflow."""
    e = np.exp(-np.abs(z))
    return np.asarray(np.where(z < 0, e, 1) / (1 + e))


NAMESPACE = SimpleNamespace(clip=np.clip, exp=np.exp, sigmoid=sigmoid)
"""What `plunit.learned` needs of an array namespace; NumPy has no sigmoid."""


def plu(x: Any, alpha: Any = 0.1, c: Any = 1.0) -> Any:
    """PLU(x) = m + alpha * (x - m), m = clip(x, -c, c); integers become float64. See `plunit.plu`."""
    return _evaluate(formula, x, alpha, c)


def inverse(y: Any, alpha: Any = 0.1, c: Any = 1.0) -> Any:
    """PLU^-1(y; alpha, c) = PLU(y; 1/alpha, c), alpha > 0. See `plunit.inverse`."""
    return _evaluate(inverse_formula, y, alpha, c)


def slope(x: Any, alpha: Any = 0.1, c: Any = 1.0) -> Any:
    """Slope dPLU/dx: alpha where |x| > c, else 1. See `plunit.slope`."""
    return _evaluate(slope_formula, x, alpha, c)


def log_slope(x: Any, alpha: Any = 0.1, c: Any = 1.0) -> Any:
    """Log of the slope: log(alpha) where |x| > c, else 0. See `plunit.log_slope`."""
    return _evaluate(log_slope_formula, x, alpha, c)


def _evaluate(function: Any, x: Any, alpha: Any, c: Any) -> Any:
    """Evaluate on x as floats, half precision through float32; the result has the type of x, and all masks."""
    is_number, given = type(x) in (bool, int, float), (x, alpha, c)
    if type(x).__module__.split(".")[0] in {"tensorflow", "keras"}:
        raise TypeError(f"plunit.plu takes arrays of NumPy, PyTorch and JAX, got {type(x).__name__}; use plunit.keras")
    x = np.asarray(x)
    if x.dtype.kind in "biu":
        x = x.astype(np.float64)
    # kind V: bfloat16 and the other types of ml_dtypes
    if x.dtype.kind not in "fV":
        raise TypeError(f"PLU is defined for real numbers, got an array of {x.dtype}; convert it to floats first")
    wide = np.result_type(x.dtype, np.float32) if x.dtype.kind == "f" else np.dtype(np.float32)
    info = np.finfo(wide)
    tiny = float(info.tiny) or sys.float_info.min  # that of a long double is 0 as a float
    check(alpha, c, invertible=function is inverse_formula, tiny=tiny)
    alpha, c = (np.minimum(np.asarray(value), info.max).astype(wide)[()] for value in (alpha, c))
    # inf * 0 and overflow in a piece that is not chosen, and log 0 on a flat one
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        result = function(np, x.astype(wide), alpha, c).astype(x.dtype)[()]
    if any(isinstance(value, np.ma.MaskedArray) for value in given):
        mask = np.logical_or.reduce(np.broadcast_arrays(*map(np.ma.getmaskarray, given)))
        return np.ma.array(result, mask=np.broadcast_to(mask, result.shape))
    return result.item() if is_number and result.ndim == 0 else result
