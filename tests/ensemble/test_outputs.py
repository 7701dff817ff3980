"""Outputs in float64 by the compiled program, against NumPy and other builds."""

import numpy as np
import pytest
from compilers import TARGETS, narrow_program, needs_fma

from plunit.ensemble import MLP, forward, outputs
from plunit.ensemble.mlp import PIECEWISE
from plunit.programs import libraries

pytestmark = pytest.mark.usefixtures("compiler")

SHAPES = [(5, 16, 16, 1), (3, 7, 2), (2, 3), (1, 9, 5, 6, 3)]


def draw(widths, activation, members=5, rows=333):
    network, rng = MLP(widths, activation), np.random.default_rng(len(widths))
    x = rng.normal(size=(rows, widths[0])) * 3
    x[0], x[1] = 0.0, -0.0
    return network, rng.normal(size=(network.parameters, members)), x


def whole(network, theta, x):
    return np.concatenate([values for _, values in outputs.output_blocks(network, theta, x, 0.3, 0.5)], axis=1)


@pytest.mark.parametrize("widths", SHAPES)
@pytest.mark.parametrize("activation", PIECEWISE)
def test_the_program_computes_what_numpy_does(activation, widths):
    network, theta, x = draw(widths, activation)
    expected = np.moveaxis(forward(network, theta, x.T, 0.3, 0.5), (0, 1, 2), (2, 1, 0))
    found = outputs.native_outputs(libraries.library(), network, theta, x, 0.3, 0.5)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@needs_fma
@pytest.mark.parametrize("target", TARGETS, ids=" ".join)
def test_every_processor_computes_the_same_bits(target):
    network, theta, x = draw((5, 16, 13, 3), "plu")
    one = outputs.native_outputs(narrow_program(target, "train"), network, theta, x, 0.3, 0.5)
    np.testing.assert_array_equal(one, outputs.native_outputs(libraries.library(), network, theta, x, 0.3, 0.5))


@pytest.mark.parametrize("activation", PIECEWISE)
def test_kinks_belong_to_the_same_pieces(activation):
    network = MLP((1, 1, 1), activation)
    theta = np.array([[1.0], [0.0], [1.0], [0.0], *([[0.0]] * (network.parameters - 4))])
    x = np.array([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])[:, None]
    expected = forward(network, theta, x.T, 0.3, 0.5)[0]
    np.testing.assert_array_equal(whole(network, theta, x)[0], expected)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_of_any_layout(order, dtype):
    network, theta, x = draw((5, 16, 16, 1), "plu")
    given = np.repeat(x.astype(dtype), 2, axis=0)[::2].copy(order=order)
    np.testing.assert_array_equal(whole(network, theta, given), whole(network, theta, x.astype(dtype).astype(float)))


@pytest.mark.parametrize("rows", [1, 63, 64, 65])
def test_a_row_has_the_same_bits_beside_any_others(rows):
    network, theta, x = draw((5, 16, 16, 3), "plu")
    np.testing.assert_array_equal(whole(network, theta, x[:rows]), whole(network, theta, x)[:, :rows])


def test_smooth_networks_are_evaluated_too():
    network, theta, x = draw((3, 7, 2), "tanh")
    np.testing.assert_allclose(
        whole(network, theta, x), np.moveaxis(forward(network, theta, x.T), (0, 1, 2), (2, 1, 0))
    )


def test_arrays_that_do_not_belong_together_are_refused():
    network, theta, x = draw((3, 7, 2), "plu")
    for wrong in ((theta[1:], x), (theta, x[:, 1:])):
        with pytest.raises(ValueError, match="do not fit"):
            outputs.native_outputs(libraries.library(), network, *wrong, 0.1, 1.0)
