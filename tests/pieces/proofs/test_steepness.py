"""Lipschitz constants and monotony, against curves, polygons and patterns that are known."""

import re
from dataclasses import replace

import numpy as np
import pytest
from plunit.pieces.proofs.encoding import encode
from plunit.pieces.proofs.highs import Solution
from plunit.pieces.proofs.program import Program

from plunit.pieces import (
    Contradiction,
    Network,
    Optimum,
    Undecided,
    activation,
    curve,
    is_monotone,
    lipschitz,
    network,
    polygons,
)
from plunit.pieces.proofs import steepness
from plunit.pieces.proofs.steepness import along, dual_norm, exclude, gradient_form

pytest.importorskip("highspy")


DUAL = {1: np.inf, 2: 2, np.inf: 1}


def random_net(seed, inputs, outputs=1):
    rng = np.random.default_rng(seed)
    first = rng.standard_normal((5, inputs)), rng.standard_normal(5)
    second = rng.standard_normal((4, 5)), rng.standard_normal(4)
    return network(
        [
            first,
            activation.plu(),
            second,
            activation.leaky_relu(0.1),
            (rng.standard_normal((outputs, 4)), [0.0] * outputs),
        ]
    )


def forced(inputs):
    return np.zeros((1, inputs)), np.ones(1)


@pytest.mark.parametrize("norm", DUAL)
@pytest.mark.parametrize("seed", range(3))
def test_two_inputs_through_the_solver_agree_with_polygons(norm, seed):
    net, box = random_net(seed, 2, 2), ((-2, 2), (-1, 3))
    exact = np.linalg.norm(polygons(net, box).gradients, ord=DUAL[norm], axis=-1).max()
    for constraints in (None, forced(2)):
        found = lipschitz(net, box, norm=norm, constraints=constraints)
        assert found.proved
        assert found.value == pytest.approx(exact, rel=1e-9)


def test_one_input_is_the_steepest_piece():
    net = random_net(5, 1)
    exact = np.abs(curve(net, -2, 2).slopes).max()
    assert lipschitz(net, [(-2, 2)]).value == pytest.approx(exact)
    assert lipschitz(net, [(-2, 2)], constraints=forced(1)).value == pytest.approx(exact)


def test_the_gradient_at_x_has_the_norm():
    net, step = random_net(2, 4), 1e-7
    found = lipschitz(net, [(-2, 2)] * 4)
    slopes = [(net(found.x + step * e)[0] - net(found.x - step * e)[0]) / (2 * step) for e in np.eye(4)]
    assert np.linalg.norm(slopes) == pytest.approx(found.value, rel=1e-5)


def test_a_common_kink_has_no_gradient_of_its_own():
    """|x| as relu(x) + relu(-x): both units on at once would have slope 0, both off likewise, and no region."""
    net = network([([[1.0, 0, 0], [-1.0, 0, 0]], [0.0, 0.0]), activation.relu(), ([[3.0, 3.0]], [0.0])])
    found = lipschitz(net, [(-1, 1)] * 3)
    assert found.value == pytest.approx(3.0)
    assert found.bound >= 3.0
    assert found.proved


def test_a_pattern_without_a_region_is_not_believed():
    """relu(x) - relu(-x) = x has slope 1, and would have 2 if both units could be on."""
    net = network([([[1.0, 0, 0], [-1.0, 0, 0]], [0.0, 0.0]), activation.relu(), ([[1.0, -1.0]], [0.0])])
    found = lipschitz(net, [(-1, 1)] * 3)
    assert found.value == pytest.approx(1.0)
    assert found.proved


@pytest.mark.parametrize(("sign", "increasing", "answer"), [(1, True, True), (1, False, False), (-1, False, True)])
def test_positive_weights_are_monotone(sign, increasing, answer):
    rng = np.random.default_rng(0)
    first, second = np.abs(rng.standard_normal((6, 3))), np.abs(rng.standard_normal((5, 6)))
    layers = [(first, rng.standard_normal(6)), activation.plu(), (second, rng.standard_normal(5)), activation.plu()]
    net = network([*layers, (sign * np.abs(rng.standard_normal((1, 5))), [0.0])])
    assert is_monotone(net, 1, [(-2, 2)] * 3, increasing=increasing) is answer


def test_monotone_on_a_part_of_the_box_only():
    """|x_0| + x_1 + x_2 rises with x_0 where x_0 > 0 only."""
    weight = np.array([[1.0, 0, 0], [0, 1.0, 1.0]])
    f = activation.piecewise([0.0], [np.array([-1.0, 1.0]), 1.0])
    net = network([(weight, np.zeros(2)), f, ([[1.0, 1.0]], [0.0])])
    assert is_monotone(net, 0, [(0, 1), (-1, 1), (-1, 1)])
    assert not is_monotone(net, 0, [(-1, 1), (-1, 1), (-1, 1)])
    assert is_monotone(net, 0, [(-1, 1), (-1, 1), (-1, 1)], constraints=([[-1.0, 0, 0]], [-0.25]))
    assert is_monotone(net, 1, [(-1, 1), (-1, 1), (-1, 1)])


