"""The program of a network: its size, and that its relaxation is the convex hull of each unit."""

import numpy as np
import pytest
from plunit.pieces.proofs.encoding import encode

from plunit.pieces import activation, network

pytest.importorskip("highspy")

BOX = np.array([[-3.0, 2.0]])


def one_unit(f):
    return network([([[1.0]], [0.0]), f, ([[1.0]], [0.0])])


@pytest.mark.parametrize(
    ("f", "binaries"),
    [
        (activation.plu(), 2),
        (activation.relu(), 1),
        (activation.plu(0.1, 2.5), 1),
        (activation.plu(0.1, 3.5), 0),
        (activation.identity(), 0),
    ],
)
def test_a_knot_outside_the_range_needs_no_binary(f, binaries):
    found = encode(one_unit(f), BOX)
    assert found.inside == found.program.binaries == binaries


@pytest.mark.parametrize("f", [activation.plu(), activation.relu(), activation.plu(2.0), activation.absolute()])
@pytest.mark.parametrize("direction", [(1.0, -1.0), (1.0, 0.3), (-0.5, 1.0), (0.2, -1.0)])
def test_the_relaxation_is_the_hull_of_the_graph(f, direction):
    """A linear goal over the hull of (x, f(x)) is largest on the graph itself."""
    found = encode(one_unit(f), BOX)
    a, b = direction
    goal = found.program.form(1)
    x, y = found.program.padded(found.x), found.program.padded(found.output)
    goal.matrix[0] = a * x.matrix[0] + b * y.matrix[0]
    goal.constant[0] = a * x.constant[0] + b * y.constant[0]
    points = np.linspace(-3, 2, 5001)[:, None]
    exact = (a * points + b * one_unit(f)(points)).max()
    assert found.program.relaxation().maximum(goal).bound == pytest.approx(exact, abs=1e-9)


def test_the_pattern_is_that_of_the_point():
    rng = np.random.default_rng(0)
    net = network([(rng.standard_normal((4, 3)), rng.standard_normal(4)), activation.plu(), ([[1.0, 2, -1, 1]], [0.0])])
    found = encode(net, np.array([[-2.0, 2.0]] * 3))
    t = found.program.maximise(found.output).t
    x = found.x.matrix @ t[:3] + found.x.constant
    z = net.layers[0].weight @ x + net.layers[0].bias
    clear = np.abs(np.abs(z) - 1) > 1e-6
    assert (found.pattern(t)[0] == (z > -1).astype(int) + (z > 1))[clear].all()
