"""Curves against the network, dense sampling and known sums; equations and distances."""

import numpy as np
import pytest
from random_networks import dense_network

from plunit.pieces import Curve, activation, along, counts, curve, curves, ensemble, network, solve
from plunit.pieces.exact.line_curves import curve_distance

NET = dense_network(5, 1, 5, 5, 2, fan=False)


def sine_ensemble(members, f, rng):
    def pair(out, before):
        return rng.normal(size=(out, before, members)), rng.normal(size=(out, members))

    return ensemble([pair(3, 1), f, pair(3, 3), f, pair(1, 3)])


@pytest.mark.parametrize("f", [activation.plu(), activation.relu(), activation.hardsigmoid()])
@pytest.mark.parametrize("widths", [(5, 5, 5, 5), (64, 64), (200,)])
def test_curve_equals_the_network(widths, f):
    rng = np.random.default_rng(len(widths))
    net = dense_network(rng, 1, *widths, 2, f=f, fan=False)
    found = curve(net, -4.0, 5.0)
    x = np.concatenate([rng.uniform(-4, 5, 2000), found.knots])
    scale = np.abs(net(x[:, None])).max()
    np.testing.assert_allclose(found(x), net(x[:, None]), rtol=0, atol=1e-9 * max(scale, 1))


def units(weights, biases, out):
    return network([(np.array(weights)[:, None], biases), activation.relu(), ([out], [0.0])])


@pytest.mark.parametrize(
    ("net", "patterns", "pieces"),
    [
        (network([([[2.0]], [1.0])]), 1, 1),
        (units([1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.1, 0.2, -0.3]), 2, 1),
        (units([3.0, 0.3], [-1.0, -0.1], [1.0, 1.0]), 2, 2),
    ],
    ids=["affine", "kinks cancel but for rounding", "one point, two roundings"],
)
def test_counts_that_rational_arithmetic_does_not_know(net, patterns, pieces):
    """test_rational.py has the others: knots of alpha 1, of c = 0, at the ends, at one point, dead."""
    found = curve(net, -2.0, 2.0)
    assert (found.patterns, found.pieces) == (patterns, pieces)


def test_nearly_flat_unit_does_not_merge_sharp_kinks():
    # the first unit is within its tolerance over a range that holds the kinks of the two others
    flat = network([([[1e-10], [1.0], [1.0]], [1.0, 0.9999, 1.0001]), activation.plu(), ([[1.0, 1.0, 1.0]], [0.0])])
    found = curve(flat, -1.0, 1.0)
    np.testing.assert_allclose(found.knots, [-1.0, -1e-4, 0.0, 1e-4, 1.0], rtol=1e-11)


def test_knots_closer_than_the_rounding_of_x_are_one():
    # slope 1.6e9 from sums of equal terms, far from 0: the knots are 3e-8 apart, floating-point numbers 1.2e-7
    same, plain = (np.ones((200, 200)), np.zeros(200)), activation.identity()
    first, last = (np.ones((200, 1)), np.full(200, -1e9)), (np.ones((20, 200)), -50.0 * np.arange(20))
    net = network([first, plain, *[same, plain] * 3, last, activation.relu(), (np.ones((1, 20)), [0.0])])
    found = curve(net, 1e9, 1e9 + 1e-5)
    assert found.patterns == len(found.slopes)


@pytest.mark.parametrize("shift", [0.0, 1e3, 1e6, 1e9])
def test_far_from_zero(shift):
    net = network([([[1.0], [2.0]], [-shift, -2 * shift]), activation.plu(), ([[1.0, 1.0]], [0.0])])
    found = curve(net, shift - 2, shift + 2)
    assert found.pieces == 5
    np.testing.assert_allclose(found.knots - shift, [-2, -1, -0.5, 0.5, 1, 2], atol=1e-15 * max(shift, 1))


