"""[a, b] + [c, d] and so on: arithmetic on many intervals at once, with ends that are rounded outward.

An interval encloses the values of a function on a box: the exact ones and those that NumPy computes. A sum, a product
or a quotient is rounded to the nearest number, so the next number outward is enough. NumPy's other functions are
assumed to be within 4 units in the last place, and 8 are allowed for. An interval without values has NaN as its ends.
Moore, Kearfott and Cloud (2009; docs/glossary.md) introduce intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit.pieces.arrays import Bools, Floats

LARGEST = float(np.finfo(np.float64).max)
_SLACK = 8 * float(np.finfo(np.float64).eps)
_TINY = 8 * float(np.finfo(np.float64).smallest_subnormal)


@dataclass(frozen=True, eq=False)
class Interval:
    """The numbers from `low` to `high`, [n] of them.

    Args:
        low, high: the ends, [n]; infinite where there is no bound, NaN where there is no value.
        partial: [n], whether the value may be undefined (NaN) or infinite somewhere in the box.
    """

    low: Floats
    high: Floats
    partial: Bools

    def __add__(self, other: Interval) -> Interval:
        return outward(self.low + other.low, self.high + other.high, self, other)

    def __sub__(self, other: Interval) -> Interval:
        return outward(self.low - other.high, self.high - other.low, self, other)

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low, self.partial)

    def __mul__(self, other: Interval) -> Interval:
        ends = [_times(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        nothing = np.where(np.isnan(self.low) | np.isnan(other.low), np.nan, 0.0)
        return outward(np.min(ends, axis=0) + nothing, np.max(ends, axis=0) + nothing, self, other)

    def __truediv__(self, other: Interval) -> Interval:
        return self * other.reciprocal()

    def reciprocal(self) -> Interval:
        """1 / [a, b]; without a bound on the side of 0."""
        inside = (self.low < 0) & (self.high > 0) | (self.low == 0) & (self.high == 0)
        low = np.where(inside | (self.high == 0), -np.inf, 1 / self.high)
        high = np.where(inside | (self.low == 0), np.inf, 1 / self.low)
        return outward(low, high, self)

    def square(self) -> Interval:
        """The squares of the numbers."""
        low, high = self.absolute().low, self.absolute().high
        found = outward(low * low, high * high, self)
        return Interval(np.maximum(found.low, 0.0), found.high, found.partial)

    def absolute(self) -> Interval:
        """The absolute values of the numbers."""
        low, high = np.abs(self.low), np.abs(self.high)
        across = (self.low < 0) & (self.high > 0)
        return Interval(np.where(across, 0.0, np.minimum(low, high)), np.maximum(low, high), self.partial)

    def within(self, low: float, high: float) -> Interval:
        """The part between two numbers; `partial` where something lies outside."""
        outside = (self.low < low) | (self.high > high)
        ends = np.maximum(self.low, low), np.minimum(self.high, high)
        nothing = np.where(ends[0] <= ends[1], 0.0, np.nan)
        return Interval(ends[0] + nothing, ends[1] + nothing, self.partial | outside)

    def cut(self, low: float, high: float) -> Interval:
        """The same numbers, where it is known that all lie between two."""
        return Interval(np.clip(self.low, low, high), np.clip(self.high, low, high), self.partial)

    def monotone(self, f: Callable[[Floats], Any]) -> Interval:
        """The values of a rising library function."""
        return loosely(f(self.low), f(self.high), self)


def between(low: Floats, high: Floats) -> Interval:
    """Return the numbers from low to high, at all of which there is a value."""
    return Interval(low, high, np.zeros(low.shape, dtype=bool))


def constant(value: Any, like: Interval) -> Interval:
    """Return one number, as an interval for each of those of another."""
    return between(*[np.full_like(like.low, value)] * 2)


def whole(like: Interval) -> Interval:
    """Return all numbers."""
    ends = np.full_like(like.low, np.inf)
    return Interval(-ends, ends, np.ones(ends.shape, dtype=bool))


def hull(a: Interval, b: Interval) -> Interval:
    """Return the numbers of both, and those between."""
    return Interval(np.fmin(a.low, b.low), np.fmax(a.high, b.high), a.partial | b.partial)


def choose(first: Bools, a: Interval, b: Interval) -> Interval:
    """Return a where `first` holds, else b."""
    return Interval(
        np.where(first, a.low, b.low), np.where(first, a.high, b.high), np.where(first, a.partial, b.partial)
    )


def meet(a: Interval, b: Interval) -> Interval:
    """Return the numbers of both, where it is known that there are any."""
    return Interval(np.maximum(a.low, b.low), np.minimum(a.high, b.high), a.partial & b.partial)


def outward(low: Floats, high: Floats, *given: Interval) -> Interval:
    """Return the interval with ends one number further out: those of an operation that rounds to the nearest."""
    return exactly(np.nextafter(low, -np.inf), np.nextafter(high, np.inf), *given)


def loosely(low: Floats, high: Floats, *given: Interval) -> Interval:
    """Return the interval with ends 8 units in the last place further out: those of a library function."""
    low, high = np.minimum(low, LARGEST), np.maximum(high, -LARGEST)
    return exactly(low - (_SLACK * np.abs(low) + _TINY), high + (_SLACK * np.abs(high) + _TINY), *given)


def exactly(low: Floats, high: Floats, *given: Interval) -> Interval:
    """Return the interval with these ends: those of a function without rounding, such as floor."""
    # what is unbounded may be infinite, and inf - inf is NaN in the next step
    partial = ~(np.isfinite(low) & np.isfinite(high))
    for interval in given:
        partial = partial | interval.partial
    return Interval(low, high, partial)


def _times(a: Floats, b: Floats) -> Floats:
    # an end of inf stands for numbers that grow without bound, and 0 times each of them is 0
    return np.where((a == 0) | (b == 0), 0.0, a * b)
