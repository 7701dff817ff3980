"""rho, the half-width of a rounded corner in units of c: its range, and the raw number behind it."""

from __future__ import annotations

import torch

from plunit import learned

_EPS = torch.finfo(torch.float32).eps


def raw_of_rho(rho: float) -> float:
    """Return the raw number of rho, logit(rho)."""
    check_rho(rho)
    return learned.raw_fraction(rho)


def check_rho(rho: float) -> None:
    """Raise unless rho lies in (0, 1), also after rounding to float32."""
    if not _EPS <= rho <= 1 - _EPS:
        raise ValueError(f"rho must lie strictly between 0 and 1, got {rho}; start from 0.5, or use PLU for rho = 0")
