from fractions import Fraction

import numpy as np
import pytest
from rational_networks import forward, rational

import plunit
from plunit.pieces import Layer, Network, activation, ensemble, network


@pytest.mark.parametrize("exact", [True, False])
def test_neighbouring_layers_become_one_where_that_is_exact(exact):
    rng = np.random.default_rng(1)
    a, b, c = rng.normal(size=(3, 2)), rng.normal(size=(4, 3)), rng.normal(size=(2, 4))
    a, b = (np.round(256 * a) / 256, np.round(256 * b) / 256) if exact else (a, b)
    net = network(
        [activation.relu(), (a, np.ones(3)), (b, np.zeros(4)), activation.relu(), activation.plu(), (c, np.ones(2))]
    )
    between = [(4, 2)] if exact else [(3, 2), (4, 3)]
    assert [layer.weight.shape for layer in net.layers] == [(2, 2), *between, (4, 4), (2, 4)]
    x = rng.normal(size=(5, 2))
    hidden = plunit.plu(np.maximum(np.maximum(x, 0) @ a.T @ b.T + b.sum(axis=1), 0))
    np.testing.assert_allclose(net(x), hidden @ c.T + 1, atol=1e-12)


def test_members_of_an_ensemble():
    rng = np.random.default_rng(2)
    weight, bias = rng.normal(size=(3, 1, 6)), rng.normal(size=(3, 6))
    group = ensemble([(weight, bias), activation.plu()])
    assert (group.members, group.inputs, group.outputs) == (6, 1, 3)
    alone = [network([(weight[..., i], bias[..., i]), activation.plu()]) for i in range(6)]
    np.testing.assert_array_equal([group.member(i)([0.7]) for i in range(6)], [one([0.7]) for one in alone])
    with pytest.raises(IndexError):
        group.member(6)


def test_a_network_whose_shapes_fit_is_built():
    weight, bias = np.ones((2, 3)), np.ones(2)
    net = Network((Layer(weight, bias, activation.relu().broadcast(2)), Layer(weight[:, :2], bias)))
    assert net(np.ones(3)).tolist() == [9.0, 9.0]
    assert (net.widths, net.alone.members) == ((3, 2, 2), 1)


@pytest.mark.parametrize(
    ("odd", "error"), [(1j, TypeError), ("1", TypeError), (np.nan, ValueError), (np.inf, ValueError)]
)
def test_numbers_are_real_and_finite(odd, error):
    for call in (lambda: network([([[odd]], [0.0])]), lambda: network([([[1.0]], [odd])])):
        with pytest.raises(error):
            call()
    for weight, bias in ((odd, 0.0), (1.0, odd)):
        with pytest.raises(error):
            Layer(np.array([[weight]]), np.array([bias]))


def random_matrix(rng, *shape):
    """Return numbers of many kinds: of few digits, powers of 2, sparse, very large and very small."""
    numbers = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 3, shape)
    sparse = np.where(rng.random(shape) < 0.6, 0.0, numbers)
    kinds = [
        np.round(numbers * 8) / 8,
        numbers.astype(np.float32).astype(np.float64),
        np.sign(sparse) * 2.0 ** rng.integers(-4, 5, shape),
        sparse,
        sparse * 2.0 ** rng.integers(-1060, 900, shape),
        np.sign(sparse),
        numbers,
    ]
    return kinds[rng.integers(len(kinds))]


@pytest.mark.filterwarnings("error")
def test_a_network_is_the_function_of_its_numbers_however_its_layers_join():
    rng, joined = np.random.default_rng(0), 0
    for _ in range(600):
        inputs, inner, outputs = rng.integers(1, 4, 3)
        parts = [
            (random_matrix(rng, b, a), random_matrix(rng, b) * rng.integers(2))
            for a, b in ((inputs, inner), (inner, outputs))
        ]
        net, x = network(parts), np.array([Fraction(number) for number in rng.normal(size=inputs)])
        apart = [layer for part in parts for layer in rational(Network((Layer(*part),)))]
        assert forward(rational(net), x.tolist()) == forward(apart, x.tolist())
        joined += len(net.layers) == 1
    assert 200 < joined < 500


def test_layers_whose_product_overflows_stay_apart():
    net = network([([[1e308]], [0.0]), ([[1e308]], [0.0])])
    np.testing.assert_allclose(net([1e-310]), 1e306, rtol=1e-12)
