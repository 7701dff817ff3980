"""Errors of rounding to float64, sums and products that have none, and exact arithmetic.

u = 2^-53 is the unit roundoff. gamma_k = k u / (1 - k u) bounds the relative error of k roundings (Higham, 2002;
docs/glossary.md).
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context
from fractions import Fraction
from operator import mul

import numpy as np

from plunit.pieces.arrays import Floats

EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)
UNIT = EPS / 2
FLOOR = 1e-300
"""A bound on the loss by underflow in a product."""

LARGEST = 1e300
"""Inputs and values of a question stay below this, so that sums of a few of them do not overflow."""

_FIRST_COLUMNS = 256
"""The number of columns of a product that are tried first: if the product is not exact, they nearly always show it."""

_Affine = tuple[Floats, Floats]
"""weight [..., out, in] and bias [..., out]."""


def gamma(count: int, unit: float = UNIT) -> float:
    """Return k u / (1 - k u), the relative error of k roundings."""
    return count * unit / (1 - count * unit)


def roundings(count: int) -> float:
    """Return 1.01 k u, which is above gamma_k for every k that occurs; the compiled programs use the same bound."""
    return 1.01 * UNIT * count


def outward(number: Fraction) -> tuple[float, float]:
    """Return the largest float that is not above an exact number, and the smallest that is not below it."""
    try:
        near = float(number)
    except OverflowError:
        raise ValueError("a number of the network is beyond 1.8e308; scale its weights, knots or slopes") from None
    low = near if Fraction(near) <= number else float(np.nextafter(near, -np.inf))
    return low, near if Fraction(near) >= number else float(np.nextafter(near, np.inf))


def rounded_up(bound: float) -> float:
    """Return a bound rounded up to four digits.

    >>> rounded_up(0.0200001), rounded_up(2.0)
    (0.02001, 2.0)
    """
    return float(Context(prec=4, rounding=ROUND_CEILING).create_decimal_from_float(float(bound)))


def exact_product(after: _Affine, before: _Affine) -> _Affine | None:
    """Return (W, b) of W2 (W1 x + b1) + b2 = W x + b if float64 holds them exactly, else None."""
    (outer, shift), (inner, start) = after, before
    row = np.concatenate([outer, shift[..., None]], axis=-1)
    column = np.concatenate([start, np.ones((*start.shape[:-1], 1))], axis=-1)[..., None]
    if not (_is_exact(row, column) and (_only_moves(outer, inner) or _is_exact(outer, inner))):
        return None
    return outer @ inner, (row @ column)[..., 0]


def _only_moves(left: Floats, right: Floats) -> bool:
    """Whether all sums of a product are single terms w 2^p in range, as in a permutation, a pooling or a scaling."""
    for moves, axis, other in ((left, -1, right), (right, -2, left)):
        factors, numbers = np.abs(moves[moves != 0]), np.abs(other[other != 0])
        least = float(factors.min(initial=1.0)) * float(numbers.min(initial=1.0))
        most = float(factors.max(initial=1.0)) * float(numbers.max(initial=1.0))
        # all digits of a number above 2^-960 are above the smallest number
        fits = least > 2.0**-960 and most < LARGEST
        if fits and (np.frexp(factors)[0] == 0.5).all() and (np.count_nonzero(moves, axis=axis) <= 1).all():
            return True
    return False


def _is_exact(left: Floats, right: Floats) -> bool:
    """Whether no sum in left @ right is rounded; True is certain.

    If all terms are multiples of 2^p, their sums are exact in any order if the sum of their sizes is below 2^(p + 53).
    A single term has its own p; several terms share that of their row of `left` and column of `right`.
    """
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        return False
    corner = left[..., :1, :], right[..., :_FIRST_COLUMNS]
    if corner[0].size < left.size and not _is_exact(*corner):
        return False
    (used, low), (taken, deep) = ((part != 0, _lowest_bits(part)) for part in (left, right))
    alone = used.astype(np.float64) @ taken.astype(np.float64) <= 1
    own = np.where(used, low, 0.0) @ taken + used @ np.where(taken, deep, 0.0)
    power = np.where(alone, own, low.min(axis=-1)[..., None] + deep.min(axis=-2)[..., None, :])
    with np.errstate(over="ignore"):
        sizes = np.ldexp(np.abs(left) @ np.abs(right), -np.clip(power, -1074, 971).astype(np.int64))
    return bool(((power >= -1074) & (sizes < 2.0**53)).all())


def product_is_exact(left: Floats, right: Floats) -> bool:
    """Whether float64 holds every element of left * right exactly."""
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        return False
    power = _lowest_bits(left) + _lowest_bits(right)
    zero = np.isinf(power)
    with np.errstate(over="ignore"):
        sizes = np.ldexp(np.abs(left * right), -np.clip(np.where(zero, 0.0, power), -1074, 971).astype(np.int64))
    return bool((zero | ((power >= -1074) & (sizes < 2.0**53))).all())


def sum_is_exact(left: Floats, right: Floats) -> bool:
    """Whether float64 holds every element of left + right exactly."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = left + right
        other = total - left
        return not ((left - (total - other)) + (right - other)).any()


def _lowest_bits(numbers: Floats) -> Floats:
    """Return the largest p for each number such that the number is a multiple of 2^p; infinity for 0."""
    part, power = np.frexp(numbers)
    digits = np.ldexp(part, 53).astype(np.int64)
    lowest = np.frexp((digits & -digits).astype(np.float64))[1] - 1
    return np.where(digits == 0, np.inf, power - 53.0 + lowest)


def fractions(x: Floats) -> list[Fraction]:
    """Return the numbers x [n] as Fractions."""
    return [Fraction(number) for number in x.tolist()]


def exact_affine(weight: Floats, bias: Floats, values: list[Fraction]) -> list[Fraction]:
    """Return weight @ values + bias, exactly, for values whose denominators are powers of 2.

    Products and sums are computed on integers, over one power of 2 for the weights and one for the values.
    """
    used = [i for i, value in enumerate(values) if value]
    digits = max((values[i].denominator.bit_length() for i in used), default=1)
    whole = [values[i].numerator << (digits - values[i].denominator.bit_length()) for i in used]
    mantissas, exponents = np.frexp(weight[:, used])
    exponents = np.where(mantissas == 0, exponents.max(initial=0), exponents)
    least = int(exponents.min(initial=0))
    integers = (mantissas * 2.0**53).astype(np.int64)  # exact: a mantissa has 53 bits
    unit = Fraction(2) ** (least - 53 - (digits - 1))
    found = []
    for row, shifts, constant in zip(integers, exponents - least, bias.tolist(), strict=True):
        terms = (
            row.tolist() if not shifts.any() else [n << s for n, s in zip(row.tolist(), shifts.tolist(), strict=True)]
        )
        found.append(sum(map(mul, terms, whole)) * unit + Fraction(constant))
    return found
