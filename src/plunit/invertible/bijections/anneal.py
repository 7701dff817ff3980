"""How rho, the half-width of a rounded corner in units of c, shrinks in training until corners are sharp."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from plunit import learned

if TYPE_CHECKING:
    from plunit.invertible.bijections.bijection import Bijection
    from plunit.invertible.contexts import Conditional


_EPS = torch.finfo(torch.float32).eps


def raw_of_rho(rho: float) -> float:
    """Return the raw number of rho, logit(rho)."""
    check_rho(rho)
    return learned.raw_fraction(rho)


def check_rho(rho: float) -> None:
    """Raise unless rho lies in (0, 1), also after rounding to float32."""
    if not _EPS <= rho <= 1 - _EPS:
        raise ValueError(f"rho must lie strictly between 0 and 1, got {rho}; start from 0.5, or use PLU for rho = 0")


@dataclass(frozen=True)
class Annealing:
    """rho of `SmoothPLU` falls geometrically from `start` to `end` over the part `until` of training.

    From there on the corners are gone, and what is left of the steps trains the sharp network.

    Args:
        start: rho at the first step.
        end: rho just before progress `until`.
        until: in (0, 1].
    """

    start: float = 0.9
    end: float = 0.02
    until: float = 0.7

    def __post_init__(self) -> None:
        check_rho(self.start)
        check_rho(self.end)
        if not 0 < self.until <= 1:
            raise ValueError(f"until must lie in (0, 1], got {self.until}; the default is 0.7")

    @staticmethod
    def progress(step: int, steps: int) -> float:
        """Return 0 at the first step and 1 at the last, which a single step is."""
        return step / (steps - 1) if steps > 1 else 1.0

    def is_over(self, progress: float) -> bool:
        """Say whether corners are to be removed at this progress."""
        return progress >= self.until

    def first_sharp(self, steps: int) -> int:
        """Return the first of so many steps at which no corner is rounded."""
        return next(step for step in range(steps) if self.is_over(self.progress(step, steps)))

    def value(self, progress: float) -> float:
        """Return rho at `progress`, 0 at the first step and 1 at the last.

        >>> [round(RHO.value(progress), 3) for progress in (0, 0.35, 0.7)]
        [0.9, 0.134, 0.02]
        """
        return float(self.start * (self.end / self.start) ** min(progress / self.until, 1.0))

    def apply(self, buffers: Iterable[tuple[str, Tensor]], progress: float) -> None:
        """Set rho in all named buffers that hold it; they may be stacked, as for torch.func.vmap."""
        raw = raw_of_rho(self.value(progress))
        for name, buffer in buffers:
            if name.split(".")[-1] == "raw_rho":
                buffer.fill_(raw)


RHO = Annealing()
"""Corners from wide to sharp; then `Flow.fit` removes them and trains the PLU network that is left."""


def annealing_of(bijection: Bijection | Conditional, asked: Annealing | None = None) -> Annealing | None:
    """Return how a bijection is to be annealed in training: as asked, else as it was built to be, else not at all.

    A bijection without rounded corners, such as one that was annealed before, has nothing left to anneal: None.
    """
    if asked is None:
        return bijection.annealing
    if any(name.split(".")[-1] == "raw_rho" for name, _ in bijection.named_parameters()):
        raise ValueError(
            "rho is learned in this bijection, so it cannot be annealed; leave anneal out, or build it with "
            'density(features, activation="annealed")'
        )
    rounded = any(name.split(".")[-1] == "raw_rho" for name, _ in bijection.named_buffers())
    return asked if rounded else None
