"""The columns of a table: bounds, integers, constants, rounding (`inspect`), and their map to the line (`Columns`)."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit.densities.density_faults import dependent, discrete, is_atom
from plunit.densities.density_network import MOST_FEATURES
from plunit.ensemble.arrays import Array, is_constant

NODES = 64  # the probability of an integer is a mean over this number of points of its interval
SPREAD_OVER = 1 - 1e-9  # values are spread over this fraction of their interval; its ends may be bounds

TIED = 0.9  # a column counts as rounded if its distinct values are fewer than this fraction of the distinct rows

GRID, FINEST = 10, 1e5
"""A column also counts as rounded if it has more than `GRID` values, all on a grid of fewer than `FINEST` points."""

FEW_DISTINCT = 0.1  # warn of fewer distinct values, as a fraction of the rows, except in integer columns
REPEATED = 0.5  # warn if a larger fraction of the rows repeats other rows
ROUNDED = 1e-9  # values closer than this fraction of their range count as equal

FAR_BOUND = 1e6
"""A bound farther from all values than this multiple of their range is ignored: the logarithm would be nearly linear,
and rounding would lose the values."""

EXACT_INTEGERS = 2.0**53  # larger floating-point numbers are all integers


@dataclass(frozen=True)
class Columns:
    """The map u = x, log(x - low), -log(high - x) or log((x - low) / (high - x)) of each column, by its bounds."""

    low: Array  # [n], the lower bound, or -inf
    high: Array  # [n], the upper bound, or inf
    step: Array  # [n], the smallest gap between values of a rounded column, else 0
    integer: Array  # [n], whether the values are integers; the bounds include their intervals, value +- 1/2
    margin: Array  # [n], how far values on a bound are moved inside

    def scatter(self, x: Array, rng: np.random.RandomState) -> Array:
        """Return rows with rounded values moved randomly within their intervals and the bounds."""
        x = x + (rng.random_sample(x.shape) - 0.5) * (SPREAD_OVER * self.step)
        x = np.where(x < self.low, 2 * self.low - x, x)
        return np.where(x > self.high, 2 * self.high - x, x)

    def to_line(self, x: Array) -> tuple[Array, Array]:
        """Return u of rows within the bounds, and the sum of log(du/dx) of each row."""
        from_low, from_high = np.isfinite(self.low), np.isfinite(self.high)
        below = np.where(from_low, np.where(x > self.low, x - self.low, self.margin), 1.0)
        above = np.where(from_high, np.where(x < self.high, self.high - x, self.margin), 1.0)
        logs = np.log(below), np.log(above)
        width = np.where(from_low & from_high, self.high - self.low, 1.0)
        u = np.where(from_low | from_high, logs[0] - logs[1], x)
        return u, (np.log(width) - logs[0] - logs[1]).sum(1)

    def from_line(self, u: Array) -> Array:
        """Return the rows x, with integer columns rounded."""
        from_low, from_high = np.isfinite(self.low), np.isfinite(self.high)
        with np.errstate(over="ignore", invalid="ignore"):
            part = 1 / (1 + np.exp(-u))
            x = np.where(from_low, self.low + np.exp(u), np.where(from_high, self.high - np.exp(-u), u))
            x = np.where(from_low & from_high, self.low * (1 - part) + self.high * part, x)
        rounded = np.clip(np.rint(x), np.ceil(self.low), np.floor(self.high)) + 0.0  # -0.0 is 0
        return np.where(self.integer, rounded, np.clip(x, self.low, self.high))

    def admits(self, x: Array) -> Array:
        """Return whether each value is possible, [rows, n]: within bounds, and an integer in integer columns."""
        return np.asarray((x >= self.low) & (x <= self.high) & (~self.integer | (x == np.rint(x))))

    def nodes(self) -> Array:
        """Return offsets [nodes, n] in the intervals of integers: midpoints of equal parts, shuffled in each column."""
        if not self.integer.any():
            return np.zeros((1, len(self.low)))
        middles = np.tile((np.arange(NODES) + 0.5) / NODES - 0.5, (len(self.low), 1))
        return np.asarray(np.random.default_rng(0).permuted(middles, axis=1).T * self.integer)


class ColumnLabels:
    """Finds columns by number or name, and labels them."""

    def __init__(self, count: int, names: Sequence[str] | None) -> None:
        self.count, self.names = count, names

    def __getitem__(self, i: int) -> str:
        return f"column {i}" if self.names is None else f"column {i} ({self.names[i]})"

    def find(self, parameter: str, key: Any) -> int:
        """Return the number of the column with this number or name."""
        if self.names is not None and key in self.names:
            return list(self.names).index(key)
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool) and -self.count <= key < self.count:
            return int(key) % self.count
        known = "" if self.names is None else f" or one of {', '.join(self.names)}"
        raise ValueError(f"a column in {parameter} must be one of 0, ..., {self.count - 1}{known}, got {key!r}")


def limits(bounds: Any, labels: ColumnLabels) -> tuple[Array, Array]:
    """Return the low and high bounds of all columns, infinite where there is none.

    `bounds` is one pair for all columns, a pair or None for each, or a dict from columns to pairs.
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
            f"bounds must be (low, high), a dict from columns to such pairs, or a list with a pair or None for each of "
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


