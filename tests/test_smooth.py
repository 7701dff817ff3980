"""The formulas of SmoothPLU against rational arithmetic and autograd, and PyTorch's fused form against them."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import exact_smooth

import plunit.invertible
from plunit import functional, smooth

PARAMETERS = [(0.1, 1.0, 0.5), (4.0, 0.7, 0.9), (0.3, 2.0, 0.01), (1e-3, 1.3, 0.25), (1.0, 1.0, 0.5), (1e4, 0.5, 0.99)]
parameters = pytest.mark.parametrize("parameters", PARAMETERS)


def points(alpha, c, rho):
    """Numbers of all three pieces, in float64, and the borders of the corners with their neighbours."""
    borders = np.array([c - rho * c, c, c + rho * c])
    positive = [*borders, *np.nextafter(borders, 0), *np.nextafter(borders, 9), *c * np.linspace(0.001, 2.2, 23), 1e6]
    return np.concatenate([positive, np.negative(positive)])


def evaluate(xp, x, alpha, c, rho):
    """Return SmoothPLU(x) and its slope by the formulas."""
    r, integral = smooth.bend(xp, abs(x), c, rho * c)
    return x - xp.sign(x) * (1 - alpha) * integral, smooth.slope(xp, r, alpha)


def invert(xp, y, alpha, c, rho):
    """Return the x with SmoothPLU(x) = y and its slope by the formulas."""
    a, r = smooth.unbend(xp, abs(y), alpha, c, rho * c)
    return xp.sign(y) * a, smooth.slope(xp, r, alpha)


def tensors(*numbers):
    return [torch.tensor(number, dtype=torch.float64) for number in numbers]


@parameters
def test_values_and_slopes_are_the_rational_ones(parameters):
    x = points(*parameters)
    value, slope = evaluate(np, x, *parameters)
    expected = np.array([[float(part) for part in exact_smooth(number, *parameters)] for number in x]).T
    np.testing.assert_allclose(value, expected[0], rtol=1e-14, atol=4e-16 * abs(x).max())
    eps = 4e-16 * max(1, parameters[0]) / parameters[2]  # of the place in the corner, which is known to eps / rho
    np.testing.assert_allclose(slope, expected[1], rtol=1e-14, atol=eps)


@parameters
def test_the_slope_and_its_descent_are_the_derivatives(parameters):
    alpha, c, rho = (float(number) for number in parameters)
    x = torch.tensor(np.abs(points(*parameters)), requires_grad=True)
    value, slope = evaluate(torch, x, *tensors(alpha, c, rho))
    r, _ = smooth.bend(torch, x, c, rho * c)
    inside = ((r > 1e-9) & (r < 1 - 1e-9)).detach()  # on the borders rounding decides
    (of_value,) = torch.autograd.grad(value.sum(), x, retain_graph=True)
    torch.testing.assert_close(of_value[inside], slope[inside], rtol=1e-7, atol=1e-7)
    (of_slope,) = torch.autograd.grad(slope.log().sum(), x)
    descent = smooth.log_slope_descent(torch, r, slope, *tensors(alpha, rho * c))
    torch.testing.assert_close(-of_slope[inside], descent[inside], rtol=1e-7, atol=1e-7)
    assert not descent[(r == 0) | (r == 1)].any()


@pytest.mark.parametrize("direction", ["forward", "inverse"])
@parameters
def test_pytorch_has_the_same_function(parameters, direction):
    bijection = plunit.invertible.SmoothPLU(1, *parameters, learnable=True, learnable_rho=True).double()
    values = [value.item() for value in (bijection.alpha, bijection.c, bijection.rho)]
    x = points(*values)
    found = torch.tensor(x)[:, None].requires_grad_()
    y, log_det = getattr(bijection, direction)(found)
    expected, slope = (evaluate if direction == "forward" else invert)(torch, *tensors(x, *values))
    torch.testing.assert_close(y[:, 0], expected, rtol=2e-13, atol=0)
    sign = 1 if direction == "forward" else -1
    torch.testing.assert_close(log_det, sign * slope.log(), rtol=1e-12, atol=1e-11)
    (gradient,) = torch.autograd.grad(y.sum(), found)
    torch.testing.assert_close(gradient[:, 0], slope**sign, rtol=1e-9, atol=0)


@settings(deadline=None)
@given(x=st.floats(-1e6, 1e6), log_alpha=st.floats(-6, 6), log_c=st.floats(-3, 3), rho=st.floats(0.001, 1))
def test_round_trip_for_any_parameters(x, log_alpha, log_c, rho):
    shape = np.exp(log_alpha), np.exp(log_c), rho
    value, slope = evaluate(np, np.float64(x), *shape)
    back, again = invert(np, value, *shape)
    np.testing.assert_allclose(back, x, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(again, slope, rtol=1e-5)


@parameters
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_outside_the_corners_slopes_are_those_of_plu_to_the_bit(parameters, dtype):
    alpha, c, rho = (dtype(number) for number in parameters)
    x = np.array([-1e6, -3 * c, -(1 + rho) * 1.01 * c, -(1 - rho) * 0.99 * c, 0, 1e-30, 4 * c], dtype)
    value, slope = evaluate(np, x, alpha, c, rho)
    np.testing.assert_array_equal(slope, functional.slope_formula(np, x, alpha, c))
    eps = 2 * np.finfo(dtype).eps
    np.testing.assert_allclose(value, functional.formula(np, x, alpha, c), rtol=eps, atol=eps * abs(x).max())
    np.testing.assert_array_equal(invert(np, value, alpha, c, rho)[1], slope)
