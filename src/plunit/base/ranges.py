"""Ranges of numbers, for claims and the fields of a spec, and checks of single numbers."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Any

__all__ = ["Range"]


def as_count(name: str, value: Any, least: int = 0, most: float = 2**31 - 1) -> int:
    """Return a Python or NumPy integer from `least` to `most` as an int, or raise ValueError with the name.

    >>> as_count("steps", 3)
    3
    """
    try:
        found = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        found = least - 1
    if found < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    if found > most:
        raise ValueError(f"{name} must be at most {most:,}, got {found:,}")
    return found


def as_positive(name: str, value: Any, typical: float) -> float:
    """Return a positive, finite number (of Python, NumPy or PyTorch) as a float, or raise ValueError."""
    try:
        found = float(value) if hasattr(value, "__float__") and not isinstance(value, bool) else math.nan
    except (TypeError, ValueError, RuntimeError, OverflowError):
        found = math.nan
    if not 0 < found < math.inf:
        raise ValueError(f"{name} must be a positive number, got {value!r}; try {typical}")
    return found


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included.

    >>> str(Range(low=100)), str(Range(0.5, 2)), str(Range(high=0.1)), str(Range(0, 0))
    ('>= 100', '0.5 to 2', '<= 0.1', '0')
    """

    low: float = -math.inf
    high: float = math.inf

    def holds(self, *numbers: float) -> bool:
        """Return whether all numbers lie in the range."""
        return all(self.low <= number <= self.high for number in numbers)

    def __str__(self) -> str:
        if self.high == math.inf:
            return f">= {self.low:g}"
        if self.low == self.high:
            return f"{self.low:g}"
        return f"<= {self.high:g}" if self.low == -math.inf else f"{self.low:g} to {self.high:g}"


COUNT = Range(1, 1_000_000)
"""Counts of steps, units or points: at least one, and few enough for a machine."""

RATE = Range(1e-9, 100)
"""Step sizes of an optimiser."""

DOMAIN = Range(-1e6, 1e6)
SHARE = Range(0, 1)

WIDTH = Range(0, 1e6)
"""PLU's c."""