def find_integers(x: Array, integers: Any, labels: ColumnLabels) -> Array:
    """Return a mask of the integer columns: for "auto" all that hold only integers, else the given ones."""
    there = ((x == np.rint(x)) & (np.abs(x) < EXACT_INTEGERS)).all(0)
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
            odd = x[(x[:, i] != np.rint(x[:, i])) | (np.abs(x[:, i]) >= EXACT_INTEGERS), i][0]
            raise ValueError(f"{labels[i]} is in integers but holds {odd:g}; round it, or remove it from integers")
    return named


def inspect(
    x: Array, rows: Array, bounds: Any, integers: Any, labels: ColumnLabels
) -> tuple[Columns, Array, list[str]]:
    """Return the `Columns` of those that vary, the values of the constant ones (NaN for the others), and warnings.

    `x` has the distinct rows of `rows`.
    """
    low, high = limits(bounds, labels)
    integer, same = find_integers(x, integers, labels), is_constant(x)
    if same.all():
        raise ValueError("all columns of X are constant; a density needs a column that varies")
    if (varying := int((~same).sum())) > MOST_FEATURES:
        raise ValueError(
            f"X must have at most {MOST_FEATURES} columns, got {varying}; reduce them by PCA, or drop columns"
        )
    _check_inside(x, low, high, labels)
    notes = [
        f"{labels[i]} is constant ({x[0, i]:g}) and has no density: other values get the density 0, and samples have "
        f"the constant; drop the column to leave it out"
        for i in np.flatnonzero(same).tolist()
    ]
    step = np.where(integer, 1.0, 0.0)
    for i in np.flatnonzero(~same & ~integer).tolist():
        step[i], count = _step(x[:, i])
        if step[i] and count < FEW_DISTINCT * len(x):
            notes.append(
                f"{labels[i]} has only {count} values in {len(rows)} rows; they are spread out by {step[i]:g}, the "
                f"smallest gap; if they are categories or counts, use `integers`"
            )
    if len(x) < (1 - REPEATED) * len(rows) and not step[~same].all():
        notes.append(
            f"only {len(x)} of {len(rows)} rows are distinct; the others count as weights. If rows repeat because "
            f"values are discrete, their density is unbounded: use `integers`"
        )

    def is_discrete(values: Array, counts: Array) -> bool:
        return is_atom(counts.max(), len(rows)) and not _grid(values)[1]  # values on a grid will be spread out

    notes += discrete(rows, np.flatnonzero(~same & ~integer).tolist(), is_discrete, labels.names)
    notes += dependent(x, np.flatnonzero(~same & (step == 0)), labels.names)
    low, high = _near(x, low, high)
    low, high = np.where(integer, np.ceil(low) - 0.5, low), np.where(integer, np.floor(high) + 0.5, high)
    parts = (low, high, step, integer, _margins(x, low, high))
    return Columns(*(part[~same] for part in parts)), np.where(same, x[0], math.nan), notes


def _check_inside(x: Array, low: Array, high: Array, labels: ColumnLabels) -> None:
    """Raise ValueError unless all values are within the bounds."""
    for i in np.flatnonzero(((x < low) | (x > high)).any(0)).tolist():
        odd = x[(x[:, i] < low[i]) | (x[:, i] > high[i]), i][0]
        raise ValueError(
            f"{labels[i]} holds {odd:g}, outside its bounds [{low[i]:g}, {high[i]:g}]; correct the values or the bounds"
        )


def _grid(values: Array) -> tuple[float, bool]:
    """Return the smallest gap between sorted values, and whether all gaps are multiples of it, up to rounding."""
    gaps = np.diff(values)
    gaps = gaps[gaps > ROUNDED * gaps.sum()]
    step = float(gaps.min())
    return step, bool((np.abs(gaps / step - np.rint(gaps / step)) < 0.01).all())


def _step(x: Array) -> tuple[float, int]:
    """Return the smallest gap if the column is rounded, else 0, and the number of distinct values."""
    values = np.unique(x)
    step, on_grid = _grid(values)
    is_grid = on_grid and len(values) > GRID and values[-1] - values[0] < FINEST * step
    return step if is_grid or len(values) < TIED * len(x) else 0.0, len(values)


def _near(x: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the bounds, infinite where they are too far away."""
    least, most = x.min(0), x.max(0)
    with np.errstate(over="ignore"):
        far = FAR_BOUND * (most - least)
        return np.where(least - low > far, -math.inf, low), np.where(high - most > far, math.inf, high)


def _margins(x: Array, low: Array, high: Array) -> Array:
    """Return half the smallest positive distance of a value to a bound."""
    distance = np.concatenate([x - low, high - x])
    distance[~np.isfinite(distance) | (distance <= 0)] = math.inf
    least = distance.min(0)
    return np.where(np.isfinite(least), 0.5 * least, 1.0)
