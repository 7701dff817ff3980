"""Bijections that map each feature separately: PLU and LeakyReLU with kinks, Tanh and ScaleShift without.

Positive numbers, one per feature, are learned as exp(raw_<name>) or fixed in the buffer fixed_<name>. SmoothPLU is in
`smooth_plu.py`.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from plunit.invertible.bijections import boundary
from plunit.invertible.bijections.bijection import Elementwise, Rule
from plunit.torch.op import plu


def limit(dtype: torch.dtype) -> float:
    """Return the largest useful |raw|, log(1/eps)."""
    return -math.log(torch.finfo(dtype).eps)


def bounded_exp(raw: Tensor) -> Tensor:
    """Return exp(raw), clamped to [eps, 1/eps] of the dtype."""
    return raw.clamp(-limit(raw.dtype), limit(raw.dtype)).exp()


def is_usable(value: Tensor) -> bool:
    """Return whether all numbers and their inverses are positive and finite."""
    eps = torch.finfo(value.dtype).eps
    return bool(((value >= eps) & (value <= 1 / eps)).all())


class Sloped(Elementwise):
    """A unit with slope 1 on the inner piece and any alpha > 0 on the outer ones; its kinks or corners are at +-c."""

    names: tuple[str, ...] = ("alpha", "c")
    """The positive numbers of a unit, the slope first."""

    rules: ClassVar[dict[str, Rule]] = {
        f"fixed_{name}": (is_usable, "be positive and finite, as must its inverse") for name in names
    }

    def __init__(self, features: int, learnable: bool, *values: float) -> None:
        super().__init__(features)
        self.learnable = learnable
        dtype = torch.get_default_dtype()
        eps = torch.finfo(dtype).eps
        for name, value in zip(self.names, values, strict=True):
            if not isinstance(value, (int, float)):
                raise TypeError(
                    f"{name} must be a number, the initial value of all features, got {type(value).__name__}"
                )
            if not eps <= value <= 1 / eps:
                raise ValueError(
                    f"{name} must be positive and finite in a bijection, {eps:.1e} to {1 / eps:.1e} in {dtype}, got "
                    f"{value}; the paper has alpha = 0.1 and c = 1"
                )
            if learnable:
                self.register_parameter(f"raw_{name}", nn.Parameter(torch.full((features,), math.log(value))))
            else:
                self.register_buffer(f"fixed_{name}", torch.full((features,), float(value)))

    def key(self, name: str) -> str:
        """Return the name of the parameter or buffer that holds a number."""
        return f"{'raw' if self.learnable else 'fixed'}_{name}"

    def raw(self) -> tuple[Tensor, ...]:
        """Return the tensors that hold the numbers."""
        return tuple(getattr(self, self.key(name)) for name in self.names)

    def numbers(self, *raw: Tensor) -> tuple[Tensor, ...]:
        """Return the numbers that these tensors hold."""
        return tuple(map(bounded_exp, raw)) if self.learnable else raw

    @property
    def alpha(self) -> Tensor:
        """The slope of the outer pieces, one per feature."""
        return self.numbers(getattr(self, self.key("alpha")))[0]

    @property
    def c(self) -> Tensor:
        """The half-width of the inner piece, one per feature."""
        return self.numbers(getattr(self, self.key("c")))[0]

    def lipschitz(self) -> tuple[float, float]:
        """Return max(1, alpha) and max(1, 1/alpha), over all features."""
        alpha = self.alpha.detach()
        return max(1.0, alpha.max().item()), max(1.0, 1 / alpha.min().item())

    def extra_repr(self) -> str:
        """Name the number of features, whether alpha and c are learned, and the boundary term."""
        options = [name for name in ("learnable", "boundary") if getattr(self, name, False)]
        return ", ".join([f"{self.features}", *(f"{name}=True" for name in options)])


class Kinked(Sloped):
    """A kinked unit: its inverse is of the same kind, and it may have a boundary term."""

    def __init__(self, features: int, learnable: bool, boundary: bool, *values: float) -> None:
        super().__init__(features, learnable, *values)
        if not isinstance(boundary, bool):
            raise TypeError(
                f"boundary must be True or False, got {boundary!r}; see plunit.invertible.bijections.boundary"
            )
        self.boundary = boundary

    def imply(self, *raw: Tensor) -> tuple[Tensor, ...]:
        """Return alpha, log(alpha), and the other numbers."""
        alpha, *rest = self.numbers(*raw)
        return alpha, alpha.log(), *rest

    def imply_inverse(self, *raw: Tensor) -> tuple[Tensor, ...]:
        """Return 1/alpha, its logarithm, and the other numbers."""
        alpha, log_alpha, *rest = self.imply(*raw)
        return 1 / alpha, -log_alpha, *rest

    @classmethod
    def invert(cls, y: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return `evaluate`, because the inverse is of the same kind."""
        return cls.evaluate(y, *values)

    @staticmethod
    def beyond(x: Tensor, *values: Tensor) -> Tensor:
        """Return how far x is beyond a kink; negative before it. The inverse has the same kinks."""
        raise NotImplementedError

    def boundary_term(self, x: Tensor, *values: Tensor) -> Tensor | None:
        """Return 0 with the gradient of the boundary term; None unless this module has one and trains."""
        if not (self.boundary and self.training and boundary.is_wanted()):
            return None
        return boundary.term(self.beyond(x, *values), values[1])


