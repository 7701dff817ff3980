import math
from fractions import Fraction

import numpy as np
import pytest
from rational_networks import forward, rational

import plunit
from plunit.pieces import Layer, Network, activation, ensemble, network

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
    """f(z) in fractions: f(0) plus slope times width of every piece between 0 and z, whatever the knots."""
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
    """PLU of learned alpha and c: the bits that (1 - alpha) c has in double precision."""
    alpha, c = np.random.default_rng(0).uniform(0, 3, (2, 1000))
    product = (1 - alpha) * c
    found = activation.plu(alpha, c).intercepts
    np.testing.assert_array_equal(found, np.stack([-product, np.zeros(1000), product], axis=1))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_activation_is_the_function(name):
    f, expected = FUNCTIONS[name]
    net = network([([[1.0]], [0.0]), f])
    np.testing.assert_allclose(net(Z[:, None])[:, 0], expected(Z), rtol=0, atol=4e-15)


def test_inner_piece_is_the_identity_to_the_bit():
    z = np.random.default_rng(0).uniform(-1, 1, 1000)
    np.testing.assert_array_equal(network([([[1.0]], [0.0]), activation.plu()])(z[:, None])[:, 0], z)


def test_one_function_for_each_unit():
    alpha, c = np.array([0.1, 0.5, 2.0]), np.array([1.0, 0.0, 0.3])
    net = network([(np.ones((3, 1)), np.zeros(3)), activation.plu(alpha, c)])
    np.testing.assert_allclose(net(Z[:, None]), plunit.plu(Z[:, None], alpha, c), atol=4e-15)


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
    net = Network((Layer(weight, bias, activation.relu().spread(2)), Layer(weight[:, :2], bias)))
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
