"""The base of all estimators: rules for parameters, and an all-or-nothing `fit`.

An invalid parameter raises ValueError with its value and the rule.
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Collection
from typing import Any, TypeVar

import numpy as np

from plunit.base.ranges import as_count

MOST_NUMBERS = 2**27
"""Maximum number of parameters, and of losses, of all starts of a shape: 5 GiB with Adam's moments and all copies."""

POSITIVE, NOT_NEGATIVE, FRACTION = (0, math.inf, False), (0, math.inf, True), (0, 1, False)
"""Ranges of numbers: low, high, and whether low is allowed."""


def check_name(name: str, value: Any, allowed: Collection[str]) -> None:
    """Raise ValueError unless the value is one of the allowed names."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def check_count(name: str, value: Any, *unset: Any) -> None:
    """Raise ValueError unless the value is a positive integer or one of the `unset` values."""
    if not any(value is one or (isinstance(value, str) and value == one) for one in unset):
        as_count(name, value, 1, math.inf)


def check_number(name: str, value: Any, low: float, high: float, closed: bool) -> None:
    """Raise ValueError unless low < value < high; `closed` allows low."""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not (number and (low < value < high or (closed and value == low))):
        raise ValueError(f"{name} must be a number in {'[' if closed else '('}{low}, {high}), got {value!r}")


def check_flag(name: str, value: Any, *, count: bool = False) -> None:
    """Raise ValueError unless the value is True or False; `count` allows integers."""
    if not isinstance(value, (bool, np.bool_)) and not (count and isinstance(value, numbers.Integral)):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def check_memory(needed: int, work: str, smaller: str) -> None:
    """Raise ValueError if `work` needs too many numbers in memory."""
    if needed > MOST_NUMBERS:
        raise ValueError(f"{work} need {needed} numbers; the limit is {MOST_NUMBERS}: use {smaller}")


Fitting = TypeVar("Fitting", bound="AtomicFit")


class AtomicFit:
    """An estimator that stays unchanged if `fit` fails."""

    def _fit(self, *data: Any) -> str:
        """Train, and return the text of a warning, or ""."""
        raise NotImplementedError

    def _fit_whole(self: Fitting, *data: Any) -> Fitting:
        """Do the work of `fit`; warn the caller at the end, so that a warning raised as an error loses nothing."""
        before = dict(self.__dict__)
        try:
            note = self._fit(*data)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        if note:
            self._warn(note)
        return self

    def _warn(self, note: str) -> None:
        warnings.warn(note, stacklevel=4)
