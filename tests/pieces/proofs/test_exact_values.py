"""Values at a point: exactly, and certain to be no larger than the exact one."""

from fractions import Fraction

import numpy as np
import pytest
from random_networks import dense_network, random_network, scaled_network
from rational_networks import forward, rational

from plunit.pieces import activation, network
from plunit.pieces.proofs.exact_values import certain_value, exact_outputs


def fractions(x):
    return [Fraction(number) for number in x.tolist()]


@pytest.mark.parametrize("make", [random_network, scaled_network])
@pytest.mark.parametrize("seed", range(12))
def test_outputs_are_those_of_rational_arithmetic(seed, make):
    net = make(seed, 3, 4, 3)
    for x in np.random.default_rng(seed).choice([-1.0, 0.0, 0.1, 0.5, 2.0], (4, 3)):
        assert exact_outputs(net, x) == forward(rational(net), fractions(x))


def test_units_on_their_knots_are_continuous():
    f = activation.piecewise([0.1, 0.1, 0.3], [2.0, 7.0, -1.0, 5.0], 0.7)
    net = network([([[1.0]], [0.0]), f, ([[1.0]], [0.0])])
    for x in (0.1, 0.3, 0.0, np.nextafter(0.1, 1)):
        assert exact_outputs(net, np.array([x])) == forward(rational(net), [Fraction(x)])


@pytest.mark.parametrize("seed", range(5))
def test_a_certain_value_is_below_the_exact_one(seed):
    net, goal = dense_network(seed, 3, 20, 20, 2, weight=1.5), np.array([1.0, -0.5])
    for x in np.random.default_rng(seed).uniform(-2, 2, (5, 3)):
        exact = sum(Fraction(g) * y for g, y in zip(goal.tolist(), forward(rational(net), fractions(x)), strict=True))
        assert exact - Fraction(1e-10) <= Fraction(certain_value(net, x, goal)) <= exact


@pytest.mark.parametrize(("bias", "sign"), [(-1e16, 1), (-1e16 - 2, -1), (-1e16 - 1, 0)])
def test_the_sign_of_a_sum_that_cancels_is_exact(bias, sign):
    """1e16 + 1 + bias, which is 0 or 2 in floating point."""
    bias = {1: -1e16, -1: -1e16 - 2, 0: -1e16}[sign]
    last = [1.0, 1.0] if sign else [1.0, 0.0]
    net = network([([[1e16], [1.0]], [0.0, 0.0]), activation.identity(), ([last], [bias])])
    value = certain_value(net, np.array([1.0]), np.array([1.0]))
    assert np.sign(value) == sign
    assert Fraction(value) <= exact_outputs(net, np.array([1.0]))[0]
