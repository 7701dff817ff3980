"""PLU and SmoothPLU as bijections of FlowJAX, fixed or learnable.

As the activation of a block neural autoregressive flow they map R onto R, so that its density integrates to 1. With
tanh, which does not, the integral is 0.67 to 0.70 in `tests/test_flowjax.py` (flowjax #102).
"""

from __future__ import annotations

import numbers
from functools import partial
from typing import Any, ClassVar

from plunit.base.errors import missing

try:
    from flowjax.bijections import AbstractBijection
except ModuleNotFoundError as error:
    raise missing(error, "flowjax") from None
import jax
import jax.numpy as jnp
from paramax import Parameterize

from plunit import learned, smooth
from plunit.functional import check
from plunit.jax import NAMESPACE, inverse, log_slope, plu, smooth_inverse, smooth_log_slope, smooth_plu

__all__ = ["PLU", "SmoothPLU"]

_EXP, _SIGMOID = partial(learned.positive, NAMESPACE), partial(learned.fraction, NAMESPACE)


class PLU(AbstractBijection):
    """PLU(x) = m + alpha * (x - m), m = clip(x, -c, c), elementwise.

    Args:
        alpha: outer slope, alpha > 0; above 1 the outer pieces expand.
        c: half-width of the inner piece, c >= 0, and c > 0 where learnable.
        shape: the shape of one sample; () for an activation.
        learnable: learn alpha = exp(raw_alpha) and c = exp(raw_c), one per element of a sample.

    The gradient of a likelihood misses the kinks, because the log-slope jumps there: flows that are trained need
    `SmoothPLU`.

    >>> y, log_det = PLU(alpha=0.5, shape=(3,)).transform_and_log_det(jnp.array([-2.0, 0.5, 2.0]))
    >>> y.tolist(), round(log_det.item(), 4)
    ([-1.5, 0.5, 1.5], -1.3863)
    """

    alpha: Any
    c: Any
    shape: tuple[int, ...]
    cond_shape: ClassVar[None] = None  # type: ignore[misc]  # as in FlowJAX's own bijections

    def __init__(
        self, alpha: float = 0.1, c: float = 1.0, *, shape: tuple[int, ...] = (), learnable: bool = False
    ) -> None:
        check(alpha, c, invertible=True)
        self.alpha = _parameter("alpha", alpha, shape, learnable)
        self.c = _parameter("c", c, shape, learnable)
        self.shape = shape

    def transform_and_log_det(self, x: Any, condition: Any = None) -> tuple[jax.Array, jax.Array]:
        """Return PLU(x) and the log of its slopes, summed."""
        return plu(x, self.alpha, self.c), log_slope(x, self.alpha, self.c).sum()

    def inverse_and_log_det(self, y: Any, condition: Any = None) -> tuple[jax.Array, jax.Array]:
        """Return the x with PLU(x) = y, and the log of the inverse's slopes, summed."""
        x = inverse(y, self.alpha, self.c)
        return x, -log_slope(x, self.alpha, self.c).sum()


class SmoothPLU(AbstractBijection):
    """PLU except for ||x| - c| < rho * c, where the slope falls linearly from 1 to alpha; see `plunit.jax.smooth_plu`.

    Args:
        alpha, c, shape, learnable: as of `PLU`.
        rho: the rounding's half-width in units of c, in [0, 1], and in (0, 1) where learnable.
        learnable_rho: learn rho = sigmoid(raw_rho), one per element of a sample.

    `flowjax.flows.block_neural_autoregressive_flow(..., activation=SmoothPLU(learnable=True))` is a flow that uses it.

    >>> y, log_det = SmoothPLU().transform_and_log_det(1.0)
    >>> round(y.item(), 4), round(log_det.item(), 4)
    (0.8875, -0.5978)
    """

    alpha: Any
    c: Any
    rho: Any
    shape: tuple[int, ...]
    cond_shape: ClassVar[None] = None  # type: ignore[misc]  # as in FlowJAX's own bijections

    def __init__(
        self,
        alpha: float = 0.1,
        c: float = 1.0,
        rho: float = 0.5,
        *,
        shape: tuple[int, ...] = (),
        learnable: bool = False,
        learnable_rho: bool = False,
    ) -> None:
        smooth.check(alpha, c, rho, invertible=True)
        self.alpha = _parameter("alpha", alpha, shape, learnable)
        self.c = _parameter("c", c, shape, learnable)
        self.rho = _parameter("rho", rho, shape, learnable_rho)
        self.shape = shape

    def transform_and_log_det(self, x: Any, condition: Any = None) -> tuple[jax.Array, jax.Array]:
        """Return SmoothPLU(x) and the log of its slopes, summed."""
        values = self.alpha, self.c, self.rho
        return smooth_plu(x, *values), smooth_log_slope(x, *values).sum()

    def inverse_and_log_det(self, y: Any, condition: Any = None) -> tuple[jax.Array, jax.Array]:
        """Return the x with SmoothPLU(x) = y, and the log of the inverse's slopes, summed."""
        values = self.alpha, self.c, self.rho
        x = smooth_inverse(y, *values)
        return x, -smooth_log_slope(x, *values).sum()


def _parameter(name: str, value: Any, shape: tuple[int, ...], learnable: bool) -> Any:
    """Return the number; where learnable exp(raw), of rho sigmoid(raw), in the form in which FlowJAX trains raw."""
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be one number, got {value!r}; learnable=True learns one per element of a sample")
    if not learnable:
        return float(value)
    raw, function = (learned.raw_fraction, _SIGMOID) if name == "rho" else (learned.raw_positive, _EXP)
    return Parameterize(function, jnp.full(shape, raw(float(value), name)))
