"""What the paper says, and verdicts on it: a statistic over paired seeds, its interval, and a stated rule."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from plunit.base.errors import UserError
from plunit.base.ranges import Range

__all__ = ["Claim", "measure", "measure_ratio"]

Column = np.ndarray[Any, Any]
Statistic = Callable[[Column], Any]
"""Reduces seeds, the last axis."""
Named = tuple[str, Column]

PAPER = ("PLU: The Piecewise Linear Unit Activation Function", "https://arxiv.org/abs/1809.09534")

SECTIONS = {
    "2": "Fitting elementary functions",
    "3": "Fitting parametric functions",
    "4": "Fitting 3D surfaces",
    "5": "CIFAR-10",
    "6": "Invertible networks",
    "7": "Remarks",
    "": "Our own questions",
}
"""The sections with experiments; the paper does not number its last one."""


class Statement(NamedTuple):
    """A sentence and the section where it stands; a theorem can be checked, but there is nothing to measure."""

    section: str
    sentence: str
    theorem: bool = False


STATEMENTS = {
    "sine-tanh": Statement("2", "On the sine, PLU and tanh reach similar losses."),
    "sine-relu": Statement("2", "On the sine, ReLU's loss is two orders of magnitude higher."),
    "sine-pieces": Statement("2", "Trained on the sine, PLU networks have more pieces than ReLU networks."),
    "curve-relu": Statement("3", "On the parametric curve, PLU fits much closer than ReLU."),
    "curve-tanh": Statement("3", "On the parametric curve, tanh performs as well as PLU."),
    "curve-five": Statement("3", "The ReLU network has 5 line segments on the parametric curve."),
    "curve-pieces": Statement("3", "PLU networks have abundantly more line segments there than ReLU networks."),
    "surface-relu": Statement("4", "On the surface, ReLU ends at a much higher loss than PLU."),
    "surface-tanh": Statement("4", "On the surface, PLU keeps up with tanh."),
    "surface-pieces": Statement("4", "On the surface, PLU networks have more linear pieces than ReLU networks."),
    "cifar-faster": Statement("5", "On CIFAR-10, tanh and PLU train faster than ReLU."),
    "cifar-identity": Statement("5", "The network with the identity does well in the first steps."),
    "cifar-favourable": Statement("5", "CIFAR-10 is more favourable to ReLU than sections 2-4."),
    "inverse-plu": Statement("6", "PLU is invertible, with an inverse defined for all numbers.", theorem=True),
    "inverse-others": Statement(
        "6", "ReLU has no inverse, leaky ReLU has one, and tanh's is defined on (-1, 1) only.", theorem=True
    ),
    "gradients-tanh": Statement("7", "tanh suffers from vanishing gradients."),
    "gradients-plu": Statement("7", "PLU does not suffer from vanishing gradients."),
    "dead": Statement("7", "PLU avoids ReLU's problem of dead units."),
}
"""What the paper says, in our words and in its order."""

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
        statement: the statement of the paper it tests, a key of `STATEMENTS`; "" for a claim of ours.
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
                'key of plunit.lab.claims.STATEMENTS, or "" for a claim of your own'
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


def difference(noun: str, where: str, one: Named, other: Named, level: float) -> Difference:
    """Return which of two, each with its name and its values of the noun, has lower ones, compared seed by seed."""
    if median_interval(ratios(one[1], other[1]), level)[0] > 1:
        one, other = other, one
    column = ratios(one[1], other[1])
    low, high = median_interval(column, level)
    below = Range(high=math.nextafter(1, 0))
    words = f"{{}} has a lower {noun} than {{}}" if below.holds(high) else f"{{}} and {{}} have different {noun}es"
    sentence, statistic = f"{words.format(one[0], other[0])} on {where}.", f"median of {noun} {one[0]} / {other[0]}"
    return Difference("", sentence, statistic, column.size, float(np.median(column)), low, high, below, below)


def measure(
    statement: str,
    sentence: str,
    statistic: str,
    function: Statistic,
    column: Column,
    *,
    claimed: Range,
    weaker: Range | None = None,
    setting: str = "",
) -> Claim:
    """Evaluate a claim: function(column) reduces seeds, the last axis, and is resampled.

    Without a weaker range of its own, a claim has the claimed one.
    """
    value, (low, high) = float(function(column)), interval(function, column)
    n = column.shape[-1]
    return Claim(statement, sentence, statistic, n, value, low, high, claimed, weaker or claimed, setting)


def measure_ratio(
    statement: str, sentence: str, statistic: str, above: Column, below: Column, *bars: Range, setting: str = ""
) -> Claim:
    """Evaluate a claim on the median over seeds of above / below; `bars` are the claimed range and the weaker one."""
    ranges = {"claimed": bars[0], "weaker": bars[-1]}
    return measure(statement, sentence, statistic, median, ratios(above, below), **ranges, setting=setting)


def interval(function: Statistic, column: Column) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of function(column), which reduces the last axis.

    With fewer than five seeds its ends are NaN.
    """
    n = column.shape[-1]
    if n < FEWEST:
        return math.nan, math.nan
    index = np.random.default_rng(0).integers(n, size=(RESAMPLES, n))
    # order statistics, not interpolation: quantiles between two infinities would be NaN
    low, high = np.quantile(function(column[..., index]), [0.025, 0.975], method="nearest")
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


mean: Statistic = partial(np.mean, axis=-1)
median: Statistic = partial(np.median, axis=-1)
largest: Statistic = partial(np.max, axis=-1)


def ratios(above: Column, below: Column) -> Column:
    """Return above / below seed by seed; losses that diverged count as the largest number."""
    ends = np.finfo(np.float64)
    above, below = (np.nan_to_num(one.astype(np.float64), nan=ends.max, posinf=ends.max) for one in (above, below))
    with np.errstate(over="ignore"):
        return np.asarray(above / np.maximum(below, ends.tiny))
