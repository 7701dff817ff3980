"""Lipschitz constants and monotony, against polygons, curves and rational arithmetic."""

import contextlib
from fractions import Fraction

import numpy as np
import proof_judges
import pytest
from random_networks import dense_network

from plunit.pieces import Undecided, activation, curve, is_monotone, lipschitz, network, polygons
from plunit.pieces.networks import exact_outputs

DUAL = {1: np.inf, 2: 2, np.inf: 1}


def random_net(seed, inputs, outputs=1):
    return dense_network(seed, inputs, 5, 4, outputs, f=[activation.plu(), activation.leaky_relu(0.1)][seed % 2])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(50))
def test_slopes_are_right(seed):
    """A short run of `make fuzz`."""
    assert proof_judges.judge_slopes(seed).partition(":")[0] in ("right", "refused")


@pytest.mark.parametrize("norm", DUAL)
@pytest.mark.parametrize("seed", range(4))
def test_two_inputs_agree_with_polygons(norm, seed):
    net, box = random_net(seed, 2, 2), ((-2, 2), (-1, 3))
    exact = np.linalg.norm(polygons(net, box).gradients, ord=DUAL[norm], axis=-1).max()
    found = lipschitz(net, box, norm=norm)
    assert found.proved
    assert found.value == pytest.approx(exact, rel=1e-9)
    assert exact <= found.bound


def test_one_input_is_the_steepest_piece():
    net = random_net(5, 1)
    assert lipschitz(net, [(-2, 2)]).value == pytest.approx(np.abs(curve(net, -2, 2).slopes).max())


def test_the_gradient_at_x_has_the_norm():
    net, step = random_net(2, 4), 1e-7
    found = lipschitz(net, [(-2, 2)] * 4)
    slopes = [(net(found.x + step * e)[0] - net(found.x - step * e)[0]) / (2 * step) for e in np.eye(4)]
    assert np.linalg.norm(slopes) == pytest.approx(found.value, rel=1e-5)


@pytest.mark.parametrize("norm", DUAL)
@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e-162, 1e160, 1e290])
def test_gradients_of_any_size(scale, norm):
    """Squares would overflow or be 0."""
    weight = np.array([[3.0, 4.0]]) * scale
    found = lipschitz(network([(weight, [0.0])]), [(-1, 1)] * 2, norm=norm)
    assert found.value == pytest.approx(np.linalg.norm([3, 4], DUAL[norm]) * scale, rel=1e-9, abs=0)
    exact = [Fraction(number) for number in weight[0].tolist()]
    size = {1: max(exact), 2: sum(part * part for part in exact), np.inf: sum(exact)}[norm]
    assert Fraction(found.bound) ** (2 if norm == 2 else 1) >= size
    assert found.proved


def test_a_kink_on_the_edge_of_the_box_does_not_count():
    """|x| over [0, 1] and [-1, 0] has one slope each."""
    net = network([([[1.0]], [0.0]), activation.piecewise([0.0], [-3.0, 1.0]), ([[1.0]], [0.0])])
    assert lipschitz(net, [(0, 1)]).value == pytest.approx(1.0, rel=1e-6)
    assert lipschitz(net, [(-1, 0)]).bound == pytest.approx(3.0, rel=1e-6)
    for side, increasing in (((0, 1), True), ((-1, 0), False)):
        with contextlib.suppress(Undecided):  # the flat region at the kink is not ruled out
            assert is_monotone(net, 0, [side], increasing=increasing)
    assert not is_monotone(net, 0, [(-1, 1)])


def test_a_unit_that_only_rounding_puts_above_its_knot_is_not_believed():
    """Z = 1e16 x_0 + 1.5 x_1 - 1e16 - 2 is at most -0.5 on the box, and 0 in floating point at its corner."""
    f = activation.piecewise([-0.25], [0.0, -1.0])
    net = network([([[1e16, 1.5]], [-1e16 - 2]), f, ([[1.0]], [0.0])])
    assert net(np.ones(2))[0] == 0
    assert exact_outputs(net, np.ones(2))[0] == Fraction(1, 4)
    assert lipschitz(net, [(0, 1)] * 2).value == 0
    assert is_monotone(net, 0, [(0, 1)] * 2)


@pytest.mark.parametrize("norm", DUAL)
def test_a_dead_network_is_flat(norm):
    flat = lipschitz(network([([[0.0, 0.0]], [0.0]), activation.relu(), ([[1.0]], [0.0])]), [(-1, 1)] * 2, norm=norm)
    assert (flat.value, flat.proved) == (0.0, True)
    dead = network(
        [(np.eye(2), [-3.0, -3.0]), activation.relu(), ([[1.0, 1.0]], [0.0]), activation.relu(), ([[1.0]], [0])]
    )
    assert lipschitz(dead, [(-1, 1)] * 2, norm=norm).bound <= 1e-290


def test_patterns_without_a_region_only_widen_the_bound():
    """relu(x) - relu(-x) = x has slope 1, and would have 2 if both units could be on."""
    net = network([([[1.0, 0, 0], [-1.0, 0, 0]], [0.0, 0.0]), activation.relu(), ([[1.0, -1.0]], [0.0])])
    found = lipschitz(net, [(-1, 1)] * 3)
    assert found.value == pytest.approx(1.0)
    assert found.bound >= 1.0


