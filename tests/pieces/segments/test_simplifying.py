"""Fewest pieces and least error, against searches that use no tubes: linear programs and paths on a grid."""

import itertools

import numpy as np
import pytest
from random_networks import random_network, scaled_network

from plunit.pieces import Curve, curve, distance, simplify


def random_curve(seed, pieces, whole=False):
    rng = np.random.default_rng([seed, pieces])
    knots = np.concatenate([[-1.0], np.sort(rng.uniform(-1, 1, pieces - 1)), [2.0]])
    values = rng.integers(-3, 4, (pieces + 1, 1)).astype(float) if whole else rng.normal(size=(pieces + 1, 1))
    return Curve(knots, values, np.diff(values, axis=0) / np.diff(knots)[:, None])


def hats(knots, x):
    """Return the values at x of the curves that are 1 at one knot and 0 at the others, [x, knots]."""
    return np.stack([np.interp(x, knots, row) for row in np.eye(len(knots))], axis=1)


def least_error(f, knots):
    """Return the least sup |f - g| of all curves g with these knots, by a linear program."""
    linprog = pytest.importorskip("scipy.optimize").linprog
    x = np.union1d(f.knots, knots)
    basis, y = hats(knots, x), f(x)[:, 0]
    one = np.ones((len(x), 1))
    rows = np.block([[basis, -one], [-basis, -one]])
    cost = np.append(np.zeros(len(knots)), 1.0)
    found = linprog(cost, rows, np.concatenate([y, -y]), bounds=[(None, None)] * len(knots) + [(0, None)])
    assert found.status == 0
    return found.fun


def search(f, pieces, grid):
    """Return the least error over knots of a grid and those of f, improved by a search from the best ones."""
    minimize = pytest.importorskip("scipy.optimize").minimize
    low, high = f.low, f.high

    def error(inner):
        if (np.diff([low, *inner, high]) <= 1e-6).any():
            return 1e3
        return least_error(f, np.array([low, *inner, high]))

    places = np.union1d(np.linspace(low, high, grid + 2), f.knots)[1:-1]
    choices = itertools.combinations(places, pieces - 1)
    options = {"xatol": 1e-6, "fatol": 1e-8, "maxiter": 80}
    return minimize(error, min(choices, key=error), method="Nelder-Mead", options=options).fun


@pytest.mark.parametrize(("seed", "pieces", "whole"), [(0, 5, False), (1, 7, False), (2, 6, True), (3, 4, True)])
@pytest.mark.parametrize(("most", "grid"), [(2, 20), (3, 4)])
def test_no_other_knots_have_a_smaller_error(seed, pieces, whole, most, grid):
    f = random_curve(seed, pieces, whole)
    found = simplify(f, pieces=most)
    assert len(found.curve.slopes) <= most
    best = search(f, most, grid)
    # linear programs are solved to 1e-7
    assert found.error <= best + 1e-6
    # the search ends near the same place, so that it is a search
    assert best <= found.error + 0.02


def test_one_piece_is_the_best_line():
    for f in (random_curve(seed, 8) for seed in range(6)):
        assert simplify(f, pieces=1).error == pytest.approx(least_error(f, np.array([f.low, f.high])), rel=1e-9)


@pytest.mark.parametrize("most", [1, 2, 3, 7])
def test_a_parabola_has_equal_pieces(most):
    """On a piece of width h the best line is off by f'' h^2 / 16, with equal values at common ends."""
    x = np.linspace(0, 1, 2001)
    f = Curve(x, x[:, None] ** 2, (x[1:] + x[:-1])[:, None])
    found = simplify(f, pieces=most)
    assert found.error == pytest.approx(2 / most**2 / 16, abs=1e-6)
    np.testing.assert_allclose(found.curve.knots, np.linspace(0, 1, most + 1), atol=2e-3)


def inside(f, e, a, b):
    """Return which segments from points a [n, 2] to points b [m, 2] stay within e of f, [n, m]."""
    step = b[None, :, 0] - a[:, None, 0]
    found = step > 1e-12
    with np.errstate(divide="ignore", invalid="ignore"):
        for x, (y,) in zip(f.knots, f.values, strict=True):
            s = (x - a[:, None, 0]) / step
            at = (1 - s) * a[:, None, 1] + s * b[None, :, 1]
            found &= ~((s > 0) & (s < 1) & (np.abs(at - y) > e + 1e-12))
    return found


