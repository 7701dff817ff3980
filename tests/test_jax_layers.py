"""The layers of Equinox and Flax: one table of cases over both, against the paper's formula."""

import importlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import few_points, paper

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


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"alpha": -0.1}, r"alpha must be finite and >= 0, got -0\.1"),
        ({"c": np.nan}, "c must be finite and >= 0, got nan"),
        ({"learnable": "both"}, r'learnable must be False, True, "alpha" or "c"'),
        ({"alpha": 0.0, "learnable": True}, r"learnable alpha must lie in \(0, 1\), .* got 0\.0; start from 0\.1"),
        ({"c": 0.0, "learnable": "c"}, r"learnable c must be positive, .* got 0\.0; start from 1\.0"),
        ({"num_parameters": 3}, "num_parameters must be 1, or the number of channels of a learnable PLU, got 3"),
    ],
)
def test_messages(make, arguments, text):
    with pytest.raises(ValueError, match=text):
        make(**arguments)


def test_channels_must_match_on_the_default_axis(framework, make):
    axis = FRAMEWORKS[framework][1]
    shape = (4, 3) if axis == 0 else (3, 4)
    with pytest.raises(ValueError, match=rf"expected 3 channels on axis {axis}, got an input of shape \({shape[0]}, "):
        make(learnable=True, num_parameters=3)(jnp.ones(shape))


@pytest.mark.parametrize("seen", [False, True])
def test_import_leaves_other_frameworks_alone(framework, seen):
    others = {"torch", "equinox", "flax", "flowjax"} - {framework}
    also = f", {'flax' if framework == 'equinox' else 'equinox'}" if seen else ""  # the test itself can fail
    program = f"import sys, plunit.{framework}{also}; sys.exit(any(name in sys.modules for name in {others}))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == seen
