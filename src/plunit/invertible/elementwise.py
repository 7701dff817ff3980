"""Elementwise bijections with kinks (PLU, LeakyReLU) and one without (Tanh), with one value per feature."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from plunit.invertible import flux, positive
from plunit.invertible.bijection import Elementwise, Function, summed
from plunit.torch.op import plu

LogSlope = Literal["exact", "flux"]
"""How log|slope| is differentiated: as it stands (piecewise constant), or with the boundary term of `flux`."""


class Kinked(Elementwise):
    """What the kinked bijections share: slopes 1 and alpha > 0 (either side of 1), and the choice of log-slope."""

    bandwidth: Tensor

    def __init__(self, features: int, alpha: float, learnable: bool, log_slope: LogSlope, bandwidth: float) -> None:
        super().__init__(features)
        if log_slope not in ("exact", "flux"):
            raise ValueError(f'log_slope must be "exact" or "flux", got {log_slope!r}')
        if not 0 < bandwidth < math.inf:
            raise ValueError(f"bandwidth must be positive and finite, got {bandwidth}; the default is {flux.BANDWIDTH}")
        positive.register(self, "alpha", alpha, features, learnable)
        self.log_slope: LogSlope = log_slope
        if log_slope == "flux":
            self.register_buffer("bandwidth", torch.tensor(bandwidth))

    def inverse_values(self) -> tuple[Tensor, ...]:
        """Alpha inverted, and the rest."""
        alpha, *rest = self.values()
        return 1 / alpha, *rest

    @classmethod
    def invert(cls, y: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Evaluate: the inverse is of the same kind."""
        return cls.evaluate(y, *values)

    @staticmethod
    def outside(x: Tensor, h: Tensor, *values: Tensor) -> Tensor:
        """Whether x is on an outer piece, 0 to 1, with kinks blurred to a width h."""
        raise NotImplementedError

    def _apply_to(self, x: Tensor, function: Function, values: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        self._check(x, values)
        y, log_slopes = function(x, *values)
        if self.log_slope == "flux" and torch.is_grad_enabled():
            jump = values[0].detach().log()
            smooth = jump * self.outside(flux.finite(x), flux.width(x, self.bandwidth), *values[1:])
            log_slopes = log_slopes + flux.in_backward_only(smooth)
        return summed(y, log_slopes)

    @property
    def alpha(self) -> Tensor:
        """The slope of the outer pieces, one per feature."""
        return positive.of(self, "alpha")

    def lipschitz(self) -> tuple[float, float]:
        """max(1, alpha) and max(1, 1/alpha), over all features."""
        alpha = self.alpha.detach()
        return max(1.0, alpha.max().item()), max(1.0, 1 / alpha.min().item())

    def extra_repr(self) -> str:
        """Name the number of features, what is learned, and the log-slope if it is not the plain one."""
        parts = [f"{self.features}"]
        if "raw_alpha" in self._parameters:
            parts.append("learnable=True")
        if self.log_slope != "exact":
            parts.append(f"log_slope={self.log_slope!r}")
        return ", ".join(parts)


class PLU(Kinked):
    """PLU(x) = m + alpha * (x - m), m = clip(x, -c, c), on each feature; its inverse is PLU with 1/alpha.

    Args:
        features: n, the size of the last axis.
        alpha: outer slope, alpha > 0; above 1 the outer pieces expand.
        c: half-width of the inner piece, c > 0.
        learnable: learn alpha = exp(raw_alpha) and c = exp(raw_c), one per feature.
        log_slope: "exact" differentiates log|slope| as it stands and loses the boundary term of a likelihood's
            gradient; "flux" estimates that term from the batch. The values are the same.
        bandwidth: the width of the estimate, in units of Silverman's rule; a buffer that may be changed.

    >>> y, log_det = PLU(2)(torch.tensor([0.5, 2.0]))
    >>> y, log_det
    (tensor([0.5000, 1.1000]), tensor(-2.3026))
    """

    def __init__(
        self,
        features: int,
        alpha: float = 0.1,
        c: float = 1.0,
        *,
        learnable: bool = False,
        log_slope: LogSlope = "exact",
        bandwidth: float = flux.BANDWIDTH,
    ) -> None:
        super().__init__(features, alpha, learnable, log_slope, bandwidth)
        positive.register(self, "c", c, features, learnable)

    @property
    def c(self) -> Tensor:
        """The half-width of the inner piece, one per feature."""
        return positive.of(self, "c")

    def values(self) -> tuple[Tensor, ...]:
        """Alpha and c."""
        return self.alpha, self.c

    @staticmethod
    def evaluate(x: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return PLU(x) and its log-slopes."""
        alpha, c = values
        return plu(x, alpha, c), (x.abs() > c) * alpha.log()  # plunit.log_slope, faster: alpha is not 0 here

    @staticmethod
    def outside(x: Tensor, h: Tensor, *values: Tensor) -> Tensor:
        """Whether |x| > c, blurred."""
        (c,) = values
        return flux.ramp(x - c, h) + flux.ramp(-x - c, h)


class LeakyReLU(Kinked):
    """LeakyReLU(x) = x where x >= 0, else alpha * x, on each feature.

    Args:
        features: n, the size of the last axis.
        alpha: slope of the negative side, alpha > 0.
        learnable: learn alpha = exp(raw_alpha), one per feature.
        log_slope: see `PLU`.
        bandwidth: see `PLU`.

    The kink belongs to the positive side: slope 1 at 0.
    """

    def __init__(
        self,
        features: int,
        alpha: float = 0.1,
        *,
        learnable: bool = False,
        log_slope: LogSlope = "exact",
        bandwidth: float = flux.BANDWIDTH,
    ) -> None:
        super().__init__(features, alpha, learnable, log_slope, bandwidth)

    def values(self) -> tuple[Tensor, ...]:
        """Just alpha."""
        return (self.alpha,)

    @staticmethod
    def evaluate(x: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return LeakyReLU(x) and its log-slopes."""
        (alpha,) = values
        slopes = torch.where(x < 0, alpha, 1.0)
        return slopes * x, slopes.log()

    @staticmethod
    def outside(x: Tensor, h: Tensor, *values: Tensor) -> Tensor:
        """Whether x < 0, blurred."""
        return flux.ramp(-x, h)


class Tanh(Elementwise):
    """tanh(x) on each feature. Its inverse exists on (-1, 1) only: infinite at +-1, NaN beyond."""

    def values(self) -> tuple[Tensor, ...]:
        """Nothing."""
        return ()

    @staticmethod
    def evaluate(x: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return tanh(x) and log(1 - tanh(x)^2), without cancellation where tanh(x) rounds to 1."""
        size = x.abs()
        return x.tanh(), 2 * (math.log(2) - size - functional.softplus(-2 * size))

    @staticmethod
    def invert(y: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return artanh(y) and -log(1 - y^2)."""
        return y.atanh(), -((-y).log1p() + y.log1p())

    def lipschitz(self) -> tuple[float, float]:
        """1, and no bound for the inverse."""
        return 1.0, math.inf
