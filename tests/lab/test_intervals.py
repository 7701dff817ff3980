"""Intervals cover what they estimate as often as they say; seeds that diverge, pairs of seeds, and of activations."""

import math

import numpy as np
import pytest
import scipy.stats

from plunit.base.errors import UserError
from plunit.base.ranges import Range
from plunit.lab.intervals import (
    Estimate,
    compare_pairs,
    mean,
    median,
    paired_ratios,
    ratios,
    seeds_needed,
    share,
    worst_if_diverged,
)

NAN, INF = math.nan, math.inf
DRAWS = 1500
"""Samples of a simulation; the standard error of a coverage of 95 % is then 0.6 points."""

SIMULATED = {
    "median, normal": (median, lambda rng, n: rng.normal(size=n), 0.0),
    "median, lognormal": (median, lambda rng, n: rng.lognormal(size=n), 1.0),
    "mean, normal": (mean, lambda rng, n: rng.normal(size=n), 0.0),
    "mean of logarithms, lognormal": (lambda x: mean(np.log(x)), lambda rng, n: rng.lognormal(size=n), 0.0),
    "share of 0.1": (share, lambda rng, n: rng.random(n) < 0.1, 0.1),
    "share of 0.5": (share, lambda rng, n: rng.random(n) < 0.5, 0.5),
}


def covered(estimate, draw, true, n):
    rng = np.random.default_rng(n)
    found = [estimate(draw(rng, n)) for _ in range(DRAWS)]
    return np.mean([one.low <= true <= one.high for one in found])


@pytest.mark.parametrize("n", [6, 16, 64])
@pytest.mark.parametrize("kind", SIMULATED)
def test_intervals_cover_what_they_estimate(kind, n):
    assert covered(*SIMULATED[kind], n) >= (0.95 if kind.startswith("share") else 0.93)


def test_the_simulation_sees_an_interval_that_is_too_short():
    def bootstrap(x):
        index = np.random.default_rng(0).integers(x.size, size=(200, x.size))
        return Estimate(x.mean(), *np.quantile(x[index].mean(-1), [0.025, 0.975]), x.size)

    assert covered(bootstrap, SIMULATED["mean, normal"][1], 0.0, 6) < 0.9


@pytest.mark.parametrize("level", [0.95, 0.995, 1 - 0.05 / 66])
@pytest.mark.parametrize("n", [1, 4, 5, 6, 9, 10, 41, 256, 1500])
def test_intervals_of_a_median_agree_with_scipy(n, level):
    column = np.random.default_rng(n).lognormal(size=n)
    theirs = scipy.stats.quantile_test(column, p=0.5).confidence_interval(confidence_level=level)
    found = median(column, level)
    np.testing.assert_array_equal((found.low, found.high), theirs)
    assert (found.value, found.n) == (np.median(column), n)


def test_the_interval_of_a_mean_agrees_with_scipy():
    column = np.random.default_rng(0).normal(size=9)
    theirs = scipy.stats.ttest_1samp(column, 0).confidence_interval()
    found = mean(column)
    np.testing.assert_allclose((found.value, found.low, found.high), (column.mean(), *theirs), rtol=1e-12)


@pytest.mark.parametrize(
    ("estimate", "values"),
    [(median, []), (median, [1.0]), (median, np.arange(5.0)), (mean, np.arange(5.0)), (mean, np.zeros(100))],
)
def test_too_few_seeds_or_equal_ones_of_a_mean_give_no_interval(estimate, values):
    found = estimate(np.array(values))
    assert np.isnan([found.low, found.high]).all()
    assert found.n == len(values)


def test_the_interval_of_no_hit_is_not_empty():
    assert share(np.zeros(5, bool)).high == pytest.approx(1 - 0.025**0.2)


def test_a_diverged_seed_counts_as_the_worst():
    losses = np.array([1, NAN, INF, 4, 5, 2, 3], dtype=np.float32)
    assert worst_if_diverged(losses).tolist() == [1, INF, INF, 4, 5, 2, 3]
    assert median(losses) == Estimate(4.0, 1.0, INF, 7)
    ones = np.ones(7)
    assert median(ratios(losses, ones)).value == 4
    assert median(ratios(ones, losses)) == Estimate(0.25, 0.0, 1.0, 7)


