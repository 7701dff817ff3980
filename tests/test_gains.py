import numpy as np
import pytest

import plunit


@pytest.mark.parametrize(
    ("alpha", "c", "variance"), [(0.1, 1, 1), (0.1, 1, 4), (0.5, 0.3, 2), (0, 1, 1), (2, 1, 1), (1, 5, 3)]
)
def test_gains_are_those_of_the_integrals(alpha, c, variance):
    # Gauss-Legendre on each smooth stretch of the density
    nodes, weights = np.polynomial.legendre.leggauss(200)
    sigma = np.sqrt(variance)
    edges = np.unique([-12 * sigma, -c, 0, c, 12 * sigma])
    middle, half = (edges[1:] + edges[:-1])[:, None] / 2, np.diff(edges)[:, None] / 2
    z, weights = (middle + half * nodes).ravel(), (half * weights).ravel()
    density = np.exp(-(z**2) / (2 * variance)) / (sigma * np.sqrt(2 * np.pi)) * weights
    forward = np.sqrt(variance / np.sum(density * plunit.plu(z, alpha, c) ** 2))
    backward = 1 / np.sqrt(np.sum(density * plunit.slope(z, alpha, c) ** 2))
    assert plunit.gain(alpha, c, variance) == pytest.approx(forward, rel=1e-10)
    assert plunit.gain(alpha, c, variance, mode="backward") == pytest.approx(backward, rel=1e-10)


def test_a_straight_line_needs_no_nonlinear_gain():
    assert plunit.gain(1.0, 1.0) == pytest.approx(1)
    assert plunit.gain(0.25, 0.0) == pytest.approx(4)


@pytest.mark.parametrize("mode", ["forward", "backward"])
@pytest.mark.parametrize("arguments", [{"c": 1e200}, {"variance": 5e-324}, {"alpha": 1e200, "c": 50}])
def test_signals_that_never_reach_a_kink_need_no_gain(arguments, mode):
    assert plunit.gain(**arguments, mode=mode) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": -1}, "alpha must be finite and >= 0, got -1"),
        ({"variance": 0}, "variance must be finite and > 0, got 0"),
        ({"mode": "sideways"}, "mode must be .* got 'sideways'"),
        ({"alpha": 0, "c": 0}, "has no finite gain"),
        ({"alpha": 1e200}, "has no finite gain"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        plunit.gain(**arguments)


@pytest.mark.parametrize("mode", ["forward", "backward"])
@pytest.mark.parametrize("alpha", [0.0, 1e-12, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("c", [1e-150, 1e-8, 1e-3, 0.49, 0.51, 1.0, 5.0])
def test_gain_has_all_its_digits(alpha, c, mode):
    mpmath = pytest.importorskip("mpmath")
    if mode == "backward" and alpha == 0 and c < 1e-100:
        pytest.skip("the energy itself is next to 0")
    with mpmath.workdps(400):
        a, k = mpmath.mpf(alpha), mpmath.mpf(c)
        p = mpmath.erf(k / mpmath.sqrt(2))
        density = k * mpmath.npdf(k)
        inner, cross = p - 2 * density, 4 * a * (1 - a) * density
        outer = a**2 * (1 - p + 2 * density) + cross + ((1 - a) * k) ** 2 * (1 - p)
        energy = inner + outer if mode == "forward" else p + (1 - p) * a**2
        expected = float(1 / mpmath.sqrt(energy))
    assert plunit.gain(alpha, c, mode=mode) == pytest.approx(expected, rel=4e-15)
