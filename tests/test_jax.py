"""plunit.jax under jit, vmap and derivatives of both modes; test_array_functions.py has the values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import CORNERS, few_points, paper

import plunit
from plunit.jax import inverse, plu


@pytest.mark.parametrize("shape", [(3,), (3, 1, 1)])
def test_each_channel_has_its_alpha_and_c(shape):
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 3), scale=2).astype(np.float32)
    alpha, c = np.float32([0.0, 0.1, 0.5]).reshape(shape), np.float32([0.5, 1, 2]).reshape(shape)
    np.testing.assert_allclose(plu(x, alpha, c), paper(x, alpha, c), rtol=3e-7)
    got = jax.grad(lambda alpha: plu(x, alpha, c).sum())(alpha)
    by_hand = np.where(np.abs(x) > c, x - c * np.sign(x), 0)
    np.testing.assert_allclose(
        got, jnp.sum(by_hand, axis=(0, 1, 2) if shape == (3,) else (0, 2, 3)).reshape(shape), 1e-5
    )


@pytest.mark.parametrize("of", [0, 1, 2], ids=["dx", "dalpha", "dc"])
@pytest.mark.parametrize("alpha", [0.1, 0.0])
def test_forward_mode_is_reverse_mode(alpha, of):
    found = [jax.vmap(mode(plu, of), (0, None, None))(few_points(0.5), alpha, 0.5) for mode in (jax.jacfwd, jax.jacrev)]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("x", [-2.0, -1.0, 0.5, 1.0, 2.0])
def test_second_derivatives(x):
    outside = abs(x) > 1
    hessian = np.array(jax.hessian(plu, (0, 1, 2))(x, 0.1, 1.0))
    np.testing.assert_array_equal(hessian, outside * np.array([[0, 1, 0], [1, 0, -np.sign(x)], [0, -np.sign(x), 0]]))
    assert jax.grad(jax.grad(plu))(x) == 0


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_jit_and_vmap_change_nothing(alpha):
    x = np.concatenate([few_points(1.0), CORNERS])
    expected = plu(x, alpha, 1.0)
    np.testing.assert_array_equal(jax.jit(plu)(x, alpha, 1.0), expected)
    np.testing.assert_array_equal(jax.jit(plu, static_argnums=(1, 2))(x, alpha, 1.0), expected)
    np.testing.assert_array_equal(jax.vmap(plu, (0, None, None))(x, alpha, 1.0), expected)
    np.testing.assert_array_equal(jax.vmap(plu, (None, 0))(x, np.float32([alpha, 1.0]))[0], expected)


def test_float64():
    with jax.enable_x64(True):
        got = plu(np.linspace(-3, 3, 20), 0.3, 0.7)
        assert got.dtype == "float64"
        np.testing.assert_allclose(got, paper(np.linspace(-3, 3, 20), 0.3, 0.7), rtol=1e-15)
        np.testing.assert_allclose(inverse(np.array([0.5, 3.0]), 1e-39), [0.5, 2e39])


def test_plunit_plu_finds_this_module():
    assert isinstance(plunit.plu(jnp.array(2.0)), jax.Array)
    assert isinstance(jax.jit(plunit.plu)(2.0), jax.Array)
