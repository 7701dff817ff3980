"""Closed-form gains that keep the variance of a signal, forward or backward, through PLU."""

from __future__ import annotations

import math
from typing import Literal

from plunit.functional import check


def gain(
    alpha: float = 0.1, c: float = 1.0, variance: float = 1.0, mode: Literal["forward", "backward"] = "forward"
) -> float:
    """Factor on the weights after a PLU that keeps the variance of z ~ N(0, variance).

    With k = c / sqrt(variance) and p = P(|z| <= c) = erf(k / sqrt(2)):

    - forward: sqrt(variance / E[PLU(z)^2]);
    - backward: 1 / sqrt(E[PLU'(z)^2]) = 1 / sqrt(p + (1 - p) alpha^2).

    Weights of standard deviation gain / sqrt(fan_in) keep activations at their scale, gain / sqrt(fan_out)
    gradients (`plunit.torch.init_` does it).

    >>> round(gain(), 4), round(gain(mode="backward"), 4)
    (1.3473, 1.2075)
    """
    check(alpha, c)
    if not (math.isfinite(variance) and variance > 0):
        raise ValueError(f"variance must be finite and > 0, got {variance}; the default is 1.0")
    k = c / math.sqrt(variance)
    p = math.erf(k / math.sqrt(2))
    tail = math.erfc(k / math.sqrt(2))
    if mode not in ("forward", "backward"):
        raise ValueError(f'mode must be "forward" or "backward", got {mode!r}')
    if tail == 0:  # nothing reaches the kinks
        return 1.0
    if mode == "backward":
        energy = p + tail * (alpha * alpha)
    else:
        # E[PLU(z)^2] / variance: z inside, alpha z + (1 - alpha) c outside; density is k phi(k)
        density = k * math.exp(-k * k / 2) / math.sqrt(2 * math.pi)
        inner = p - 2 * density
        outer = alpha * alpha * (tail + 2 * density) + 4 * alpha * (1 - alpha) * density
        energy = inner + outer + ((1 - alpha) * k) * ((1 - alpha) * k) * tail
    if not 0 < energy < math.inf:
        raise ValueError(f"PLU with alpha={alpha}, c={c} has no finite gain: it takes N(0, {variance}) to 0 or beyond")
    return 1 / math.sqrt(energy)
