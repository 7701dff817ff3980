"""The functions of every framework: one table of cases, against NumPy, the paper's formula and finite differences.

Keras runs on the backend at hand; tests/test_keras.py runs this file on JAX, too.
"""

import os
from types import SimpleNamespace

os.environ.setdefault("KERAS_BACKEND", "torch")  # Keras would take TensorFlow, which may be absent

import ml_dtypes  # noqa: F401  # bfloat16 for NumPy
import numpy as np
import pytest
from oracles import (
    ALPHAS_AND_CS,
    C_BEYOND_FLOAT32,
    CONTRACTING,
    CORNERS,
    LARGE,
    NO_SLOPES_OF_AN_INVERSE,
    few_points,
    kinks_and_neighbours,
    paper,
)

import plunit.numpy

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")


def of_numpy():
    return SimpleNamespace(
        functions=plunit.numpy,
        tensor=np.asarray,
        cast=lambda x, dtype: np.asarray(x).astype(dtype),
        array=np.asarray,
        kind=lambda array: str(array.dtype),
        gradients=lambda *_: pytest.skip("NumPy has no gradients"),
        of_integers="float64",
        is_exact=True,
    )


def of_torch(native):
    torch = pytest.importorskip("torch")
    import plunit.torch

    def made(x, dtype=None):
        return torch.tensor(np.asarray(x, np.float32 if dtype else None), dtype=dtype and getattr(torch, dtype))

    def function(name):
        own = getattr(plunit.torch, name)
        return lambda x, *parameters, **named: own(x if isinstance(x, torch.Tensor) else made(x), *parameters, **named)

    def gradients(function, *arguments):
        leaves = [made(argument, "float32").requires_grad_() for argument in arguments]
        return [array(gradient) for gradient in torch.autograd.grad(function(*leaves).sum(), leaves)]

    def array(tensor):
        return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).detach().numpy()

    if native and not plunit.torch.has_native():
        pytest.skip("the native op was not built")
    return SimpleNamespace(
        functions=SimpleNamespace(**{name: function(name) for name in FUNCTIONS}),
        tensor=made,
        cast=made,
        array=array,
        kind=lambda tensor: str(tensor.dtype).removeprefix("torch."),
        gradients=gradients,
        of_integers=None,
        is_exact=native,  # the composite may differ in the last bit, and in the sign of 0
    )


def of_jax():
    jax = pytest.importorskip("jax")
    import plunit.jax

    def gradients(function, *arguments):
        arguments = [np.asarray(argument, np.float32) for argument in arguments]
        return jax.grad(lambda *leaves: function(*leaves).sum(), tuple(range(len(arguments))))(*arguments)

    return SimpleNamespace(
        functions=plunit.jax,
        tensor=jax.numpy.asarray,
        cast=lambda x, dtype: jax.numpy.asarray(x).astype(dtype),
        array=np.asarray,
        kind=lambda tensor: str(tensor.dtype),
        gradients=gradients,
        of_integers="float32",
        is_exact=True,
    )


def of_keras():
    import keras
    from keras_tensors import array, gradients, kind

    import plunit.keras

    return SimpleNamespace(
        functions=plunit.keras,
        tensor=keras.ops.convert_to_tensor,
        cast=lambda x, dtype: keras.ops.cast(np.asarray(x, np.float32), dtype),
        array=array,
        kind=kind,
        gradients=gradients,
        of_integers="float32",
        is_exact=True,
    )


FUNCTIONS = ("plu", "inverse", "slope", "log_slope")
FRAMEWORKS = {
    "numpy": of_numpy,
    "native": lambda: of_torch(True),
    "composite": lambda: of_torch(False),
    "jax": of_jax,
    "keras": of_keras,
}


@pytest.fixture(params=FRAMEWORKS)
def xp(request, monkeypatch):
    """A framework: its functions, and how to make and read its tensors and gradients."""
    if request.param == "composite":
        monkeypatch.setattr("plunit.torch.op._native", None)
    return FRAMEWORKS[request.param]()


