"""plunit.flax.PLU against the paper's formula, inside the networks of Flax NNX, and its bounds."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from oracles import few_points, paper

import plunit.numpy
from plunit.flax import PLU


@pytest.mark.parametrize("learnable", [False, True, "alpha", "c"])
@pytest.mark.parametrize(("alpha", "c"), [(0.1, 1.0), (0.25, 0.5)])
def test_values_are_the_papers(alpha, c, learnable):
    layer = PLU(alpha, c, learnable=learnable)
    np.testing.assert_allclose(layer(few_points(c)), paper(few_points(c), alpha, c), rtol=3e-6)
    np.testing.assert_allclose(layer.inverse(layer(few_points(c))), few_points(c), rtol=1e-5)


@pytest.mark.parametrize(
    ("learnable", "names"), [(False, []), (True, ["raw_alpha", "raw_c"]), ("alpha", ["raw_alpha"]), ("c", ["raw_c"])]
)
def test_only_what_is_learnable_is_a_parameter(learnable, names):
    layer = PLU(learnable=learnable, num_parameters=4 if learnable else 1)
    found = {path: leaf.shape for path, leaf in nnx.to_flat_state(nnx.state(layer))}
    assert found == {(name,): (4,) for name in names}
    assert found == {path: leaf.shape for path, leaf in nnx.to_flat_state(nnx.state(layer, nnx.Param))}


@pytest.mark.parametrize(("axis", "shape"), [(-1, (2, 4, 3)), (1, (4, 3, 2)), (0, (3, 4))])
def test_each_channel_has_its_values(axis, shape):
    rng = np.random.default_rng(0)
    raw_alpha, raw_c = rng.normal(size=(2, 3)).astype(np.float32)
    layer = PLU(learnable=True, num_parameters=3, axis=axis)
    nnx.update(layer, {"raw_alpha": jnp.asarray(raw_alpha), "raw_c": jnp.asarray(raw_c)})
    along = [3 if i == axis % len(shape) else 1 for i in range(len(shape))]
    alpha, c = (1 / (1 + np.exp(-raw_alpha))).reshape(along), np.exp(raw_c).reshape(along)
    x = rng.normal(size=shape, scale=2).astype(np.float32)
    np.testing.assert_allclose(layer(x), paper(x, alpha, c), rtol=1e-5)
    np.testing.assert_allclose(layer.inverse(layer(x)), x, rtol=1e-4)


def test_channels_must_match():
    with pytest.raises(ValueError, match=r"expected 3 channels on axis -1, got an input of shape \(3, 4\)"):
        PLU(learnable=True, num_parameters=3)(jnp.ones((3, 4)))


@pytest.mark.parametrize("raw", [-1e4, 1e4])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_bounds_are_strict(raw, dtype):
    layer = PLU(learnable=True, param_dtype=dtype)
    assert layer.raw_alpha.dtype == layer.raw_c.dtype == dtype
    nnx.update(layer, jax.tree.map(lambda leaf: jnp.full_like(leaf, raw), nnx.state(layer)))
    assert 0 < layer.alpha.item() < 1
    assert 0 < layer.c.item() < np.inf


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_computed_through_float32(dtype):
    x = jnp.linspace(-50, 50, 333).astype(dtype)
    layer = PLU(0.3, 0.7, learnable=True)
    assert layer(x).dtype == dtype
    np.testing.assert_array_equal(layer(x), plunit.numpy.plu(np.asarray(x), 0.3, 0.7))


def test_float64():
    with jax.enable_x64(True):
        layer = PLU(0.3, 0.7, learnable=True, param_dtype=jnp.float64)
        x = np.linspace(-3, 3, 20)
        assert layer.raw_c.dtype == layer(x).dtype == "float64"
        np.testing.assert_allclose(layer(x), paper(x, 0.3, 0.7), rtol=1e-14)


def test_training_reduces_the_loss_and_moves_alpha_and_c():
    x = jnp.linspace(-3, 3, 64)[:, None]
    rngs = nnx.Rngs(0)
    layer = PLU(learnable=True, num_parameters=16)
    model = nnx.Sequential(nnx.Linear(1, 16, rngs=rngs), layer, nnx.Linear(16, 1, rngs=rngs))
    optimizer = nnx.Optimizer(model, optax.adam(0.02), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer):
        value, gradient = nnx.value_and_grad(lambda model: jnp.square(model(x) - jnp.sin(x)).mean())(model)
        optimizer.update(model, gradient)
        return value

    losses = [step(model, optimizer).item() for _ in range(30)]
    assert losses[-1] < 0.5 * losses[0]
    assert np.abs(layer.alpha - 0.1).max() > 1e-3
    assert np.abs(layer.c - 1.0).max() > 1e-3


def test_split_and_merge():
    layer = PLU(0.3, learnable=True, num_parameters=3)
    nnx.update(layer, {"raw_c": jnp.array([-1.0, 0.0, 1.0])})
    again = nnx.merge(*nnx.split(layer))
    x = np.float32([[-9, 0.5, 9]])
    np.testing.assert_array_equal(again(x), layer(x))
    np.testing.assert_allclose(again.c, np.exp([-1.0, 0.0, 1.0]), rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"c": np.nan}, "c must be finite and >= 0, got nan"),
        ({"learnable": "both"}, r'learnable must be False, True, "alpha" or "c"'),
        ({"c": 0.0, "learnable": "c"}, r"learnable c must be positive, .* got 0\.0; start from 1\.0"),
        ({"num_parameters": 3}, "num_parameters must be 1, or the number of channels of a learnable PLU, got 3"),
    ],
)
def test_bad_layers(arguments, text):
    with pytest.raises(ValueError, match=text):
        PLU(**arguments)


def test_import_leaves_other_frameworks_alone():
    others = {"torch", "equinox", "flowjax"}
    program = f"import sys, plunit.flax; sys.exit(any(name in sys.modules for name in {others}))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
