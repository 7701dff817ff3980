"""SmoothPLU as a PyTorch bijection, and how training shrinks its corners (`Annealing`).

The formulas are those of `plunit.smooth` in fewer, fused operations, which round differently; a test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from plunit import learned
from plunit.invertible.bijections.elementwise import PLU, Sloped

_EPS = torch.finfo(torch.float32).eps


def raw_of_rho(rho: float) -> float:
    """Return the raw number of rho, logit(rho); raise ValueError unless rho lies in (0, 1), even in float32."""
    if not _EPS <= rho <= 1 - _EPS:
        raise ValueError(f"rho must lie strictly between 0 and 1, got {rho}; start from 0.5, or use PLU for rho = 0")
    return learned.raw_fraction(rho)


@dataclass(frozen=True)
class Annealing:
    """A schedule: rho of `SmoothPLU` falls geometrically from `start` to `end` over the fraction `until` of training.

    Then the corners are removed, and the remaining steps train the sharp network.

    Args:
        start: rho at the first step.
        end: rho just before the corners are removed.
        until: the fraction of the steps, in (0, 1].
    """

    start: float = 0.9
    end: float = 0.02
    until: float = 0.7

    def __post_init__(self) -> None:
        for rho in (self.start, self.end):
            raw_of_rho(rho)
        if not 0 < self.until <= 1:
            raise ValueError(f"until must lie in (0, 1], got {self.until}; the default is 0.7")

    def rho(self, step: int, steps: int) -> float | None:
        """Return rho at a step, counted from 0; None once the corners are removed.

        >>> [round(RHO.rho(step, 101), 3) for step in (0, 35, 69)], RHO.rho(70, 101), RHO.rho(0, 1)
        ([0.9, 0.134, 0.021], None, None)
        """
        passed = step / (steps - 1) if steps > 1 else 1.0
        return None if passed >= self.until else float(self.start * (self.end / self.start) ** (passed / self.until))

    def first_sharp_step(self, steps: int) -> int:
        """Return the first step without corners."""
        return next(step for step in range(steps) if self.rho(step, steps) is None)

    def shrink_corners(self, model: Any, step: int, steps: int) -> bool:
        """Set a model's rho to that of a step, or remove the corners; return whether any are left.

        `named_buffers()` of the model yields its roundings, which may be stacked for torch.func.vmap; `sharpen()`
        removes all corners and keeps the parameter tensors, so that the optimiser can continue.
        """
        rho = self.rho(step, steps)
        if rho is None:
            model.sharpen()
            return False
        for name, buffer in model.named_buffers():
            if name.split(".")[-1] == "raw_rho":
                buffer.fill_(raw_of_rho(rho))
        return True


RHO = Annealing()
"""The default: corners shrink from 0.9 c to 0.02 c; then `Flow.fit` removes them and trains the PLU network."""


def annealing_of(bijection: nn.Module, asked: Annealing | None = None) -> Annealing | None:
    """Return the requested annealing, else the bijection's own; None if there are no rounded corners to anneal."""
    if asked is None:
        return next((found for part in bijection.modules() if (found := getattr(part, "annealing", None))), None)
    if any(name.split(".")[-1] == "raw_rho" for name, _ in bijection.named_parameters()):
        raise ValueError(
            "rho is learned in this bijection, so it cannot be annealed; leave anneal out, or build it with "
            'density(features, activation="annealed")'
        )
    return asked if any(name.split(".")[-1] == "raw_rho" for name, _ in bijection.named_buffers()) else None


class SmoothPLU(Sloped):
    """PLU with its corners rounded by quadratics: the slope falls linearly from 1 to alpha for ||x| - c| < w = rho * c.

    It is C1, so that autograd's likelihood gradient is the true one. With r = (|x| - c + w) / (2 w), clipped to [0, 1],
    the slope is s = 1 - r + alpha r and SmoothPLU(x) = s x + sign(x) (1 - s) (c - w (1 - r)): the identity for r = 0,
    PLU for r = 1. The inverse has r = v / (1 + sqrt(1 + (alpha - 1) v)) from v = (|y| - c + w) / w, clipped to
    [0, 1 + alpha], and the same s.

    Args:
        features: n, the size of the last axis.
        alpha, c, learnable: as in `PLU`.
        rho: the rounding's half-width in units of c, in (0, 1).
        learnable_rho: learn rho = sigmoid(raw_rho), one per feature. Else `raw_rho` is a buffer.
        annealing: how `Flow.fit` shrinks rho before it removes the corners; None keeps rho as it is.

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
            raise ValueError("rho is either learned or annealed; give learnable_rho or annealing, not both")
        self.learnable_rho, self.annealing = learnable_rho, annealing
        raw_rho = torch.full((features,), raw_of_rho(rho))
        if learnable_rho:
            self.raw_rho = nn.Parameter(raw_rho)
        else:
            self.register_buffer("raw_rho", raw_rho)

    @property
    def rho(self) -> Tensor:
        """The half-width of the rounding in units of c, one per feature; assign a number to set it."""
        return learned.fraction(torch, self.raw_rho)  # type: ignore[no-any-return]

    @rho.setter
    def rho(self, rho: float) -> None:
        with torch.no_grad():
            self.raw_rho.fill_(raw_of_rho(rho))

    def sharp(self) -> PLU:
        """Return the PLU that shares alpha and c. It is another function, with another likelihood."""
        module = PLU(self.features, learnable=self.learnable, boundary=True).to(self.raw_rho)
        for key in map(self.key, self.names):
            setattr(module, key, getattr(self, key))
        return module.train(self.training)

    def raw(self) -> tuple[Tensor, ...]:
        """Return the tensors of alpha and c, and raw_rho."""
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
        y, _, slope = smooth_columns(x, *values)
        return y, slope.log()

    @staticmethod
    def invert(y: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the x with SmoothPLU(x) = y, and the log-slopes of the inverse.

        s^2 = 1 + (alpha - 1) v = alpha^2 + (1 - alpha) (1 + alpha - v): the form without cancellation is used.
        """
        one, alpha, c, w, inner, end, least, factor, start, way = values
        v = ((y.abs() - inner) / w).clamp(0).minimum(end)
        root = torch.addcmul(least, factor, torch.addcmul(start, way, v)).sqrt()
        slope, shift = _line(1 - v / (1 + root), one, alpha, c, w)
        inverse_slope = slope.reciprocal()
        return torch.addcmul(y, y.sign(), shift, value=-1) * inverse_slope, inverse_slope.log()


def smooth_columns(x: Tensor, *values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return SmoothPLU(x), q = 1 - r and the slopes, from what `SmoothPLU.imply` returns, as columns."""
    *line, outer, width = values
    q = ((outer - x.abs()) / width).clamp(0, 1)
    slope, shift = _line(q, *line)
    return torch.addcmul(slope * x, x.sign(), shift), q, slope


def _line(q: Tensor, one: Tensor, alpha: Tensor, c: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """Return the slope and shift of |y| = slope * |x| + shift, from q = 1 - r.

    Where q is 0 the shift is (1 - alpha) c; it and its gradient do not depend on w.
    """
    slope = torch.lerp(alpha, one, q)  # exactly 1 and alpha at the ends
    return slope, (1 - slope) * torch.addcmul(c, w, q, value=-1)
