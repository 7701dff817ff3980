"""PLU and SmoothPLU as transforms of NumPyro, and as activations of its block neural autoregressive network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from plunit.base.errors import missing

try:
    from numpyro.distributions.transforms import Transform
except ModuleNotFoundError as error:
    raise missing(error, "numpyro") from None
import jax
import jax.numpy as jnp

from plunit import smooth
from plunit.functional import check
from plunit.jax import inverse, log_slope, plu, smooth_inverse, smooth_log_slope, smooth_plu

__all__ = ["PLUTransform", "SmoothPLUTransform", "block_activation"]


class _Elementwise(Transform):  # type: ignore[misc]  # NumPyro has no types
    """A bijection of R, applied to every element. Its parameters are numbers or arrays that broadcast with x."""

    names: ClassVar[tuple[str, ...]]
    functions: ClassVar[tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]]
    sign = 1.0

    @property
    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.names)

    def __call__(self, x: Any) -> Any:
        return self.functions[0](x, *self._values)

    def _inverse(self, y: Any) -> Any:
        return self.functions[1](y, *self._values)

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Any:
        """Return the log-slope at each element of x."""
        return self.functions[2](x, *self._values)

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape that an input of the given shape is broadcast to."""
        return jnp.broadcast_shapes(shape, *map(jnp.shape, self._values))

    def inverse_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the same for an output."""
        return self.forward_shape(shape)

    def tree_flatten(self) -> tuple[Any, Any]:
        """Return the parameters as children, so that they are traced and differentiated."""
        return self._values, (self.names, {})

    def eq(self, other: object, static: bool = False) -> Any:
        """Whether the other is the same transform with the same parameters; False if they cannot be read."""
        if not isinstance(other, _Elementwise) or type(self) is not type(other):
            return False
        pairs = list(zip(self._values, other._values, strict=True))
        if static:
            return all(a is b or (not _traced(a, b) and bool(jnp.array_equiv(a, b))) for a, b in pairs)
        return jnp.array([jnp.array_equiv(a, b) for a, b in pairs]).all()


class PLUTransform(_Elementwise):
    """PLU(x) = m + alpha * (x - m), m = clip(x, -c, c), elementwise.

    Args:
        alpha: the outer slope, alpha > 0; a number or an array that broadcasts with x, such as a sample or a parameter.
        c: the half-width of the inner piece, c >= 0; likewise.

    The gradient of a likelihood misses the kinks, because the log-slope jumps there: flows that are trained need
    `SmoothPLUTransform`.

    >>> from numpyro.distributions import Normal, TransformedDistribution
    >>> squeezed = TransformedDistribution(Normal(), PLUTransform())
    >>> round(squeezed.log_prob(1.1).item(), 4)  # that of Normal at 2, with a slope of 0.1
    -0.6164
    """

    names = ("alpha", "c")
    functions = (plu, inverse, log_slope)

    def __init__(self, alpha: Any = 0.1, c: Any = 1.0) -> None:
        check(alpha, c, invertible=True)
        self.alpha, self.c = alpha, c


class SmoothPLUTransform(_Elementwise):
    """PLU except for ||x| - c| < rho * c, where the slope falls linearly from 1 to alpha; see `plunit.jax.smooth_plu`.

    Args:
        alpha: the outer slope, alpha > 0; a number or an array that broadcasts with x, such as a sample or a parameter.
        c: the half-width of the inner piece, c >= 0; likewise.
        rho: the rounding's half-width in units of c, in [0, 1]; likewise.

    >>> SmoothPLUTransform().inv(SmoothPLUTransform()(jnp.array([-3.0, 1.0]))).round(4).tolist()
    [-3.0, 1.0]
    """

    names = ("alpha", "c", "rho")
    functions = (smooth_plu, smooth_inverse, smooth_log_slope)

    def __init__(self, alpha: Any = 0.1, c: Any = 1.0, rho: Any = 0.5) -> None:
        smooth.check(alpha, c, rho, invertible=True)
        self.alpha, self.c, self.rho = alpha, c, rho


def block_activation(transform: Transform) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return a bijection of R as an (init, apply) pair, for `BlockNeuralAutoregressiveNN(..., activation=pair)`.

    With an activation that maps R onto R the flow's density integrates to 1. With tanh it was 0.17 in numpyro #1655.

    >>> init, apply = block_activation(PLUTransform(alpha=0.5))
    >>> y, log_jacobian = apply((), (jnp.array([0.5, 3.0]), jnp.zeros((2, 1, 1))))  # two blocks of one unit
    >>> y.tolist(), [round(value, 4) for value in log_jacobian.ravel().tolist()]
    ([0.5, 2.0], [0.0, -0.6931])
    """

    def init(key: jax.Array, input_shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[()]]:
        return input_shape, ()

    def apply(parameters: Any, inputs: tuple[Any, Any], **kwargs: Any) -> tuple[Any, Any]:
        x, log_jacobian = inputs  # [..., blocks * factor], [..., blocks, rows, factor]
        y = transform(x)
        log_slopes = transform.log_abs_det_jacobian(x, y)
        return y, log_jacobian + log_slopes.reshape(*log_jacobian.shape[:-2], 1, log_jacobian.shape[-1])

    return init, apply


def _traced(*values: Any) -> bool:
    return any(isinstance(value, jax.core.Tracer) for value in values)
