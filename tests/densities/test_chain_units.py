"""The activations of density networks: values and slopes against the formulas of the package, and inverses."""

import numpy as np
import pytest

from plunit import functional, smooth
from plunit.densities.chain_units import BlockUnits

U = np.concatenate([np.linspace(-6, 6, 241), [1e6, -1e6, 0.0]])[None]
ALPHAS = [0.01, 0.7, 1.0, 1 / 0.7, 30.0]
RHOS = [0.02, 0.5, 0.99]


def column(value):
    return np.array([[value]])


def units(alpha, c=1.5, rho=None, sides=2):
    return BlockUnits(column(alpha), column(c), None if rho is None else column(rho * c), column(0.0), sides)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_with_a_bend_it_is_smooth_plu(alpha, rho):
    value, log_slope = units(alpha, rho=rho).forward(U)
    np.testing.assert_allclose(value, smooth.formula(np, U, alpha, 1.5, rho), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(log_slope, smooth.log_slope_formula(np, U, alpha, 1.5, rho), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_with_kinks_it_is_plu(alpha):
    value, log_slope = units(alpha).forward(U)
    np.testing.assert_allclose(value, functional.formula(np, U, alpha, 1.5), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(log_slope, np.log(functional.slope_formula(np, U, alpha, 1.5)), atol=1e-12)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_with_one_side_it_is_leaky_relu(alpha):
    value, log_slope = units(alpha, c=0.0, sides=1).forward(U)
    np.testing.assert_allclose(value, np.where(U < 0, alpha * U, U), rtol=1e-12)
    np.testing.assert_allclose(log_slope, np.where(U < 0, np.log(alpha), 0))


@pytest.mark.parametrize(
    ("c", "rho", "sides"), [(1.5, None, 2), (0.0, None, 1), (1.5, 0.02, 2), (1.5, 0.5, 2), (1.5, 0.99, 2)]
)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_inverse_gives_points_and_log_slopes_back(alpha, c, rho, sides):
    unit = units(alpha, c, rho, sides)
    value, log_slope = unit.forward(U)
    back, again = unit.inverse(value)
    np.testing.assert_allclose(back, U, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(again, log_slope, atol=1e-7)
