import numpy as np
import pytest
from random_networks import random_network

from plunit.pieces import Curve, activation, along, counts, curve, curves, ensemble, network

RNG = np.random.default_rng(0)


def dense(widths, f, rng, inputs=1, outputs=1):
    layers, before = [], inputs
    for width in widths:
        layers += [(rng.normal(size=(width, before)), rng.normal(size=width)), f]
        before = width
    return network([*layers, (rng.normal(size=(outputs, before)), rng.normal(size=outputs))])


def sine_ensemble(members, f, rng, width=3):
    def pair(out, before):
        return rng.normal(size=(out, before, members)), rng.normal(size=(out, members))

    return ensemble([pair(width, 1), f, pair(width, width), f, pair(1, width)])


@pytest.mark.parametrize("f", [activation.plu(), activation.relu(), activation.hardsigmoid(), activation.absolute()])
@pytest.mark.parametrize("widths", [(3, 3), (5, 5, 5, 5), (64, 64), (200,)])
def test_curve_equals_the_network(widths, f):
    rng = np.random.default_rng(len(widths))
    net = dense(widths, f, rng, outputs=2)
    found = curve(net, -4.0, 5.0)
    x = np.concatenate([rng.uniform(-4, 5, 2000), found.knots])
    scale = np.abs(net(x[:, None])).max()
    np.testing.assert_allclose(found(x), net(x[:, None]), rtol=0, atol=1e-9 * max(scale, 1))


@pytest.mark.parametrize("f", [activation.plu(), activation.relu()])
def test_dense_sampling_finds_the_same_kinks(f):
    net = dense((4, 4), f, np.random.default_rng(3))
    found = curve(net, -2.0, 2.0).merged()
    x = np.linspace(-2, 2, 400_001)
    bent = np.flatnonzero(np.abs(np.diff(net(x[:, None])[:, 0], 2)) > 1e-9)
    kinks = x[1:-1][bent]
    assert len(found.knots) > 6
    gaps = np.abs(found.knots[1:-1, None] - kinks)
    assert gaps.min(axis=1).max() < 2e-5
    assert gaps.min(axis=0).max() < 2e-5


def one_unit(weight, bias, f, out=1.0):
    return network([([[weight]], [bias]), f, ([[out]], [0.0])])


@pytest.mark.parametrize(
    ("net", "patterns", "pieces"),
    [
        (one_unit(1.0, 0.0, activation.plu()), 3, 3),
        (one_unit(1.0, 0.0, activation.plu(1.0, 1.0)), 3, 1),
        (one_unit(1.0, 0.0, activation.plu(0.0, 1.0)), 3, 3),
        (one_unit(1.0, 0.0, activation.plu(0.5, 0.0)), 2, 1),
        (one_unit(0.0, 1.0, activation.plu()), 1, 1),
        (one_unit(1.0, 0.0, activation.plu(), out=0.0), 3, 1),
        (one_unit(1.0, -2.0, activation.relu()), 1, 1),
        (one_unit(1.0, 2.0, activation.relu()), 1, 1),
        (one_unit(1.0, 0.0, activation.identity()), 1, 1),
        (network([([[1.0], [1.0], [-1.0]], [0.5, 0.5, -0.5]), activation.relu(), ([[1.0, 1.0, 1.0]], [0.0])]), 2, 2),
        (network([([[1.0], [1.0]], [0.0, 0.0]), activation.relu(), ([[1.0, -1.0]], [0.0])]), 2, 1),
        (network([([[3.0], [0.3]], [-1.0, -0.1]), activation.relu(), ([[1.0, 1.0]], [0.0])]), 2, 2),
        (network([([[2.0]], [1.0])]), 1, 1),
    ],
    ids=[
        "plu",
        "alpha 1",
        "alpha 0",
        "c 0",
        "zero weight, constant on the knot",
        "dead output",
        "kink on the right end",
        "kink on the left end",
        "identity",
        "three kinks at one point",
        "kinks cancel",
        "one point, two roundings",
        "affine",
    ],
)
def test_degenerate_cases_are_ordinary(net, patterns, pieces):
    found = curve(net, -2.0, 2.0)
    assert (found.patterns, found.pieces) == (patterns, pieces)
    assert (counts(net, -2.0, 2.0).patterns[0], counts(net, -2.0, 2.0).pieces[0]) == (patterns, pieces)
    assert len(found.merged().slopes) == pieces
    x = np.linspace(-2, 2, 101)
    np.testing.assert_allclose(found.merged()(x), net(x[:, None]), atol=1e-14)


