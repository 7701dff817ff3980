"""Verdicts on the paper's claims: a statistic over paired seeds, its bootstrap interval, and a stated rule."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Column = np.ndarray[Any, Any]

RULE = (
    "A claim holds if the whole 95 % interval lies in the range it names. It holds weakly if the estimate lies in that "
    "range, or the whole interval in the weaker range given with it. Otherwise it does not hold. Fewer than five seeds "
    "give no interval, and such a claim holds weakly at most."
)
RESAMPLES = 2000
_FEWEST = 5


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included.

    >>> str(Range(low=100)), str(Range(0.5, 2)), str(Range(high=0.1)), str(Range(0, 0))
    ('>= 100', '0.5 to 2', '<= 0.1', '0')
    """

    low: float = -math.inf
    high: float = math.inf

    def holds(self, *numbers: float) -> bool:
        """Tell whether all numbers lie in the range."""
        return all(self.low <= number <= self.high for number in numbers)

    def __str__(self) -> str:
        if self.high == math.inf:
            return f">= {self.low:g}"
        if self.low == self.high:
            return f"{self.low:g}"
        return f"<= {self.high:g}" if self.low == -math.inf else f"{self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper in our words, and what the seeds say.

    Attributes:
        experiment: where it is measured.
        source: the section of the paper, or "ours" for a question the paper does not ask.
        sentence: the claim.
        statistic: what is computed.
        n: number of seeds.
        value: the estimate.
        low: lower end of its 95 % interval; NaN without one.
        high: upper end.
        claimed: the range in which the claim holds.
        weaker: the range in which it holds weakly.
    """

    experiment: str
    source: str
    sentence: str
    statistic: str
    n: int
    value: float
    low: float
    high: float
    claimed: Range
    weaker: Range

    @property
    def verdict(self) -> str:
        """The verdict by `RULE`."""
        if self.claimed.holds(self.low, self.high):
            return "holds"
        if self.claimed.holds(self.value) or self.weaker.holds(self.low, self.high):
            return "holds weakly"
        return "does not hold"


def measure(
    experiment: str,
    source: str,
    sentence: str,
    statistic: str,
    function: Callable[..., Any],
    *columns: Column,
    claimed: Range,
    weaker: Range,
) -> Claim:
    """Evaluate a claim: function(*columns) reduces seeds, the last axis, and is resampled in all columns together."""
    value = float(function(*columns))
    low, high = interval(function, *columns)
    return Claim(experiment, source, sentence, statistic, columns[0].shape[-1], value, low, high, claimed, weaker)


def interval(function: Callable[..., Any], *columns: Column) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of function(*columns), which reduces the last axis.

    With fewer than five seeds there is none: NaN.
    """
    n = columns[0].shape[-1]
    if n < _FEWEST:
        return math.nan, math.nan
    index = np.random.default_rng(0).integers(n, size=(RESAMPLES, n))
    # order statistics, not interpolation: quantiles between two infinities would be NaN
    low, high = np.quantile(function(*(column[index] for column in columns)), [0.025, 0.975], method="nearest")
    return float(low), float(high)


def mean(column: Column) -> Any:
    """Mean over seeds."""
    return np.mean(column, axis=-1)


def median(column: Column) -> Any:
    """Median over seeds."""
    return np.median(column, axis=-1)


def largest(column: Column) -> Any:
    """Largest over seeds."""
    return np.max(column, axis=-1)


def median_ratio(above: Column, below: Column) -> Any:
    """Median over seeds of above / below; losses that diverged count as the largest number."""
    largest = np.finfo(np.float64).max
    above, below = (np.nan_to_num(column.astype(np.float64), nan=largest, posinf=largest) for column in (above, below))
    tiny = np.finfo(np.float64).tiny
    with np.errstate(over="ignore"):
        return np.median(above / np.maximum(below, tiny), axis=-1)
