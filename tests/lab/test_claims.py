import math

import numpy as np
import pytest
import scipy.stats

from plunit.base.ranges import Range
from plunit.lab.claims import Claim, Difference, interval, mean, measure, measure_ratio, median, median_interval, ratios

NAN = math.nan


@pytest.mark.parametrize(
    ("value", "low", "high", "verdict"),
    [
        (150, 100, 200, "holds"),
        (150, 99, 200, "holds weakly"),
        (150, 5, 200, "holds weakly"),
        (50, 10, 99, "holds weakly"),
        (50, 9, 99, "does not hold"),
        (5, 1, 9, "does not hold"),
        (150, NAN, NAN, "cannot be decided"),
        (5, NAN, NAN, "cannot be decided"),
    ],
)
def test_the_rule(value, low, high, verdict):
    n = 4 if math.isnan(low) else 10
    assert Claim("", "", "", n, value, low, high, Range(low=100), Range(low=10)).verdict == verdict


def test_enough_seeds_that_give_no_number_do_not_hold():
    column = np.array([0.01, 0.01, np.nan, 0.01, 0.01, 0.01])
    assert measure("", "", "", median, column, claimed=Range(high=0.1)).verdict == "does not hold"


@pytest.mark.parametrize(
    ("statement", "setting", "primary"), [("dead", "", True), ("dead", "here", False), ("", "", False)]
)
def test_a_claim_decides_a_statement_unless_it_has_a_setting(statement, setting, primary):
    claim = measure(statement, "said", "what", mean, np.arange(6.0), claimed=Range(2, 3), setting=setting)
    assert claim == Claim(statement, "said", "what", 6, 2.5, claim.low, claim.high, Range(2, 3), Range(2, 3), setting)
    assert claim.primary == primary


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.5, 0.9, "holds"),
        (0.5, 1.0, "no difference seen"),
        (1, 1, "no difference seen"),
        (NAN, NAN, "cannot be decided"),
    ],
)
def test_two_differ_if_the_whole_interval_is_below_one(low, high, verdict):
    below = Range(high=math.nextafter(1, 0))
    assert Difference("", "", "", 9, 0.8, low, high, below, below).verdict == verdict


@pytest.mark.parametrize("level", [0.95, 0.995, 1 - 0.05 / 66])
@pytest.mark.parametrize("n", [1, 4, 5, 6, 9, 10, 41, 256, 1500])
def test_exact_intervals_of_a_median_agree_with_scipy(n, level):
    column = np.random.default_rng(n).lognormal(size=n)
    theirs = scipy.stats.quantile_test(column, p=0.5).confidence_interval(confidence_level=level)
    np.testing.assert_array_equal(median_interval(column, level), theirs)


def test_intervals_agree_with_scipy():
    rng = np.random.default_rng(1)
    x = rng.lognormal(size=300)
    y = x * rng.lognormal(0.5, 0.3, size=300)
    ours = interval(median, ratios(y, x))
    theirs = scipy.stats.bootstrap(
        (y, x),
        lambda y, x, axis: np.median(y / x, axis=axis),
        paired=True,
        vectorized=True,
        method="percentile",
        rng=rng,
    ).confidence_interval
    np.testing.assert_allclose(ours, theirs, rtol=0.02)


def test_a_diverged_loss_is_the_worst_one_and_never_a_nan_and_a_loss_of_zero_is_no_error():
    above, ones, zeros = np.array([1.0, np.nan, np.inf, 4.0, 5.0]), np.ones(5), np.zeros(5)
    assert median(ratios(above, ones)) == 5
    assert median(ratios(ones, above)) == 0.2
    assert (ratios(np.full(3, np.nan), np.full(3, np.nan)) == 1).all()
    assert np.isfinite(interval(median, ratios(above, ones))).all()
    assert (ratios(ones, zeros) > 1e300).all()
    assert (ratios(zeros, zeros) == 0).all()


@pytest.mark.parametrize(
    ("seeds", "least", "verdict"),
    [
        (1, 0, "cannot be decided"),
        (4, 0, "cannot be decided"),
        (4, 2, "cannot be decided"),
        (5, 0, "holds"),
        (5, 2, "holds weakly"),
    ],
)
def test_few_seeds_give_no_interval_and_no_verdict(seeds, least, verdict):
    ones = np.ones(seeds)
    claim = measure_ratio("", "", "", ones, ones, Range(low=least), Range(low=0))
    assert (claim.n, claim.value, claim.verdict) == (seeds, 1, verdict)
    assert np.isnan([claim.low, claim.high]).tolist() == [seeds < 5] * 2
