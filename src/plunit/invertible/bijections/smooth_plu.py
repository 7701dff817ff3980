"""SmoothPLU, PLU with its corners rounded by quadratics: C1, so that autograd's likelihood gradient is the true one."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from plunit import learned
from plunit.invertible.bijections import positive
from plunit.invertible.bijections.anneal import Annealing, raw_of_rho
from plunit.invertible.bijections.elementwise import PLU, Sloped


class SmoothPLU(Sloped):
    """PLU except for ||x| - c| < w = rho * c, where the slope falls linearly from 1 to alpha.

    With r = (|x| - c + w) / (2 w), clipped to [0, 1], the slope is s = 1 - r + alpha r and
    SmoothPLU(x) = s x + sign(x) (1 - s) (c - w (1 - r)): the identity for r = 0, PLU for r = 1. The inverse has
    r = v / (1 + sqrt(1 + (alpha - 1) v)) from v = (|y| - c + w) / w, clipped to [0, 1 + alpha], and the same s.

    Args:
        features: n, the size of the last axis.
        alpha, c, learnable: as of `PLU`.
        rho: the rounding's half-width in units of c, in (0, 1).
        learnable_rho: learn rho = sigmoid(raw_rho), one per feature. Else `raw_rho` is a buffer.
        annealing: how `Flow.fit` is to shrink rho, before it removes the corners; None to leave rho alone.

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
        self._annealing = annealing
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

    @property
    def annealing(self) -> Annealing | None:
        """How rho is to shrink in training; None if it is not to."""
        return self._annealing

    def sharp(self) -> PLU:
        """The PLU that shares alpha and c. It is another function: its likelihood must be measured anew."""
        module = PLU(self.features, learnable="raw_alpha" in self._parameters, boundary=True).to(self.raw_rho)
        for key in (positive.key(self, name) for name in self.names):
            setattr(module, key, getattr(self, key))
        return module.train(self.training)

    def raw(self) -> tuple[Tensor, ...]:
        """What is held of alpha and c, and raw_rho."""
        return *super().raw(), self.raw_rho

    def imply(self, *raw: Tensor) -> tuple[Tensor, ...]:
        """The line's values 1, alpha, c and w, then c + w and 2 w."""
        one, alpha, c, w = self._line_values(*raw)
        return one, alpha, c, w, c + w, 2 * w

    def imply_inverse(self, *raw: Tensor) -> tuple[Tensor, ...]:
        """The line's values, then c - w, 1 + alpha, and the coefficients of the quadratic for s^2; see `invert`."""
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

    def extra_repr(self) -> str:
        """Name the number of features and what is learned."""
        names = [name for name, _ in self.named_parameters()]
        return f"{self.features}" + (f", learned={', '.join(n.removeprefix('raw_') for n in names)}" if names else "")


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
