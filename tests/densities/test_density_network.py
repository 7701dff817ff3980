"""A density network in NumPy: form, start, inverse, log-determinant, integral, samples; and its units."""

import numpy as np
import pytest
from oracles import exact_smooth

from plunit import functional
from plunit.densities import Architecture, start
from plunit.densities.density_network import BlockUnits, factors
from plunit.invertible import density

KINDS = [("smooth", 0.0), ("plu", 0.0), ("plu", 0.4), ("leaky", 0.0)]
kinds = pytest.mark.parametrize(("activation", "rho"), KINDS, ids=["smooth", "plu", "rounded plu", "leaky"])


def points(n, count=200, seed=1):
    return 1.5 * np.random.default_rng(seed).standard_normal((n, count))


@kinds
@pytest.mark.parametrize(("features", "blocks"), [(1, 4), (2, 12), (5, 3), (64, 2), (3, 0)])
def test_inverse_undoes_forward(random_network, activation, rho, features, blocks):
    network, x = random_network(features, blocks, activation, rho), points(features)
    z, log_det = network.forward(x)
    back, again = network.inverse(z)
    np.testing.assert_allclose(back, x, atol=1e-6)
    np.testing.assert_allclose(again, log_det, atol=1e-6)


@kinds
@pytest.mark.parametrize("features", [1, 2, 4])
def test_the_log_determinant_is_that_of_the_jacobian(random_network, activation, rho, features):
    network, x, h = random_network(features, 5, activation, rho), points(features, 50), 1e-6
    steps = h * np.eye(features)[:, :, None]
    columns = [(network.forward(x + step)[0] - network.forward(x - step)[0]) / (2 * h) for step in steps]
    expected = np.linalg.slogdet(np.array(columns).transpose(2, 1, 0))[1]
    np.testing.assert_allclose(network.forward(x)[1], expected, atol=1e-5)


@kinds
def test_the_density_integrates_to_one(random_network, activation, rho):
    """On a grid that goes beyond the points of a sample by a fifth of their spread."""
    network = random_network(2, 6, activation, rho)
    drawn = network.sample(20_000, np.random.default_rng(0))
    margin = 0.2 * np.ptp(drawn, axis=0)
    low, high = drawn.min(0) - margin, drawn.max(0) + margin
    axes = [np.linspace(a, b, 601) for a, b in zip(low, high, strict=True)]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    assert abs(np.exp(network.log_prob(x)).sum() * cell - 1) < 1e-3


def test_without_blocks_it_is_a_normal_density(random_network):
    network, x = random_network(3, 0, "smooth"), points(3, 20)
    weight, bias = network.weights[0], network.views["bias"][0]
    covariance = np.linalg.inv(weight) @ np.linalg.inv(weight).T
    away = x - np.linalg.solve(weight, -bias)[:, None]
    expected = -0.5 * (away * np.linalg.solve(covariance, away)).sum(0)
    expected -= 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    np.testing.assert_allclose(network.log_prob(x.T), expected, atol=1e-8)


@pytest.mark.parametrize("x", [np.zeros(2), np.zeros((4, 3)), np.zeros((1, 1, 2))], ids=lambda x: str(x.shape))
def test_rows_of_another_shape_are_refused(random_network, x):
    with pytest.raises(ValueError, match=r"x must be \[rows, 2\], got shape"):
        random_network(2, 1, "smooth").log_prob(x)


@kinds
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_, np.float16, np.float32])
@pytest.mark.parametrize("blocks", [0, 3])
def test_points_of_every_dtype_have_the_density_of_their_values(random_network, activation, rho, dtype, blocks):
    network, x = random_network(2, blocks, activation, rho), np.array([[0, 1], [3, 0], [2, 5]]).astype(dtype)
    found = network.log_prob(x)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, network.log_prob(x.astype(np.float64)))
    z = network.forward(x.astype(np.float64).T)[0]
    np.testing.assert_array_equal(network.inverse(np.rint(z).astype(int))[1], network.inverse(np.rint(z))[1])


U = np.concatenate([np.linspace(-6, 6, 241), [1e6, -1e6, 0.0]])[None]


def expected_units(alpha, c, rho, sides):
    """Return values and log-slopes of LeakyReLU, PLU and SmoothPLU."""
    if sides == 1:
        return np.where(U < 0, alpha * U, U), np.where(U < 0, np.log(alpha), 0)
    if rho is None:
        return functional.formula(np, U, alpha, c), np.log(functional.slope_formula(np, U, alpha, c))
    value, slope = np.array([[float(part) for part in exact_smooth(u, alpha, c, rho)] for u in U[0]]).T
    return value[None], np.log(slope)[None]


