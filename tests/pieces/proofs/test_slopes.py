"""Bounds of gradients from the program alone, without the gradients that sampling finds, against cells."""

from dataclasses import replace

import numpy as np
import pytest

from plunit.pieces import Network, activation, cells, network
from plunit.pieces.proofs.encoding import encode
from plunit.pieces.proofs.steepness import along, dual_norm, exclude, gradient_form

pytest.importorskip("highspy")

BOX = ((-2.0, 2.0), (-1.0, 3.0))


def random_net(seed):
    rng = np.random.default_rng(seed)
    layers = [(rng.standard_normal((4, 2)), rng.standard_normal(4)), activation.plu()]
    layers += [(rng.standard_normal((3, 4)), rng.standard_normal(3)), activation.plu(2.0, 0.7)]
    return network([*layers, (rng.standard_normal((1, 3)), [0.0])])


def chain():
    """Three units one behind the other: the range of the gradient behind each is reached."""
    link = [([[1.0]], [0.0]), activation.plu()]
    return network([([[1.0, 0.5]], [0.0]), activation.plu(), *link, *link, ([[2.0]], [0.0])])


def program_bounds(net, what, seen=()):
    encoding = encode(net, np.array(BOX))
    gradient, bounds = gradient_form(net, encoding)
    goals = what.goals(encoding, gradient, bounds, list(seen))
    return max(what.back(encoding.program.maximise(goal).bound) for goal in goals)


@pytest.mark.parametrize("net", [random_net(0), random_net(1), random_net(2), chain()], ids=["0", "1", "2", "chain"])
@pytest.mark.parametrize("direction", [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.6, -0.8)])
def test_the_program_bounds_the_gradient(net, direction):
    direction = np.array(direction)
    exact = (cells(net, BOX).gradients[:, 0] @ direction).max()
    assert program_bounds(net, along(direction)) == pytest.approx(exact, abs=1e-7)


@pytest.mark.parametrize(("norm", "dual"), [(1.0, np.inf), (np.inf, 1), (2.0, 2)])
@pytest.mark.parametrize("net", [random_net(0), random_net(1), chain()], ids=["0", "1", "chain"])
def test_the_program_bounds_the_norm(net, norm, dual):
    """With chords that meet the squares of the steepest gradient, the bound of the Euclidean norm is exact."""
    gradients = cells(net, BOX).gradients[:, 0]
    sizes = np.linalg.norm(gradients, ord=dual, axis=1)
    without, with_all = (program_bounds(net, dual_norm(norm), seen) for seen in ((), gradients))
    assert without >= sizes.max() - 1e-9
    assert without <= 1.2 * sizes.max()
    assert with_all == pytest.approx(sizes.max(), abs=1e-7)


def test_a_pattern_of_one_encoding_is_excluded_from_another():
    """The best pattern of a wide encoding, excluded from a tight one of fewer binaries: the second best is left."""
    net, box = random_net(1), np.array(BOX)
    found = cells(net, BOX)
    steep = found.gradients[:, 0, 0]
    best, second = np.unique(steep)[[-1, -2]]
    wide = encode(net, box)
    gradient, _ = gradient_form(net, wide)
    pattern = wide.pattern(wide.program.maximise(gradient[:1]).t)
    ranges = [(z.min(axis=0) - 1e-6, z.max(axis=0) + 1e-6) for z in layers(net, found.vertices)]
    tight = encode(net, box, ranges)
    assert tight.program.binaries < wide.program.binaries
    gradient, _ = gradient_form(net, tight)
    assert tight.program.maximise(gradient[:1]).bound == pytest.approx(best, abs=1e-7)
    exclude(tight, pattern)
    assert tight.program.maximise(gradient[:1]).bound == pytest.approx(second, abs=1e-7)


def test_a_pattern_that_an_encoding_cannot_have_excludes_nothing():
    net = random_net(1)
    encoding = encode(net, np.array(BOX) / 100)
    gradient, _ = gradient_form(net, encoding)
    top = encoding.program.maximise(gradient[:1]).bound
    exclude(encoding, [np.full(4, 2), np.full(3, 2)])
    assert encoding.program.maximise(gradient[:1]).bound == top


def layers(net, x):
    """Z of each layer at x: the outputs of the network up to there."""
    return [Network((*net.layers[:i], replace(net.layers[i], activation=None)))(x) for i in range(len(net.hidden))]


def test_an_excluded_pattern_does_not_come_again():
    net = random_net(1)
    encoding = encode(net, np.array(BOX))
    gradient, _ = gradient_form(net, encoding)
    goal, seen = gradient[:1], []
    for _ in range(5):
        found = encoding.program.maximise(goal)
        pattern = encoding.pattern(found.t)
        seen.append(tuple(map(tuple, pattern)))
        exclude(encoding, pattern)
    assert len(set(seen)) == 5
