"""Verdicts: a statistic over paired seeds, its interval, and a stated rule."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from plunit.base.errors import UserError
from plunit.base.ranges import Range
from plunit.lab.paper import STATEMENTS

Column = np.ndarray[Any, Any]

FEWEST = 5
"""Seeds below which there is no interval and no verdict."""

RESAMPLES = 2000
HOLDS, WEAKLY, FAILS, UNDECIDED, UNSEEN = VERDICTS = (
    "holds",
    "holds weakly",
    "does not hold",
    "cannot be decided",
    "no difference seen",
)
RULE = (
    "A claim holds if its whole 95 % interval lies in the range it names. It holds weakly if the estimate lies in that "
    "range, or if the whole interval lies in the weaker range given with it. Otherwise it does not hold. With fewer "
    "than five seeds there is no interval, and the claim cannot be decided. Intervals come from "
    f"{RESAMPLES:,} bootstrap resamples of the seeds, the same seeds for all activations. "
    "A statement of the paper has one primary claim, in the paper's own setting, which decides. Its other claims, in "
    "other settings, do not change the verdict; where they disagree with it, the verdict says so. A theorem is checked "
    "rather than measured, and is not counted with the others."
)
RULE_OF_PAIRS = (
    "Which of two activations is better is not known before, so their comparison is two-sided: it holds if the whole "
    "interval of the ratio lies on one side of 1. Otherwise no difference is seen. The intervals are exact (order "
    "statistics of the ratios seed by seed) and simultaneous: for all pairs of a table together the confidence is "
    "95 %, by Bonferroni's correction. Too few seeds for such an interval decide nothing."
)


@dataclass(frozen=True)
class Claim:
    """A sentence, and what the seeds say of it.

    Attributes:
        statement: the statement of the paper it tests, a key of `plunit.lab.paper.STATEMENTS`; "" for a claim of ours.
        sentence: the claim.
        statistic: what is computed.
        n: number of seeds; of checks, for a theorem.
        value: the estimate.
        low: lower end of its 95 % interval; NaN without one.
        high: upper end.
        claimed: the range in which the claim holds.
        weaker: the range in which it holds weakly.
        setting: how it differs from what the paper did, such as "on one period"; "" for the primary claim of a
            statement.
        experiment: where it is measured; set by `judge`.
    """

    statement: str
    sentence: str
    statistic: str
    n: int
    value: float
    low: float
    high: float
    claimed: Range
    weaker: Range
    setting: str = ""
    experiment: str = ""

    def __post_init__(self) -> None:
        if self.statement and self.statement not in STATEMENTS:
            raise UserError(
                f'the claim "{self.sentence}" is about {self.statement!r}, which is no statement of the paper; name a '
                'key of plunit.lab.paper.STATEMENTS, or "" for a claim of your own'
            )

    @property
    def primary(self) -> bool:
        """Whether it decides a statement of the paper."""
        return bool(self.statement) and not self.setting

    @property
    def verdict(self) -> str:
        """The verdict by `RULE`."""
        if self.n < FEWEST:
            return UNDECIDED
        if self.claimed.holds(self.low, self.high):
            return HOLDS
        return WEAKLY if self.claimed.holds(self.value) or self.weaker.holds(self.low, self.high) else FAILS


@dataclass(frozen=True)
class Difference(Claim):
    """A claim that two things differ, whose direction was not known before; see `RULE_OF_PAIRS`."""

    @property
    def verdict(self) -> str:
        """The verdict by `RULE_OF_PAIRS`."""
        if math.isnan(self.low):
            return UNDECIDED
        return HOLDS if self.claimed.holds(self.low, self.high) else UNSEEN


def measure(
    statement: str,
    sentence: str,
    statistic: str,
    function: Callable[..., Any],
    *columns: Column,
    claimed: Range,
    weaker: Range | None = None,
    setting: str = "",
) -> Claim:
    """Evaluate a claim: function(*columns) reduces seeds, the last axis, and is resampled in all columns together.

    Without a weaker range of its own, a claim has the claimed one.
    """
    value, (low, high) = float(function(*columns)), interval(function, *columns)
    seeds = columns[0].shape[-1]
    return Claim(statement, sentence, statistic, seeds, value, low, high, claimed, weaker or claimed, setting)


def measure_ratio(
    statement: str, sentence: str, statistic: str, above: Column, below: Column, *bars: Range, setting: str = ""
) -> Claim:
    """Evaluate a claim on the median over seeds of above / below; `bars` are the claimed range and the weaker one."""
    ranges = {"claimed": bars[0], "weaker": bars[-1]}
    return measure(statement, sentence, statistic, median_ratio, above, below, **ranges, setting=setting)


def interval(function: Callable[..., Any], *columns: Column) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of function(*columns), which reduces the last axis.

    With fewer than five seeds its ends are NaN.
    """
    n = columns[0].shape[-1]
    if n < FEWEST:
        return math.nan, math.nan
    index = np.random.default_rng(0).integers(n, size=(RESAMPLES, n))
    # order statistics, not interpolation: quantiles between two infinities would be NaN
    low, high = np.quantile(function(*(column[index] for column in columns)), [0.025, 0.975], method="nearest")
    return float(low), float(high)


def median_interval(column: Column, level: float) -> tuple[float, float]:
    """Return the order statistics between which the median of the distribution lies with at least this confidence.

    Exact for any distribution: a draw is below the median with probability 1/2. NaN if there are too few seeds.

    >>> median_interval(np.arange(6.0), 0.95), median_interval(np.arange(5.0), 0.95)
    ((0.0, 5.0), (nan, nan))
    """
    n = column.size
    whole = math.lgamma(n + 1) - n * math.log(2)
    shares = (math.exp(whole - math.lgamma(k + 1) - math.lgamma(n - k + 1)) for k in range(n // 2))
    outside = sum(2 * tail <= 1 - level for tail in accumulate(shares))  # values that may be left out on each side
    if not outside:
        return math.nan, math.nan
    ordered = np.sort(column)
    return float(ordered[outside - 1]), float(ordered[n - outside])


def mean(column: Column) -> Any:
    """Mean over seeds."""
    return np.mean(column, axis=-1)


def median(column: Column) -> Any:
    """Median over seeds."""
    return np.median(column, axis=-1)


def largest(column: Column) -> Any:
    """Largest over seeds."""
    return np.max(column, axis=-1)


def median_difference(ours: Column, theirs: Column) -> Any:
    """Median over seeds of ours - theirs."""
    return np.median(ours - theirs, axis=-1)


def median_ratio(above: Column, below: Column) -> Any:
    """Median over seeds of above / below; losses that diverged count as the largest number."""
    return np.median(ratios(above, below), axis=-1)


def ratios(above: Column, below: Column) -> Column:
    """Return above / below seed by seed; losses that diverged count as the largest number."""
    largest = np.finfo(np.float64).max
    above, below = (np.nan_to_num(column.astype(np.float64), nan=largest, posinf=largest) for column in (above, below))
    tiny = np.finfo(np.float64).tiny
    with np.errstate(over="ignore"):
        found: Column = above / np.maximum(below, tiny)
    return found
