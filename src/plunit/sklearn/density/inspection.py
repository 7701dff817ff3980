"""What the columns of a table are: bounds, integers, constants, rounding; and warnings of rows that have no density."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from plunit.densities.degenerate import dependent_columns, is_atom
from plunit.ensemble.arrays import Array, is_constant
from plunit.sklearn.density.columns import Columns

TIED = 0.9  # a column is rounded if it has fewer distinct values than this part of the distinct rows

GRID, FINEST = 10, 1e5
"""A column is rounded, too, if it has more values than this, all on a grid of fewer places than that."""

FEW = 0.1  # fewer distinct values than this part of the rows, in a column that is not of integers, are warned of
REPEATED = 0.5  # a larger part of rows that repeat others is warned of
ROUNDED = 1e-9  # values nearer than this part of their range are one

FAR = 1e6
"""A bound that is farther from all values than so many times their range is no bound: its logarithm is a straight line,
and rounds the values away."""

EXACT = 2.0**53  # larger floating-point numbers are all integers


class Labels:
    """Columns by number or name."""

    def __init__(self, count: int, names: Sequence[str] | None) -> None:
        self.count, self.names = count, names

    def __getitem__(self, i: int) -> str:
        return f"column {i}" if self.names is None else f"column {i} ({self.names[i]})"

    def find(self, parameter: str, key: Any) -> int:
        """Return the number of the column that the key names."""
        if self.names is not None and key in self.names:
            return list(self.names).index(key)
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool) and -self.count <= key < self.count:
            return int(key) % self.count
        known = "" if self.names is None else f" or one of {', '.join(self.names)}"
        raise ValueError(f"{parameter} names columns by 0, ..., {self.count - 1}{known}, got {key!r}")


def limits(bounds: Any, labels: Labels) -> tuple[Array, Array]:
    """Return the bounds of all columns, low and high, with infinities for none.

    They are given as one pair for all columns, as a pair or None for each, or as a dict from columns to pairs.
    """
    low, high = np.full(labels.count, -math.inf), np.full(labels.count, math.inf)
    if bounds is None:
        return low, high
    if isinstance(bounds, Mapping):
        given = {labels.find("bounds", key): pair for key, pair in bounds.items() if pair is not None}
    elif _is_pair(bounds):
        given = dict.fromkeys(range(labels.count), bounds)
    elif isinstance(bounds, str) or not hasattr(bounds, "__len__") or len(bounds) != labels.count:
        raise ValueError(
            f"bounds must be (low, high), a dict from columns to such pairs, or a pair or None for each of "
            f"{labels.count} columns, got {bounds!r}"
        )
    else:
        given = {i: pair for i, pair in enumerate(bounds) if pair is not None}
    for i, pair in given.items():
        if not _is_pair(pair):
            raise ValueError(f"bounds of {labels[i]} must be two numbers (low, high), None for no bound, got {pair!r}")
        ends = zip(pair, (-math.inf, math.inf), strict=True)
        low[i], high[i] = (end if part is None else float(part) for part, end in ends)
        if not low[i] < high[i]:
            raise ValueError(f"bounds of {labels[i]} must have low < high, got {pair!r}")
    return low, high


def _is_pair(value: Any) -> bool:
    if isinstance(value, str) or not hasattr(value, "__len__") or len(value) != 2:
        return False
    return all(part is None or (isinstance(part, numbers.Real) and not isinstance(part, bool)) for part in value)


def whole(x: Array, integers: Any, labels: Labels) -> Array:
    """Return which columns hold integers: for "auto" all whose values are, else those of names, numbers or a mask."""
    there = ((x == np.rint(x)) & (np.abs(x) < EXACT)).all(0)
    if isinstance(integers, str) and integers == "auto":
        return np.asarray(there)
    if isinstance(integers, str) or not isinstance(integers, (Sequence, Set, np.ndarray, type(None))):
        raise ValueError(f'integers must be "auto", None or columns, got {integers!r}')
    named = np.zeros(labels.count, bool)
    keys: list[Any] = [] if integers is None else list(integers)
    if len(keys) == labels.count and all(isinstance(key, (bool, np.bool_)) for key in keys):
        keys = np.flatnonzero(keys).tolist()
    for key in keys:
        i = labels.find("integers", key)
        named[i] = True
        if not there[i]:
            odd = x[(x[:, i] != np.rint(x[:, i])) | (np.abs(x[:, i]) >= EXACT), i][0]
            raise ValueError(f"integers names {labels[i]}, which holds {odd:g}; round it, or leave it out of integers")
    return named


def constants(x: Array, labels: Labels) -> Array:
    """Return the value of each constant column and NaN for the others; warn of the constant ones."""
    same = is_constant(x)
    if same.all():
        raise ValueError("all columns of X are constant; a density needs a column that varies")
    for i in np.flatnonzero(same).tolist():
        warnings.warn(
            f"{labels[i]} is constant, {x[0, i]:g}, and has no density: other values get the density 0, samples hold "
            "the constant; drop the column to leave it out",
            stacklevel=6,
        )
    return np.where(same, x[0], math.nan)


def examine(x: Array, rows: int, low: Array, high: Array, integer: Array, varies: Array, labels: Labels) -> Columns:
    """Return the kinds of those columns that vary, of distinct rows x of `rows` in all; warn of atoms."""
    for i in np.flatnonzero(((x < low) | (x > high)).any(0)).tolist():
        odd = x[(x[:, i] < low[i]) | (x[:, i] > high[i]), i][0]
        raise ValueError(
            f"{labels[i]} holds {odd:g}, which is outside of its bounds [{low[i]:g}, {high[i]:g}]; correct the "
            "values or the bounds"
        )
    step = np.where(integer, 1.0, 0.0)
    for i in np.flatnonzero(varies & ~integer).tolist():
        step[i] = _step(x[:, i], rows, labels[i])
    if len(x) < (1 - REPEATED) * rows and not step[varies].all():
        warnings.warn(
            f"only {len(x)} of {rows} rows are distinct; the others count as weights. If rows repeat because values "
            "are discrete, their density has no limit: give integers",
            stacklevel=6,
        )
    low, high = _near(x, low, high)
    low, high = np.where(integer, np.ceil(low) - 0.5, low), np.where(integer, np.floor(high) + 0.5, high)
    parts = (low, high, step, integer, _margins(x, low, high))
    return Columns(*(part[varies] for part in parts))


def _step(x: Array, rows: int, label: str) -> float:
    """Return the least distance of two values if the column is rounded, else 0."""
    values = np.unique(x)
    gaps = np.diff(values)
    step = float(gaps[gaps > ROUNDED * gaps.sum()].min())
    if len(values) >= TIED * len(x) and not _is_grid(gaps, step):
        return 0.0
    if len(values) < FEW * len(x):
        warnings.warn(
            f"{label} has only {len(values)} values in {rows} rows; they are spread out by {step:g}, the least "
            "distance of two. If they are categories or counts, give integers",
            stacklevel=7,
        )
    return step


def _is_grid(gaps: Array, step: float) -> bool:
    """Return whether all distances of neighbours are multiples of one."""
    return len(gaps) >= GRID and gaps.sum() < FINEST * step and _multiples(gaps, step)


def _multiples(gaps: Array, step: float) -> bool:
    places = gaps / step
    return bool((np.abs(places - np.rint(places)) < 0.01).all())


def on_grid(gaps: Array) -> bool:
    """Return whether all distances of neighbouring values are multiples of the least, except for rounding."""
    gaps = gaps[gaps > ROUNDED * gaps.sum()]
    return _multiples(gaps, float(gaps.min()))


def _near(x: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the bounds, without those that are far away."""
    least, most = x.min(0), x.max(0)
    with np.errstate(over="ignore"):
        far = FAR * (most - least)
        return np.where(least - low > far, -math.inf, low), np.where(high - most > far, math.inf, high)


