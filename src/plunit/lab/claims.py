"""Verdicts: a statistic over paired seeds, its bootstrap interval, and a stated rule."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit.ranges import Range

Column = np.ndarray[Any, Any]

FEWEST = 5
"""Seeds below which there is no interval and no verdict."""

RESAMPLES = 2000
HOLDS, WEAKLY, FAILS, UNDECIDED = VERDICTS = ("holds", "holds weakly", "does not hold", "cannot be decided")
RULE = (
    "A claim holds if its whole 95 % interval lies in the range it names. It holds weakly if the estimate lies in that "
    "range, or if the whole interval lies in the weaker range given with it. Otherwise it does not hold. With fewer "
    "than five seeds there is no interval, and the claim cannot be decided. A statement of the paper with several "
    "claims holds if all of them hold, does not hold if none of them holds even weakly, and holds weakly otherwise. "
    "Claims that cannot be decided count only if no other is left."
)


@dataclass(frozen=True)
class Claim:
    """A sentence, and what the seeds say of it.

    Attributes:
        statement: the statement of the paper it tests, a key of `plunit.lab.paper.STATEMENTS`; "" for a claim of ours.
        sentence: the claim.
        statistic: what is computed.
        n: number of seeds.
        value: the estimate.
        low: lower end of its 95 % interval; NaN without one.
        high: upper end.
        claimed: the range in which the claim holds.
        weaker: the range in which it holds weakly.
        experiment: where it is measured; set by `judged`.
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
    experiment: str = ""

    @property
    def verdict(self) -> str:
        """The verdict by `RULE`."""
        if self.n < FEWEST:
            return UNDECIDED
        if self.claimed.holds(self.low, self.high):
            return HOLDS
        return WEAKLY if self.claimed.holds(self.value) or self.weaker.holds(self.low, self.high) else FAILS


def overall(verdicts: Iterable[str]) -> str:
    """Return the verdict on a statement from those on its claims, by `RULE`.

    >>> overall(["holds", "cannot be decided"]), overall(["holds", "does not hold"]), overall([])
    ('holds', 'holds weakly', 'cannot be decided')
    """
    decided = {verdict for verdict in verdicts if verdict != UNDECIDED}
    return decided.pop() if len(decided) == 1 else WEAKLY if decided else UNDECIDED


def measure(
    statement: str,
    sentence: str,
    statistic: str,
    function: Callable[..., Any],
    *columns: Column,
    claimed: Range,
    weaker: Range | None = None,
) -> Claim:
    """Evaluate a claim: function(*columns) reduces seeds, the last axis, and is resampled in all columns together.

    Without a weaker range of its own, a claim has the claimed one.
    """
    value, (low, high) = float(function(*columns)), interval(function, *columns)
    seeds = columns[0].shape[-1]
    return Claim(statement, sentence, statistic, seeds, value, low, high, claimed, weaker or claimed)


def measure_ratio(statement: str, sentence: str, statistic: str, above: Column, below: Column, *bars: Range) -> Claim:
    """Evaluate a claim on the median over seeds of above / below; `bars` are the claimed range and the weaker one."""
    return measure(statement, sentence, statistic, median_ratio, above, below, claimed=bars[0], weaker=bars[-1])


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
    largest = np.finfo(np.float64).max
    above, below = (np.nan_to_num(column.astype(np.float64), nan=largest, posinf=largest) for column in (above, below))
    tiny = np.finfo(np.float64).tiny
    with np.errstate(over="ignore"):
        return np.median(above / np.maximum(below, tiny), axis=-1)