class PLU(Kinked):
    """PLU(x) = m + alpha * (x - m), m = clip(x, -c, c), on each feature; its inverse is PLU with 1/alpha.

    Args:
        features: n, the size of the last axis.
        alpha: outer slope, alpha > 0; above 1 the outer pieces expand.
        c: half-width of the inner piece, c > 0.
        learnable: learn alpha = exp(raw_alpha) and c = exp(raw_c), one per feature.
        boundary: in training mode, add the boundary term, estimated from the batch, to gradients of the
            log-determinant; see `plunit.invertible.bijections.boundary`. Without it a likelihood's gradient is biased.
            Values do not change.

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
        """Return |x| - c."""
        return x.abs() - values[2]


class LeakyReLU(Kinked):
    """LeakyReLU(x) = x where x >= 0, else alpha * x, on each feature; alpha > 0, with the options of `PLU`."""

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
        """Return -x."""
        return -x


class Tanh(Elementwise):
    """tanh(x) on each feature. The inverse exists only on (-1, 1): it is infinite at +-1, NaN beyond."""

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
        """Return 1, and infinity for the inverse."""
        return 1.0, math.inf


class ScaleShift(Elementwise):
    """y = exp(raw_scale) * x + shift on each feature; initially the identity."""

    def __init__(self, features: int) -> None:
        super().__init__(features)
        self.raw_scale = nn.Parameter(torch.zeros(features))
        self.shift = nn.Parameter(torch.zeros(features))

    @property
    def scale(self) -> Tensor:
        """The factors, one per feature."""
        return bounded_exp(self.raw_scale)

    def raw(self) -> tuple[Tensor, ...]:
        """Return both parameters."""
        return self.raw_scale, self.shift

    def imply(self, *raw: Tensor) -> tuple[Tensor, ...]:
        """Return the scale and the shift."""
        raw_scale, shift = raw
        return bounded_exp(raw_scale), shift

    @staticmethod
    def evaluate(x: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return scale * x + shift and log(scale)."""
        scale, shift = values
        return scale * x + shift, scale.log()

    @staticmethod
    def invert(y: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return (y - shift) / scale and -log(scale)."""
        scale, shift = values
        return (y - shift) / scale, -scale.log()

    def lipschitz(self) -> tuple[float, float]:
        """Return the largest scale, and 1 over the smallest."""
        scale = self.scale.detach()
        return scale.max().item(), 1 / scale.min().item()
