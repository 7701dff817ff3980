"""What rounding to float64 does to a number: relative errors, the numbers around an exact one, underflow.

u = 2^-53 is the unit roundoff. gamma_k = k u / (1 - k u) bounds the relative error of k roundings (Higham, 2002;
docs/glossary.md).
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context
from fractions import Fraction

import numpy as np

EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)
UNIT = EPS / 2
FLOOR = 1e-300
"""Stands for whatever underflow can take from a product."""


def gamma(count: int, unit: float = UNIT) -> float:
    """Return k u / (1 - k u), the relative error of k roundings."""
    return count * unit / (1 - count * unit)


def roundings(count: int) -> float:
    """Return 1.01 k u, which is above gamma_k for every k that occurs; the compiled programs compute the same."""
    return 1.01 * UNIT * count


def outward(number: Fraction) -> tuple[float, float]:
    """Return the floats around an exact number."""
    try:
        near = float(number)
    except OverflowError:
        raise ValueError("a number of the network is beyond 1.8e308; scale its weights, knots or slopes") from None
    low = near if Fraction(near) <= number else float(np.nextafter(near, -np.inf))
    return low, near if Fraction(near) >= number else float(np.nextafter(near, np.inf))


def rounded_up(bound: float) -> float:
    """Return the least number with four digits that is not below a bound.

    >>> rounded_up(0.0200001), rounded_up(2.0)
    (0.02001, 2.0)
    """
    return float(Context(prec=4, rounding=ROUND_CEILING).create_decimal_from_float(float(bound)))