@pytest.mark.parametrize(
    ("c", "rho", "sides"), [(1.5, None, 2), (0.0, None, 1), (1.5, 0.02, 2), (1.5, 0.5, 2), (1.5, 0.99, 2)]
)
@pytest.mark.parametrize("alpha", [0.01, 0.7, 1.0, 1 / 0.7, 30.0])
def test_units_are_those_of_the_package_and_have_an_inverse(alpha, c, rho, sides):
    w = None if rho is None else np.array([[rho * c]])
    unit = BlockUnits(np.array([[alpha]]), np.array([[c]]), w, np.zeros((1, 1)), sides)
    value, log_slope = unit.forward(U)
    expected = expected_units(alpha, c, rho, sides)
    np.testing.assert_allclose(value, expected[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(log_slope, expected[1], rtol=1e-9, atol=1e-9)
    back, again = unit.inverse(value)
    np.testing.assert_allclose(back, U, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(again, log_slope, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rho", [0.02, 0.5, 0.99])
def test_the_inverse_is_outside_the_bend_where_the_value_is(dtype, rho):
    """The root of the quadratic rounds to just below the end of the bend for a few in a thousand of the alphas."""
    drawn = np.random.default_rng(0).uniform(0.1, 3, 20_000)
    alpha = np.concatenate([drawn, [1.4163109562146938]]).astype(dtype)[:, None]
    c = np.ones_like(alpha)
    unit = BlockUnits(alpha, c, dtype(rho) * c, np.zeros_like(alpha), 2)
    y = np.array([[-1e4, -10, 10, 1e4]], dtype)
    back, log_slope = unit.inverse(y)
    np.testing.assert_allclose(back, np.sign(y) * (1 + (np.abs(y) - 1) / alpha), rtol=1e-6)
    np.testing.assert_array_equal(log_slope, np.broadcast_to(np.log(alpha), back.shape))


@pytest.mark.parametrize(("activation", "torch_name"), [("smooth", "smooth"), ("plu", "plain"), ("leaky", "leaky")])
@pytest.mark.parametrize(("features", "blocks"), [(1, 3), (2, 12), (5, 0), (7, 4)])
def test_it_has_as_many_parameters_as_the_bijection_of_pytorch(activation, torch_name, features, blocks):
    theirs = sum(p.numel() for p in density(features, blocks, activation=torch_name).parameters())
    assert Architecture(features, blocks, activation).parameters == theirs


@pytest.mark.parametrize("features", [1, 2, 3, 64])
def test_all_maps_start_as_rotations(features):
    form = Architecture(features, 2)
    weights = np.array(start(form, np.random.default_rng(0)).weights)
    np.testing.assert_allclose(weights @ weights.transpose(0, 2, 1), np.eye(features)[None].repeat(3, 0), atol=1e-5)
    np.testing.assert_allclose(np.linalg.det(weights), 1, atol=1e-5)


def test_slopes_contract_and_expand_in_turn():
    form = Architecture(2, 4)
    views = form.views(start(form, np.random.default_rng(0)).theta)
    np.testing.assert_allclose(np.exp(views["alpha"][:, 0]), [0.7, 1 / 0.7, 0.7, 1 / 0.7], rtol=1e-6)
    assert not views["rho"].any()  # rho = 1/2
    assert not views["c"].any()


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_factors_give_the_matrix_back(n):
    matrix = np.random.default_rng(n).standard_normal((n, n))
    order, lower, upper = factors(matrix)
    np.testing.assert_allclose((lower @ upper)[order], matrix, atol=1e-12)
    assert np.array_equal(lower, np.tril(lower))
    assert np.array_equal(upper, np.triu(upper))
    assert np.abs(lower).max() == 1  # row pivots


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((65, 2), "features must be at most 64, got 65"),
        ((0, 2), "features must be an integer of at least 1"),
        *(((2, bad), "blocks must be an integer of at least 0") for bad in (-1, 2.5)),
        ((2, 2, "tanh"), "unknown activation 'tanh'; choose one of smooth, plu, leaky"),
    ],
)
def test_a_form_that_cannot_be_is_one_line(arguments, message):
    with pytest.raises(ValueError, match=message):
        Architecture(*arguments)