@pytest.mark.parametrize("f", [activation.plu(), activation.relu(), activation.plu(0.0, 1.0)])
def test_ensemble_is_its_members(f):
    group = sine_ensemble(1200, f, np.random.default_rng(1))
    numbers, every, some = counts(group, -6.0, 6.0), curves(group, -6.0, 6.0), [0, 1, 1023, 1024, 1199]
    lines = [every[i] for i in some]
    alone = [curve(group.member(i), -6.0, 6.0) for i in some]
    assert numbers.patterns.shape == (1200,)
    assert numbers.patterns[some].tolist() == [one.patterns for one in alone] == [line.patterns for line in lines]
    assert numbers.pieces[some].tolist() == [one.pieces for one in alone] == [line.pieces for line in lines]
    for line, one in zip(lines, alone, strict=True):
        np.testing.assert_allclose(line.knots, one.knots, 1e-12, 1e-12)
        np.testing.assert_allclose(line.slopes, one.slopes, 1e-9, 1e-9)


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
    net = dense_network(rng, inputs, 8, 8, 1, fan=False)
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
    found = curve(NET, -3.0, 3.0)
    x = np.linspace(-3, 3, 100_001)
    y = NET(x[:, None])
    np.testing.assert_allclose(found.integral(-3, 3), np.sum((y[1:] + y[:-1]) / 2, axis=0) * (x[1] - x[0]), rtol=1e-6)
    np.testing.assert_allclose(found.integral(-1, 2), found.integral(-1, 0.3) + found.integral(0.3, 2), rtol=1e-12)
    np.testing.assert_allclose(found.integral(2, -1), -found.integral(-1, 2))
    middle = (found.knots[1:] + found.knots[:-1]) / 2
    np.testing.assert_array_equal(found.derivative(middle), found.slopes)
    np.testing.assert_array_equal(found.derivative(found.knots[:-1]), found.slopes)
    np.testing.assert_array_equal(found.derivative(found.high), found.slopes[-1])
    assert np.isnan(found(np.nan)).all()
    for i in (0, 1):
        (top, highest), (bottom, lowest) = found.maximum(i), found.minimum(i)
        np.testing.assert_allclose([found(top)[i], found(bottom)[i]], [highest, lowest], atol=1e-12)
        np.testing.assert_allclose([highest, lowest], [y[:, i].max(), y[:, i].min()], atol=1e-3)


def test_shapes_and_one_output():
    found = curve(dense_network(0, 1, 4, 3, fan=False), -1.0, 1.0)
    assert found(np.zeros((2, 5))).shape == (2, 5, 3)
    assert found(0.0).shape == (3,)
    np.testing.assert_array_equal(found.output(1)(0.3), found(0.3)[1:2])
    assert found.output(1).pieces <= found.pieces


def test_slopes_agree_with_values_to_rounding_only():
    # a table of values may have lost 1e-9 of the largest value
    assert Curve([0, 1, 2], [[0], [1], [1 + 1e-9]], [[1], [0]]).pieces == 2


def test_a_step_between_neighbouring_numbers_is_an_error_of_its_member():
    weight = np.array([[[1.0, 1e17]]])
    group = ensemble([(weight, -0.3 * weight[0]), activation.hardtanh(), (np.ones((1, 1, 2)), np.zeros((1, 2)))])
    assert counts(group, -2.0, 2.0).pieces.tolist() == [3, 0]
    with pytest.raises(ValueError, match=r"member 1: between x = -2\.0 and 0\.3"):
        curves(group, -2.0, 2.0)


TENT = Curve([0, 1, 2], [[0], [1], [0]], [[1], [-1]])


def random_curve(seed, low=-2.0, high=2.0):
    rng = np.random.default_rng(seed)
    knots = np.concatenate([[low], np.sort(rng.uniform(low, high, 7)), [high]])
    values = rng.uniform(-2, 2, (9, 1))
    return Curve(knots, values, np.diff(values, axis=0) / np.diff(knots)[:, None])


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (0.5, [[0.5, 0.5], [1.5, 1.5]]),
        (1.0, [[1.0, 1.0]]),
        (np.nextafter(1.0, 2.0), [[1.0, 1.0]]),
        (0.0, [[0.0, 0.0], [2.0, 2.0]]),
        (2.0, []),
        (-1e-3, []),
    ],
)
def test_solve_tent(y, expected):
    np.testing.assert_allclose(solve(TENT, y), np.array(expected).reshape(-1, 2), atol=1e-15)


def test_solve_plateaus():
    stairs = Curve([0, 1, 2, 3, 4], [[0], [0], [1], [1], [0]], [[0], [1], [0], [-1]])
    assert (solve(stairs, 0.0).tolist(), solve(stairs, 1.0).tolist()) == ([[0, 1], [4, 4]], [[2, 3]])


@pytest.mark.parametrize("seed", range(10))
def test_solve_finds_every_sign_change(seed):
    f = random_curve(seed)
    x = np.linspace(-2, 2, 100_001)
    sampled = np.flatnonzero(np.diff(np.sign(f(x)[:, 0] - 0.3)))
    found = solve(f, 0.3)
    assert len(found) == len(sampled)
    np.testing.assert_allclose(f(found)[..., 0], 0.3, atol=1e-12)
    np.testing.assert_allclose(found[:, 0], x[sampled], atol=1e-4)


@pytest.mark.parametrize("seed", range(10))
def test_distance_is_that_of_values(seed):
    f, g = random_curve(seed), random_curve(seed + 50)
    x = np.linspace(-2, 2, 20_001)
    sampled = np.abs(f(x) - g(x)).max()
    assert sampled <= curve_distance(f, g) <= sampled + 1e-2
    assert curve_distance(f, f) == 0
