"""plunit.equinox.PLU inside the networks of Equinox; test_jax_layers.py has the values."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import paper

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


def test_a_saved_layer_comes_back(tmp_path):
    layer = PLU(learnable=True, num_parameters=3)
    layer = eqx.tree_at(lambda layer: layer.raw_c, layer, jnp.array([-1.0, 0.0, 1.0]))
    eqx.tree_serialise_leaves(tmp_path / "layer.eqx", layer)
    again = eqx.tree_deserialise_leaves(tmp_path / "layer.eqx", PLU(learnable=True, num_parameters=3))
    assert eqx.tree_equal(again, layer)


def test_gradients_reach_alpha_and_c():
    x = jnp.linspace(-3, 3, 64)[:, None]
    model = eqx.nn.MLP(1, 1, width_size=16, depth=1, activation=PLU(learnable=True), key=KEY)
    gradient = eqx.filter_grad(lambda model: jnp.square(jax.vmap(model)(x)).mean())(model).activation
    assert all(np.abs(raw).max() > 1e-3 for raw in (gradient.raw_alpha, gradient.raw_c))
