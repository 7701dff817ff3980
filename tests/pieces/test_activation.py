"""Units: one evaluator for floats, integers and fractions, intercepts, and functions of each unit."""

import math
from fractions import Fraction

import numpy as np
import pytest

import plunit
from plunit.pieces import activation, network
from plunit.pieces.activation import Functions, at_pieces, evaluate

Z = np.concatenate([np.linspace(-8, 8, 1001), [-6, -3, -1, 0, 1, 3, 6]])

FUNCTIONS = {
    "plu": (activation.plu(), plunit.plu),
    "plu(0.3, 2)": (activation.plu(0.3, 2.0), lambda z: plunit.plu(z, 0.3, 2.0)),
    "plu(0, 1)": (activation.plu(0.0, 1.0), lambda z: plunit.plu(z, 0.0, 1.0)),
    "plu(2, 0)": (activation.plu(2.0, 0.0), lambda z: plunit.plu(z, 2.0, 0.0)),
    "relu": (activation.relu(), lambda z: np.maximum(z, 0)),
    "leaky_relu": (activation.leaky_relu(), lambda z: np.where(z > 0, z, 0.01 * z)),
    "hardtanh": (activation.hardtanh(), lambda z: np.clip(z, -1, 1)),
    "hardtanh(1, 2)": (activation.hardtanh(1.0, 2.0), lambda z: np.clip(z, 1, 2)),
    "hardtanh(-3, -2)": (activation.hardtanh(-3.0, -2.0), lambda z: np.clip(z, -3, -2)),
    "relu6": (activation.relu6(), lambda z: np.clip(z, 0, 6)),
    "hardsigmoid": (activation.hardsigmoid(), lambda z: np.clip(z / 6 + 0.5, 0, 1)),
    "absolute": (activation.absolute(), np.abs),
    "identity": (activation.identity(), lambda z: z),
    "no knot": (activation.piecewise([0.0, np.inf], [0.0, 1.0, 7.0]), lambda z: np.maximum(z, 0)),
}


def exact_value(f, z):
    """f(z) in fractions: f(0) plus slope times width of every piece between 0 and z, for any knots."""
    ends = [-math.inf, *f.knots.tolist(), math.inf]
    low, high, total = min(z, 0.0), max(z, 0.0), Fraction(0)
    for left, right, slope in zip(ends, ends[1:], f.slopes.tolist(), strict=False):
        start, stop = max(left, low), min(right, high)
        total += Fraction(slope) * (Fraction(stop) - Fraction(start)) if start < stop else 0
    return Fraction(float(f.at_zero)) + (total if z > 0 else -total)


FAR = {
    "a knot far on the left": activation.hardtanh(-1e20, 0.1),
    "a knot far on the right": activation.hardtanh(-0.1, 1e20),
    "a step far on the left": activation.piecewise([-1e12, -1e12 + 1, -0.1], [0.0, 7.0, 0.0, 1.0]),
    "a step far on the right": activation.piecewise([0.1, 1e12, 1e12 + 1], [1.0, 0.0, 7.0, 0.0]),
    "terms that cancel": activation.piecewise([1.0, 2.0, 3.0, 4.0], [1.0, 1e10 / 3, 0.0, -1e10 / 3, 0.0]),
    "f(0) cancels": activation.piecewise([3.0], [-1 / 3, 0.0], 1.0),
    "beyond all numbers": activation.piecewise([-1e308, 0.1, 1e308], [9.0, 1.0, 0.0, 9.0]),
    "missing knots": activation.piecewise([-1e20, 0.1, np.inf, np.inf], [0.0, 1.0, 0.0, 5.0, 7.0]),
}


@pytest.mark.parametrize("name", FAR)
def test_a_far_knot_changes_no_value(name):
    f = FAR[name]
    z = np.array([-2e12, -3.0, -0.5, -0.05, 0.0, 0.05, 0.5, 1.5, 2.5, 3.5, 5.0, 2e12])
    exact = np.array([float(exact_value(f, number)) for number in z.tolist()])
    terms = np.abs(f.slopes[np.searchsorted(f.knots, z)] * z) + np.abs(exact)
    assert (np.abs(network([([[1.0]], [0.0]), f])(z[:, None])[:, 0] - exact) <= 4e-16 * terms).all()


@pytest.mark.parametrize("seed", range(20))
def test_intercepts_are_those_of_fractions(seed):
    rng = np.random.default_rng(seed)
    knots = np.sort(rng.normal(size=4) * 10.0 ** rng.integers(-9, 10, 4))
    f = activation.piecewise(knots, rng.normal(size=5) * 10.0 ** rng.integers(-9, 10, 5), rng.normal())
    inside = [knots[0] - 1, *(knots[1:] / 2 + knots[:-1] / 2), knots[-1] + 1]
    exact = [exact_value(f, z) - Fraction(slope) * Fraction(z) for z, slope in zip(inside, f.slopes, strict=True)]
    assert f.intercepts.tolist() == [float(number) for number in exact]


