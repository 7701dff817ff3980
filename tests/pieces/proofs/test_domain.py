"""Values at a point, and their sign, exactly."""

from fractions import Fraction

import numpy as np
import pytest
from random_networks import dense_network, random_network, scaled_network
from rational_networks import forward, rational

from plunit.pieces import activation, network
from plunit.pieces.proofs.domain import exact_outputs, exceeds_zero


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
def test_the_sign_is_that_of_rational_arithmetic(seed):
    net, goal = dense_network(seed, 3, 20, 20, 2, weight=1.5), np.array([1.0, -0.5])
    for x in np.random.default_rng(seed).uniform(-2, 2, (5, 3)):
        exact = sum(Fraction(g) * y for g, y in zip(goal.tolist(), forward(rational(net), fractions(x)), strict=True))
        assert exceeds_zero(net, x, goal) == (exact > 0)


@pytest.mark.parametrize(
    ("last", "bias", "above"), [([1, 1], -1e16, True), ([1, 1], -1e16 - 2, False), ([1, 0], -1e16, False)]
)
def test_the_sign_of_a_sum_that_cancels_is_exact(last, bias, above):
    """1e16 + 1 + bias, which is 0 or 2 in floating point; and 1e16 - 1e16."""
    net = network([([[1e16], [1.0]], [0.0, 0.0]), activation.identity(), ([last], [bias])])
    assert exceeds_zero(net, np.array([1.0]), np.array([1.0])) == above
