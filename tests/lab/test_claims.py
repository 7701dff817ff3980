import math

import numpy as np
import pytest
import scipy.stats
from plunit.lab.console import tally

from plunit.lab.claims import Claim, Range, interval, measure, median_ratio


@pytest.mark.parametrize(
    ("value", "low", "high", "verdict"),
    [
        (150, 100, 200, "holds"),
        (150, 99, 200, "holds weakly"),
        (50, 10, 99, "holds weakly"),
        (50, 9, 99, "does not hold"),
        (5, 1, 9, "does not hold"),
        (math.nan, math.nan, math.nan, "does not hold"),
    ],
)
def test_the_rule(value, low, high, verdict):
    claim = Claim("sine", "2", "", "", 10, value, low, high, Range(low=100), Range(low=10))
    assert claim.verdict == verdict


def test_intervals_agree_with_scipy():
    rng = np.random.default_rng(1)
    x = rng.lognormal(size=300)
    y = x * rng.lognormal(0.5, 0.3, size=300)
    ours = interval(median_ratio, y, x)
    theirs = scipy.stats.bootstrap(
        (y, x),
        lambda y, x, axis: np.median(y / x, axis=axis),
        paired=True,
        vectorized=True,
        method="percentile",
        rng=rng,
    ).confidence_interval
    np.testing.assert_allclose(ours, theirs, rtol=0.02)


def test_pairs_stay_together():
    x = np.random.default_rng(2).lognormal(sigma=3, size=200)
    claim = measure("", "2", "", "", median_ratio, 3 * x, x, claimed=Range(3, 3), weaker=Range())
    assert (claim.low, claim.high) == pytest.approx((3, 3))


def test_intervals_cover_the_truth_about_95_times_in_100():
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(200):
        low, high = interval(lambda x: x.mean(axis=-1), rng.normal(size=60))
        hits += low <= 0 <= high
    assert 180 <= hits <= 198


def test_a_diverged_loss_is_the_worst_one_and_never_a_nan():
    above = np.array([1.0, np.nan, np.inf, 4.0, 5.0])
    below = np.ones(5)
    assert median_ratio(above, below) == 5
    assert median_ratio(below, above) == 0.2
    assert median_ratio(np.full(3, np.nan), np.full(3, np.nan)) == 1
    assert all(np.isfinite(interval(median_ratio, above, below)))


def test_a_loss_of_zero_is_no_error():
    assert median_ratio(np.ones(3), np.zeros(3)) > 1e300
    assert median_ratio(np.zeros(3), np.zeros(3)) == 0


def test_few_seeds_give_no_interval_and_a_weak_verdict_at_most():
    always = {"claimed": Range(low=0), "weaker": Range(low=0)}
    few = measure("", "2", "", "", median_ratio, np.ones(4), np.ones(4), **always)
    assert np.isnan([few.low, few.high]).all()
    assert few.verdict == "holds weakly"
    assert measure("", "2", "", "", median_ratio, np.ones(5), np.ones(5), **always).verdict == "holds"
    never = {"claimed": Range(low=2), "weaker": Range(low=0)}
    assert measure("", "2", "", "", median_ratio, np.ones(4), np.ones(4), **never).verdict == "does not hold"


def test_the_tally_is_of_the_papers_claims_or_else_of_ours():
    def claim(source, value):
        return measure("x", source, "", "", np.mean, np.array([value] * 2), claimed=Range(high=1), weaker=Range(high=1))

    ours, theirs = claim("ours", 0), claim("5", 2)
    assert tally([ours, theirs]) == "claims of the paper: 0 hold, 0 hold weakly, 1 do not"
    assert tally([ours]) == "claims of ours: 0 hold, 1 hold weakly, 0 do not"