@pytest.mark.parametrize(("alpha", "c"), ALPHAS_AND_CS)
@pytest.mark.parametrize("name", ["plu", "slope", "log_slope"])
def test_values_are_those_of_numpy(xp, name, alpha, c):
    if not hasattr(xp.functions, name):
        pytest.skip("Keras has plu and inverse only")
    function, x = getattr(xp.functions, name), np.concatenate([few_points(c), CORNERS])
    expected = getattr(plunit.numpy, name)(x, alpha, c)
    for wrap in (float, np.float32, np.array, xp.tensor):
        np.testing.assert_allclose(xp.array(function(x, wrap(alpha), wrap(c))), expected, rtol=3e-7)


@pytest.mark.parametrize(("alpha", "c"), CONTRACTING)
def test_values_are_the_papers(xp, alpha, c):
    got = xp.array(xp.functions.plu(few_points(c), alpha, c))
    np.testing.assert_allclose(got, paper(few_points(c), alpha, c), rtol=3e-7)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 2.5])
def test_inside_it_is_the_identity_to_the_bit(xp, alpha):
    x = np.float32([-0.7, -1e-40, -0.0, 0.0, 0.1, 0.7])
    found = xp.array(xp.functions.plu(x, alpha, 0.7))
    np.testing.assert_array_equal(found, x)
    assert not xp.is_exact or found.tobytes() == x.tobytes()


@pytest.mark.parametrize(("alpha", "end"), [(0.1, np.inf), (0.0, 1.0)])
def test_nan_and_infinities(xp, alpha, end):
    expected = np.float32([-end, -0.0, 0.0, np.nan, end])
    np.testing.assert_array_equal(xp.array(xp.functions.plu(CORNERS, alpha)), expected)


def test_an_alpha_that_underflows_is_zero(xp):
    found = xp.functions.plu(xp.tensor(np.float32([np.inf, 5.0, -np.inf])), 1e-50)
    assert xp.array(found).tolist() == [1, 1, -1]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["plu", "inverse", "slope"])
def test_half_precision_goes_through_float32(xp, name, dtype):
    if not hasattr(xp.functions, name):
        pytest.skip("Keras has plu and inverse only")
    x = np.linspace(-50, 50, 333).astype(dtype)
    got = getattr(xp.functions, name)(xp.cast(x, dtype))
    assert xp.kind(got) == dtype
    expected = getattr(plunit.numpy, name)(x).astype(np.float32)
    step = 0 if xp.is_exact else 2.0**-7
    np.testing.assert_allclose(xp.array(got).astype(np.float32), expected, rtol=step, atol=0)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "uint8"])
def test_integers_become_floats(xp, dtype):
    if xp.of_integers is None:
        with pytest.raises(TypeError, match="got torch"):
            xp.functions.plu(xp.cast([0, 1, 3], dtype))
        return
    got = xp.functions.plu(xp.cast([0, 1, 3], dtype))
    assert xp.kind(got) == xp.of_integers
    np.testing.assert_allclose(xp.array(got), paper(np.array([0, 1, 3]).astype(dtype), 0.1, 1.0), rtol=3e-7)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (2, 3)])
def test_shape_is_kept(xp, shape):
    x = xp.tensor(np.ones(shape, np.float32))
    assert tuple(xp.functions.plu(x).shape) == tuple(xp.functions.inverse(x).shape) == shape


@pytest.mark.parametrize(("alpha", "c"), [(0.1, 1.0), (0.25, 0.5), (1.0, 2.0), (2.5, 1.0)])
def test_inverse_undoes_plu(xp, alpha, c):
    plu, inverse = xp.functions.plu, xp.functions.inverse
    x = few_points(c)
    np.testing.assert_allclose(xp.array(inverse(plu(x, alpha, c), alpha, c)), x, rtol=1e-5)
    np.testing.assert_allclose(xp.array(inverse(x, alpha, c)), plunit.numpy.inverse(x, alpha, c), rtol=1e-6)


def test_half_precision_parameters_are_inverted_in_float32(xp):
    alpha, x = xp.cast(0.1, "float16"), few_points(1.0)
    np.testing.assert_allclose(xp.array(xp.functions.inverse(xp.functions.plu(x, alpha), alpha)), x, rtol=1e-5)


