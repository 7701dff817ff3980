"""The bijections for FlowJAX: inverses, log-determinants, what is learned, and densities that integrate to 1."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import paramax
import pytest
from flowjax.bijections import Tanh
from flowjax.distributions import Normal
from flowjax.flows import block_neural_autoregressive_flow

import plunit.jax
from plunit.flowjax import PLU, SmoothPLU

X = np.random.default_rng(0).normal(size=(3, 4), scale=2)


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("bijection", [PLU, SmoothPLU])
@pytest.mark.parametrize(
    "options", [{}, {"alpha": 3.0, "c": 0.5}, {"learnable": True}, {"alpha": 3.0, "learnable": True}]
)
def test_inverse_and_log_det(bijection, options):
    f = bijection(shape=X.shape, **options)
    y, log_det = f.transform_and_log_det(X)
    jacobian = jax.jacrev(f.transform)(jnp.asarray(X)).reshape(X.size, X.size)
    np.testing.assert_allclose(log_det, np.linalg.slogdet(jacobian)[1], rtol=1e-12)
    back, inverse_log_det = f.inverse_and_log_det(y)
    np.testing.assert_allclose(back, X, rtol=1e-12)
    np.testing.assert_allclose(inverse_log_det, -log_det, rtol=1e-12)


def test_values_are_those_of_plunit_jax():
    np.testing.assert_array_equal(PLU(0.3, 0.5, shape=X.shape).transform(X), plunit.jax.plu(X, 0.3, 0.5))
    smooth = SmoothPLU(0.3, 0.5, 0.7, shape=X.shape)
    np.testing.assert_array_equal(smooth.transform(X), plunit.jax.smooth_plu(X, 0.3, 0.5, 0.7))


@pytest.mark.parametrize(
    ("bijection", "options", "count"),
    [
        (PLU, {}, 0),
        (PLU, {"learnable": True}, 2),
        (SmoothPLU, {}, 0),
        (SmoothPLU, {"learnable": True}, 2),
        (SmoothPLU, {"learnable_rho": True}, 1),
        (SmoothPLU, {"learnable": True, "learnable_rho": True}, 3),
    ],
)
def test_each_element_has_its_learned_values(bijection, options, count):
    f = bijection(0.4, shape=(5,), **options)
    leaves = jax.tree.leaves(eqx.filter(f, eqx.is_inexact_array))
    assert [leaf.shape for leaf in leaves] == [(5,)] * count
    assert jax.tree.structure(f) == jax.tree.structure(bijection(0.4, shape=(5,), **options))
    x = jnp.linspace(-3, 3, 5)
    np.testing.assert_allclose(f.transform(x), bijection(0.4, shape=(5,)).transform(x), rtol=1e-12)


@pytest.mark.parametrize("raw", [-1e4, 1e4])
def test_learned_values_keep_their_bounds(raw):
    f = SmoothPLU(learnable=True, learnable_rho=True)
    f = paramax.unwrap(jax.tree.map(lambda leaf: jnp.full_like(leaf, raw) if eqx.is_array(leaf) else leaf, f))
    assert 0 < f.alpha < np.inf
    assert 0 < f.c < np.inf
    assert 0 < f.rho < 1


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: PLU(0.0), ValueError, r"inverse needs alpha > 0, got 0\.0"),
        (lambda: SmoothPLU(rho=1.5), ValueError, r"rho must lie in \[0, 1\], got 1\.5"),
        (
            lambda: SmoothPLU(rho=0.0, learnable_rho=True),
            ValueError,
            r"learnable rho must lie in \(0, 1\), .* got 0\.0",
        ),
        (lambda: PLU(c=0.0, learnable=True), ValueError, r"learnable c must be positive, .* got 0\.0"),
        (lambda: PLU(np.array([0.1, 0.2])), TypeError, r"alpha must be one number, got array.*learns one per element"),
    ],
)
def test_bad_bijections(make, error, text):
    with pytest.raises(error, match=text):
        make()


@eqx.filter_jit
@eqx.filter_vmap
def masses(flow):
    """Integrate densities of the plane over |x| < 548, on a grid that is finer in the middle: x = sinh t."""
    t = jnp.linspace(-7, 7, 401)
    x, weight = jnp.sinh(t), jnp.cosh(t) * 14 / 400
    density = jax.lax.map(lambda a: jnp.exp(flow.log_prob(jnp.stack([jnp.full_like(x, a), x], -1))), x)
    return weight @ density @ weight


def block_flows(activation):
    """Return three block neural autoregressive flows in the plane, with leaves [3, ...]."""

    def flow(seed):
        base = Normal(jnp.zeros(2))
        return block_neural_autoregressive_flow(jax.random.key(seed), base_dist=base, activation=activation)

    return eqx.filter_vmap(flow)(np.arange(3))


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        (SmoothPLU(learnable=True, learnable_rho=True), [1, 1, 1]),
        (Tanh(), [0.697, 0.669, 0.691]),  # the fault of flowjax #102 and numpyro #1655: values of tanh end at +-1
        (None, [1, 1, 1]),  # FlowJAX's remedy, tanh(x) + 0.01 x
    ],
)
def test_the_density_of_a_block_neural_autoregressive_flow(activation, expected):
    np.testing.assert_allclose(masses(block_flows(activation)), expected, atol=1e-3)
