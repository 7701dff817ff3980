"""Elementwise bijections with kinks (PLU, LeakyReLU) and one without (Tanh), with one value per feature."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from plunit.invertible.bijections import boundary, positive
from plunit.invertible.bijections.bijection import Elementwise
from plunit.torch.op import plu


class Sloped(Elementwise):
    """Slope 1 on the inner piece and alpha > 0, either side of 1, on the outer ones; kinks or corners are at +-c."""

    names: tuple[str, ...] = ("alpha", "c")
    """The positive numbers of a unit, the slope first."""

    def __init__(self, features: int, learnable: bool, *values: float) -> None:
        super().__init__(features)
        for name, value in zip(self.names, values, strict=True):
            positive.register(self, name, value, features, learnable)

    def raw(self) -> tuple[Tensor, ...]:
        """What is held of the numbers."""
        return tuple(positive.source(self, name) for name in self.names)

    def numbers(self, *raw: Tensor) -> tuple[Tensor, ...]:
        """The numbers, from what is held of them."""
        return tuple(positive.implied(self, name, source) for name, source in zip(self.names, raw, strict=True))

    @property
    def alpha(self) -> Tensor:
        """The slope of the outer pieces, one per feature."""
        return positive.of(self, "alpha")

    @property
    def c(self) -> Tensor:
        """The half-width of the inner piece, one per feature."""
        return positive.of(self, "c")

    def lipschitz(self) -> tuple[float, float]:
        """max(1, alpha) and max(1, 1/alpha), over all features."""
        alpha = self.alpha.detach()
        return max(1.0, alpha.max().item()), max(1.0, 1 / alpha.min().item())


class Kinked(Sloped):
    """What the kinked bijections share: the inverse of the same kind, and the boundary term."""

    def __init__(self, features: int, learnable: bool, boundary: bool, *values: float) -> None:
        super().__init__(features, learnable, *values)
        if not isinstance(boundary, bool):
            raise TypeError(
                f"boundary must be True or False, got {boundary!r}; see plunit.invertible.bijections.boundary"
            )
        self.boundary = boundary

    def imply(self, *raw: Tensor) -> tuple[Tensor, ...]:
        """Alpha, log(alpha), and the rest."""
        alpha, *rest = self.numbers(*raw)
        return alpha, alpha.log(), *rest

    def imply_inverse(self, *raw: Tensor) -> tuple[Tensor, ...]:
        """1/alpha, its logarithm, and the rest."""
        alpha, log_alpha, *rest = self.imply(*raw)
        return 1 / alpha, -log_alpha, *rest

    @classmethod
    def invert(cls, y: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Evaluate: the inverse is of the same kind."""
        return cls.evaluate(y, *values)

    @staticmethod
    def beyond(x: Tensor, *values: Tensor) -> Tensor:
        """How far x is beyond a kink; negative before it. The kinks stay where they are in the inverse."""
        raise NotImplementedError

    def boundary_term(self, x: Tensor, *values: Tensor) -> Tensor | None:
        """Return 0 with the gradient of the boundary term; None unless this module has one and trains."""
        if not (self.boundary and self.training and boundary.is_wanted()):
            return None
        return boundary.term(self.beyond(x, *values), values[1])

    def extra_repr(self) -> str:
        """Name the number of features, whether alpha and c are learned, and the boundary term."""
        learnable = ", learnable=True" if "raw_alpha" in self._parameters else ""
        return f"{self.features}{learnable}{', boundary=True' if self.boundary else ''}"


class PLU(Kinked):
    """PLU(x) = m + alpha * (x - m), m = clip(x, -c, c), on each feature; its inverse is PLU with 1/alpha.

    Args:
        features: n, the size of the last axis.
        alpha: outer slope, alpha > 0; above 1 the outer pieces expand.
        c: half-width of the inner piece, c > 0.
        learnable: learn alpha = exp(raw_alpha) and c = exp(raw_c), one per feature.
        boundary: add the boundary term, estimated from the batch, to gradients of the log-determinant in training mode;
            see `plunit.invertible.bijections.boundary`. Without it a likelihood's gradient is biased. The values are
            the same.

    >>> y, log_det = PLU(2)(torch.tensor([0.5, 2.0]))
    >>> y, log_det
    (tensor([0.5000, 1.1000]), tensor(-2.3026))
    """

    def __init__(
        self, features: int, alpha: float = 0.1, c: float = 1.0, *, learnable: bool = False, boundary: bool = False
    ) -> None:
        super().__init__(features, learnable, boundary, alpha, c)

    @staticmethod
    def evaluate(x: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return PLU(x) and its log-slopes."""
        alpha, log_alpha, c = values
        return plu(x, alpha, c), (x.abs() > c) * log_alpha

    @staticmethod
    def beyond(x: Tensor, *values: Tensor) -> Tensor:
        """|x| - c."""
        return x.abs() - values[2]


class LeakyReLU(Kinked):
    """LeakyReLU(x) = x where x >= 0, else alpha * x, on each feature.

    Args:
        features: n, the size of the last axis.
        alpha: slope of the negative side, alpha > 0.
        learnable: learn alpha = exp(raw_alpha), one per feature.
        boundary: see `PLU`.

    The kink belongs to the positive side: slope 1 at 0.
    """

    names = ("alpha",)

    def __init__(self, features: int, alpha: float = 0.1, *, learnable: bool = False, boundary: bool = False) -> None:
        super().__init__(features, learnable, boundary, alpha)

    @staticmethod
    def evaluate(x: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return LeakyReLU(x) and its log-slopes."""
        alpha, log_alpha = values
        negative = x < 0
        return torch.where(negative, alpha, 1.0) * x, negative * log_alpha

    @staticmethod
    def beyond(x: Tensor, *values: Tensor) -> Tensor:
        """-x."""
        return -x


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
