"""plunit.equinox.PLU against the paper's formula, inside the networks of Equinox, and its bounds."""

import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import few_points, paper

import plunit.numpy
from plunit.equinox import PLU

KEY = jax.random.key(0)


def weights_of(mlp, activation):
    """Evaluate an eqx.nn.MLP by hand with NumPy; `activation` takes the number of the layer and its input."""

    def network(x):
        *hidden, last = [(np.asarray(layer.weight), np.asarray(layer.bias)) for layer in mlp.layers]
        for i, (weight, bias) in enumerate(hidden):
            x = activation(i, weight @ x + bias)
        return last[0] @ x + last[1]

    return network


@pytest.mark.parametrize("learnable", [False, True, "alpha", "c"])
@pytest.mark.parametrize(("alpha", "c"), [(0.1, 1.0), (0.25, 0.5)])
def test_values_are_the_papers(alpha, c, learnable):
    layer = PLU(alpha, c, learnable=learnable)
    np.testing.assert_allclose(layer(few_points(c)), paper(few_points(c), alpha, c), rtol=3e-6)
    np.testing.assert_allclose(layer.inverse(layer(few_points(c))), few_points(c), rtol=1e-5)


@pytest.mark.parametrize(
    ("learnable", "names"), [(False, []), (True, ["raw_alpha", "raw_c"]), ("alpha", ["raw_alpha"]), ("c", ["raw_c"])]
)
def test_only_what_is_learnable_is_a_leaf(learnable, names):
    layer = PLU(learnable=learnable, num_parameters=4 if learnable else 1)
    leaves = jax.tree_util.tree_leaves_with_path(layer)
    assert [jax.tree_util.keystr(path) for path, _ in leaves] == [f".{name}" for name in names]
    assert all(leaf.shape == (4,) for _, leaf in leaves)
    assert jax.tree.structure(layer) == jax.tree.structure(
        PLU(learnable=learnable, num_parameters=layer.num_parameters)
    )


@pytest.mark.parametrize("learnable", [False, True])
def test_in_an_mlp_each_unit_has_its_own_values(learnable):
    mlp = eqx.nn.MLP(3, 2, width_size=5, depth=2, activation=PLU(0.3, 0.5, learnable=learnable), key=KEY)
    alpha, c = np.full((2, 5), 0.3), np.full((2, 5), 0.5)
    if learnable:
        raw = np.random.default_rng(0).normal(size=(2, 2, 5, 1)).astype(np.float32)
        mlp = eqx.tree_at(lambda mlp: (mlp.activation.raw_alpha, mlp.activation.raw_c), mlp, tuple(raw))
        alpha, c = 1 / (1 + np.exp(-raw[0, ..., 0])), np.exp(raw[1, ..., 0])
    by_hand = weights_of(mlp, lambda i, x: paper(x, alpha[i], c[i]))
    x = np.float32([2, -1, 3])
    np.testing.assert_allclose(eqx.filter_jit(mlp)(x), by_hand(x), rtol=1e-5)


@pytest.mark.parametrize("key", [None, KEY])
def test_in_a_sequential(key):
    linear = eqx.nn.Linear(2, 4, key=KEY)
    model = eqx.nn.Sequential([linear, PLU(learnable=True, num_parameters=4), eqx.nn.Lambda(jnp.sum)])
    x = np.float32([3, -2])
    np.testing.assert_allclose(model(x, key=key), paper(linear(x), 0.1, 1.0).sum(), rtol=1e-5)


@pytest.mark.parametrize(("axis", "shape"), [(0, (3, 4, 4)), (1, (4, 3)), (-1, (2, 4, 3))])
def test_each_channel_has_its_values(axis, shape):
    rng = np.random.default_rng(0)
    raw = rng.normal(size=(2, 3)).astype(np.float32)
    layer = PLU(learnable=True, num_parameters=3, axis=axis)
    layer = eqx.tree_at(lambda layer: (layer.raw_alpha, layer.raw_c), layer, tuple(raw))
    along = [3 if i == axis % len(shape) else 1 for i in range(len(shape))]
    alpha, c = (1 / (1 + np.exp(-raw[0]))).reshape(along), np.exp(raw[1]).reshape(along)
    x = rng.normal(size=shape, scale=2).astype(np.float32)
    np.testing.assert_allclose(layer(x), paper(x, alpha, c), rtol=1e-5)
    np.testing.assert_allclose(layer.inverse(layer(x)), x, rtol=1e-4)


