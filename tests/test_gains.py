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


def test_published_values():
    assert round(plunit.gain(0.1, 1.0), 4) == 1.3473
    assert round(plunit.gain(0.1, 1.0, mode="backward"), 4) == 1.2075


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
