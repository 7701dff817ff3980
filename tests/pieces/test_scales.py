"""Networks of very different scales: no piece is lost, and a steep unit blurs only the values that depend on it."""

import numpy as np
import pytest

from plunit.pieces import activation, counts, curve, network, polygon_counts, polygons

BOX = ((-3.0, 3.0), (-1.0, 1.0))


def step(weight, at=0.3):
    """hardtanh(weight (x - at)): from -1 to 1 within 2 / weight."""
    return network([([[weight]], [-weight * at]), activation.hardtanh(), ([[1.0]], [0.0])])


@pytest.mark.parametrize("weight", [1e8, 1e12, 1e13, 1e14])
def test_a_steep_step_is_a_piece(weight):
    found = curve(step(weight), -3.0, 3.0)
    assert (found.patterns, found.pieces) == (3, 3)
    assert found.slopes.ravel().tolist() == [0, weight, 0]
    for f in (found, found.merge()):
        assert f([-3.0, 0.2, 0.4, 3.0]).ravel().tolist() == [-1, -1, 1, 1]


@pytest.mark.parametrize("weight", [1e8, 1e12, 1e13])
def test_a_flat_piece_is_exact_behind_a_steep_one(weight):
    # 1e12 makes any error of the step's height visible
    net = network([([[weight]], [-0.7 * weight]), activation.hardtanh(), ([[1e12]], [-1e12])])
    found = curve(net, -3.0, 3.0)
    assert found([1.0, 3.0]).ravel().tolist() == [0, 0] == net([[1.0], [3.0]]).ravel().tolist()


@pytest.mark.parametrize("weight", [1e17, 1e18, 1e30])
def test_a_step_between_neighbouring_numbers_is_refused(weight):
    with pytest.raises(ValueError, match=r"f goes from -?1 to -?1, but its slope is 0: pieces there are"):
        curve(step(weight), -3.0, 3.0)
    assert [number.tolist() for number in counts(step(weight), -3.0, 3.0)] == [[0], [0]]


@pytest.mark.parametrize("weight", [1e18, 1e100])
def test_numbers_are_dense_around_zero(weight):
    found = curve(step(weight, at=0.0), -3.0, 3.0)
    np.testing.assert_allclose(found.knots, [-3, -1 / weight, 1 / weight, 3], rtol=1e-15)
    np.testing.assert_allclose(found([-2 / weight, 0.0, 0.5 / weight, 2 / weight]).ravel(), [-1, 0, 0.5, 1], rtol=1e-15)


def saturated(inputs):
    """A unit of weight 1e8 that saturates at once, next to one of weight 0.5, both seen through 1e5 relu."""
    first = np.zeros((2, inputs))
    first[:, 0] = [1e8, 0.5]
    return network(
        [(first, [0.0, 0.0]), activation.hardtanh(), ([[1.0, 1e-5]], [-1.0]), activation.relu(), ([[1e5]], [0.0])]
    )


def test_an_error_ends_where_a_unit_saturates():
    line, plane = curve(saturated(1), -3.0, 3.0), polygons(saturated(2), BOX)
    np.testing.assert_allclose(line([0.5, 0.9, 3.0]).ravel(), [0.25, 0.45, 1.0], rtol=1e-9)
    np.testing.assert_allclose(plane([[0.5, 0.0], [0.9, 0.5], [3.0, -1.0]]).ravel(), [0.25, 0.45, 1.0], rtol=1e-9)
    net = network([([[1e13, 0.0]], [-3e12]), activation.hardtanh(), ([[1.0]], [0.0])])
    assert polygons(net, BOX)([[0.2, 0.0], [0.4, 0.0]]).ravel().tolist() == [-1, 1]


@pytest.mark.parametrize("low", [-1e6, -1e12, -1e15, -1e20, -1e100])
def test_a_far_knot_moves_no_piece(low):
    line, plane = (network([(np.eye(1, n), [0.0]), activation.hardtanh(low, 0.1), ([[1.0]], [0.0])]) for n in (1, 2))
    assert curve(line, 0.2, 1.0).values.tolist() == [[0.1], [0.1]]
    found = curve(line, -1.0, 1.0)
    assert found.knots[1:-1] == pytest.approx([0.1], rel=1e-15)
    assert found([-0.5, 0.5]).ravel() == pytest.approx([-0.5, 0.1], rel=1e-15)
    assert polygons(plane, BOX)([[-0.5, 0.0], [0.5, 0.5]]).ravel() == pytest.approx([-0.5, 0.1], rel=1e-15)


def staircase(inputs, kinks, size):
    """Return x + 2 + size sum relu(x - k), with kinks k in (0, 1): each bend is smaller than rounding."""
    bias = np.concatenate([[2.0], -np.linspace(0.0, 1.0, kinks + 2)[1:-1]])
    out = np.concatenate([[1.0], np.full(kinks, size)])
    return network([(np.eye(1, inputs).repeat(kinks + 1, axis=0), bias), activation.relu(), (out[None], [0.0])])


