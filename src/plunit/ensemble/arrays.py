"""Arrays of an ensemble: NumPy, float32 or float64, members on the last axis; and columns scaled for training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

ROUNDING = 8  # values that differ by fewer units in the last place count as equal


def check_unmasked(name: str, values: Any) -> None:
    """Raise ValueError if a NumPy array has masked entries: their values do not belong to the data."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        mask = np.ma.getmaskarray(values)
        raise ValueError(
            f"{name} must not be masked, got {int(mask.sum())} masked values, the first at index "
            f"{tuple(np.argwhere(mask)[0].tolist())}; drop those rows, or fill them with array.filled(value)"
        )


NOT_REAL = {
    "c": "pass the real part",
    "m": "divide it by a unit such as np.timedelta64(1, 's')",
    "M": "subtract a date and divide by a unit such as np.timedelta64(1, 's')",
}
"""Kinds of dtypes that would lose their meaning as floating point, with the remedy."""


def as_array(values: Any, dtype: Any = None, name: str = "an array") -> Array:
    """Return values as a floating-point NumPy array; tensors of other frameworks are converted by `__array__`.

    A tensor that requires a gradient is detached. Dtypes other than floating point become float32, unless `dtype`
    says otherwise. Masked entries, complex numbers and dates raise ValueError with the name.
    """
    check_unmasked(name, values)
    values = values.detach() if hasattr(values, "detach") else values
    array = np.asarray(values)
    if array.dtype.kind in NOT_REAL:
        raise ValueError(f"{name} must hold real numbers, got {array.dtype}; {NOT_REAL[array.dtype.kind]}")
    if dtype is None:
        dtype = array.dtype if array.dtype in (np.float32, np.float64) else np.float32
    try:
        with np.errstate(over="ignore"):  # what becomes infinite is refused with its name
            return array.astype(dtype, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold real numbers, got {array.dtype}: {error}") from None


def as_factors(name: str, value: Any, dtype: Any) -> Array:
    """Return finite numbers of at least 0 as an array, or raise ValueError."""
    array = as_array(value, dtype, name)
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        place = tuple(np.argwhere(bad)[0].tolist())
        where = f"{array[place]} at index {place}" if place else repr(value)
        raise ValueError(f"{name} must be from 0 to {np.finfo(array.dtype).max:.2g}, got {where}")
    return array


def as_many(name: str, value: Array, count: int) -> Array:
    """Return a number, or an array of `count` numbers, as a new array [count]."""
    if value.shape not in {(), (1,), (count,)}:
        raise ValueError(f"{name} must be a number or an array [{count}], got the shape {value.shape}")
    return np.array(np.broadcast_to(value, count))


@dataclass(frozen=True)
class Scale:
    """x -> (x - mean) / spread for each column; `of` chooses the spread of a constant column."""

    mean: Array
    spread: Array

    @classmethod
    def of(cls, values: Array, weight: Array, constant: float = 1.0) -> Scale:
        """Return the scale that gives columns with mean 0 and variance 1.

        The spread of a column whose values are equal up to `ROUNDING` is `constant` times its largest value.
        """
        largest = np.abs(values).max(0, initial=0)
        largest = np.where(largest > 0, largest, 1.0)
        unit = np.ldexp(1.0, np.frexp(largest)[1] - 1)  # squares of large numbers would overflow; a power of 2 is exact
        units = values / unit
        mean = np.average(units, axis=0, weights=weight)
        mean += np.average(units - mean, axis=0, weights=weight)  # corrects for rounding
        spread = np.sqrt(np.average((units - mean) ** 2, axis=0, weights=weight))
        return cls(mean * unit, np.where(is_constant(values) | (spread == 0), constant * largest, spread * unit))

    def __call__(self, values: Array) -> Array:
        """Return the scaled columns."""
        scaled: Array = (values - self.mean) / self.spread
        return scaled


def is_constant(values: Array) -> Array:
    """Return for each column whether its values are equal up to `ROUNDING`.

    >>> is_constant(np.array([[0.3, 1e15], [0.1 + 0.2, 1e15 + 30]]))
    array([ True, False])
    """
    units = np.spacing(np.abs(values).max(0, initial=0))
    half = values.max(0) / 2 - values.min(0) / 2  # the full difference may overflow
    return np.asarray(half <= ROUNDING / 2 * units)
