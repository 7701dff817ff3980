"""Annealing: a buffer of all bijections that shrinks while a flow is trained."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from plunit.invertible.smooth import check_rho, raw_of_rho


@dataclass(frozen=True)
class Annealing:
    """A quantity that falls geometrically from `start` to `end` over the part `until` of training.

    Then a bandwidth stays, and corners are removed.

    Args:
        quantity: "rho", the rounding of `SmoothPLU` (where it is not learned), or "bandwidth", of the flux correction.
        start: its value at the first step.
        end: its value from progress `until` on.
        until: in (0, 1].
    """

    quantity: Literal["rho", "bandwidth"]
    start: float
    end: float
    until: float = 1.0

    def __post_init__(self) -> None:
        if self.quantity not in ("rho", "bandwidth"):
            raise ValueError(f'the quantity must be "rho" or "bandwidth", got {self.quantity!r}')
        if not (0 < self.start < math.inf and 0 < self.end < math.inf and 0 < self.until <= 1):
            raise ValueError(
                f"start and end must be positive and finite, and until in (0, 1], got {self.start}, {self.end} and "
                f"{self.until}"
            )
        if self.quantity == "rho":
            check_rho(self.start)
            check_rho(self.end)

    @staticmethod
    def progress(step: int, steps: int) -> float:
        """Return 0 at the first step and 1 at the last, which a single step is."""
        return step / (steps - 1) if steps > 1 else 1.0

    def is_over(self, progress: float) -> bool:
        """Tell whether corners are to be removed at this progress."""
        return self.quantity == "rho" and progress >= self.until

    def value(self, progress: float) -> float:
        """Return the value at `progress`, 0 at the first step and 1 at the last.

        >>> [round(RHO.value(progress), 3) for progress in (0, 0.35, 0.7)]
        [0.9, 0.134, 0.02]
        """
        return float(self.start * (self.end / self.start) ** min(progress / self.until, 1.0))

    def apply(self, buffers: Iterable[tuple[str, Tensor]], progress: float) -> None:
        """Set the quantity in all named buffers that hold it; they may be stacked, as for torch.func.vmap."""
        value = self.value(progress)
        name, raw = ("raw_rho", raw_of_rho(value)) if self.quantity == "rho" else ("bandwidth", value)
        found = [buffer for key, buffer in buffers if key.split(".")[-1] == name]
        if not found:
            raise ValueError(
                f'nothing to anneal: no bijection has a buffer "{name}"; rho needs SmoothPLU with learnable_rho=False, '
                f'bandwidth needs log_slope="flux"'
            )
        for buffer in found:
            buffer.fill_(raw)


RHO = Annealing("rho", 0.9, 0.02, until=0.7)
"""Corners from wide to sharp; then `Flow.fit` removes them and trains the exact PLU network that is left."""

BANDWIDTH = Annealing("bandwidth", 1.0, 0.1)
"""The flux estimate from smooth to sharp."""
