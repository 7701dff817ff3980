"""All pairs of several activations, where nobody knows beforehand which one is better: two-sided, and simultaneous."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

from plunit.lab.cell import Arrays
from plunit.lab.intervals import LEVEL, Estimate, median, paired_ratios

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