def test_a_slope_is_measured_by_its_own_output():
    """Another output that is steeper by 1e8 does not make this one flat."""
    net = network([([[1.0]], [0.0]), activation.relu(), ([[1e8], [-1.0]], [0.0, 0.0])])
    assert not is_monotone(net, 0, [(-1, 1)], output=1)
    assert is_monotone(net, 0, [(-1, 1)], output=1, increasing=False)


def deep(inputs, width, depth, gain=1.5):
    """PLU layers whose norms multiply to far more than any slope."""
    rng, layers, before = np.random.default_rng(0), [], inputs
    for _ in range(depth):
        layers += [(gain * rng.standard_normal((width, before)) / np.sqrt(before), np.zeros(width)), activation.plu()]
        before = width
    return network([*layers, (rng.standard_normal((1, before)) / np.sqrt(before), [0.0])])


@pytest.mark.parametrize("depth", [8, 10])
def test_a_deep_network_that_rises_and_falls_does_neither_only(depth):
    net = deep(1, 64, depth)
    slopes = curve(net, -3, 3).slopes
    assert slopes.min() < -1
    assert slopes.max() > 1
    assert not is_monotone(net, 0, [(-3, 3)])
    assert not is_monotone(net, 0, [(-3, 3)], increasing=False)


def test_a_small_slope_of_the_wrong_sign_is_seen():
    """1e-7 of the steepest slope, but far above its rounding error."""
    net = network([([[1.0]], [0.0]), activation.relu(), ([[1.0]], [0.0])])
    for slope, answer in [(-1e-7, False), (0.0, True)]:
        bent = network([([[1.0]], [0.0]), activation.leaky_relu(slope), ([[1.0]], [0.0])])
        assert is_monotone(bent, 0, [(-1, 1)]) is answer
    assert is_monotone(net, 0, [(-1, -0.5)])
    assert is_monotone(net, 0, [(-1, -0.5)], increasing=False)


def test_a_slope_of_rounding_errors_is_undecided():
    """0.1 + 0.2 - 0.3: the slope is 0, or not, by the rounding of the three numbers."""
    net = network([([[1.0]] * 3, [0.0] * 3), activation.identity(), ([[0.1, 0.2, -0.3]], [0.0])])
    for increasing in (True, False):
        with pytest.raises(Undecided):
            is_monotone(net, 0, [(-1, 1)], increasing=increasing)


@pytest.mark.parametrize("norm", DUAL)
def test_a_dead_network_is_flat(norm):
    """relu(-|x_0|) is 0, and its unit is at its kink where x_0 = 0."""
    first = ([[1.0, 0, 0], [-1.0, 0, 0]], [0.0, 0.0])
    net = network([first, activation.relu(), ([[-1.0, -1.0]], [0.0]), activation.relu(), ([[1.0]], [0.0])])
    found = lipschitz(net, [(-1, 1)] * 3, norm=norm)
    assert (found.value, found.proved) == (0.0, True)
    assert found.bound <= 1e-5
    flat = lipschitz(network([([[0.0, 0.0]], [1.0]), activation.relu(), ([[1.0]], [0.0])]), [(-1, 1)] * 2, norm=norm)
    assert (flat.value, flat.bound, flat.proved) == (0.0, 0.0, True)


@pytest.mark.parametrize("norm", DUAL)
@pytest.mark.parametrize("seed", range(2))
def test_encodings_that_change_under_way_exclude_the_same_patterns(norm, seed, monkeypatch):
    """As near the time limit: ranges are narrow in one round and wide in the next. x - x cannot be steep."""
    rng = np.random.default_rng(seed)
    first = np.array([[1.0, 0.0], [-1.0, 0.0], *rng.standard_normal((3, 2))])
    net = network(
        [
            (first, [0.0, 0.0, *rng.standard_normal(3)]),
            activation.relu(),
            ([[2.0, -2.0, *rng.standard_normal(3)]], [0.0]),
        ]
    )
    box, rounds, right = ((-2, 2), (-1, 3)), [], steepness.tighten

    def sometimes(net, domain, encoding, above, deadline):
        rounds.append(1)
        return encoding if len(rounds) % 2 else right(net, domain, encoding, above, deadline)

    monkeypatch.setattr(steepness, "tighten", sometimes)
    found = lipschitz(net, box, norm=norm, constraints=forced(2))
    exact = np.linalg.norm(polygons(net, box).gradients, ord=DUAL[norm], axis=-1).max()
    assert found.value == pytest.approx(exact, rel=1e-9)
    assert found.bound >= exact * (1 - 1e-9)
    assert found.proved


def test_a_flat_domain_is_refused():
    """x_0 <= 0 and x_0 >= 0 leave a plane."""
    with pytest.raises(ValueError, match="a flat domain, where a gradient has no meaning"):
        lipschitz(random_net(0, 3), [(-1, 1)] * 3, constraints=([[1.0, 0, 0], [-1.0, 0, 0]], [0.0, 0.0]))


