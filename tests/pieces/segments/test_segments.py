"""Least-squares segments against known curves and the normal equations."""

import numpy as np
import pytest

from plunit.pieces import fit_segments
from plunit.pieces.segments.search import best_knots, refine
from plunit.pieces.segments.sums import Sums


def hats(knots, x):
    """Return the values at x of the curves that are 1 at one knot and 0 at the others, [x, knots]."""
    return np.stack([np.interp(x, knots, row) for row in np.eye(len(knots))], axis=1)


def least_error(x, y, w, knots):
    """Return the least squared error with given knots, by NumPy's solver."""
    root = np.sqrt(w)
    matrix = hats(knots, x) * root[:, None]
    values = np.linalg.lstsq(matrix, y * root, rcond=None)[0]
    return float(((matrix @ values - y * root) ** 2).sum())


def known(seed, pieces, points, noise):
    """Return x, y, knots and values of a random curve with clear kinks."""
    rng = np.random.default_rng([seed, pieces])
    knots = np.cumsum(rng.uniform(0.5, 1.5, pieces + 1))
    values = np.cumsum(rng.uniform(1, 2, pieces + 1) * (-1) ** np.arange(pieces + 1))
    x = np.concatenate([knots[[0, -1]], rng.uniform(knots[0], knots[-1], points - 2)])
    return x, np.interp(x, knots, values) + noise * rng.normal(size=points), knots, values


@pytest.mark.parametrize("pieces", [1, 2, 5, 12])
@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e9])
def test_a_curve_without_noise_is_recovered(pieces, told, scale):
    x, y, knots, values = known(0, pieces, 400, 0.0)
    found = fit_segments(x * scale, y * scale - scale, pieces if told else None)
    np.testing.assert_allclose(found.curve.knots, knots * scale, rtol=1e-12)
    np.testing.assert_allclose(found.curve.values[:, 0], values * scale - scale, rtol=1e-12, atol=1e-12 * scale)
    assert found.squared_error <= 1e-20 * (y * scale) @ (y * scale)


@pytest.mark.parametrize("pieces", [1, 4, 9])
def test_the_values_are_the_best_for_the_knots_and_the_error_is_right(pieces):
    x, y, _, _ = known(1, pieces, 300, 0.3)
    w = np.random.default_rng(0).uniform(0, 2, 300)
    found = fit_segments(x, y, pieces, w)
    assert found.squared_error == pytest.approx(least_error(x, y, w, found.curve.knots), rel=1e-12)
    assert found.squared_error == pytest.approx(float(w @ (y - found.curve(x)[:, 0]) ** 2), rel=1e-12)


@pytest.mark.parametrize("pieces", [3, 6, 12])
def test_the_number_of_segments_is_found(pieces):
    found = [len(fit_segments(*known(seed, pieces, 1000, 0.2)[:2]).curve.slopes) for seed in range(8)]
    assert found.count(pieces) >= 7


def test_the_table_holds_what_was_tried():
    x, y, knots, _ = known(1, 6, 1000, 0.2)
    found = fit_segments(x, y)
    np.testing.assert_allclose(found.curve.knots, knots, atol=0.1)
    assert [trial.pieces for trial in found.tried] == list(range(1, len(found.tried) + 1))
    assert min(found.tried, key=lambda trial: trial.criterion).pieces == 6
    assert found.tried[5].squared_error == pytest.approx(found.squared_error, rel=1e-6)
    assert found.tried[0].squared_error == pytest.approx(fit_segments(x, y, 1).squared_error)


@pytest.mark.parametrize("pieces", [5, None])
def test_order_weights_and_copies_do_not_matter(pieces):
    x, y, _, _ = known(2, 5, 200, 0.2)
    first = fit_segments(x, y, pieces)
    order = np.random.default_rng(0).permutation(200)
    again = fit_segments(x[order], y[order], pieces)
    np.testing.assert_allclose(again.curve.knots, first.curve.knots, rtol=1e-9)
    weighted = fit_segments(x, y, 5, np.where(np.arange(200) < 50, 2.0, 1.0))
    twice = fit_segments(np.concatenate([x, x[:50]]), np.concatenate([y, y[:50]]), 5)
    np.testing.assert_allclose(weighted.curve.knots, twice.curve.knots, rtol=1e-9)
    assert weighted.squared_error == pytest.approx(twice.squared_error)


@pytest.mark.parametrize("pieces", [4, 6, 8])
def test_a_search_leads_away_from_a_bad_start(pieces):
    x, y, knots, _ = known(0, pieces, 500, 0.1)
    order = np.argsort(x)
    sums = Sums.of(x[order], y[order], np.ones(500))
    bad = np.concatenate([knots[:1], np.linspace(knots[-2], knots[-1], pieces)])
    assert refine(sums, bad[None], 20)[1][0] > 5 * least_error(x, y, np.ones(500), knots)
    found = best_knots(sums, np.unique(x), pieces, bad)
    assert least_error(x, y, np.ones(500), found) <= least_error(x, y, np.ones(500), knots)
    np.testing.assert_allclose(found, knots, atol=0.1)


