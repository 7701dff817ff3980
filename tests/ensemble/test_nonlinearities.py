"""The activations: C++ and Python have the same, values and slopes are PyTorch's."""

import ctypes
import itertools

import numpy as np
import pytest
import torch
from lone_members import MODULES, PaperPLU

from plunit import learned
from plunit.ensemble import ACTIVATIONS, LOSSES, MLP
from plunit.ensemble.mlp import PIECEWISE
from plunit.programs import libraries

# kinks, signed zeros, neighbours of the kinks, large numbers, and a grid that misses them
KINKS = [-1.0, -0.0, 0.0, 1.0]
NEAR = [np.nextafter(KINKS, side) for side in (np.inf, -np.inf)]
POINTS = np.sort(np.concatenate([np.random.default_rng(0).normal(0, 3, 400), KINKS, *NEAR, [-80, -20, 20, 80]]))


def listed(function):
    """Return the names of a table of the compiled program."""
    function.restype = ctypes.c_char_p
    names = (function(ctypes.c_int64(i)) for i in itertools.count())
    return [name.decode() for name in itertools.takewhile(bool, names)]


@pytest.mark.usefixtures("compiler")
def test_the_compiled_program_has_the_same_names():
    assert listed(libraries.library().plunit_activation) == list(ACTIVATIONS)
    assert listed(libraries.library().plunit_loss) == list(LOSSES)


def test_every_activation_has_its_module():
    assert MODULES.keys() == ACTIVATIONS.keys()


def autograd(name, z):
    """Return the value and the slope of the module; PLU's kinks belong to the inner piece."""
    z = torch.from_numpy(z).requires_grad_()
    value = (PaperPLU if name == "plu_learned" else MODULES[name])()(z)
    (slope,) = torch.autograd.grad(value.sum(), z)
    slope = torch.where(z.abs() == 1, 1, slope) if name.startswith("plu") else slope
    return value.detach().numpy(), slope.numpy()


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-6), (np.float64, 1e-13)])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_values_and_slopes_are_those_of_autograd(name, dtype, tolerance):
    z = POINTS.astype(dtype)
    function = ACTIVATIONS[name]
    ours = function.value(z, dtype(0.1), dtype(1)), function.slope(z, dtype(0.1), dtype(1))
    assert [part.dtype for part in ours] == [dtype, dtype]
    np.testing.assert_allclose(ours, autograd(name, z), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", PIECEWISE)
def test_the_exact_function_is_the_same(name):
    found = ACTIVATIONS[name].exact(0.3, 2.0)
    piece = np.searchsorted(found.knots, POINTS)
    expected = found.slopes[piece] * POINTS + found.intercepts[piece]
    np.testing.assert_allclose(ACTIVATIONS[name].value(POINTS, 0.3, 2.0), expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_gradient_of_training_is_that_of_autograd(first_step, name):
    """One member for each point x: a(w x) with w = 1, and a target 1/2 below, where the loss has slope 1 in a."""
    x = POINTS[abs(POINTS) < 21].astype(np.float32)
    network = MLP((1, 1, 1), name)
    theta = np.zeros((network.parameters, len(x)), dtype=np.float32)
    theta[[0, 2]] = 1
    theta[4:] = [[np.log(0.1 / 0.9)], [0.0]] if network.learned else 0
    value, slope = autograd(name, x)
    target = value - np.float32(0.5)
    loss, gradient = first_step(network, theta, (x[None, None], target[None, None]))
    np.testing.assert_allclose(loss, np.full(len(x), 0.25), atol=1e-5)
    np.testing.assert_allclose(gradient[1], slope, atol=1e-5)
    np.testing.assert_allclose(gradient[2], value, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("row", [4, 5])
def test_beyond_the_limit_a_learned_shape_has_no_gradient(first_step, row):
    """One member for each raw alpha or raw c, at an input outside of the inner piece."""
    raw = np.array([-2 * learned.LIMIT, -1.0, 0.5, 2 * learned.LIMIT], np.float32)
    network = MLP((1, 1, 1), "plu_learned")
    theta = np.tile(np.array([[1.0], [0.0], [1.0], [0.0], [-1.0], [-1.0]], np.float32), len(raw))
    theta[row] = raw
    _, gradient = first_step(network, theta, (np.full((1, 1), 1e9), np.zeros((1, 1))))
    assert (gradient[row] != 0).tolist() == [False, True, True, False]
