"""Networks made of networks, against the networks themselves."""

import numpy as np
import pytest
from fixed_networks import mixed, smooth
from random_networks import dense_network, mixture, random_network

from plunit.pieces import activation, difference, network, rescale, to_relu
from plunit.pieces.merging import merge_units
from plunit.pieces.rewriting import without_clip

X = np.random.default_rng(9).uniform(-2, 2, (50, 3))


NETS = {
    "affine": dense_network(0, 3, 2, fan=False),
    "one layer": dense_network(1, 3, 4, 2, f=activation.relu(), fan=False),
    "three layers": dense_network(2, 3, 4, 5, 3, 2, fan=False),
}


@pytest.mark.parametrize("one", NETS)
@pytest.mark.parametrize("other", NETS)
def test_a_difference_is_one(one, other):
    found = difference(NETS[one], NETS[other])
    np.testing.assert_allclose(found(X), NETS[one](X) - NETS[other](X), atol=1e-12)


SCALED = {"deep": mixed(0), "5 inputs": smooth(0, 5), "affine": network([([[1.0, 2.0], [3.0, 4.0]], [5.0, 6.0])])}


@pytest.mark.parametrize("name", SCALED)
def test_raw_numbers_in_and_out(name):
    net, rng = SCALED[name], np.random.default_rng(0)
    shift, scale = rng.normal(size=net.inputs), rng.uniform(0.5, 2, net.inputs)
    up, height = rng.normal(size=net.outputs), rng.uniform(-2, -0.5, net.outputs)
    raw = rescale(net, shift=shift, scale=scale, output_shift=up, output_scale=height)
    x = rng.normal(size=(100, net.inputs))
    np.testing.assert_allclose(raw(x), up + height * net((x - shift) / scale), rtol=1e-12, atol=1e-12)


def test_a_bias_is_rounded_once():
    """1e16 + 1 - 1e16: only exact arithmetic keeps the 1."""
    net = network([([[1.0]], [1.0]), ([[1.0]], [0.0])])
    assert rescale(net, shift=-1e16, output_shift=-1e16).layers[0].bias.tolist() == [1.0]


POINTS = np.concatenate([np.random.default_rng(0).normal(scale=s, size=(200, 2)) for s in (1.0, 10.0, 1e6)])


def mixed_units(seed):
    rng = np.random.default_rng(seed)
    return network([(rng.normal(size=(7, 2)), rng.normal(size=7)), mixture(rng, 7), (rng.normal(size=(1, 7)), [0.5])])


@pytest.mark.parametrize("net", [*(random_network(i, 2, 6, 3, 2) for i in range(24)), *map(mixed_units, range(8))])
def test_the_function_stays_the_same(net):
    plain = to_relu(net)
    z = np.array([-2.0, -1e-9, 0.0, 1e-9, 3.0])
    units = [network([([[1.0]], [0.0]), f.part(unit)]) for _, f in plain.hidden for unit in range(len(f.knots))]
    assert all(np.array_equal(unit(z[:, None]).ravel(), np.maximum(z, 0)) for unit in units)
    size = np.abs(POINTS).max(axis=1, keepdims=True) + 1
    np.testing.assert_allclose(plain(POINTS) / size, net(POINTS) / size, rtol=0, atol=1e-12)


COUNTS = {
    "plu": (activation.plu(), 3),
    "plu, alpha = 0": (activation.plu(0.0), 2),
    "plu, c = 0": (activation.plu(0.5, 0.0), 2),
    "relu": (activation.relu(), 1),
    "leaky relu": (activation.leaky_relu(), 2),
    "absolute": (activation.absolute(), 2),
    "hardtanh": (activation.hardtanh(), 2),
    "identity": (activation.identity(), 0),
    "a constant": (activation.piecewise([], [0.0], 2.0), 0),
    "four pieces": (activation.piecewise([-1, 0, 2], [1, 0, 3, -1], 0.5), 3),
    "two knots at one place": (activation.piecewise([1, 1], [0, 5, 2]), 1),
    "a knot at infinity": (activation.piecewise([0, np.inf], [0, 1, 7]), 1),
}


@pytest.mark.parametrize("name", COUNTS)
def test_units_are_as_few_as_said(name):
    f, count = COUNTS[name]
    net = network([([[2.0]], [1.0]), f, ([[3.0]], [0.0])])
    found = to_relu(net)
    assert sum(found.widths[1:-1]) == count
    x = np.linspace(-4, 4, 101)[:, None]
    np.testing.assert_allclose(found(x), net(x), rtol=1e-13, atol=1e-13)


def test_affine_layers_in_a_row_are_one_by_relu_alone():
    rng = np.random.default_rng(0)
    first, second, last = ((rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in ((2, 3), (3, 4), (4, 1)))
    net, x = network([first, second, activation.relu(), last]), rng.normal(size=(100, 2))
    plain = to_relu(net)
    assert (net.widths, plain.widths) == ((2, 3, 4, 1), (2, 4, 1))
    np.testing.assert_allclose(plain(x), net(x), atol=1e-13)


@pytest.mark.parametrize("far", [1e9, 1e18, 1e300])
def test_a_knot_far_away_costs_no_digits(far):
    f = network([(np.ones((2, 3)), [0, 0]), activation.piecewise([-far, far], [1.0, 2, 3], 1.0), ([[1, 1]], [0])])
    assert to_relu(f)([1.0, 1, 1]).tolist() == f([1.0, 1, 1]).tolist() == [14.0]


def test_equal_units_are_merged_only_where_their_sum_is_exact():
    rows, f = (np.ones((3, 1)), np.zeros(3)), activation.relu()
    exact = merge_units(network([rows, f, ([[0.5, 0.25, -1.0]], [0.0])]))
    assert exact.layers[-1].weight.tolist() == [[-0.25]]
    assert merge_units(network([rows, f, ([[0.1, 0.2, 0.3]], [0.0])])).widths == (1, 3, 1)


@pytest.mark.parametrize(
    ("f", "box", "left_out"),
    [
        (activation.hardtanh(), (-1.0, 1.0), True),
        (activation.hardtanh(), (-1.0, 1.5), False),
        (activation.hardtanh(-3.0, -1.0), (-1.0, 1.0), False),
        (activation.piecewise([0.0], [2.0, 1.0]), (0.0, 1.0), True),
        (activation.piecewise([0.0], [2.0, 1.0], 0.5), (0.0, 1.0), False),  # z + 1/2, whose slope is 1 as well
    ],
)
def test_a_first_layer_is_left_out_only_where_it_is_the_identity(f, box, left_out):
    net = network([(np.eye(1), [0.0]), f, ([[2.0]], [0.0])])
    assert (without_clip(net, np.array([box])) is not net) == left_out
