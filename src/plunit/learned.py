"""Learnable alpha and c: alpha = sigmoid(raw_alpha) in (0, 1), c = exp(raw_c) > 0, for any array namespace.

The raw numbers are free. Beyond +-limit(eps) they have no further effect, so that the bounds are strict in floating
point too: eps <= alpha <= 1 - eps and eps <= c <= 1/eps for a dtype of machine precision eps.
"""

from __future__ import annotations

import math
from typing import Any


def limit(eps: float) -> float:
    """Return the largest useful |raw|, log(1/eps)."""
    return -math.log(eps)


def alpha_of(xp: Any, raw: Any, eps: float) -> Any:
    """Return alpha = sigmoid(raw), with the functions of the array namespace `xp`."""
    return xp.sigmoid(xp.clip(raw, -limit(eps), limit(eps)))


def c_of(xp: Any, raw: Any, eps: float) -> Any:
    """Return c = exp(raw), with the functions of the array namespace `xp`."""
    return xp.exp(xp.clip(raw, -limit(eps), limit(eps)))


def raw_of_alpha(alpha: float, eps: float) -> float:
    """Return the raw number of a learnable alpha, logit(alpha)."""
    if not eps <= alpha <= 1 - eps:
        raise ValueError(
            f"a learnable alpha must lie in (0, 1), here {eps:.1e} to 1 - {eps:.1e}, got {alpha}; start from 0.1, "
            f"or keep alpha fixed"
        )
    return math.log(alpha) - math.log1p(-alpha)


def raw_of_c(c: float, eps: float) -> float:
    """Return the raw number of a learnable c, log(c)."""
    if not eps <= c <= 1 / eps:
        raise ValueError(f"a learnable c must be positive, {eps:.1e} to {1 / eps:.1e}, got {c}; start from 1.0")
    return math.log(c)
