"""Bijections of each feature by itself: PLU and LeakyReLU with kinks, SmoothPLU, Tanh and ScaleShift without.

Positive numbers, one per feature, are learned as exp(raw_<name>), or kept as they were given in fixed_<name>.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from plunit import learned
from plunit.invertible.bijections import boundary
from plunit.invertible.bijections.bijection import Elementwise, Rule
from plunit.torch.op import plu

if TYPE_CHECKING:
    from plunit.invertible.training import Annealing

_EPS = torch.finfo(torch.float32).eps


def limit(dtype: torch.dtype) -> float:
    """Return the largest useful |raw|, log(1/eps)."""
    return -math.log(torch.finfo(dtype).eps)


def positive(raw: Tensor) -> Tensor:
    """Return the exponential, kept between eps and 1/eps of the dtype."""
    return raw.clamp(-limit(raw.dtype), limit(raw.dtype)).exp()


def is_usable(value: Tensor) -> bool:
    """Return whether all numbers are positive and finite, and so are their inverses."""
    eps = torch.finfo(value.dtype).eps
    return bool(((value >= eps) & (value <= 1 / eps)).all())


class Sloped(Elementwise):
    """Slope 1 on the inner piece and alpha > 0, either side of 1, on the outer ones; kinks or corners are at +-c."""

    names: tuple[str, ...] = ("alpha", "c")
    """The positive numbers of a unit, the slope first."""

    rules: ClassVar[dict[str, Rule]] = {
        f"fixed_{name}": (is_usable, "be positive and finite, and so must its inverse") for name in names
    }

    def __init__(self, features: int, learnable: bool, *values: float) -> None:
        super().__init__(features)
        self.learnable = learnable
        dtype = torch.get_default_dtype()
        eps = torch.finfo(dtype).eps
        for name, value in zip(self.names, values, strict=True):
            if not isinstance(value, (int, float)):
                raise TypeError(
                    f"{name} must be a number, the same for all features at the start, got {type(value).__name__}"
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
        """Return the name under which the module holds a number."""
        return f"{'raw' if self.learnable else 'fixed'}_{name}"

    def raw(self) -> tuple[Tensor, ...]:
        """Return what is held of the numbers."""
        return tuple(getattr(self, self.key(name)) for name in self.names)

    def numbers(self, *raw: Tensor) -> tuple[Tensor, ...]:
        """Return the numbers, from what is held of them."""
        return tuple(map(positive, raw)) if self.learnable else raw

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
    """What the kinked bijections share: the inverse of the same kind, and the boundary term."""

    def __init__(self, features: int, learnable: bool, boundary: bool, *values: float) -> None:
        super().__init__(features, learnable, *values)
        if not isinstance(boundary, bool):
            raise TypeError(
                f"boundary must be True or False, got {boundary!r}; see plunit.invertible.bijections.boundary"
            )
        self.boundary = boundary

    def imply(self, *raw: Tensor) -> tuple[Tensor, ...]:
        """Return alpha, log(alpha), and the rest."""
        alpha, *rest = self.numbers(*raw)
        return alpha, alpha.log(), *rest

    def imply_inverse(self, *raw: Tensor) -> tuple[Tensor, ...]:
        """Return 1/alpha, its logarithm, and the rest."""
        alpha, log_alpha, *rest = self.imply(*raw)
        return 1 / alpha, -log_alpha, *rest

    @classmethod
    def invert(cls, y: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Evaluate: the inverse is of the same kind."""
        return cls.evaluate(y, *values)

    @staticmethod
    def beyond(x: Tensor, *values: Tensor) -> Tensor:
        """Return how far x is beyond a kink; negative before it. The kinks stay where they are in the inverse."""
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
        """Return |x| - c."""
        return x.abs() - values[2]


class LeakyReLU(Kinked):
    """LeakyReLU(x) = x where x >= 0, else alpha * x, on each feature; alpha > 0, and the options are those of `PLU`."""

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


