"""The layers of Equinox and Flax: one table of cases over both, against the paper's formula."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import few_points, paper

import plunit.equinox
import plunit.numpy

FRAMEWORKS = {"equinox": ("dtype", 0), "flax": ("param_dtype", -1)}
"""What the dtype of the raw parameters is called, and the default axis."""


@pytest.fixture(params=FRAMEWORKS)
def framework(request):
    pytest.importorskip(request.param)
    return request.param


@pytest.fixture
def make(framework):
    """Make a layer; `dtype` is that of the raw parameters."""

    def make(*values, dtype=None, **options):
        options |= {} if dtype is None else {FRAMEWORKS[framework][0]: dtype}
        return importlib.import_module(f"plunit.{framework}").PLU(*values, **options)

    return make


def with_raw(layer, raw_alpha, raw_c):
    """Return a layer with other raw parameters, in their dtype."""
    values = tuple(jnp.asarray(raw, layer.raw_c.dtype) for raw in (raw_alpha, raw_c))
    if type(layer).__module__ == "plunit.flax":
        layer.raw_alpha[...], layer.raw_c[...] = values
        return layer
    return importlib.import_module("equinox").tree_at(lambda layer: (layer.raw_alpha, layer.raw_c), layer, values)


@pytest.mark.parametrize("learnable", [False, True, "alpha", "c"])
@pytest.mark.parametrize(("alpha", "c"), [(0.1, 1.0), (0.25, 0.5)])
def test_values_are_the_papers(make, alpha, c, learnable):
    layer = make(alpha, c, learnable=learnable)
    np.testing.assert_allclose(layer(few_points(c)), paper(few_points(c), alpha, c), rtol=3e-6)
    np.testing.assert_allclose(layer.inverse(layer(few_points(c))), few_points(c), rtol=1e-5)


@pytest.mark.parametrize(("axis", "shape"), [(0, (3, 4, 4)), (1, (4, 3)), (1, (4, 3, 2)), (-1, (2, 4, 3)), (0, (3, 4))])
def test_each_channel_has_its_values(make, axis, shape):
    rng = np.random.default_rng(0)
    raw_alpha, raw_c = rng.normal(size=(2, 3)).astype(np.float32)
    layer = with_raw(make(learnable=True, num_parameters=3, axis=axis), raw_alpha, raw_c)
    along = [3 if i == axis % len(shape) else 1 for i in range(len(shape))]
    alpha, c = (1 / (1 + np.exp(-raw_alpha))).reshape(along), np.exp(raw_c).reshape(along)
    x = rng.normal(size=shape, scale=2).astype(np.float32)
    np.testing.assert_allclose(layer(x), paper(x, alpha, c), rtol=1e-5)
    np.testing.assert_allclose(layer.inverse(layer(x)), x, rtol=1e-4)


@pytest.mark.parametrize("raw", [-1e4, 1e4])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_bounds_are_strict(make, raw, dtype):
    layer = with_raw(make(learnable=True, dtype=dtype), [raw], [raw])
    assert layer.raw_alpha.dtype == layer.raw_c.dtype == dtype
    assert 0 < layer.alpha.item() < 1
    assert 0 < layer.c.item() < np.inf


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_computed_through_float32(make, dtype):
    x = jnp.linspace(-50, 50, 333).astype(dtype)
    layer = make(0.3, 0.7, learnable=True)
    assert layer(x).dtype == dtype
    np.testing.assert_array_equal(layer(x), plunit.numpy.plu(np.asarray(x), 0.3, 0.7))


def test_float64(make):
    with jax.enable_x64(True):
        layer = make(0.3, 0.7, learnable=True, dtype=jnp.float64)
        x = np.linspace(-3, 3, 20)
        assert layer.raw_c.dtype == layer(x).dtype == "float64"
        np.testing.assert_allclose(layer(x), paper(x, 0.3, 0.7), rtol=1e-14)


def test_messages(make):
    """tests/torch/test_messages.py has all of `plunit.learned`."""
    with pytest.raises(ValueError, match=r"num_parameters must be 1, .* got 3"):
        make(num_parameters=3)


def test_channels_must_match_on_the_default_axis(framework, make):
    axis = FRAMEWORKS[framework][1]
    shape = (4, 3) if axis == 0 else (3, 4)
    with pytest.raises(ValueError, match=rf"expected 3 channels on axis {axis}, got an input of shape \({shape[0]}, "):
        make(learnable=True, num_parameters=3)(jnp.ones(shape))


@pytest.mark.parametrize(
    ("learnable", "names"), [(False, []), (True, ["raw_alpha", "raw_c"]), ("alpha", ["raw_alpha"]), ("c", ["raw_c"])]
)
def test_only_what_is_learnable_is_a_leaf(make, learnable, names):
    layer = make(learnable=learnable, num_parameters=4 if learnable else 1)
    leaves = jax.tree_util.tree_leaves_with_path(layer)
    assert [str(path[0]).strip("[].'") for path, _ in leaves] == names
    assert all(leaf.shape == (4,) for _, leaf in leaves)


def test_gradients_reach_alpha_and_c(make):
    """At x = 3 beyond c = 1: by the chain rule alpha (1 - alpha) (x - c), and c (1 - alpha)."""
    found = jax.tree.leaves(jax.grad(lambda layer: layer(jnp.array([3.0])).sum())(make(0.25, learnable=True)))
    np.testing.assert_allclose(np.concatenate(found), [0.25 * 0.75 * 2, 0.75], rtol=1e-6)


def by_hand(mlp, activation):
    """Evaluate an eqx.nn.MLP with NumPy; `activation` takes the number of the layer and its input."""

    def network(x):
        *hidden, last = [(np.asarray(layer.weight), np.asarray(layer.bias)) for layer in mlp.layers]
        for i, (weight, bias) in enumerate(hidden):
            x = activation(i, weight @ x + bias)
        return last[0] @ x + last[1]

    return network


@pytest.mark.parametrize("learnable", [False, True])
def test_in_an_mlp_of_equinox_each_unit_has_its_own_values(learnable):
    eqx = pytest.importorskip("equinox")
    unit = plunit.equinox.PLU(0.3, 0.5, learnable=learnable)
    mlp = eqx.nn.MLP(3, 2, width_size=5, depth=2, activation=unit, key=jax.random.key(0))
    alpha, c = np.full((2, 5), 0.3), np.full((2, 5), 0.5)
    if learnable:
        raw = np.random.default_rng(0).normal(size=(2, 2, 5, 1)).astype(np.float32)
        mlp = eqx.tree_at(lambda mlp: (mlp.activation.raw_alpha, mlp.activation.raw_c), mlp, tuple(raw))
        alpha, c = 1 / (1 + np.exp(-raw[0, ..., 0])), np.exp(raw[1, ..., 0])
    x = np.float32([2, -1, 3])
    expected = by_hand(mlp, lambda i, z: paper(z, alpha[i], c[i]))(x)
    np.testing.assert_allclose(eqx.filter_jit(mlp)(x), expected, rtol=1e-5)


@pytest.mark.parametrize("key", [None, jax.random.key(0)])
def test_in_a_sequential_of_equinox(key):
    eqx = pytest.importorskip("equinox")
    linear, unit = eqx.nn.Linear(2, 4, key=jax.random.key(0)), plunit.equinox.PLU(learnable=True, num_parameters=4)
    x = np.float32([3, -2])
    found = eqx.nn.Sequential([linear, unit, eqx.nn.Lambda(jnp.sum)])(x, key=key)
    np.testing.assert_allclose(found, paper(linear(x), 0.1, 1.0).sum(), rtol=1e-5)


def test_a_layer_comes_back(framework, make, tmp_path):
    layer = with_raw(make(learnable=True, num_parameters=3), np.zeros(3), np.array([-1.0, 0.0, 1.0]))
    library = importlib.import_module(framework)
    if framework == "flax":
        nnx = importlib.import_module("flax.nnx")
        again = nnx.merge(*nnx.split(layer))
    else:
        library.tree_serialise_leaves(tmp_path / "layer.eqx", layer)
        again = library.tree_deserialise_leaves(tmp_path / "layer.eqx", make(learnable=True, num_parameters=3))
    np.testing.assert_allclose(again.c, np.exp([-1.0, 0.0, 1.0]), rtol=1e-6)
    np.testing.assert_array_equal(again.alpha, layer.alpha)
