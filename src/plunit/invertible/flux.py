"""A log-slope whose value is exact and whose gradient has the boundary term that automatic differentiation drops.

log s(u) of a kinked activation jumps by `jump` where u crosses a kink. Its derivative is 0 almost everywhere, yet
d/dtheta E[log s(u)] = jump * E[density of u at the kink * du/dtheta] is not: samples cross the kink. The batch tells
that density by a kernel estimate, a normal kernel of width h = bandwidth * Silverman's 1.06 * sd(u) * n^(-1/5), for
each unit apart. Backward thus sees jump * Phi((u - kink) / h) in place of the jump.
"""

from __future__ import annotations

import torch
from torch import Tensor

BANDWIDTH = 0.2
"""The default width, in units of Silverman's."""


def width(u: Tensor, bandwidth: Tensor) -> Tensor:
    """Return the width of the kernel, one per unit (last axis), from all samples of u."""
    u = u.detach().reshape(-1, u.shape[-1])
    count = max(u.shape[0], 1)
    deviation = (u - u.mean(0)).square().mean(0).sqrt()  # NaN without samples, where there is nothing to correct
    silverman = 1.06 * deviation * count**-0.2
    h: Tensor = bandwidth * silverman
    return h


def finite(u: Tensor) -> Tensor:
    """Return u with infinities replaced, and without gradient there: nothing is estimated for them."""
    return u.clamp(-1e30, 1e30)


def ramp(distance: Tensor, h: Tensor) -> Tensor:
    """Return Phi(distance / h), the smooth step behind the kernel; constant (no correction) unless h > 0."""
    step: Tensor = torch.special.ndtr(distance / torch.where(h > 0, h, torch.inf))
    return step


def in_backward_only(smooth: Tensor) -> Tensor:
    """Return 0 with the gradient of `smooth`."""
    return smooth - smooth.detach()