def test_a_domain_that_samples_miss_is_looked_into():
    """A corner of width 1e-4, far from all samples, where the network is |x_0|-like on one side only."""
    weight = np.array([[1.0, 0, 0]])
    net = network([(weight, [-0.9999]), activation.relu(), ([[5.0]], [0.0])])
    inside = [[-1.0, 0, 0], [0, -1.0, 0], [0, 0, -1.0]]
    found = lipschitz(net, [(-1, 1)] * 3, constraints=(inside, [-0.99995] * 3))
    assert (found.value, found.proved) == (pytest.approx(5.0), True)
    assert (found.x >= 0.99995).all()


def test_a_solver_that_is_wrong_is_not_believed(monkeypatch):
    def wrong(self, goal, **options):
        return Solution("optimal", None, 1e-3)

    monkeypatch.setattr(Program, "maximise", wrong)
    with pytest.raises(Contradiction, match="finds no steepness above"):
        lipschitz(random_net(0, 3), [(-1, 1)] * 3)


def test_progress_shows_both_ends_and_the_time():
    said = []
    lipschitz(random_net(0, 4), [(-2, 2)] * 4, progress=lambda part, text: said.append((part, text)))
    assert all(0 <= part <= 1 for part, _ in said)
    assert all(re.fullmatch(r"steepness between \S+ and \S+ after \d+ s", text) for _, text in said)


def test_a_slope_that_time_leaves_open_is_undecided(monkeypatch):
    net, box = random_net(0, 3), [(-1, 1)] * 3
    monkeypatch.setattr(steepness, "steepest", lambda *all_of: Optimum(np.zeros(3), -1.0, 1.0, False, 2.0))
    with pytest.raises(Undecided, match="undecided after 2 s: the largest value found is -1, and none is above 1"):
        is_monotone(net, 0, box)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda net, box: lipschitz(net, box, norm=3), "norm must be 1, 2 or inf"),
        (lambda net, box: is_monotone(net, 3, box), "0 to 2, got 3"),
        (lambda net, box: is_monotone(net, True, box), "0 to 2, got True"),
        (lambda net, box: lipschitz(net, box, norm=True), "norm must be 1, 2 or inf, got True"),
        (lambda net, box: is_monotone(net, 0, box, output=1), "0 to 0, got 1"),
    ],
)
def test_bad_input_is_one_clear_line(call, text):
    with pytest.raises(ValueError, match=text):
        call(random_net(0, 3), [(-1, 1)] * 3)


BOX = ((-2.0, 2.0), (-1.0, 3.0))


def small_net(seed):
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


@pytest.mark.parametrize("net", [small_net(0), small_net(1), small_net(2), chain()], ids=["0", "1", "2", "chain"])
@pytest.mark.parametrize("direction", [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.6, -0.8)])
def test_the_program_bounds_the_gradient(net, direction):
    direction = np.array(direction)
    exact = (polygons(net, BOX).gradients[:, 0] @ direction).max()
    assert program_bounds(net, along(direction)) == pytest.approx(exact, abs=1e-7)


@pytest.mark.parametrize(("norm", "dual"), [(1.0, np.inf), (np.inf, 1), (2.0, 2)])
@pytest.mark.parametrize("net", [small_net(0), small_net(1), chain()], ids=["0", "1", "chain"])
def test_the_program_bounds_the_norm(net, norm, dual):
    """With chords that meet the squares of the steepest gradient, the bound of the Euclidean norm is exact."""
    gradients = polygons(net, BOX).gradients[:, 0]
    sizes = np.linalg.norm(gradients, ord=dual, axis=1)
    without, with_all = (program_bounds(net, dual_norm(norm), seen) for seen in ((), gradients))
    assert without >= sizes.max() - 1e-9
    assert without <= 1.2 * sizes.max()
    assert with_all == pytest.approx(sizes.max(), abs=1e-7)


def test_a_pattern_of_one_encoding_is_excluded_from_another():
    """The best pattern of a wide encoding, excluded from a tight one of fewer binaries: the second best is left."""
    net, box = small_net(1), np.array(BOX)
    found = polygons(net, BOX)
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
    net = small_net(1)
    encoding = encode(net, np.array(BOX) / 100)
    gradient, _ = gradient_form(net, encoding)
    top = encoding.program.maximise(gradient[:1]).bound
    exclude(encoding, [np.full(4, 2), np.full(3, 2)])
    assert encoding.program.maximise(gradient[:1]).bound == top


def layers(net, x):
    """Z of each layer at x: the outputs of the network up to there."""
    return [Network((*net.layers[:i], replace(net.layers[i], activation=None)))(x) for i in range(len(net.hidden))]


def test_an_excluded_pattern_does_not_come_again():
    net = small_net(1)
    encoding = encode(net, np.array(BOX))
    gradient, _ = gradient_form(net, encoding)
    goal, seen = gradient[:1], []
    for _ in range(5):
        found = encoding.program.maximise(goal)
        pattern = encoding.pattern(found.t)
        seen.append(tuple(map(tuple, pattern)))
        exclude(encoding, pattern)
    assert len(set(seen)) == 5
