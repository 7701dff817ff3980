"""All pairs of activations, two-sided and simultaneous."""

import numpy as np
import pytest
import scipy.stats

from plunit.base.errors import UserError
from plunit.lab.pairs import compare_pairs


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


def test_pairs_have_the_same_seeds():
    with pytest.raises(UserError, match="seed by seed"):
        compare_pairs(runs(a=np.ones(9), b=np.ones(8)), "loss")
