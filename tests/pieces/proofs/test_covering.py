"""Bounds for one and two inputs, against the network in exact numbers (Fractions)."""

from fractions import Fraction

import numpy as np
import pytest
from plunit.pieces.proofs.covering import Cover, certain_value, curve_cover, polygon_cover, upper_bound
from random_networks import dense_network
from rational_networks import forward, rational

from plunit.pieces import Undecided, activation, bounds, counterexample, curve, maximum, minimum, network, polygons


def random_net(seed, *widths, f=None, outputs=1):
    return dense_network(seed, *widths, outputs, f=f, weight=1.5, bias=0.5)


def exactly(net, x):
    """f(x) in Fractions."""
    return forward(rational(net), [Fraction(float(number)) for number in x])


def around(x, box):
    """X and the floating-point numbers beside it, inside the box."""
    low, high = np.array(box, dtype=float).T
    sides = [np.clip(np.nextafter(x, to), low, high) for to in (np.inf, -np.inf)]
    return [x, *sides]


@pytest.mark.parametrize("inputs", [1, 2])
@pytest.mark.parametrize("seed", range(8))
def test_no_exact_value_is_beyond_the_bounds(seed, inputs):
    f = [activation.plu(), activation.relu(), activation.plu(3.0, 0.5), activation.hardsigmoid()][seed % 4]
    net, box = random_net(seed, inputs, 9, 8, f=f), [(-2.0, 3.0)] * inputs
    found, top, bottom = bounds(net, box), maximum(net, box), minimum(net, box)
    assert found.proved
    places = curve(net, *box[0]).knots[:, None] if inputs == 1 else polygons(net, tuple(box)).vertices
    values = net(places)[:, 0]
    best = [*places[np.argsort(values)[-6:]], *places[np.argsort(values)[:6]]]
    for x in (y for place in best for y in around(place, box)):
        exact = exactly(net, x)[0]
        assert bottom.bound <= exact <= top.bound
        assert found.low[0] <= exact <= found.high[0]
    assert top.bound - top.value <= 1e-11
    assert bottom.value - bottom.bound <= 1e-11


def test_the_maximum_lies_between_two_numbers_of_double_precision():
    """At the kink x = 1/3, which is no such number, f is larger than at each of them."""
    net = network([([[3.0]], [-1.0]), activation.absolute(), ([[-1.0]], [1.0])])
    found = maximum(net, [(0, 1)])
    assert found.proved
    assert float(found) <= 1 <= found.bound


def test_a_polygon_that_is_drawn_wrongly_has_a_wider_bound():
    """The kink lies inside the polygon, and the value at its left end is above all values by the map of its middle."""
    net = network([([[1.0]], [-0.5]), activation.piecewise([0.0], [-3.0, 1.0]), ([[1.0]], [0.0])])
    wrong = Cover(np.array([[0.2], [1.0]]), np.array([0, 2]))
    right = curve_cover(curve(net, 0.2, 1))
    assert upper_bound(net, wrong, lambda *_: None) >= 0.9
    assert 0.9 <= upper_bound(net, right, lambda *_: None) <= 0.9 + 1e-14


def test_a_cover_has_all_polygons():
    net = random_net(3, 2, 5)
    found = polygons(net, ((-1, 1), (-1, 1)))
    cover = polygon_cover(found)
    np.testing.assert_allclose(cover.middles, [polygon.mean(axis=0) for polygon in found.corners], atol=1e-15)
    assert sum(len(part.offsets) - 1 for part in cover.parts()) == len(found)


@pytest.mark.parametrize("seed", range(5))
def test_a_certain_value_is_below_the_exact_one(seed):
    net = random_net(seed, 3, 20, 20)
    for x in np.random.default_rng(seed).uniform(-2, 2, (5, 3)):
        exact = exactly(net, x)[0]
        assert exact - Fraction(1e-11) <= certain_value(net, x) <= exact


def pair(shift):
    """Two outputs with f_0 - f_1 = shift - |x| / 3, by sums that round."""
    return network([([[1.0]], [0.0]), activation.absolute(), ([[0.1], [0.1 + 1 / 3]], [shift, 0.0])])


def test_a_counterexample_is_certain_or_undecided():
    assert counterexample(pair(1e-9), [(-1, 1)], (0, 1)).value == pytest.approx(1e-9)
    assert counterexample(pair(-1e-9), [(-1, 1)], (0, 1)) is None
    assert counterexample(pair(0.0), [(-1, 1)], (0, 0)) is None
    with pytest.raises(Undecided) as caught:
        counterexample(tie(), [(-1, 1)], (0, 1))
    assert caught.value.best.bound > 0


def tie():
    """0.1 x + 0.2 x - 0.3 x: 0 or not, by the rounding of the three numbers."""
    rows = [[0.1, 0.2, -0.3], [0.0, 0.0, 0.0]]
    return network([([[1.0]] * 3, [0.0] * 3), activation.identity(), (rows, [0.0, 0.0])])