@pytest.mark.parametrize(
    ("above", "below", "ratio"),
    [(NAN, NAN, 1), (INF, NAN, 1), (0, 0, 1), (1, 0, INF), (NAN, 0, INF), (0, NAN, 0), (2, NAN, 0), (3, 2, 1.5)],
)
def test_ratios_at_the_ends(above, below, ratio):
    assert ratios(np.array([above], float), np.array([below], float)) == [ratio]


@pytest.mark.parametrize("seeds", [[0], [0, 1, 2, 3, 5], [4, 3, 2, 1, 0]])
def test_pairs_have_the_same_seeds(seeds):
    five = {"seed": np.arange(5), "loss": np.ones(5)}
    other = {"seed": np.array(seeds), "loss": np.full(len(seeds), 2.0)}
    assert paired_ratios(five, five, "loss").tolist() == [1] * 5
    with pytest.raises(UserError, match="seed"):
        paired_ratios(other, five, "loss")


def least_seeds(minority, there):
    """By brute force: the fewest seeds, more than there are, whose interval leaves out the end."""
    for n in range(there + 1, 2000):
        found = median(np.where(np.arange(n) < math.floor(minority * n + 1e-9), 0.0, 2.0))
        if found.low > 1:
            return n
    return None


@pytest.mark.parametrize("claimed", [Range(low=1), Range(high=1), Range(1, 5), Range(-5, 1)])
@pytest.mark.parametrize(("minority", "n"), [(1, 5), (2, 5), (2, 6), (3, 7), (9, 20), (0, 4), (1, 8)])
def test_the_number_of_seeds_that_would_decide(claimed, minority, n):
    sample = median(np.where(np.arange(n) < minority, 0.0, 2.0))
    assert seeds_needed(sample, claimed) == least_seeds(minority / n, n)


def test_no_number_of_seeds_decides_a_tie_or_what_is_not_a_median():
    assert seeds_needed(median(np.array([0.0, 2.0] * 10)), Range(low=1)) == 0
    assert seeds_needed(share(np.zeros(5, bool)), Range(low=0.1)) == 0
    assert seeds_needed(median(np.array([])), Range(low=1)) == 0


def runs(**losses):
    return {name: {"seed": np.arange(len(column)), "loss": np.array(column)} for name, column in losses.items()}


def test_a_cell_names_the_lower_one_or_says_that_no_difference_is_seen():
    generator = np.random.default_rng(0)
    good, alike, bad = (generator.lognormal(size=40) * scale for scale in (1, 1, 10))
    matrix = compare_pairs(runs(tanh=bad, plu=good, relu=alike), "loss")
    assert {row: {column: pair.verdict for column, pair in pairs.items()} for row, pairs in matrix.items()} == {
        "tanh": {"plu": "higher", "relu": "higher"},
        "plu": {"tanh": "lower", "relu": "no difference seen"},
        "relu": {"tanh": "lower", "plu": "no difference seen"},
    }
    both = matrix["plu"]["relu"].estimate
    theirs = scipy.stats.quantile_test(good / alike, p=0.5).confidence_interval(confidence_level=1 - 0.05 / 3)
    assert (both.low, both.high) == tuple(theirs)
    assert both.value == np.median(good / alike)


def test_equal_losses_show_no_difference_and_few_seeds_nothing():
    assert compare_pairs(runs(a=np.ones(9), b=np.ones(9)), "loss")["a"]["b"].verdict == "no difference seen"
    assert compare_pairs(runs(a=np.ones(5), b=np.zeros(5)), "loss")["a"]["b"].verdict == "too few seeds"
    assert compare_pairs({}, "") == {}


def test_alike_activations_are_rarely_told_apart_however_many_pairs_there_are():
    """Of 200 tables with five activations that do not differ, about one in twenty shows some difference."""
    generator = np.random.default_rng(7)
    found = 0
    for _ in range(200):
        columns = dict(zip(("relu", "tanh", "gelu", "plu", "silu"), generator.lognormal(size=(5, 30)), strict=True))
        pairs = [pair for row in compare_pairs(runs(**columns), "loss").values() for pair in row.values()]
        found += any(pair.verdict in ("lower", "higher") for pair in pairs)
    assert found <= 20
