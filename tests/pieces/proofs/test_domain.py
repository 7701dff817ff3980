"""Values at a point, exactly."""

from fractions import Fraction

import numpy as np
import pytest
from random_networks import random_network, scaled_network
from rational_networks import forward, rational

from plunit.pieces import activation, network
from plunit.pieces.networks import exact_outputs
from plunit.pieces.proofs.properties import at_most


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


@pytest.mark.parametrize("seed", range(4))
def test_weights_and_values_of_any_size_are_exact(seed):
    """Sizes from 1e-300 to 1e100, zeros and subnormal numbers in one row."""
    rng = np.random.default_rng(seed)
    sizes = np.concatenate([10.0 ** rng.integers(-300, 100, 20), [0.0, -0.0, 5e-324, 1.0]])
    weight, bias = (rng.choice(sizes, shape) * rng.uniform(-2, 2, shape) for shape in ((6, 8), 6))
    x = rng.choice(sizes, 8) * rng.uniform(-2, 2, 8)
    net = network([(weight, bias), activation.identity(), (np.eye(6), np.zeros(6))])
    exact = [
        sum((Fraction(w) * Fraction(v) for w, v in zip(row, x.tolist(), strict=True)), Fraction(b))
        for row, b in zip(weight.tolist(), bias.tolist(), strict=True)
    ]
    assert exact_outputs(net, x) == exact


@pytest.mark.parametrize(
    ("limit", "strict", "expected"), [(0.3, False, False), (0.3, True, False), (0.5, False, True), (0.5, True, False)]
)
def test_inequalities_are_exact(limit, strict, expected):
    """0.1 + 0.2 is above 0.3, and 0.25 + 0.25 is 0.5."""
    values = fractions(np.array([0.1, 0.2] if limit == 0.3 else [0.25, 0.25]))
    assert at_most(np.ones((1, 2)), values, np.array([limit]), strict=strict) == expected