class SmoothPLU(Sloped):
    """PLU with its corners rounded by quadratics: the slope falls linearly from 1 to alpha for ||x| - c| < w = rho * c.

    It is C1, so that autograd's likelihood gradient is the true one. With r = (|x| - c + w) / (2 w), clipped to [0, 1],
    the slope is s = 1 - r + alpha r and SmoothPLU(x) = s x + sign(x) (1 - s) (c - w (1 - r)): the identity for r = 0,
    PLU for r = 1. The inverse has r = v / (1 + sqrt(1 + (alpha - 1) v)) from v = (|y| - c + w) / w, clipped to
    [0, 1 + alpha], and the same s.

    Args:
        features: n, the size of the last axis.
        alpha, c, learnable: as of `PLU`.
        rho: the rounding's half-width in units of c, in (0, 1).
        learnable_rho: learn rho = sigmoid(raw_rho), one per feature. Else `raw_rho` is a buffer.
        annealing: how `Flow.fit` shrinks rho before it removes the corners; None leaves rho alone.

    >>> y, log_det = SmoothPLU(1, rho=0.5)(torch.tensor([1.0]))
    >>> y, log_det
    (tensor([0.8875]), tensor(-0.5978))
    """

    raw_rho: Tensor

    def __init__(
        self,
        features: int,
        alpha: float = 0.1,
        c: float = 1.0,
        rho: float = 0.5,
        *,
        learnable: bool = False,
        learnable_rho: bool = False,
        annealing: Annealing | None = None,
    ) -> None:
        super().__init__(features, learnable, alpha, c)
        if learnable_rho and annealing is not None:
            raise ValueError("rho is either learned or annealed; leave out learnable_rho or annealing")
        self.learnable_rho, self.annealing = learnable_rho, annealing
        raw_rho = torch.full((features,), raw_of_rho(rho))
        if learnable_rho:
            self.raw_rho = nn.Parameter(raw_rho)
        else:
            self.register_buffer("raw_rho", raw_rho)

    @property
    def rho(self) -> Tensor:
        """The half-width of the rounding in units of c, one per feature. It can be set to a number."""
        return learned.fraction(torch, self.raw_rho)  # type: ignore[no-any-return]

    @rho.setter
    def rho(self, rho: float) -> None:
        with torch.no_grad():
            self.raw_rho.fill_(raw_of_rho(rho))

    def sharp(self) -> PLU:
        """Return the PLU that shares alpha and c. It is another function: its likelihood must be measured anew."""
        module = PLU(self.features, learnable=self.learnable, boundary=True).to(self.raw_rho)
        for key in map(self.key, self.names):
            setattr(module, key, getattr(self, key))
        return module.train(self.training)

    def raw(self) -> tuple[Tensor, ...]:
        """Return what is held of alpha and c, and raw_rho."""
        return *super().raw(), self.raw_rho

    def imply(self, *raw: Tensor) -> tuple[Tensor, ...]:
        """Return the line's values 1, alpha, c and w, then c + w and 2 w."""
        one, alpha, c, w = self._line_values(*raw)
        return one, alpha, c, w, c + w, 2 * w

    def imply_inverse(self, *raw: Tensor) -> tuple[Tensor, ...]:
        """Return the line's values, then c - w, 1 + alpha, and the coefficients of the quadratic for s^2."""
        one, alpha, c, w = self._line_values(*raw)
        contracts = alpha < 1
        end, zero = 1 + alpha, torch.zeros_like(alpha)
        least = torch.where(contracts, alpha, one).square()
        factor = torch.where(contracts, 1 - alpha, alpha - 1)
        start, way = torch.where(contracts, end, zero), torch.where(contracts, -one, one)
        return one, alpha, c, w, c - w, end, least, factor, start, way

    def _line_values(self, alpha: Tensor, c: Tensor, raw_rho: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        alpha, c = self.numbers(alpha, c)
        return torch.ones_like(alpha), alpha, c, learned.fraction(torch, raw_rho) * c

    @staticmethod
    def evaluate(x: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return SmoothPLU(x) and its log-slopes."""
        y, _, slope = bend(x, *values)
        return y, slope.log()

    @staticmethod
    def invert(y: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the x with SmoothPLU(x) = y, and the log-slopes of the inverse.

        s^2 = 1 + (alpha - 1) v = alpha^2 + (1 - alpha) (1 + alpha - v): the form without cancellation is taken.
        """
        one, alpha, c, w, inner, end, least, factor, start, way = values
        v = ((y.abs() - inner) / w).clamp(0).minimum(end)
        root = torch.addcmul(least, factor, torch.addcmul(start, way, v)).sqrt()
        slope, shift = _line(1 - v / (1 + root), one, alpha, c, w)
        inverse_slope = slope.reciprocal()
        return torch.addcmul(y, y.sign(), shift, value=-1) * inverse_slope, inverse_slope.log()


def bend(x: Tensor, *values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return SmoothPLU(x), q = 1 - r and the slopes, from what `SmoothPLU.imply` returns, as columns."""
    *line, outer, width = values
    q = ((outer - x.abs()) / width).clamp(0, 1)
    slope, shift = _line(q, *line)
    return torch.addcmul(slope * x, x.sign(), shift), q, slope


def _line(q: Tensor, one: Tensor, alpha: Tensor, c: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """Return slope and shift of |y| = slope * |x| + shift, from q = 1 - r.

    Where q is 0 the shift is (1 - alpha) c: w has no part in it and in its gradient.
    """
    slope = torch.lerp(alpha, one, q)  # 1 and alpha to the bit at the ends
    return slope, (1 - slope) * torch.addcmul(c, w, q, value=-1)


def raw_of_rho(rho: float) -> float:
    """Return the raw number of rho, logit(rho), or raise unless rho lies in (0, 1), also after rounding to float32."""
    if not _EPS <= rho <= 1 - _EPS:
        raise ValueError(f"rho must lie strictly between 0 and 1, got {rho}; start from 0.5, or use PLU for rho = 0")
    return learned.raw_fraction(rho)


class Tanh(Elementwise):
    """tanh(x) on each feature. Its inverse exists on (-1, 1) only: infinite at +-1, NaN beyond."""

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
        """Return 1, and no bound for the inverse."""
        return 1.0, math.inf


class ScaleShift(Elementwise):
    """y = exp(raw_scale) * x + shift on each feature; the identity at the start."""

    def __init__(self, features: int) -> None:
        super().__init__(features)
        self.raw_scale = nn.Parameter(torch.zeros(features))
        self.shift = nn.Parameter(torch.zeros(features))

    @property
    def scale(self) -> Tensor:
        """The factors, one per feature."""
        return positive(self.raw_scale)

    def raw(self) -> tuple[Tensor, ...]:
        """Return both parameters."""
        return self.raw_scale, self.shift

    def imply(self, *raw: Tensor) -> tuple[Tensor, ...]:
        """Return the scale and the shift."""
        raw_scale, shift = raw
        return positive(raw_scale), shift

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
