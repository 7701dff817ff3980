"""PLU on JAX arrays: each function is one compiled kernel, and composes with jit, vmap and derivatives.

`LearnedLayer` is the common base of the layers of `plunit.equinox` and `plunit.flax`.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

from plunit.base.errors import missing

try:
    import jax
    import jax.numpy as jnp
except ModuleNotFoundError as error:
    raise missing(error, "jax") from None

from plunit import learned
from plunit.functional import check, formula, inverse_formula, log_slope_formula, slope_formula

__all__ = ["inverse", "log_slope", "plu", "slope"]

NAMESPACE = SimpleNamespace(clip=jnp.clip, exp=jnp.exp, sigmoid=jax.nn.sigmoid)
"""The array namespace for `plunit.learned`; `jax.numpy` has no sigmoid."""

_LARGEST = float(jnp.finfo(jnp.float32).max)  # type: ignore[no-untyped-call]  # the largest number of the narrowest dtype


def plu(x: Any, alpha: Any = 0.1, c: Any = 1.0) -> Any:
    """Return PLU(x) = m + alpha * (x - m), m = clip(x, -c, c), elementwise.

    Args:
        x: a real array; integers become floats.
        alpha: the outer slope, alpha >= 0; a number or an array that broadcasts with x.
        c: the half-width of the inner piece, c >= 0; also a number or an array.

    The derivative is 1 where |x| <= c, kinks included (`jnp.clip` has 1/2 there), and alpha elsewhere; there are also
    derivatives in alpha and c. The result has the type of x; half precision is computed in float32.

    >>> plu(jnp.array([-2.0, 0.5, 2.0]), alpha=0.5).tolist()
    [-1.5, 0.5, 1.5]
    >>> jax.grad(plu)(1.0).item()
    1.0
    """
    return _evaluate(formula, x, alpha, c)


def inverse(y: Any, alpha: Any = 0.1, c: Any = 1.0) -> Any:
    """Return PLU^-1(y; alpha, c) = PLU(y; 1/alpha, c), elementwise; alpha > 0.

    >>> inverse(plu(jnp.array([-2.0, 0.5, 2.0]))).round(4).tolist()
    [-2.0, 0.5, 2.0]
    """
    return _evaluate(inverse_formula, y, alpha, c)


def slope(x: Any, alpha: Any = 0.1, c: Any = 1.0) -> Any:
    """Return the slope dPLU/dx: alpha where |x| > c, else 1.

    >>> slope(jnp.array([-2.0, 1.0, 2.0]), alpha=0.25).tolist()
    [0.25, 1.0, 0.25]
    """
    return _evaluate(slope_formula, x, alpha, c)


def log_slope(x: Any, alpha: Any = 0.1, c: Any = 1.0) -> Any:
    """Return the log of the slope: log(alpha) where |x| > c, else 0; -inf on a flat piece.

    >>> log_slope(jnp.array([-2.0, 1.0, 2.0]), alpha=1.0).tolist()
    [0.0, 0.0, 0.0]
    """
    return _evaluate(log_slope_formula, x, alpha, c)


class LearnedLayer:
    """A layer with fixed alpha and c, or with learned ones from `raw_alpha` and `raw_c`.

    Each subclass spells out its signature for its users; the dtype's name and the channel axis follow the framework.
    """

    initial_alpha: float
    initial_c: float
    raw_alpha: Any
    raw_c: Any
    num_parameters: int
    axis: int

    def _begin(self, alpha: float, c: float, learnable: Any, num_parameters: int, axis: int, dtype: Any) -> list[Any]:
        """Check and store the arguments; return raw alpha and c, each None unless it is learned."""
        starts = learned.starts(alpha, c, learnable, num_parameters)
        self.initial_alpha, self.initial_c = float(alpha), float(c)
        self.num_parameters, self.axis = num_parameters, axis
        return [jnp.full(num_parameters, starts[name], dtype) if name in starts else None for name in ("alpha", "c")]

    @property
    def alpha(self) -> float | jax.Array:
        """The outer slope: a number, or the learned values [num_parameters], float32 if the raw ones are half."""
        return self.initial_alpha if self.raw_alpha is None else _learned("alpha", self.raw_alpha[...])

    @property
    def c(self) -> float | jax.Array:
        """The half-width of the inner piece: a number, or the learned values, as for alpha."""
        return self.initial_c if self.raw_c is None else _learned("c", self.raw_c[...])

    def __call__(self, x: Any) -> Any:
        """Return PLU(x)."""
        return plu(x, *self._along_channels(x))

    def inverse(self, y: Any) -> Any:
        """Return the x with PLU(x) = y; alpha > 0."""
        return inverse(y, *self._along_channels(y))

    def _along_channels(self, x: Any) -> tuple[Any, ...]:
        """Return alpha and c, learned ones in a shape that broadcasts with x."""
        several = self.num_parameters > 1
        shape = learned.channel_shape(jnp.shape(x), self.num_parameters, self.axis) if several else []
        return tuple(value.reshape(shape) if isinstance(value, jax.Array) else value for value in (self.alpha, self.c))


def _learned(name: str, raw: Any) -> Any:
    return learned.value_of(NAMESPACE, name, jnp.asarray(raw, jnp.promote_types(raw.dtype, jnp.float32)))


def _evaluate(function: Any, x: Any, alpha: Any, c: Any) -> Any:
    """Return the function of x after checking alpha and c; numbers above the largest float are clamped to it."""
    inverted = function is inverse_formula
    options: dict[str, Any] = {"invertible": True, "tiny": float(_precision(jnp.asarray(x)).tiny)} if inverted else {}
    check(alpha, c, **options)
    if any(isinstance(value, (int, float)) and value > _LARGEST for value in (alpha, c)):
        largest = float(_precision(jnp.asarray(x)).max)
        alpha, c = (min(value, largest) if isinstance(value, (int, float)) else value for value in (alpha, c))
    return _compute(function, x, alpha, c)


@partial(jax.jit, static_argnums=0)
def _compute(function: Any, x: Any, alpha: Any, c: Any) -> Any:
    """Return the function of x as floats, half precision in float32; the result has the type of x."""
    x = jnp.asarray(x)
    wide = _precision(x).dtype
    values = (jnp.asarray(value, wide) for value in (x, alpha, c))
    return function(jnp, *values).astype(jnp.result_type(x, float))


def _precision(x: jax.Array) -> Any:
    """Return the finfo of the dtype in which PLU of x is computed."""
    dtype = jnp.result_type(x, float)
    if not jnp.issubdtype(dtype, jnp.floating):
        raise TypeError(f"PLU is defined for real numbers, got an array of {dtype}; convert it to a float dtype first")
    return jnp.finfo(jnp.float32 if dtype.itemsize < 4 else dtype)  # type: ignore[no-untyped-call]
