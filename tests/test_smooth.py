"""SmoothPLU on JAX arrays against rational arithmetic, the one for PyTorch and finite differences."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import plunit.invertible
from plunit.jax import inverse, log_slope, plu, smooth_inverse, smooth_log_slope, smooth_plu

PARAMETERS = [(0.1, 1.0, 0.5), (4.0, 0.7, 0.9), (0.3, 2.0, 0.01), (1e-3, 1.3, 0.25), (1.0, 1.0, 0.5), (1e4, 0.5, 0.99)]
FUNCTIONS = [smooth_plu, smooth_inverse, smooth_log_slope]
GRADIENTS = {f: jax.jit(jax.vmap(jax.grad(f, (0, 1, 2, 3)), (0, None, None, None))) for f in FUNCTIONS}


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


def exact(x, alpha, c, rho):
    """Return SmoothPLU(x) and its slope as Fractions: the area under a slope that falls linearly around c."""
    size, alpha, c, rho = (Fraction(float(value)) for value in (abs(x), alpha, c, rho))
    w = rho * c
    inner, outer = min(size, c - w), max(size - c - w, 0)
    width = size - inner - outer
    slope = 1 - (1 - alpha) * width / (2 * w)
    area = inner + width * (1 + slope) / 2 + alpha * outer
    return (area if x >= 0 else -area), slope


def points(alpha, c, rho):
    """Numbers of all three pieces, in float64, and the borders of the corners with their neighbours."""
    borders = np.array([c - rho * c, c, c + rho * c])
    positive = [*borders, *np.nextafter(borders, 0), *np.nextafter(borders, 9), *c * np.linspace(0.001, 2.2, 23), 1e6]
    return np.concatenate([positive, np.negative(positive)])


def differences(function, p, step=1e-6):
    """Return the central differences of a function of [n, 4] along each of the four, on the last axis."""
    steps = step * np.eye(4)
    return np.stack([(function(p + s) - function(p - s)) / (2 * step) for s in steps], -1)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("parameters", PARAMETERS)
def test_values_and_slopes_are_the_rational_ones(parameters):
    x = points(*parameters)
    value, slope = np.array([[float(part) for part in exact(number, *parameters)] for number in x]).T
    np.testing.assert_allclose(smooth_plu(x, *parameters), value, rtol=4e-15)
    eps = 4e-16 * max(1, parameters[0]) / parameters[2]  # of the place in the corner, which is known to eps / rho
    np.testing.assert_allclose(jnp.exp(smooth_log_slope(x, *parameters)), slope, rtol=1e-14, atol=eps)
    np.testing.assert_allclose(GRADIENTS[smooth_plu](x, *parameters)[0], slope, rtol=1e-14, atol=eps)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("direction", ["forward", "inverse"])
def test_it_is_the_function_of_pytorch(parameters, direction):
    bijection = plunit.invertible.SmoothPLU(1, *parameters, learnable=True, learnable_rho=True).double()
    values = [value.item() for value in (bijection.alpha, bijection.c, bijection.rho)]
    x = points(*values)
    arguments = torch.tensor(x)[:, None].requires_grad_()
    y, log_det = getattr(bijection, direction)(arguments)
    function = smooth_plu if direction == "forward" else smooth_inverse
    np.testing.assert_allclose(function(x, *values), y.detach()[:, 0], rtol=2e-13)
    place = jnp.asarray(x) if direction == "forward" else smooth_inverse(x, *values)
    sign = 1 if direction == "forward" else -1
    np.testing.assert_allclose(sign * smooth_log_slope(place, *values), log_det.detach(), rtol=1e-12, atol=1e-11)
    (gradient,) = torch.autograd.grad(y.sum(), arguments)
    np.testing.assert_allclose(GRADIENTS[function](x, *values)[0], gradient[:, 0], rtol=1e-11)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_derivatives_to_second_order_are_the_finite_differences(function):
    x = np.array([-3.0, -1.1, -0.6, 0.1, 0.5, 0.9, 2.9])
    p = np.array([(number, alpha, 0.8, 0.6) for number in x for alpha in (0.4, 1.0, 3.0)])
    value = jax.vmap(lambda p: function(*p))
    gradient = jax.jit(jax.vmap(jax.grad(lambda p: function(*p))))
    hessian = jax.jit(jax.vmap(jax.jacfwd(jax.grad(lambda p: function(*p)))))
    np.testing.assert_allclose(gradient(p), differences(value, p), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(hessian(p), differences(gradient, p), rtol=1e-7, atol=1e-7)


@settings(deadline=None)
@given(x=st.floats(-1e6, 1e6), log_alpha=st.floats(-6, 6), log_c=st.floats(-3, 3), rho=st.floats(0, 1))
def test_round_trip_for_any_parameters(x, log_alpha, log_c, rho):
    with jax.enable_x64(True):
        parameters = np.exp(log_alpha), np.exp(log_c), rho
        back = smooth_inverse(smooth_plu(np.float64(x), *parameters), *parameters)
    np.testing.assert_allclose(back, x, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_outside_the_corners_it_is_plu_to_the_bit(parameters):
    alpha, c, rho = parameters
    x = np.float32([-1e6, -3, -(1 + rho) * 1.001 * c, -(1 - rho) * 0.999 * c, -0.0, 0.0, 1e-30, 4, np.nan, np.inf])
    outside = np.concatenate([x, -x])
    np.testing.assert_array_equal(smooth_plu(outside, *parameters), plu(outside, alpha, c))
    np.testing.assert_array_equal(smooth_log_slope(outside, *parameters), log_slope(outside, alpha, c))
    np.testing.assert_array_equal(
        smooth_inverse(plu(outside, alpha, c), *parameters), inverse(plu(outside, alpha, c), alpha, c)
    )
    assert np.signbit(smooth_plu(np.float32(-0.0), *parameters))


@pytest.mark.parametrize(("c", "rho"), [(1.0, 0.0), (0.0, 0.5), (0.0, 1.0)])
@pytest.mark.parametrize(
    ("function", "kinked"), [(smooth_plu, plu), (smooth_inverse, inverse), (smooth_log_slope, log_slope)]
)
def test_a_corner_without_width_is_that_of_plu(function, kinked, c, rho):
    x = np.float32([-3, -1, -0.0, 0, 1e-3, 0.5, 1, 2])
    np.testing.assert_array_equal(function(x, 0.1, c, rho), kinked(x, 0.1, c))
    assert np.isfinite(GRADIENTS[function](x, 0.1, c, rho)).all()


@pytest.mark.parametrize("alpha", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_gradient_is_nan_far_out_and_at_the_borders(function, alpha):
    x = np.float32([-np.inf, -1e30, 0.0, 0.98, 1.0, 1.02, 3e38, np.inf])
    of_x, of_alpha, of_c, of_rho = GRADIENTS[function](x, alpha, 1.0, 0.02)
    assert np.isfinite([of_x, of_c, of_rho]).all()
    assert not np.isnan(of_alpha).any()


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("function", [smooth_plu, smooth_inverse])
def test_the_gradient_of_rho_is_not_lost_to_rounding(alpha, function):
    y = np.random.default_rng(0).normal(size=4096)
    single = GRADIENTS[function](y.astype(np.float32), alpha, 1.0, 0.5)[3]
    with jax.enable_x64(True):
        double = GRADIENTS[function](y, alpha, 1.0, 0.5)[3]
    np.testing.assert_allclose(single, double, rtol=1e-4, atol=1e-6 * np.abs(double).max())


@pytest.mark.parametrize("function", FUNCTIONS)
def test_jit_vmap_and_arrays_of_parameters_change_nothing(function):
    x = np.linspace(-3, 3, 40, dtype=np.float32)
    alpha, c, rho = np.float32([0.1, 0.5, 2.0, 0.1]), np.float32([1, 2, 0.5, 1]), np.float32([0.5, 0.1, 0.9, 0])
    expected = np.stack([function(x, *values) for values in zip(alpha, c, rho, strict=True)])
    columns = alpha[:, None], c[:, None], rho[:, None]
    np.testing.assert_allclose(function(x, *columns), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(function)(x, *columns), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(function, (None, 0, 0, 0))(x, alpha, c, rho), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_half_precision_goes_through_float32(function, dtype):
    x = jnp.linspace(-3, 3, 99).astype(dtype)
    assert function(x).dtype == dtype
    np.testing.assert_array_equal(function(x), function(x.astype("float32")).astype(dtype))


def test_flat_outer_pieces_and_messages():
    np.testing.assert_array_equal(smooth_plu(jnp.array([-9.0, 0.25, jnp.inf]), 0.0), [-1, 0.25, 1])
    bad = [
        ("alpha", -0.1, ">= 0"),
        ("c", np.nan, ">= 0"),
        ("rho", 1.1, "lie in"),
        ("rho", np.array([0.5, -1]), "lie in"),
    ]
    for function in FUNCTIONS:
        for name, value, rule in bad:
            with pytest.raises(ValueError, match=f"{name} must .*{rule}"):
                function(1.0, **{name: value})
    with pytest.raises(ValueError, match="inverse needs alpha > 0"):
        smooth_inverse(1.0, alpha=0.0)