def test_nearly_flat_unit_does_not_merge_sharp_kinks():
    # the first unit is within its tolerance over a range that holds the kinks of the two others
    flat = network([([[1e-10], [1.0], [1.0]], [1.0, 0.9999, 1.0001]), activation.plu(), ([[1.0, 1.0, 1.0]], [0.0])])
    found = curve(flat, -1.0, 1.0)
    np.testing.assert_allclose(found.knots, [-1.0, -1e-4, 0.0, 1e-4, 1.0], rtol=1e-11)


def rounded_difference(inputs):
    """Return a network with a unit that is on its knot but for rounding carried from the layer before.

    d = relu(1e8 x + 0.3) - relu(1e8 x) = 0.3 up to 1e-8 for x > 0, and the next unit has its knot at d = 0.3.
    """
    first = np.zeros((7, inputs))
    first[:, 0] = [1e8, 1e8, 1, 1, 1, 1, 1]
    bias = [0.3, 0.0, *(-i / 7 for i in range(1, 6))]
    second = np.zeros((6, 7))
    second[0, :2] = [1, -1]
    second[1:, 2:] = np.eye(5)
    last = [(np.eye(6), [-0.3, 0, 0, 0, 0, 0]), activation.relu(), (np.ones((1, 6)), [0.0])]
    return network([(first, bias), activation.relu(), (second, np.zeros(6)), activation.identity(), *last])


def test_rounding_is_carried_through_the_layers():
    found = curve(rounded_difference(1), 0.01, 1.0)
    np.testing.assert_allclose(found.knots[1:-1], np.arange(1, 6) / 7, rtol=1e-12)


def test_knots_closer_than_the_rounding_of_x_are_one():
    # slope 1.6e9 from sums of equal terms, far from 0: the knots are 3e-8 apart, floating-point numbers 1.2e-7
    same, plain = (np.ones((200, 200)), np.zeros(200)), activation.identity()
    first, last = (np.ones((200, 1)), np.full(200, -1e9)), (np.ones((20, 200)), -50.0 * np.arange(20))
    net = network([first, plain, *[same, plain] * 3, last, activation.relu(), (np.ones((1, 20)), [0.0])])
    found = curve(net, 1e9, 1e9 + 1e-5)
    assert found.patterns == len(found.slopes)


def test_pieces_of_any_output_count():
    net = network([([[1.0], [1.0]], [0.0, 1.0]), activation.relu(), (np.eye(2), np.zeros(2))])
    found = curve(net, -2.0, 2.0)
    assert (found.pieces, found.output(0).pieces, found.output(1).pieces) == (3, 2, 2)
    assert counts(net, -2.0, 2.0).pieces.tolist() == [3]


def test_slopes_that_cancel_but_for_rounding_are_equal():
    net = network([(np.ones((3, 1)), np.zeros(3)), activation.relu(), ([[0.1, 0.2, -0.3]], [0.0])])
    assert (curve(net, -1.0, 1.0).pieces, counts(net, -1.0, 1.0).pieces.tolist()) == (1, [1])


@pytest.mark.parametrize("shift", [0.0, 1e3, 1e6, 1e9])
def test_far_from_zero(shift):
    net = network([([[1.0], [2.0]], [-shift, -2 * shift]), activation.plu(), ([[1.0, 1.0]], [0.0])])
    found = curve(net, shift - 2, shift + 2)
    assert found.pieces == 5
    np.testing.assert_allclose(found.knots - shift, [-2, -1, -0.5, 0.5, 1, 2], atol=1e-15 * max(shift, 1))


@pytest.mark.parametrize("f", [activation.plu(), activation.relu(), activation.plu(0.0, 1.0)])
def test_ensemble_is_its_members(f):
    group = sine_ensemble(1200, f, np.random.default_rng(1))
    numbers = counts(group, -6.0, 6.0)
    some = [0, 1, 1023, 1024, 1199]
    every = curves(group, -6.0, 6.0)
    lines = [every[i] for i in some]
    alone = [curve(group.member(i), -6.0, 6.0) for i in some]
    assert numbers.patterns.shape == (1200,)
    assert numbers.patterns[some].tolist() == [one.patterns for one in alone] == [line.patterns for line in lines]
    assert numbers.pieces[some].tolist() == [one.pieces for one in alone] == [line.pieces for line in lines]
    np.testing.assert_allclose(
        np.concatenate([line.knots for line in lines]), np.concatenate([one.knots for one in alone]), 1e-12, 1e-12
    )
    np.testing.assert_allclose(
        np.concatenate([line.slopes for line in lines]), np.concatenate([one.slopes for one in alone]), 1e-9, 1e-9
    )


