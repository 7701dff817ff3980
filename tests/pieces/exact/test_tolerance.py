"""Values of units with their errors, along falling pieces as well."""

import numpy as np
import pytest

from plunit.pieces import activation, network
from plunit.pieces.exact.polylines import trace_line
from plunit.pieces.exact.tolerance import Units

FALLING = activation.piecewise([-1.0, 0.0, 1.0], [0.5, -2.0, 3.0, -0.25])


@pytest.mark.parametrize("members", [1, 3])
def test_an_error_grows_by_the_size_of_the_slope(members):
    f = FALLING.broadcast(2, members)
    z = np.array([[-3.0, -0.5], [0.5, 2.0], [-1.0, 1.0]])
    state, member = np.stack([z, np.full_like(z, 1e-9)], axis=1), np.arange(3) % members
    y = Units.of(f).forward(state, member)
    np.testing.assert_array_equal(y[:, 0], FALLING(z))
    np.testing.assert_allclose(y[:, 1], 1e-9 * np.array([[0.5, 2.0], [3.0, 0.25], [2.0, 3.0]]))  # the steeper side


def test_members_with_functions_of_their_own_keep_them():
    slopes = np.array([[0.0, 0.5, 2.0]])
    f = activation.leaky_relu(slopes).broadcast(1, 3)
    state = np.array([[[-1.0], [0.0]]] * 3)
    assert Units.of(f).forward(state, np.array([2, 0, 1]))[:, 0, 0].tolist() == [-2.0, 0.0, -0.5]


def test_errors_along_a_line_are_not_negative():
    net = network([([[1.0], [2.0]], [0.1, 0.3]), FALLING, ([[1.0, -1.0]], [0.0]), FALLING, ([[1.0]], [0.0])])
    ends = np.array([-3.0, 3.0])
    line = trace_line(net.alone, ends, ends[:, None], 1000)
    assert len(line.t) > 6
    assert (line.value[:, 1] >= 0).all()
    assert (line.slope[:, 1] >= 0).all()