def test_channels_must_match():
    with pytest.raises(ValueError, match=r"expected 3 channels on axis 0, got an input of shape \(4, 3\)"):
        PLU(learnable=True, num_parameters=3)(jnp.ones((4, 3)))


@pytest.mark.parametrize("raw", [-1e4, 1e4])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_bounds_are_strict(raw, dtype):
    layer = PLU(learnable=True, dtype=dtype)
    layer = jax.tree.map(lambda leaf: jnp.full_like(leaf, raw), layer)
    assert layer.raw_alpha.dtype == dtype
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
        layer = PLU(0.3, 0.7, learnable=True)
        x = np.linspace(-3, 3, 20)
        assert layer.raw_c.dtype == layer(x).dtype == "float64"
        np.testing.assert_allclose(layer(x), paper(x, 0.3, 0.7), rtol=1e-14)


def test_training_reduces_the_loss_and_moves_alpha_and_c():
    x = jnp.linspace(-3, 3, 64)[:, None]
    model = eqx.nn.MLP(1, 1, width_size=16, depth=1, activation=PLU(learnable=True), key=KEY)

    def loss(model):
        return jnp.square(jax.vmap(model)(x) - jnp.sin(x)).mean()

    @eqx.filter_jit
    def step(model):
        value, gradient = eqx.filter_value_and_grad(loss)(model)
        return eqx.apply_updates(model, jax.tree.map(lambda g: -0.05 * g, gradient)), value

    losses = []
    for _ in range(50):
        model, value = step(model)
        losses.append(value.item())
    assert losses[-1] < 0.5 * losses[0]
    assert np.abs(model.activation.alpha - 0.1).max() > 1e-3
    assert np.abs(model.activation.c - 1.0).max() > 1e-3


def test_a_saved_layer_comes_back(tmp_path):
    layer = PLU(learnable=True, num_parameters=3)
    layer = eqx.tree_at(lambda layer: layer.raw_c, layer, jnp.array([-1.0, 0.0, 1.0]))
    eqx.tree_serialise_leaves(tmp_path / "layer.eqx", layer)
    again = eqx.tree_deserialise_leaves(tmp_path / "layer.eqx", PLU(learnable=True, num_parameters=3))
    assert eqx.tree_equal(again, layer)


def test_an_ensemble_of_layers():
    layers = eqx.filter_vmap(lambda alpha: eqx.tree_at(lambda p: p.raw_alpha, PLU(learnable=True), alpha[None]))(
        jnp.array([-1.0, 0.0, 1.0])
    )
    got = eqx.filter_vmap(lambda layer: layer(jnp.array(2.0)))(layers)
    np.testing.assert_allclose(got, 1 + 1 / (1 + np.exp([1.0, 0.0, -1.0])), rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"alpha": -0.1}, r"alpha must be finite and >= 0, got -0\.1"),
        ({"learnable": "both"}, r'learnable must be False, True, "alpha" or "c"'),
        ({"alpha": 0.0, "learnable": True}, r"learnable alpha must lie in \(0, 1\), .* got 0\.0; start from 0\.1"),
        ({"num_parameters": 3}, "num_parameters must be 1, or the number of channels of a learnable PLU, got 3"),
    ],
)
def test_bad_layers(arguments, text):
    with pytest.raises(ValueError, match=text):
        PLU(**arguments)


@pytest.mark.parametrize(("imports", "loads"), [("plunit.equinox", False), ("plunit.equinox, flax", True)])
def test_import_leaves_other_frameworks_alone(imports, loads):
    others = {"torch", "flax", "flowjax"}
    program = f"import sys, {imports}; sys.exit(any(name in sys.modules for name in {others}))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == loads