def fewest_on_grid(f, e):
    """Return the fewest segments between points of a fine grid inside the tube, from one end to the other."""
    x = np.union1d(np.linspace(f.low, f.high, 41), f.knots)
    points = np.array([(t, f(t)[0] + s * e) for t in x for s in np.linspace(-1, 1, 21)])
    sees = inside(f, e, points, points)
    reached, count = points[:, 0] == f.low, 0
    while not reached[points[:, 0] == f.high].any():
        reached, count = sees[reached].any(axis=0), count + 1
    return count


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("e", [0.15, 0.3, 0.6, 1.0])
def test_no_chain_on_a_grid_has_fewer_pieces(seed, e):
    f = random_curve(seed, 4 + seed % 5, seed % 2 == 1)
    found = simplify(f, tolerance=e)
    assert found.error <= e + 1e-12
    assert len(found.curve.slopes) <= fewest_on_grid(f, e)


@pytest.mark.parametrize("seed", range(2))
def test_more_pieces_and_less_error_go_together(seed):
    f = random_curve(seed, 40)
    errors = [simplify(f, pieces=most).error for most in range(1, 41)]
    assert (np.diff(errors) <= 1e-12).all()
    assert errors[-1] == 0
    for most, error in ((3, errors[2]), (10, errors[9]), (25, errors[24])):
        again = simplify(f, tolerance=error * (1 + 1e-9))
        assert len(again.curve.slopes) <= most
        # with a slightly smaller tolerance, this number of pieces is not enough
        assert len(simplify(f, tolerance=error * (1 - 1e-6)).curve.slopes) > most


@pytest.mark.parametrize("seed", range(12))
def test_the_curve_of_a_network(seed):
    f = curve(random_network(seed, 1, 12, 3), -3.0, 3.0)
    found = simplify(f, tolerance=0.1)
    assert (found.curve.low, found.curve.high) == (-3.0, 3.0)
    assert found.error == distance(f, found.curve) <= 0.1 + 1e-12
    assert found.curve.pieces <= f.pieces
    x = np.linspace(-3, 3, 2001)
    assert np.abs(f(x) - found.curve(x)).max() <= found.error + 1e-12


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1e9, 1e200])
@pytest.mark.parametrize("wide", [1e-6, 1e6])
def test_units_do_not_matter(scale, wide):
    f = random_curve(5, 30)
    g = Curve(wide * f.knots, scale * f.values, scale / wide * f.slopes)
    expected, found = simplify(f, pieces=7), simplify(g, pieces=7)
    assert found.error == pytest.approx(scale * expected.error, rel=1e-9)
    np.testing.assert_allclose(found.curve.knots, wide * expected.curve.knots, rtol=1e-6)


def test_where_rounding_is_more_than_the_tolerance_the_curve_stays():
    """With a slope of 1e12, the rounding of a knot is 1e-4 in value."""
    f = curve(scaled_network(107, 1, 8, 3), -3.0, 3.0).output(0)
    assert np.abs(f.slopes).max() > 1e11
    found = simplify(f, tolerance=1e-8)
    assert found.curve is f
    assert found.error == 0


# the kink at 0.5 is dead
TENT = Curve([0, 0.5, 1, 2], [[0], [0.5], [1], [0]], [[1], [1], [-1]])
CONSTANT = Curve([0, 1], [[7], [7]], [[0]])


@pytest.mark.parametrize(
    ("f", "asked", "knots", "error"),
    [
        (TENT, {"pieces": 1}, [0, 2], 0.5),
        (TENT, {"tolerance": 0.5}, [0, 2], 0.5),
        *(
            (TENT, asked, [0, 1, 2], 0)
            for asked in ({"pieces": 2}, {"pieces": 99}, {"tolerance": 0}, {"tolerance": 0.01})
        ),
        *((CONSTANT, asked, [0, 1], 0) for asked in ({"pieces": 1}, {"tolerance": 0.0}, {"tolerance": 1.0})),
    ],
)
def test_a_tent_and_a_constant(f, asked, knots, error):
    found = simplify(f, **asked)
    assert (found.curve.knots.tolist(), found.error) == (knots, error)