def test_one_bend_on_each_side_is_rounded_as_a_product():
    """For PLU with learned alpha and c, intercepts have the bits of (1 - alpha) c in double precision."""
    alpha, c = np.random.default_rng(0).uniform(0, 3, (2, 1000))
    product = (1 - alpha) * c
    found = activation.plu(alpha, c).intercepts
    np.testing.assert_array_equal(found, np.stack([-product, np.zeros(1000), product], axis=1))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_activation_is_the_function(name):
    f, expected = FUNCTIONS[name]
    np.testing.assert_allclose(f(Z), expected(Z), rtol=0, atol=4e-15)
    np.testing.assert_array_equal(network([([[1.0]], [0.0]), f])(Z[:, None])[:, 0], f(Z))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_fractions_are_evaluated_exactly(name):
    f, _ = FUNCTIONS[name]
    z = [Fraction(number) for number in (-7, -1, Fraction(-1, 3), 0, Fraction(1, 3), 1, 3)]
    found = f(np.array(z, dtype=object)).tolist()
    assert found == [exact_value(f, number) for number in z]
    assert all(isinstance(number, Fraction) for number in found)


def test_integers_stay_integers():
    """Exact to the bit where float64 would round; a sum on a knot belongs to the piece below it."""
    z = np.array([-(2**40) - 1, 3, 4, 2**40 + 1])
    found = evaluate(z, np.array([-1, 3]), np.array([2, 2**22 - 1, 5]), np.array([7, 1, 10**15]))
    slope, start = [2, 2**22 - 1, 5, 5], [7, 1, 10**15, 10**15]
    assert found.dtype == np.int64
    assert found.tolist() == [a * b + c for a, b, c in zip(slope, z.tolist(), start, strict=True)]


def test_a_number_on_a_knot_is_on_the_steeper_side():
    """There the products differ by rounding: 0.1 of a knot is not a number."""
    f = activation.piecewise([0.3, 0.7], [5.0, 1.0, 3.0])
    found = f(np.array([0.3, 0.7]))
    assert found.tolist() == [5.0 * 0.3 + f.intercepts[0], 3.0 * 0.7 + f.intercepts[2]]
    assert at_pieces(np.array([0.3, 0.7]), f.knots, f.slopes)[0].tolist() == [5.0, 1.0]


@pytest.mark.parametrize("seed", range(30))
def test_enclosures_hold_every_number_within_the_error(seed):
    """Against fractions, at both ends of the error and at the knots inside, with terms that cancel."""
    rng = np.random.default_rng(seed)
    knots = np.sort(rng.normal(size=3))
    f = activation.piecewise(knots, rng.normal(size=4) * 10.0 ** rng.integers(-3, 4, 4), rng.normal()).broadcast(1)
    for z, error in zip(rng.normal(size=20), 10.0 ** rng.integers(-18, 0, 20), strict=True):
        y, far = (float(part[0]) for part in f.functions.enclose(np.array([z]), np.array([error])))
        ends = Fraction(z) - Fraction(error), Fraction(z) + Fraction(error)
        inside = [*ends, *(Fraction(knot) for knot in knots.tolist() if ends[0] < knot < ends[1])]
        values = f(np.array(inside, dtype=object)[:, None])[:, 0]
        assert max(abs(value - Fraction(y)) for value in values) <= Fraction(far)


def test_inner_piece_is_the_identity_to_the_bit():
    z = np.random.default_rng(0).uniform(-1, 1, 1000)
    np.testing.assert_array_equal(network([([[1.0]], [0.0]), activation.plu()])(z[:, None])[:, 0], z)


def test_one_function_for_each_unit():
    alpha, c = np.array([0.1, 0.5, 2.0]), np.array([1.0, 0.0, 0.3])
    net = network([(np.ones((3, 1)), np.zeros(3)), activation.plu(alpha, c)])
    np.testing.assert_allclose(net(Z[:, None]), plunit.plu(Z[:, None], alpha, c), atol=4e-15)


def test_padding_changes_nothing():
    """Units with fewer knots than others, and none."""
    f = activation.Activation(
        np.array([[-1.0, 1.0], [0.0, np.inf], [np.inf, np.inf]]),
        np.array([[0.1, 1.0, 0.1], [0.0, 1.0, 7.0], [2.0, 7.0, 7.0]]),
        np.array([0.0, 0.0, 0.5]),
    )
    functions = Functions.of(f)
    z = np.linspace(-3, 3, 25)[:, None] * np.ones(3)
    want = np.stack([np.clip(z[:, 0], -1, 1) * 0.9 + 0.1 * z[:, 0], np.maximum(z[:, 1], 0), 2 * z[:, 2] + 0.5], axis=1)
    np.testing.assert_allclose(functions(z), want, atol=1e-15)
    assert np.isfinite(functions.knots).all()