def test_tiny_kinks_do_not_add_up_in_a_curve():
    found = curve(staircase(1, 1000, 6e-15), -1.0, 2.0)
    x = np.linspace(-1, 2, 1001)
    assert np.abs(found.merge()(x) - found(x)).max() < 1e-13
    assert 1 < found.pieces < 1000


def test_tiny_kinks_do_not_add_up_in_polygons():
    net = staircase(2, 300, 2e-14)
    found = polygons(net, BOX)
    first = np.unique(found.labels, return_index=True)[1]
    assert np.abs(found.gradients - found.gradients[first[found.labels]]).max() < 1e-12
    assert 1 < found.pieces < 300
    assert polygon_counts(net, BOX).pieces.tolist() == [found.pieces]


@pytest.mark.parametrize("inputs", [1, 2])
def test_a_large_weight_elsewhere_hides_no_kink(inputs):
    # the unit of weight 2e7 saturates within 1e-7; the other kinks bend by 1e-7 each
    first = np.zeros((4, inputs))
    first[:, 0] = [2e7, 1.0, 1.0, 1.0]
    layers = [
        (first, [0.0, -0.5, -1.0, -1.5]),
        activation.piecewise([0.0, np.array([1.0, np.inf, np.inf, np.inf])], [0.0, 1.0, np.array([0.0, 1, 1, 1])]),
    ]
    net = network([*layers, ([[1.0, 1e-7, 1e-7, 1e-7]], [0.0])])
    assert (curve(net, -1.0, 2.0) if inputs == 1 else polygons(net, BOX)).pieces == 6


@pytest.mark.parametrize("inputs", [1, 2])
def test_rounding_is_carried_through_the_layers(inputs):
    """Where relu(1e8 x + 0.3) - relu(1e8 x) = 0.3 up to 1e-8, a unit with its knot at 0.3 adds no piece."""
    first = np.zeros((7, inputs))
    first[:, 0] = [1e8, 1e8, 1, 1, 1, 1, 1]
    bias = [0.3, 0.0, *(-i / 7 for i in range(1, 6))]
    second = np.eye(6, 7, 1)
    second[0, :2] = [1, -1]
    last = [(np.eye(6), [-0.3, 0, 0, 0, 0, 0]), activation.relu(), (np.ones((1, 6)), [0.0])]
    net = network([(first, bias), activation.relu(), (second, np.zeros(6)), activation.identity(), *last])
    if inputs == 1:
        np.testing.assert_allclose(curve(net, 0.01, 1.0).knots[1:-1], np.arange(1, 6) / 7, rtol=1e-12)
    else:
        assert polygons(net, ((0.01, 1.0), (0.0, 1.0))).patterns == 6


@pytest.mark.parametrize("weight", [1e154, 1e160, 1e290])
def test_weights_whose_squares_are_no_numbers(weight):
    net = network([([[weight], [1.0]], [0.0, -1.0]), activation.relu(), ([[1 / weight, 1.0]], [0.0])])
    found = curve(net, -2.0, 2.0)
    assert np.isfinite(found.tolerance).all()
    assert found.knots.tolist() == [-2, 0, 1, 2]
    np.testing.assert_allclose(found.slopes.ravel(), [0, 1, 2], rtol=1e-15)
    small = network([([[1 / weight]], [-1 / weight]), activation.relu(), ([[weight]], [0.0])])
    assert curve(small, -2.0, 2.0).knots.tolist() == [-2, 1, 2]


def test_too_large_for_any_number():
    net = network([([[1e200]], [0.0]), activation.plu(), ([[1e200]], [0.0])])
    with pytest.raises(ValueError, match="values may reach inf"):
        curve(net, -1.0, 1.0)


def lost(inputs):
    """min(max(1e14 (x - 1) + 1/2, 0), 1): 1e-14 wide, which 32 times the error of the inner 1e8 (x - 1) covers."""
    first = np.zeros((2, inputs))
    first[:, 0] = [1e8, 1.0]
    bend = activation.piecewise([[-1.0, 0.0], [1.0, np.inf]], [0.0, 1.0, [0.0, 1.0]])
    second = ([[1e6, 0.0], [1e6, 0.0]], [0.5, -0.5])
    return network([(first, [-1e8, -1.0]), bend, second, activation.relu(), ([[1.0, -1.0]], [0.0])])


def test_a_step_that_an_error_covers_is_refused():
    with pytest.raises(ValueError, match=r"x = 1\.0 and 1\.00000001\d* f goes from 0 to 1, but its slope is 0"):
        curve(lost(1), 0.5, 1.5)
    with pytest.raises(ValueError, match=r"at x = 1, \d f is 0, but the map of an adjacent polygon gives 1"):
        polygons(lost(2), ((0.5, 1.5), (0.0, 1.0)))
