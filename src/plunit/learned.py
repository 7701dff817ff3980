"""Learnable alpha and c, once for every framework: alpha = sigmoid(raw_alpha) in (0, 1), c = exp(raw_c) > 0.

The raw numbers are unconstrained. Beyond +-LIMIT they have no further effect, so that the bounds are strict even in
floating point: 2^-23 <= alpha <= 1 - 2^-23 and 2^-23 <= c <= 2^23, up to rounding. The bounds are the same for every
dtype, so a change of dtype only rounds the raw numbers. Half precision cannot hold these bounds: frameworks first
convert raw numbers of half precision to float32.

Layers hold raw parameters with one axis. The rule "no weight decay for ndim <= 1" therefore covers them; decay would
pull alpha to 0.5 and c to 1.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

from plunit.functional import check

LIMIT = 23 * math.log(2)
"""The largest |raw| that has an effect."""

_LEAST = 2.0**-23


def starts(alpha: Any, c: Any, learnable: Any, num_parameters: int = 1) -> dict[str, float]:
    """Return the initial raw numbers of what is learned of "alpha" and "c"; raise if arguments are invalid.

    Args:
        alpha: outer slope, alpha >= 0; if learned, 0 < alpha < 1.
        c: half-width of the inner piece, c >= 0; if learned, c > 0.
        learnable: False (nothing), True (both), "alpha" or "c". Training starts from the given values, up to rounding.
        num_parameters: the number of learned values of each: 1, or one per channel.

    >>> starts(0.5, 1.0, learnable=True), starts(0.5, 1.0, learnable="c"), starts(0.5, 1.0, learnable=False)
    ({'alpha': 0.0, 'c': 0.0}, {'c': 0.0}, {})
    """
    values = {"alpha": alpha, "c": c}
    for name, value in values.items():
        if not isinstance(value, numbers.Real):
            raise TypeError(
                f"{name} of a layer must be one number, got {value!r}; learnable=True with num_parameters learns one "
                f"value per channel, and the function `plu` takes arrays"
            )
    check(alpha, c)
    if not (isinstance(learnable, bool) or learnable in ("alpha", "c")):
        raise ValueError(f'learnable must be False, True, "alpha" or "c", got {learnable!r}; True learns both')
    if not _is_count(num_parameters) or (num_parameters > 1 and not learnable):
        raise ValueError(
            f"num_parameters must be 1, or the number of channels of a learnable PLU, got {num_parameters!r} "
            f"with learnable={learnable!r}"
        )
    raw = {"alpha": raw_fraction, "c": raw_positive}
    return {name: raw[name](float(value)) for name, value in values.items() if learnable in (True, name)}


def _is_count(number: Any) -> bool:
    return isinstance(number, numbers.Integral) and int(number) >= 1


def value_of(xp: Any, name: str, raw: Any) -> Any:
    """Return alpha or c from raw numbers, with the functions of the array namespace `xp`."""
    return fraction(xp, raw) if name == "alpha" else positive(xp, raw)


def fraction(xp: Any, raw: Any) -> Any:
    """Return sigmoid(raw) in (0, 1)."""
    return xp.sigmoid(xp.clip(raw, -LIMIT, LIMIT))


def positive(xp: Any, raw: Any) -> Any:
    """Return exp(raw) > 0."""
    return xp.exp(xp.clip(raw, -LIMIT, LIMIT))


def raw_fraction(value: float) -> float:
    """Return the raw number of a value in (0, 1), logit(value)."""
    if not _LEAST <= value <= 1 - _LEAST:
        raise ValueError(
            f"a learnable alpha must lie in (0, 1), here {_LEAST:.1e} to 1 - {_LEAST:.1e}, got {value}; "
            f"start from 0.1, or keep alpha fixed"
        )
    return math.log(value) - math.log1p(-value)


def raw_positive(value: float) -> float:
    """Return the raw number of a positive value, log(value)."""
    if not _LEAST <= value <= 1 / _LEAST:
        raise ValueError(
            f"a learnable c must be positive, {_LEAST:.1e} to {1 / _LEAST:.1e}, got {value}; start from 1.0"
        )
    return math.log(value)


def channel_shape(shape: Sequence[int], num_parameters: int, axis: int) -> list[int]:
    """Return the shape in which one value per channel broadcasts with an input of the given shape.

    >>> channel_shape((32, 16, 8, 8), 16, axis=1)
    [1, 16, 1, 1]
    """
    if not -len(shape) <= axis < len(shape) or shape[axis] != num_parameters:
        raise ValueError(
            f"expected {num_parameters} channels on axis {axis}, got an input of shape {tuple(shape)}; "
            f"set num_parameters and the axis to match"
        )
    broadcast = [1] * len(shape)
    broadcast[axis] = num_parameters
    return broadcast
