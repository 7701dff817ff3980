"""Tables made ready: scales, merging, and rows kept for validation."""

import numpy as np
import pytest

from plunit.ensemble.arrays import Scale
from plunit.sklearn.folds import box, make_rows, merge, split

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("factor", [1e-300, 1e-150, 1.0, 1e150, 1e300])
def test_scaled_columns_have_mean_0_and_variance_1(factor):
    values, weight = RNG.normal(3, 2, (500, 2)), RNG.random(500)
    scaled = Scale.of(values * factor, weight)(values * factor)
    np.testing.assert_allclose(np.average(scaled, axis=0, weights=weight), 0, atol=1e-14)
    np.testing.assert_allclose(np.average(scaled**2, axis=0, weights=weight), 1, rtol=1e-13)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e12, 1e300])
def test_a_constant_column_becomes_0(value):
    values = np.full((30, 1), value)
    scale = Scale.of(values, np.ones(30))
    np.testing.assert_allclose(scale(values), 0, atol=1e-14)
    (low, high), *_ = box(values, scale)
    assert low < value < high


@pytest.mark.parametrize("centre", [1e15, -(2.0**50)])
def test_a_narrow_column_far_from_0_is_scaled_exactly(centre):
    steps = np.arange(31.0)[:, None]
    np.testing.assert_allclose(Scale.of(centre + steps, np.ones(31))(centre + steps), (steps - 15) / np.sqrt(80))


def test_values_that_differ_by_rounding_are_constant():
    assert Scale.of(np.array([[0.3], [0.1 + 0.2]]), np.ones(2)).spread == pytest.approx(0.3)


def test_equal_rows_are_merged_whatever_their_order():
    x, y = np.array([[1.0], [0.0], [1.0], [1.0], [1.0]]), np.array([[2.0], [2.0], [2.0], [3.0], [2.0]])
    weight = np.array([0.1, 1.0, 0.2, 5.0, 0.7])
    order = [4, 3, 2, 1, 0]
    one, other = merge(x, y, weight), merge(x[order], y[order], weight[order])
    assert [part.tolist() for part in one[:2]] == [[[0.0], [1.0], [1.0]], [[2.0], [2.0], [3.0]]]
    np.testing.assert_allclose(one[2], [1, 1, 5])
    assert [part.tobytes() for part in one] == [part.tobytes() for part in other]


def test_sums_of_weights_do_not_depend_on_the_order():
    """In some order or other the sum of these has another last bit."""
    weights = RNG.random((50, 7))
    assert any(sum(row) != sum(row[::-1]) for row in weights.tolist())
    for row in weights:
        sums = {merge(np.zeros((7, 1)), np.zeros((7, 1)), RNG.permutation(row))[2][0] for _ in range(20)}
        assert len(sums) == 1


def test_large_tables_are_not_merged(monkeypatch):
    monkeypatch.setattr("plunit.sklearn.folds.MERGED", 3)
    assert len(merge(np.zeros((4, 1)), np.zeros((4, 1)), np.ones(4))[0]) == 4
    assert len(merge(np.zeros((3, 1)), np.zeros((3, 1)), np.ones(3))[0]) == 1


@pytest.mark.parametrize(
    ("n", "share", "most", "size", "folds"),
    [(9, 0.15, 16, 0, 0), (10, 0.15, 1, 3, 1), (29, 0.15, 16, 9, 3), (40, 0.15, 16, 10, 4), (200, 0.15, 16, 30, 6),
     (200, 0.15, 4, 30, 4), (100_000, 0.15, 16, 4000, 16), (50, 0.999, 16, 49, 1), (200, 0.0, 16, 0, 0)],
)  # fmt: skip
def test_rows_kept_for_validation(n, share, most, size, folds):
    order, *found = split(np.zeros((n, 1)), share, most, np.random.RandomState(0), classes=False)
    assert found == [size, folds]
    assert sorted(order) == list(range(n))


@pytest.mark.parametrize("seed", range(5))
def test_classes_are_kept_in_proportion_and_all_are_trained_on(seed):
    label = np.repeat([0, 1, 2, 3], [600, 300, 99, 1])
    order, size, folds = split(np.eye(4)[label], 0.2, 16, np.random.RandomState(seed), classes=True)
    assert (sorted(order), size, folds) == (list(range(1000)), 200, 4)  # the first row of a class is in no fold
    for fold in range(folds):
        held = label[order[fold * size : (fold + 1) * size]]
        np.testing.assert_allclose(np.bincount(held, minlength=4), [120, 60, 20, 0], atol=2)
        assert np.count_nonzero(np.diff(held)) > 60  # in random order
    assert set(label[order[size * folds :]]) == {0, 1, 2, 3}
    assert split(np.eye(12), 0.2, 16, np.random.RandomState(seed), classes=True)[1:] == (0, 0)


def test_weights_have_mean_1():
    weight, zeros = np.array([2.0, 10.0, 1.0, 3.0]), np.zeros((4, 1))
    rows, validation = make_rows(zeros, zeros, weight, 2, [0], 64, {"every": 5})
    assert (rows.weight.tolist(), validation.weight.tolist()) == ([0.5, 1.5], [1 / 3, 5 / 3])
    assert (rows.batch, validation.every) == (0, 5)
    rows, _ = make_rows(zeros, zeros, np.full(4, 7.0), 2, [0], 1, {})
    assert (rows.weight, rows.batch) == (None, 1)
    rows, _ = make_rows(zeros, zeros, weight, 2, [0, 1, 0], 64, {})
    assert (rows.weight.mean(), rows.batch, rows.held, rows.firsts) == (1.0, 2, 2, [0, 2, 0])
