import numpy as np
import pytest

from plunit.pieces import activation, network
from plunit.pieces.exact.crossing import Points, cuts, join_points
from plunit.pieces.exact.tolerance import Units, affine_with_error


def random_points(units, f, n, seed):
    """Return units of a layer, and points without errors, so that only rounding decides their sides."""
    rng = np.random.default_rng(seed)
    net = network([(rng.normal(size=(units, 2)), rng.normal(size=units)), f])
    place = rng.normal(size=(n, 2))
    state = np.stack([place, 0 * place], axis=1)
    member = np.zeros(n, dtype=np.int64)
    layer = net.alone.layers[0]
    state = affine_with_error(layer.weight, layer.bias, state, member)
    state[:, 1] = 0
    found = Units.of(layer.activation)
    return found, Points.at(found, place, state, member)


@pytest.mark.parametrize("f", [activation.plu(), activation.relu()])
@pytest.mark.parametrize("units", [1, 5, 70])
def test_no_line_is_crossed_between_neighbours(f, units):
    layer, points = random_points(units, f, 40, units)
    tail, head = np.arange(20), np.arange(20, 40)
    parts, segment = cuts(layer, points, tail, head, print)
    new = join_points(*parts)
    assert (np.diff(segment) >= 0).all()
    for i in range(20):
        inner = new.take(np.flatnonzero(segment == i))
        chain = join_points(points.take(tail[[i]]), inner, points.take(head[[i]]))
        above, below = chain.sides
        assert not (above[:, 1:] & below[:, :-1] | below[:, 1:] & above[:, :-1]).any()
        along = (chain.place - chain.place[0]) @ (chain.place[-1] - chain.place[0])
        assert (np.diff(along) > 0).all()
    assert len(new) > units


def test_a_new_point_is_exactly_on_its_line():
    layer, points = random_points(1, activation.relu(), 400, 6)
    parts, _ = cuts(layer, points, np.arange(200), np.arange(200, 400), print)
    new = join_points(*parts)
    assert len(new) > 10
    assert not new.sides.any()
    assert not new.state.any()


def test_a_unit_within_its_error_of_a_knot_is_put_there():
    units = Units.of(network([(np.eye(3), np.zeros(3)), activation.plu()]).layers[0].activation)
    state = np.array([[[0.9, 1.0, 1.5], [0.1, 1e-3, 1e-3]]])
    points = Points.at(units, np.zeros((1, 2)), state, np.zeros(1, dtype=np.int64))
    # 0.9 is within 32 * 0.1 of both knots, but only on the nearer one; 1.5 is certainly above 1
    assert points.state[0, 0].tolist() == [1.0, 1.0, 1.5]
    np.testing.assert_allclose(points.state[0, 1], [0.1, 0.0, 1e-3])
    above, below = points.sides[:, :, 0]
    assert [int(word) for word in above] == [0b111, 0b100]
    assert [int(word) for word in below] == [0b000, 0b000]


@pytest.mark.parametrize(
    ("knots", "z", "on"),
    [
        ((-1.0, 1.0), 0.0, [False, False]),
        ((-1.0, 1.0), -1.1, [True, False]),
        ((-1.0, 1.0), 1.4, [False, True]),
        ((0.5, 0.5), 3.0, [True, True]),
        ((0.0, np.inf), 3.0, [True, False]),
    ],
)
def test_a_unit_is_not_on_two_knots_however_large_its_error(knots, z, on):
    units = Units.of(network([([[1.0]], [0.0]), activation.piecewise(knots, [0.0, 1.0, 0.0])]).layers[0].activation)
    sides = units.sides(np.array([[[z], [0.2]]]), np.zeros(1, dtype=np.int64))
    assert (sides[0] | sides[1] == 0).ravel().tolist() == on


def test_a_cut_on_a_knot_is_off_the_other_knots_of_the_unit():
    """The knots -1 and 1 of a steep unit are distinguished although 32 times its error exceeds their distance."""
    units = Units.of(network([(np.eye(1), np.zeros(1)), activation.hardtanh()]).layers[0].activation)
    state = np.array([[[-1e14], [0.1]], [[2e14], [0.1]]])
    points = Points.at(units, np.array([[0.0], [3.0]]), state, np.zeros(2, dtype=np.int64))
    parts, _ = cuts(units, points, np.array([0]), np.array([1]), print)
    assert join_points(*parts).state[:, 0, 0].tolist() == [-1.0, 1.0]