def test_ensemble_with_learned_alpha_and_c():
    rng = np.random.default_rng(2)
    f = activation.plu(rng.uniform(0.1, 1, (1, 4)), rng.uniform(0.5, 2, (1, 4)))
    group = sine_ensemble(4, f, rng)
    x = np.linspace(-3, 3, 50)
    lines = np.stack([line(x) for line in curves(group, -3.0, 3.0)])
    np.testing.assert_allclose(lines, np.stack([group.member(i)(x[:, None]) for i in range(4)]), atol=1e-12)


def test_a_member_of_another_scale_does_not_blur_the_others():
    steep, one, zero = np.array([[[1.0, 1e14]]]), np.ones((1, 1, 2)), np.zeros((1, 2))
    group = ensemble([(steep, zero), activation.relu(), (one, zero), activation.plu(), (one, zero)])
    assert counts(group, -2.0, 2.0).patterns.tolist() == [3, 3]


@pytest.mark.parametrize("inputs", [2, 3, 10])
def test_along_a_polyline(inputs):
    rng = np.random.default_rng(inputs)
    net = dense((8, 8), activation.plu(), rng, inputs=inputs)
    points = rng.normal(size=(4, inputs))
    found = along(net, *points)
    assert (found.low, found.high) == (0.0, 3.0)
    t = np.sort(rng.uniform(0, 3, 500))
    path = np.stack([np.interp(t, range(4), axis) for axis in points.T], axis=1)
    np.testing.assert_allclose(found(t), net(path), atol=1e-11)


def test_a_corner_is_a_kink_but_no_change_of_pattern():
    net = network([([[1.0, 1.0]], [0.0]), activation.relu()])
    found = along(net, [1.0, 0.0], [2.0, 0.0], [2.0, 5.0], [2.0, 6.0])
    assert (found.patterns, found.pieces) == (1, 3)


def test_calculus():
    net = dense((5, 5), activation.plu(), np.random.default_rng(5), outputs=2)
    found = curve(net, -3.0, 3.0)
    x = np.linspace(-3, 3, 200_001)
    y = net(x[:, None])
    np.testing.assert_allclose(found.integral(-3, 3), np.sum((y[1:] + y[:-1]) / 2, axis=0) * (x[1] - x[0]), rtol=1e-7)
    np.testing.assert_allclose(found.integral(-1, 2), found.integral(-1, 0.3) + found.integral(0.3, 2), rtol=1e-12)
    np.testing.assert_allclose(found.integral(2, -1), -found.integral(-1, 2))
    middle = (found.knots[1:] + found.knots[:-1]) / 2
    np.testing.assert_array_equal(found.derivative(middle), found.slopes)
    np.testing.assert_array_equal(found.derivative(found.knots[:-1]), found.slopes)
    np.testing.assert_array_equal(found.derivative(found.high), found.slopes[-1])
    assert np.isnan(found(np.nan)).all()


@pytest.mark.parametrize("output", [0, 1])
def test_extremes_are_those_of_dense_sampling(output):
    net = dense((5, 5), activation.plu(), np.random.default_rng(5), outputs=2)
    found = curve(net, -3.0, 3.0)
    y = net(np.linspace(-3, 3, 200_001)[:, None])[:, output]
    (top, highest), (bottom, lowest) = found.maximum(output), found.minimum(output)
    np.testing.assert_allclose([net([top])[output], net([bottom])[output]], [highest, lowest], atol=1e-12)
    np.testing.assert_allclose([highest, lowest], [y.max(), y.min()], atol=1e-3)
    assert lowest - 1e-12 <= y.min() <= y.max() <= highest + 1e-12