@pytest.mark.parametrize(("sign", "increasing", "answer"), [(1, True, True), (1, False, False), (-1, False, True)])
def test_positive_weights_are_monotone(sign, increasing, answer):
    rng = np.random.default_rng(0)
    first, second = np.abs(rng.standard_normal((6, 3))), np.abs(rng.standard_normal((5, 6)))
    layers = [(first, rng.standard_normal(6)), activation.plu(), (second, rng.standard_normal(5)), activation.plu()]
    net = network([*layers, (sign * np.abs(rng.standard_normal((1, 5))), [0.0])])
    assert is_monotone(net, 1, [(-2, 2)] * 3, increasing=increasing) is answer


def test_monotone_on_a_part_of_the_box_only():
    """|x_0| + x_1 + x_2 rises with x_0 where x_0 > 0 only."""
    f = activation.piecewise([0.0], [np.array([-1.0, 1.0]), 1.0])
    net = network([([[1.0, 0, 0], [0, 1.0, 1.0]], np.zeros(2)), f, ([[1.0, 1.0]], [0.0])])
    assert is_monotone(net, 0, [(0.1, 1), (-1, 1), (-1, 1)])
    assert not is_monotone(net, 0, [(-1, 1), (-1, 1), (-1, 1)])
    assert is_monotone(net, 0, [(-1, 1), (-1, 1), (-1, 1)], constraints=([[-1.0, 0, 0]], [-0.25]))
    assert is_monotone(net, 1, [(-1, 1), (-1, 1), (-1, 1)])


@pytest.mark.parametrize(("added", "answer"), [(0.0, False), (8.0, True)])
def test_no_more_parts_are_bounded_when_the_sign_is_decided(added, answer):
    """Some slopes of a random network are negative; with 8 x_0 added all are positive, before its steepest is known."""
    rng = np.random.default_rng(3)
    first, second, last = (rng.standard_normal(shape) for shape in ((12, 3), (12, 12), (1, 12)))
    first, second = (np.pad(weight, [(0, 1), (0, i)]) for i, weight in enumerate((first, second)))
    first[-1, 0] = second[-1, -1] = 1.0
    f = activation.stack([activation.plu().broadcast(12), activation.identity().broadcast(1)])
    net = network(
        [(first, np.zeros(13)), f, (second / 4, np.zeros(13)), f, (np.append(last / 4, 4 * added)[None], [0.0])]
    )
    rounds = {lipschitz: 0, is_monotone: 0}
    for question in rounds:

        def told(*_, question=question):
            rounds[question] += 1

        found = question(net, *([0] if question is is_monotone else []), [(-2, 2)] * 3, progress=told)
    assert found is answer
    assert rounds[is_monotone] <= 1 < rounds[lipschitz]


def test_a_slope_is_measured_by_its_own_output():
    net = network([([[1.0]], [0.0]), activation.relu(), ([[1e8], [-1.0]], [0.0, 0.0])])
    assert not is_monotone(net, 0, [(-1, 1)], output=1)
    assert is_monotone(net, 0, [(-1, 1)], output=1, increasing=False)


def test_a_small_slope_of_the_wrong_sign_is_seen():
    """1e-7 of the steepest slope, but far above its rounding error."""
    for slope, answer in [(-1e-7, False), (0.0, True)]:
        bent = network([([[1.0]], [0.0]), activation.leaky_relu(slope), ([[1.0]], [0.0])])
        assert is_monotone(bent, 0, [(-1, 1)]) is answer


def test_a_slope_of_rounding_errors_is_undecided():
    """0.1 + 0.2 - 0.3: the slope is 0, or not, by the rounding of the three numbers, whose units differ by biases."""
    net = network([([[1.0]] * 3, [0.0, 1.0, 2.0]), activation.identity(), ([[0.1, 0.2, -0.3]], [0.0])])
    for increasing, words in ((True, "smallest slope.* below -"), (False, "largest slope.* above ")):
        with pytest.raises(Undecided, match=words) as error:
            is_monotone(net, 0, [(-1, 1)], increasing=increasing)
        assert (error.value.best.bound < 0) == increasing


def test_equal_units_add_up_to_an_exact_slope():
    """0.1 + 0.2 - 0.3 is 2^-55 in exact arithmetic, and 2^-54 in double precision."""
    net = network([([[1.0]] * 3, [0.0] * 3), activation.identity(), ([[0.1, 0.2, -0.3]], [0.0])])
    assert is_monotone(net, 0, [(-1, 1)])
    assert not is_monotone(net, 0, [(-1, 1)], increasing=False)
    assert lipschitz(net, [(-1, 1)]).value == 2.0**-55


def test_other_inputs_may_be_fixed():
    net = network([([[1.0, 2.0], [0.5, -1.0]], [0.0, 0.1]), activation.plu(), ([[1.0, 1.0]], [0.0])])
    line = network([([[1.0], [0.5]], [1.0, -0.4]), activation.plu(), ([[1.0, 1.0]], [0.0])])
    found, alone = lipschitz(net, [(-3, 3), (0.5, 0.5)]), lipschitz(line, [(-3, 3)])
    assert (found.proved, found.value) == (True, pytest.approx(alone.value))
    assert is_monotone(net, 0, [(-3, 3), (0.5, 0.5)])


def test_a_feature_that_does_nothing_is_monotone():
    net = network([([[1.0, 0.0], [2.0, 0.0]], [0.0, 1.0]), activation.plu(), ([[1.0, -1.0]], [0.0])])
    assert is_monotone(net, 1, [(-1, 1), (0, 2)])
    assert is_monotone(net, 1, [(-1, 1), (0, 2)], increasing=False)
