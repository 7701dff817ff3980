"""Estimates with 95 % intervals over seeds: medians, means, shares, ratios of paired seeds, and all pairs of several.

One rule for a seed that diverged, wherever the lab computes or draws something: its loss counts as infinite, the worst.
`tests/lab/test_intervals.py` simulates how often the intervals cover what they estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy.stats

from plunit.base.errors import UserError
from plunit.base.ranges import Range
from plunit.lab.cell import Arrays

__all__ = ["Estimate", "mean", "median", "paired_ratios", "share"]

Column = np.ndarray[Any, Any]

LEVEL = 0.95

FEWEST = 6
"""Seeds below which neither a median nor a mean has an interval: the extremes of five cover a median in 93.75 %."""

_MOST_SEEDS = 10**6


@dataclass(frozen=True)
class Estimate:
    """A number, the ends of its interval, NaN if there is none, and the number of seeds, or of trials of a share.

    `sample` holds the values of which a median was taken; `seeds_needed` counts them.
    """

    value: float
    low: float
    high: float
    n: int
    sample: Column | None = field(default=None, compare=False, repr=False)


def worst_if_diverged(losses: Column) -> Column:
    """Return losses in float64 with NaN, the loss of a seed that diverged, as infinity."""
    return np.nan_to_num(np.asarray(losses, np.float64), nan=np.inf, posinf=np.inf, neginf=-np.inf)


def median(values: Column, level: float = LEVEL) -> Estimate:
    """Return the median over seeds and its exact interval: two order statistics.

    They enclose the median of the distribution, whatever that is, with at least this confidence: a draw is below it
    with probability 1/2.

    >>> median(np.arange(6.0)), median(np.arange(5.0))
    (Estimate(value=2.5, low=0.0, high=5.0, n=6), Estimate(value=2.0, low=nan, high=nan, n=5))
    """
    ordered = np.sort(worst_if_diverged(values))
    n = ordered.size
    tails = scipy.stats.binom.cdf(np.arange(n // 2), n, 0.5)
    outside = int(np.count_nonzero(2 * tails <= 1 - level))  # values that may be left out on each side
    ends = (float(ordered[outside - 1]), float(ordered[n - outside])) if outside else (math.nan, math.nan)
    return Estimate(float(np.median(ordered)) if n else math.nan, *ends, n, ordered)


def mean(values: Column) -> Estimate:
    """Return the mean over seeds with Student's interval; there is none if all values are equal."""
    values = np.asarray(values, np.float64)
    value, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(values.size) if values.size > 1 else 0.0
    if values.size < FEWEST or not error > 0:
        return Estimate(value, math.nan, math.nan, values.size)
    half = error * float(scipy.stats.t.ppf((1 + LEVEL) / 2, values.size - 1))
    return Estimate(value, value - half, value + half, values.size)


def share(hits: Column) -> Estimate:
    """Return the share of seeds of which something is true, with the interval of Clopper and Pearson.

    >>> round(share(np.zeros(5, bool)).high, 3)
    0.522
    """
    true, n = int(np.count_nonzero(hits)), int(np.size(hits))
    ends = scipy.stats.binomtest(true, n).proportion_ci(LEVEL, method="exact")
    return Estimate(true / n, float(ends.low), float(ends.high), n)


def ratios(above: Column, below: Column) -> Column:
    """Return above / below, seed by seed.

    Two that are equal have the ratio 1, even if both are 0 or both diverged: no evidence either way.
    """
    above, below = worst_if_diverged(above), worst_if_diverged(below)
    with np.errstate(all="ignore"):
        return np.asarray(np.where(above == below, 1.0, above / below))


def paired_ratios(above: Arrays, below: Arrays, key: str) -> Column:
    """Return the ratios of an array of two runs, seed by seed; raise UserError unless the seeds are the same."""
    if not np.array_equal(above["seed"], below["seed"]):
        counts = " and ".join(f"{arrays['seed'].size:,}" for arrays in (above, below))
        raise UserError(
            f"runs are compared seed by seed, but their seeds differ ({counts}); run both with the same seeds"
        )
    return ratios(above[key], below[key])


def seeds_needed(estimate: Estimate, claimed: Range) -> int:
    """Return how many seeds, more than there are, would decide on which side of a range's ends the median lies.

    The answer assumes that further seeds fall on either side as often as those of the sample; 0 if it is unknown.

    >>> seeds_needed(median(np.array([0.5, 2, 2, 2, 2])), Range(low=1))
    9
    """
    if estimate.sample is None or not estimate.n:
        return 0
    outside = (float(np.mean(estimate.sample < claimed.low)), float(np.mean(estimate.sample > claimed.high)))
    minority = max(min(part, 1 - part) for part in outside)  # the end that is harder to decide
    if minority == 0.5:
        return 0
    first = max(FEWEST, estimate.n + 1)
    n = np.arange(first, first + min(_MOST_SEEDS, 40 + math.ceil(8 / (1 - 2 * minority) ** 2)))
    decided = scipy.stats.binom.cdf(np.floor(minority * n + 1e-9), n, 0.5) <= (1 - LEVEL) / 2
    return int(n[np.argmax(decided)]) if decided.any() else 0


RULE_OF_PAIRS = (
    "A cell of the matrix is the median of the loss of its row divided by that of its column, seed by seed. The row "
    "has the lower loss if the whole interval lies below 1, and the higher one if it lies above 1; otherwise no "
    "difference is seen. The intervals are exact (order statistics), and simultaneous: for all pairs of a matrix "
    "together the confidence is 95 %, by Bonferroni's correction. With too few seeds nothing is decided."
)

LOWER, HIGHER, SAME, FEW = ("lower", "higher", "no difference seen", "too few seeds")


class PairRatio(NamedTuple):
    """The loss of one activation divided by that of another."""

    above: str
    below: str
    estimate: Estimate

    @property
    def verdict(self) -> str:
        """Whether the first has a lower loss or a higher one, by `RULE_OF_PAIRS`."""
        if self.estimate.low != self.estimate.low:
            return FEW
        return LOWER if self.estimate.high < 1 else HIGHER if self.estimate.low > 1 else SAME


Matrix = dict[str, dict[str, PairRatio]]
"""Row to column to pair; no activation is compared with itself."""


def compare_pairs(runs: dict[str, Arrays], key: str) -> Matrix:
    """Return the matrix of an array of several runs with the same seeds."""
    pairs = list(combinations(runs, 2))
    level = 1 - (1 - LEVEL) / max(len(pairs), 1)
    return {
        row: {
            column: PairRatio(row, column, median(paired_ratios(runs[row], runs[column], key), level))
            for column in runs
            if column != row
        }
        for row in runs
    }