def test_points_of_weight_zero_are_left_out_and_the_same_data_give_the_same_bits():
    x, y, _, _ = known(4, 3, 100, 0.1)
    left = fit_segments(np.append(x, [50.0, 2.0]), np.append(y, [1e6, -1e6]), 3, np.append(np.ones(100), [0, 0]))
    again = fit_segments(x, y, 3)
    assert left.curve.knots.tobytes() == again.curve.knots.tobytes()
    assert left.curve.values.tobytes() == again.curve.values.tobytes()


@pytest.mark.parametrize("points", [2, 3, 4, 5, 7, 303])
@pytest.mark.parametrize("told", [True, False])
def test_few_points_are_met(points, told):
    x, y = np.arange(points) ** 1.5, (-1.0) ** np.arange(points)
    found = fit_segments(x, y, points - 1 if told else None)
    assert (found.curve.low, found.curve.high) == (x[0], x[-1])
    if told:
        np.testing.assert_allclose(found.curve(x)[:, 0], y, atol=1e-12)


def test_more_segments_never_have_a_larger_error():
    rng = np.random.default_rng(5)
    x, y = np.arange(200), np.cumsum(rng.normal(size=200))
    errors = [fit_segments(x, y, pieces).squared_error for pieces in range(1, 16)]
    assert (np.diff(errors) <= 0).all()


def test_the_curve_reaches_from_the_first_to_the_last_point():
    ends = np.sort(10 ** np.random.default_rng(0).uniform(-6, 3, (100, 2)), axis=1)
    found = [fit_segments(pair, [0, 1], 1).curve for pair in ends]
    assert [[curve.low, curve.high] for curve in found] == ends.tolist()


def test_constant_y_is_one_flat_segment():
    found = fit_segments([1, 2, 3, 4], [7, 7, 7, 7])
    assert (found.curve.values == 7).all()
    assert len(found.curve.slopes) == 1


def test_knots_that_coincide_are_one():
    """Around 1e16 only even numbers exist."""
    rng = np.random.default_rng(0)
    found = fit_segments(1e16 + 2 * np.arange(50.0), rng.normal(size=50), 20)
    assert len(found.curve.slopes) <= 20
    assert (np.diff(found.curve.knots) >= 2).all()


def test_many_segments_follow_a_random_walk():
    walk = np.cumsum(np.random.default_rng(0).normal(size=500))
    found = fit_segments(np.arange(500), walk, 60)
    even = np.linspace(0, 499, 61)
    assert len(found.curve.slopes) == 60
    assert found.squared_error < 0.7 * least_error(np.arange(500), walk, np.ones(500), even)


@pytest.mark.parametrize(
    ("seed", "n", "pieces"), [(80, 371, 39), (402, 65, 39), (556, 44, 38), (1, 40, 20), (2, 60, 30)]
)
def test_more_segments_than_close_points_allow_are_not_worse_than_a_line(seed, n, pieces):
    rng = np.random.default_rng(seed)
    x, y = 10 ** rng.uniform(-8, 2, n), rng.normal(size=n)
    found, line = fit_segments(x, y, pieces), fit_segments(x, y, 1)
    assert found.squared_error <= line.squared_error
    assert len(found.curve.slopes) == pieces
    np.testing.assert_allclose(np.sum((y - found.curve(x)[:, 0]) ** 2), found.squared_error, rtol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2, np.nan], [1, 2, 3]), "x must be finite, got nan at index 2"),
        (([1, 2, 3], [1, np.inf, 3]), "y must be finite, got inf at index 1"),
        (([1, 2, 3], [1, 2]), r"equal lengths, got x \(3,\), y \(2,\)"),
        (([[1, 2]], [[1, 2]]), "one axis"),
        (([2, 2, 2], [1, 2, 3]), "two or more different x, got 1"),
        (([1, 2, 3], [1, 2, 3], 3), "from 1 to 2, .* got 3"),
        (([1, 1, 2], [1, 2, 3], 2), "from 1 to 1, .* got 2"),
        (([0, 5e-324], [0, 1]), "units"),
        (([-1e308, 1e308], [0, 1]), "units"),
        (([0, 1, 2], [1e200, 0, 1]), "units"),
        (([1, 2, 3], [1, 2, 3], None, [1, -1, 1]), "weights must be >= 0, got -1"),
        (([1, 2, 3], [1, 2, 3], None, [1, 1]), "equal lengths"),
        (([1, 2, 3, 4], [1, 2, 3, 4], 2.5), r"at least 1, got 2\.5"),
        ((np.arange(303), np.arange(303), 301), "at most 300"),
    ],
)
def test_what_cannot_be_fitted_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        fit_segments(*arguments)
