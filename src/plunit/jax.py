"""PLU on JAX arrays: each function is one compiled kernel, and composes with jit, vmap and every derivative."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from plunit.functional import check, formula, inverse_formula, log_slope_formula, slope_formula

__all__ = ["inverse", "log_slope", "plu", "slope"]


def plu(x: Any, alpha: Any = 0.1, c: Any = 1.0) -> Any:
    """PLU(x) = m + alpha * (x - m), m = clip(x, -c, c), elementwise.

    Args:
        x: a real array; integers become floats.
        alpha: the outer slope, alpha >= 0; a number or an array that broadcasts with x.
        c: the half-width of the inner piece, c >= 0; likewise.

    The derivative is 1 where |x| <= c, kinks included (that of `jnp.clip` is 1/2 there), and alpha elsewhere; alpha
    and c have derivatives too. The result has the type of x; half precision is computed through float32.

    >>> plu(jnp.array([-2.0, 0.5, 2.0]), alpha=0.5).tolist()
    [-1.5, 0.5, 1.5]
    >>> jax.grad(plu)(1.0).item()
    1.0
    """
    check(alpha, c)
    return _evaluate(formula, x, alpha, c)


def inverse(y: Any, alpha: Any = 0.1, c: Any = 1.0) -> Any:
    """PLU^-1(y; alpha, c) = PLU(y; 1/alpha, c), elementwise; alpha > 0.

    >>> inverse(plu(jnp.array([-2.0, 0.5, 2.0]))).round(4).tolist()
    [-2.0, 0.5, 2.0]
    """
    check(alpha, c, invertible=True)
    return _evaluate(inverse_formula, y, alpha, c)


def slope(x: Any, alpha: Any = 0.1, c: Any = 1.0) -> Any:
    """Slope dPLU/dx: alpha where |x| > c, else 1.

    >>> slope(jnp.array([-2.0, 1.0, 2.0]), alpha=0.25).tolist()
    [0.25, 1.0, 0.25]
    """
    check(alpha, c)
    return _evaluate(slope_formula, x, alpha, c)


def log_slope(x: Any, alpha: Any = 0.1, c: Any = 1.0) -> Any:
    """Log of the slope: log(alpha) where |x| > c, else 0; -inf on a flat piece.

    >>> log_slope(jnp.array([-2.0, 1.0, 2.0]), alpha=1.0).tolist()
    [0.0, 0.0, 0.0]
    """
    check(alpha, c)
    return _evaluate(log_slope_formula, x, alpha, c)


@partial(jax.jit, static_argnums=0)
def _evaluate(function: Any, x: Any, alpha: Any, c: Any) -> Any:
    """Evaluate on x as floats, half precision through float32; the result has the type of x."""
    x = jnp.asarray(x)
    dtype = jnp.result_type(x, float)
    if not jnp.issubdtype(dtype, jnp.floating):
        raise TypeError(f"PLU is defined for real numbers, got an array of {dtype}; convert it to a float dtype first")
    wide = jnp.float32 if dtype.itemsize < 4 else dtype
    x, alpha, c = (jnp.asarray(value, wide) for value in (x, alpha, c))
    return function(jnp, x, alpha, c).astype(dtype)
