"""Layers with fewer units: the same function, and the smallest widths of known constructions."""

import numpy as np
import pytest

from plunit.pieces import activation, network
from plunit.pieces.merging import merge_units, slim

POINTS = np.random.default_rng(0).integers(-8, 9, size=(300, 2)) / 4


def max_by_four(count):
    """Return max(a, b) = (relu(a + b) - relu(-a - b) + relu(a - b) + relu(b - a)) / 2 of neighbours."""
    rows = np.kron(np.eye(count // 2), [[1, 1], [-1, -1], [1, -1], [-1, 1]])
    return [
        (rows, np.zeros(len(rows))),
        activation.relu().broadcast(len(rows)),
        (np.kron(np.eye(count // 2), [[0.5, -0.5, 0.5, 0.5]]), np.zeros(count // 2)),
    ]


def test_a_maximum_takes_one_relu_and_what_it_is_added_to():
    net = network(slim(max_by_four(2)))
    assert net.widths == (2, 2, 1)
    assert sorted((f := net.layers[0].activation).slopes[:, 0].tolist()) == [0.0, 1.0]
    assert not f.at_zero.any()
    np.testing.assert_array_equal(net(POINTS)[:, 0], POINTS.max(axis=1))


def test_units_that_are_equal_in_one_layer_make_equal_ones_in_the_next():
    weight = np.array([[1.0, 0], [0, 1], [1, 0], [0, 1]])
    (first, shift), f, last = max_by_four(4)
    layers = [(first @ weight, shift), f, last, *max_by_four(2)]
    (a, b), (c, d) = layers[2:4]
    net = network(slim([*layers[:2], (c @ a, c @ b + d), *layers[4:]]))
    # max(x, y) twice, and their maximum: the difference of the two is 0
    assert net.widths == (2, 2, 2, 1)
    np.testing.assert_array_equal(net(POINTS)[:, 0], POINTS.max(axis=1))


def test_a_lattice_of_maxima_comes_down_in_one_call():
    rng = np.random.default_rng(0)
    some = rng.integers(-2, 3, size=(4, 2)).astype(float)
    layers, affine = [], (some[rng.integers(4, size=16)], np.zeros(16))
    wanted = (POINTS @ affine[0].T).max(axis=1)
    for count in (16, 8, 4, 2):
        (weight, bias), f, after = max_by_four(count)
        layers += [(weight @ affine[0], weight @ affine[1] + bias), f]
        affine = after
    net = network(slim([*layers, affine]))
    np.testing.assert_array_equal(net(POINTS)[:, 0], wanted)
    assert network(slim(slim([*layers, affine]))).widths == net.widths
    assert max(net.widths) < 16


@pytest.mark.parametrize("seed", range(40))
def test_random_layers_with_equal_and_opposite_rows_keep_their_function(seed):
    rng = np.random.default_rng(seed)
    layers, width = [], 2
    near = [activation.piecewise([0.5], [0.0, 1.0]), activation.piecewise([0.0], [0.0, 1.0], 1.0)]
    near.append(activation.piecewise([0.0, 0.5], [0.0, 1.0, 2.0]))
    kinds = [activation.relu(), activation.identity(), activation.leaky_relu(0.5), activation.hardtanh(), *near]
    for _ in range(rng.integers(1, 4)):
        some = np.column_stack([rng.integers(-1, 2, size=(3, width)), rng.integers(-1, 2, size=3) / 2])
        rows = rng.choice([-1.0, 1.0], size=(7, 1)) * some[rng.integers(3, size=7)]
        f = activation.stack([kinds[i].broadcast(1) for i in rng.choice(7, p=[0.4, *[0.1] * 6], size=7)])
        layers += [(rows[:, :-1], rows[:, -1]), f]
        width = 7
    layers.append((rng.integers(-2, 3, size=(2, width)).astype(float), np.ones(2)))
    before, after = network(layers), network(slim(layers))
    np.testing.assert_array_equal(after(POINTS), before(POINTS))
    assert all(new <= old for new, old in zip(after.widths, before.widths, strict=True))
    assert network(slim(slim(layers))).widths == after.widths


def test_layers_of_zeros_keep_a_unit():
    layers = [(np.zeros((3, 2)), np.ones(3)), activation.identity().broadcast(3), (np.ones((1, 3)), np.zeros(1))]
    assert network(slim(layers))(POINTS).tolist() == [[3.0]] * len(POINTS)


@pytest.mark.parametrize(("numbers", "units"), [([0.25, 0.5], 1), ([0.1, 0.2], 2)])
def test_equal_units_stay_where_their_sum_is_rounded(numbers, units):
    net = network([([[1.0], [1.0]], [0.0, 0.0]), activation.relu(), ([numbers], [0.0])])
    assert merge_units(net).widths == (1, units, 1)


@pytest.mark.parametrize("other", [1.0, -1.0])
def test_units_stay_where_their_sum_is_too_large(other):
    net = network([([[1.0], [other]], [0.0, 0.0]), activation.relu(), ([[1e308, 1e308]], [0.0])])
    assert merge_units(net).layers[-1].weight.tolist() == [[1e308, 1e308]]


@pytest.mark.parametrize(("other", "identities"), [(0.5, 1), (0.3, 0)])
def test_opposite_units_stay_where_their_sum_is_rounded(other, identities):
    layers = [
        (np.array([[1.0], [-1.0]]), np.zeros(2)),
        activation.relu().broadcast(2),
        (np.array([[0.25, other]]), [0.0]),
    ]
    (_, f, _) = slim(layers)
    assert (f.slopes == 1).all(axis=1).sum() == identities