def _margins(x: Array, low: Array, high: Array) -> Array:
    """Return half of the least distance of a value to a bound that it is not on."""
    distance = np.concatenate([x - low, high - x])
    distance[~np.isfinite(distance) | (distance <= 0)] = math.inf
    least = distance.min(0)
    return np.where(np.isfinite(least), 0.5 * least, 1.0)


def warn_of_atoms(x: Array, number: Array, labels: Labels) -> None:
    """Warn of values of columns of numbers that many of the rows have; rounded columns may have such values."""
    for i in np.flatnonzero(number).tolist():
        values, counts = np.unique(x[:, i], return_counts=True)
        if is_atom(counts.max(), len(x)) and not on_grid(np.diff(values)):
            warnings.warn(
                f"{labels[i]} holds {values[counts.argmax()]:g} in {counts.max()} of {len(x)} rows, and a density has "
                "no limit there: model these rows apart, or add noise to the column",
                stacklevel=6,
            )


def warn_of_dependence(x: Array, number: Array, labels: Labels) -> None:
    """Warn of columns of numbers that are linearly dependent, outliers aside."""
    columns = np.flatnonzero(number)
    found, spread = dependent_columns(x[:, columns])
    if found:
        named = ", ".join(labels[i] for i in columns[found].tolist())
        warnings.warn(
            f"{named} are linearly dependent, to {spread:.1g} of their spread, and on a plane a density has no "
            "limit: drop columns that others determine, or put a PCA before",
            stacklevel=6,
        )
