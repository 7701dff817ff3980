"""PLU on any array: each function chooses the framework by the types of its arguments."""

from __future__ import annotations

import sys
from types import ModuleType

from plunit.functional import ArrayLike


def plu(x: ArrayLike, alpha: ArrayLike = 0.1, c: ArrayLike = 1.0) -> ArrayLike:
    """Return PLU(x) = m + alpha * (x - m), m = clip(x, -c, c), elementwise.

    Args:
        x: a number or an array of NumPy, PyTorch or JAX; floating-point (NumPy and JAX promote integers).
        alpha: the outer slope, alpha >= 0; a number or an array that broadcasts with x.
        c: the half-width of the inner piece, c >= 0; also a number or an array.

    The derivative is 1 where |x| <= c, kinks included, and alpha elsewhere. NaN stays NaN. Infinities stay infinite
    unless alpha = 0, where they become +-c.

    >>> plu([-2.0, 0.5, 2.0]).round(6).tolist()
    [-1.1, 0.5, 1.1]
    """
    return _home(x, alpha, c).plu(x, alpha, c)


def inverse(y: ArrayLike, alpha: ArrayLike = 0.1, c: ArrayLike = 1.0) -> ArrayLike:
    """Return PLU^-1(y; alpha, c) = PLU(y; 1/alpha, c), elementwise; alpha > 0.

    >>> inverse([-1.1, 0.5, 1.1]).round(6).tolist()
    [-2.0, 0.5, 2.0]
    """
    return _home(y, alpha, c).inverse(y, alpha, c)


def slope(x: ArrayLike, alpha: ArrayLike = 0.1, c: ArrayLike = 1.0) -> ArrayLike:
    """Return the slope dPLU/dx: alpha where |x| > c, else 1.

    >>> slope([-2.0, 1.0, 2.0]).tolist()
    [0.1, 1.0, 0.1]
    """
    return _home(x, alpha, c).slope(x, alpha, c)


def log_slope(x: ArrayLike, alpha: ArrayLike = 0.1, c: ArrayLike = 1.0) -> ArrayLike:
    """Return the log of the slope: log(alpha) where |x| > c, else 0; -inf on a flat piece.

    >>> log_slope([-2.0, 1.0, 2.0]).round(4).tolist()
    [-2.3026, 0.0, -2.3026]
    """
    return _home(x, alpha, c).log_slope(x, alpha, c)


def _home(*arrays: ArrayLike) -> ModuleType:
    """Return the module for these arrays, among the frameworks already imported."""
    # import statements, because compilers trace them
    if _any_is(arrays, "torch", "Tensor"):
        from plunit import torch

        return torch
    if _any_is(arrays, "jax", "Array"):
        from plunit import jax

        return jax
    from plunit import numpy

    return numpy


def _any_is(arrays: tuple[ArrayLike, ...], framework: str, kind: str) -> bool:
    array_type = getattr(sys.modules.get(framework), kind, ())
    return any(isinstance(array, array_type) for array in arrays)