@pytest.mark.parametrize(("alpha", "c"), [(0.1, 1.0), (0.0, 1.0), (0.25, 0.5)])
def test_gradients_are_the_finite_differences(xp, alpha, c):
    """Central differences of the paper's formula along x, alpha and c; along alpha at 0, to the right."""
    x = np.linspace(-3, 3, 13, dtype=np.float32) + np.float32(0.1)
    got = xp.gradients(xp.functions.plu, x, np.full_like(x, alpha), np.full_like(x, c))
    x, step, back = x.astype(np.float64), 1e-6, min(alpha, 1e-6)
    expected = [
        (paper(x + step, alpha, c) - paper(x - step, alpha, c)) / (2 * step),
        (paper(x, alpha + step, c) - paper(x, alpha - back, c)) / (step + back),
        (paper(x, alpha, c + step) - paper(x, alpha, c - step)) / (2 * step),
    ]
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 2.5])
@pytest.mark.parametrize("c", [0.0, 0.7, 1.0])
def test_kinks_belong_to_the_inner_piece(xp, alpha, c):
    kinks, _, outside = kinks_and_neighbours(c)
    parameters = np.full_like(kinks, alpha), np.full_like(kinks, c)
    np.testing.assert_array_equal(xp.gradients(xp.functions.plu, kinks, *parameters), [[1, 1], [0, 0], [0, 0]])
    found = xp.gradients(xp.functions.plu, outside, *parameters)[0]
    np.testing.assert_array_equal(found, np.float32([alpha, alpha]))
    if hasattr(xp.functions, "slope"):
        np.testing.assert_array_equal(xp.functions.slope(kinks, alpha, c), [1, 1])


def test_gradient_at_nan_and_infinities(xp):
    np.testing.assert_array_equal(xp.gradients(xp.functions.plu, CORNERS)[0], np.float32([0.1, 1, 1, 1, 0.1]))
    dx, dalpha = xp.gradients(xp.functions.plu, np.float32([np.nan, 2.0, 0.5]), 0.25)
    assert dx.tolist() == [1, 0.25, 1]
    assert np.isnan(dalpha)


@pytest.mark.parametrize(("alpha", "c"), C_BEYOND_FLOAT32)
def test_a_c_beyond_the_largest_number_leaves_every_number_inside(xp, alpha, c):
    plu = xp.functions.plu
    np.testing.assert_array_equal(xp.array(plu(LARGE, alpha, c)), LARGE)
    dx, dalpha = xp.gradients(lambda x, alpha: plu(x, alpha, c), LARGE, alpha)
    np.testing.assert_array_equal(dx, np.ones_like(LARGE))
    assert dalpha == 0
    end = np.finfo(np.float32).max if alpha == 0 else np.inf
    np.testing.assert_array_equal(xp.array(plu(np.float32([-np.inf, np.inf]), alpha, c)), np.float32([-end, end]))


def functions_of(xp):
    return [getattr(xp.functions, name) for name in FUNCTIONS if hasattr(xp.functions, name)]


@pytest.mark.parametrize("name", ["alpha", "c"])
@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf, np.array([0.1, -1.0])])
def test_bad_parameters(xp, name, value):
    for function in functions_of(xp):
        with pytest.raises(ValueError, match=rf"{name} must be finite and >= 0, got .*; the defaults are alpha=0\.1"):
            function(1.0, **{name: value})


def test_messages(xp):
    for function in functions_of(xp):
        with pytest.raises(TypeError, match=r"got .*complex\d+; "):
            function(xp.tensor(np.array([1j])))
    with pytest.raises(ValueError, match=r"inverse needs alpha > 0, got 0\.0; a flat piece"):
        xp.functions.inverse(1.0, alpha=0.0)


@pytest.mark.parametrize("alpha", NO_SLOPES_OF_AN_INVERSE)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_inverse_of_slopes_that_the_precision_does_not_have(xp, alpha, dtype):
    with pytest.raises(ValueError, match=r"alpha > 0"):
        xp.functions.inverse(xp.cast(np.ones(2), dtype), alpha)