def test_shapes_and_one_output():
    found = curve(dense((4,), activation.plu(), RNG, outputs=3), -1.0, 1.0)
    assert found(np.zeros((2, 5))).shape == (2, 5, 3)
    assert found(0.0).shape == (3,)
    np.testing.assert_array_equal(found.output(1)(0.3), found(0.3)[1:2])
    assert found.output(1).pieces <= found.pieces


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda net: curve(net, 1.0, 1.0), "low < high"),
        (lambda net: curve(net, 2.0, 1.0), "low < high"),
        (lambda net: curve(net, -np.inf, 1.0), "finite"),
        (lambda net: curve(net, 0.0, np.nan), "finite"),
        (lambda net: curve(net, 0.0, np.inf), "finite"),
        (lambda net: curve(net, "low", 1.0), "an interval needs two numbers, low and high, got"),
        (lambda net: curve(net, -3.0, 3.0).derivative(np.nan), "got NaN, which lies on no piece"),
        (lambda net: curve(net, -3.0, 3.0, limit=0), "limit must be an integer of at least 1, got 0"),
        (
            lambda net: curve(net, -3.0, 3.0, limit=2),
            "layer 1 of 1 makes 3 pieces or more, more than limit=2 .*raise limit",
        ),
        (lambda net: curve(net, -3.0, 3.0)(4.0), r"x = 4.0 is outside \[-3.0, 3.0\]"),
        (lambda net: along(net, [0.0]), "two or more points"),
        (lambda net: along(net, [0.0], [0.0, 1.0]), "1 coordinates"),
        (lambda net: along(net, [0.0], [np.nan]), "finite"),
        (lambda net: Curve([0, 1], [[0], [1]], [[1], [1]]), "slopes"),
        (lambda net: Curve([0, 0], [[0], [1]], [[1]]), "increasing"),
        (lambda net: Curve([0], [[0]], np.zeros((0, 1))), "a curve needs knots"),
        (lambda net: Curve([[0], [1]], [[0], [1]], [[1]]), "a curve needs knots"),
        (lambda net: Curve([0, 1], [0, 1], [1]), "a curve needs knots"),
        (lambda net: Curve([0, 1], [[0], [np.inf]], [[1]]), "values must be finite, got inf"),
        (lambda net: Curve([0, 1], [[0], [1]], [[np.nan]]), "slopes must be finite, got nan"),
        (
            lambda net: Curve([0, 1], [[0], [1]], [[2]]),
            "values and slopes must agree: between x = 0.0 and 1.0 output 0",
        ),
        (lambda net: Curve([0, 1], [[0], [1]], [[1]], patterns=-1), "patterns must be a positive integer"),
        (lambda net: Curve([0, 1], [[0], [1]], [[1]], tolerance=[[-1]]), "tolerance must be >= 0"),
        (
            lambda net: Curve([0, 1], [[0], [1]], [[1]], tolerance=[1, 2, 3]),
            "tolerance must have a number for each slope",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(one_unit(1.0, 0.0, activation.plu()))


def test_a_torch_module_is_no_network():
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(1, 1))
    for call in (curve, curves, counts):
        with pytest.raises(
            TypeError, match=r"needs a plunit.pieces.Network, got Sequential; plunit.torch.to_network makes"
        ):
            call(model, -1.0, 1.0)
    with pytest.raises(TypeError, match="got Sequential"):
        along(model, [0.0], [1.0])


def test_slopes_agree_with_values_to_rounding_only():
    # 1e-9 of the largest value is within what a table of values can have lost
    assert Curve([0, 1, 2], [[0], [1], [1 + 1e-9]], [[1], [0]]).pieces == 2


def test_a_step_between_neighbouring_numbers_is_an_error_of_its_member():
    weight = np.array([[[1.0, 1e17]]])
    group = ensemble([(weight, -0.3 * weight[0]), activation.hardtanh(), (np.ones((1, 1, 2)), np.zeros((1, 2)))])
    assert counts(group, -2.0, 2.0).pieces.tolist() == [3, 0]
    with pytest.raises(ValueError, match=r"member 1: between x = -2\.0 and 0\.3"):
        curves(group, -2.0, 2.0)


def test_an_interval_needs_one_input():
    with pytest.raises(ValueError, match=r"2 inputs.*along"):
        curve(random_network(0, 2, 3, 1), -1.0, 1.0)
    with pytest.raises(ValueError, match=r"ensemble of 5; pick one"):
        curve(sine_ensemble(5, activation.plu(), RNG), -1.0, 1.0)
