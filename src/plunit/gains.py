"""Closed-form gains that keep the variance of a signal through PLU, forward or backward (after He et al., 2015)."""

from __future__ import annotations

import math
from typing import Literal

from plunit.functional import check


def gain(
    alpha: float = 0.1, c: float = 1.0, variance: float = 1.0, mode: Literal["forward", "backward"] = "forward"
) -> float:
    """Return the factor for the weights after a PLU that keeps the variance of z ~ N(0, variance).

    With k = c / sqrt(variance) and p = P(|z| <= c) = erf(k / sqrt(2)):

    - forward: sqrt(variance / E[PLU(z)^2]);
    - backward: 1 / sqrt(E[PLU'(z)^2]) = 1 / sqrt(p + (1 - p) alpha^2).

    Weights of standard deviation gain / sqrt(fan_in) keep the scale of activations. Weights of standard deviation
    gain / sqrt(fan_out) keep the scale of gradients. `plunit.torch.init_` draws such weights.

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
    if tail == 0:  # the signal never reaches the kinks
        return 1.0
    root = math.sqrt(p + tail * (alpha * alpha)) if mode == "backward" else _root_mean_square(k, alpha, p, tail)
    if not 0 < root < math.inf:
        raise ValueError(
            f"PLU with alpha={alpha}, c={c} has no finite gain for N(0, {variance}): the mean square of its output or "
            "slope must be positive and finite; change alpha or c"
        )
    return 1 / root


def _root_mean_square(k: float, alpha: float, p: float, tail: float) -> float:
    """Return sqrt(E[PLU(z)^2]) for z ~ N(0, 1) and kinks at +-k: z inside, alpha z + (1 - alpha) k outside."""
    density = k * math.exp(-k * k / 2) / math.sqrt(2 * math.pi)  # k phi(k)
    beta = 1 - alpha
    inner, edge, slope = _inner(k, p, density), beta * k * math.sqrt(tail), alpha * math.sqrt(tail + 2 * density)
    if beta >= 0:  # all terms are positive, and hypot neither underflows nor overflows
        return math.hypot(inner, edge, slope, 2 * math.sqrt(alpha * beta * density))
    return math.sqrt(inner * inner + edge * edge + slope * slope + 4 * alpha * beta * density)


def _inner(k: float, p: float, density: float) -> float:
    """Return sqrt(E[z^2; |z| <= k]) = sqrt(p - 2 density); for small k by a series, because digits cancel."""
    if k > 0.5:
        return math.sqrt(p - 2 * density)
    terms = ((-0.5 * k * k) ** n / (math.factorial(n) * (2 * n + 3)) for n in range(9))
    return k * math.sqrt(k * math.sqrt(2 / math.pi) * math.fsum(terms))
