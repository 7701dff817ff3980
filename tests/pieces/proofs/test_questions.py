"""Questions about values, against rational arithmetic, polygons, curves and linear programs of all patterns."""

from fractions import Fraction
from functools import cached_property

import numpy as np
import proof_judges
import pytest
import rational_networks
from random_networks import dense_network

from plunit.pieces import (
    Layer,
    Network,
    activation,
    bounds,
    curve,
    distance,
    lipschitz,
    maximum,
    minimum,
    network,
    polygons,
)
from plunit.pieces.activation import Activation, Functions
from plunit.pieces.networks import UnitTables
from plunit.pieces.proofs import bounding, branching
from plunit.pieces.proofs.properties import Domain

ACTIVATIONS = [
    activation.plu(),
    activation.plu(3.0, 0.5),
    activation.relu(),
    activation.leaky_relu(0.2),
    activation.hardtanh(-0.5, 1.5),
    activation.hardsigmoid(),
    activation.absolute(),
]


@pytest.mark.parametrize("engine", ["native", "numpy"])
@pytest.mark.parametrize("low", [-1e6, -1e15, -1e20])
def test_a_far_knot_leaves_values_and_bounds_right(low, engine, monkeypatch):
    monkeypatch.setattr(branching, "prover", lambda: engine)
    net = network([([[1.0]], [0.0]), activation.hardtanh(low, 0.1), ([[1.0]], [0.0])])
    for question in (minimum, maximum):
        found = question(net, [(0.2, 1.0)])
        assert (found.value, found.proved) == (0.1, True)
        assert found.bound == pytest.approx(0.1, rel=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("high", [1e-310, 5e-324, 1e-300, 1e299])
def test_boxes_of_any_size_have_a_maximum(high):
    net = network([([[1.0]], [0.0]), activation.relu(), ([[1.0]], [0.0])])
    found = maximum(net, [(0.0, high)])
    assert found.proved
    assert found.value == pytest.approx(high, rel=1e-6, abs=1e-300)


def random_net(seed, *widths, f=None, outputs=1):
    return dense_network(seed, *widths, outputs, f=f, weight=1.5, bias=0.5)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(150))
def test_values_and_verdicts_are_right(seed):
    """A short run of `make fuzz`."""
    assert proof_judges.judge_proofs(seed).partition(":")[0] in ("right", "refused")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(1, 120, 2))
def test_adversaries_are_right_in_numpy(seed, monkeypatch):
    monkeypatch.setattr(branching, "prover", lambda: "numpy")
    monkeypatch.setattr(proof_judges, "SECONDS", 0.2)
    assert proof_judges.judge_proofs(seed).partition(":")[0] in ("right", "refused")


@pytest.mark.parametrize("seed", range(14))
def test_two_inputs_agree_with_polygons(seed):
    net, box = random_net(seed, 2, 6, 5, f=ACTIVATIONS[seed % len(ACTIVATIONS)]), ((-2, 2), (-1, 3))
    exact = polygons(net, box).values
    top, bottom = maximum(net, box), minimum(net, box)
    assert top.value == pytest.approx(exact.max(), abs=1e-9)
    assert bottom.value == pytest.approx(exact.min(), abs=1e-9)
    assert top.value <= top.bound <= top.value + 1e-6
    assert bottom.value - 1e-6 <= bottom.bound <= bottom.value
    assert top.proved
    assert bottom.proved
    assert float(top) == pytest.approx(net(top.x)[0], rel=1e-12)


def test_one_input_is_its_curve():
    net = random_net(3, 1, 5, 4)
    exact = curve(net, -2, 3).values
    assert float(maximum(net, [(-2, 3)])) == pytest.approx(exact.max(), abs=1e-9)
    assert float(minimum(net, [(-2, 3)])) == pytest.approx(exact.min(), abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_a_column_twice_is_a_sum_of_inputs(seed):
    """f(x, y, z) = g(x + z, y): three inputs, with the exact maximum of two."""
    net = random_net(seed, 2, 4, 3, f=ACTIVATIONS[seed])
    first = net.layers[0]
    wide = network(
        [
            (first.weight[:, [0, 1, 0]], first.bias),
            first.activation,
            (net.layers[1].weight, net.layers[1].bias),
            net.layers[1].activation,
            (net.layers[2].weight, net.layers[2].bias),
        ]
    )
    ((low, high),) = rational_networks.extremes(net, [(-2.0, 2.0), (-1.0, 1.0)])
    found = bounds(wide, [(-1, 1.5), (-1, 1), (-1, 0.5)])
    assert found.proved
    assert Fraction(found.low[0]) <= low <= high <= Fraction(found.high[0])
    assert found.high[0] - found.low[0] == pytest.approx(float(high - low), rel=1e-6)


DOMAINS = {
    "a half": ([[-1.0, -1.0]], [0.5]),
    "a small corner": ([[-1.0, 0], [0, -1.0]], [-0.99995] * 2),
    "a line": ([[1.0, 1.0], [-1.0, -1.0]], [0.25, -0.25]),
    "a line of tiny rows": ([[1e-20, 1e-20], [-1e-20, -1e-20]], [0.3e-20, -0.3e-20]),
    "a point": ([[1.0, 1.0]], [-2.0]),
    "everything": ([[0.0, 0.0]], [0.0]),
}


@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("seed", range(3))
def test_constraints_hold_besides_the_box(seed, name):
    net, box, constraints = random_net(seed, 2, 4), [(-1.0, 1.0)] * 2, DOMAINS[name]
    ((low, high),) = rational_networks.extremes(net, box, constraints)
    top, bottom = maximum(net, box, constraints=constraints), minimum(net, box, constraints=constraints)
    assert Fraction(bottom.bound) <= low <= high <= Fraction(top.bound)
    assert not top.proved or top.value == pytest.approx(float(high), abs=1e-5)
    assert not bottom.proved or bottom.value == pytest.approx(float(low), abs=1e-5)
    assert (top.proved and bottom.proved) or "line" in name
    assert Domain.of(net, box, constraints).holds(top.x[None]).all()


VALUES = {
    "maximum": (maximum, lambda net, x: net(x)[0]),
    "minimum": (minimum, lambda net, x: net(x)[0]),
    "distance": (lambda net, *args, **kwargs: distance(net, ZERO, *args, **kwargs), lambda net, x: abs(net(x)[0])),
    "lipschitz": (lipschitz, lambda net, x: np.linalg.norm(net(x + STEPS)[:, 0] - net(x)[0]) / STEPS.max()),
}
STEPS = 2.0**-24 * np.eye(3)
ZERO = network([(np.zeros((1, 3)), np.zeros(1))])


@pytest.mark.parametrize("seconds", [1e-9, 20.0])
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("seed", range(4))
def test_values_under_constraints_are_those_of_points_inside(seed, name, seconds):
    """The constraints leave a small part of the box that random points miss, away from most kinks."""
    rng, (question, value) = np.random.default_rng(seed), VALUES[name]
    net, box = random_net(seed, 3, 6), [(-100.0, 100.0)] * 3
    rows, limits = rng.normal(size=(3, 3)), rng.uniform(0.01, 1, 3)
    rows, limits = np.concatenate([rows, -rows.sum(axis=0, keepdims=True)]), np.append(limits, 0.5)
    limits += rows @ rng.uniform(-50, 50, 3)
    found = question(net, box, constraints=(rows, limits), time_limit=seconds)
    assert (np.abs(found.x) <= 100).all()
    terms = np.abs(rows) @ np.abs(found.x) + np.abs(limits)
    assert (rows @ found.x <= limits + 1e-11 * terms).all()
    assert found.value == pytest.approx(value(net, found.x), rel=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_equal_networks_have_the_distance_0(seed):
    net = random_net(seed, 3, 8, outputs=2)
    first, last = net.layers
    turned = Network(
        (Layer(first.weight[::-1], first.bias[::-1], first.activation), Layer(last.weight[:, ::-1].copy(), last.bias))
    )
    for other in (net, turned):
        found = distance(net, other, [(-2, 2)] * 3, time_limit=5)
        assert found.proved
        assert found.bound <= 1e-299


def test_bounds_are_those_of_every_output():
    net, box = random_net(7, 3, 5, outputs=3), [(-1, 1)] * 3
    found = bounds(net, box)
    assert found.proved
    for i in range(3):
        assert found.high[i] == pytest.approx(maximum(net, box, output=i).value, abs=1e-6)
        assert found.low[i] == pytest.approx(minimum(net, box, output=i).value, abs=1e-6)


def test_distance_is_the_largest_difference():
    one, other = random_net(1, 2, 4, outputs=2), random_net(2, 2, 3, 4, f=activation.relu(), outputs=2)
    found = distance(one, other, box := [(-1, 1)] * 2)
    assert found.proved
    assert np.abs(one(found.x) - other(found.x)).max() == pytest.approx(found.value, abs=1e-9)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 200)] * 2), axis=-1).reshape(-1, 2)
    sampled = np.abs(one(grid) - other(grid)).max()
    assert sampled <= found.bound
    assert found.value == pytest.approx(sampled, rel=0.05)
    assert distance(one, one, box).value == pytest.approx(0.0, abs=1e-9)


def test_the_maximum_lies_between_two_numbers_of_double_precision():
    net = network([([[3.0]], [-1.0]), activation.absolute(), ([[-1.0]], [1.0])])
    found = maximum(net, [(0, 1)])
    assert found.proved
    assert float(found) <= 1 <= found.bound


def test_a_peak_between_adjacent_numbers_is_bounded():
    """F rises by 2**52 x from 1 to 1 + eps / 2, falls back by 1 + eps, and is 0 at all numbers of double precision."""
    eps, steep = 2.0**-52, 2.0**52
    f = Activation(np.array([[1, 1 + eps], [eps, 2 * eps]]), np.array([[0, steep, 0], [0, steep, 0]]), np.zeros(2))
    net = network([([[1.0], [2.0]], [0.0, -2.0]), f, ([[1.0, -1.0]], [0.0])])
    assert maximum(net, [(0, 2)]).bound >= 0.5


def test_a_narrow_spike_is_found():
    f = activation.piecewise([1.0, 1 + 1e-9, 1 + 2e-9], [0.0, 1e9, -1e9, 0.0])
    net = network([([[1.0, 0, 0]], [0.0]), f, ([[1.0]], [0.0])])
    assert maximum(net, [(-3, 3)] * 3).value == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("scale", [1e-150, 1e-9, 1.0])
def test_a_network_that_is_zero_is_proved(scale):
    net = network([(np.eye(2), np.zeros(2)), activation.relu(), (np.ones((1, 2)), [0.0])])
    found = maximum(net, [(-2 * scale, -scale)] * 2)
    assert (found.value, found.proved) == (0.0, True)
    assert 0 <= found.bound <= 1e-10 * scale


def test_fixed_inputs_and_no_hidden_layer():
    net = network([([[1.0, 2.0]], [0.5])])
    assert maximum(net, [(0.1, 0.1), (-1, 0.2)]).value == pytest.approx(1.0)
    assert minimum(net, [(0.1, 0.1), (0.2, 0.2)]).value == pytest.approx(1.0)


@pytest.mark.parametrize("clipped", [False, True])
def test_a_network_makes_the_tables_of_its_units_once(monkeypatch, clipped):
    """For three outputs, from above and from below, with and without a clip that the box makes superfluous."""
    made, of = [], Functions.of
    monkeypatch.setattr(Functions, "of", lambda f: made.append(f) or of(f))
    net = random_net(3, 4, 5, outputs=3)
    layers = [part for layer, f in net.hidden for part in ((layer.weight, layer.bias), f)]
    clip = [(np.eye(net.inputs), np.zeros(net.inputs)), activation.hardtanh()] if clipped else []
    net = network([*clip, *layers, (net.layers[-1].weight, net.layers[-1].bias)])
    bounds(net, [(-0.5, 0.5)] * net.inputs)
    assert len(made) == len(net.hidden)


def test_a_question_makes_its_tables_once(monkeypatch):
    made = {"tables": 0, "weights": 0}
    tables, weights = UnitTables.of.__func__, bounding.ReducedNetwork.__dict__["weight"].func

    def count(name, function):
        def counted(*args):
            made[name] += 1
            return function(*args)

        return counted

    monkeypatch.setattr(UnitTables, "of", classmethod(count("tables", tables)))
    counted = cached_property(count("weights", weights))
    counted.__set_name__(bounding.ReducedNetwork, "weight")
    monkeypatch.setattr(bounding.ReducedNetwork, "weight", counted)
    net, box = dense_network(0, 3, 8, 8, 3), [(-1, 1)] * 3
    for ask in (maximum, bounds, distance, lipschitz):
        made.update(tables=0, weights=0)
        ask(*([net, dense_network(1, 3, 8, 8, 3), box] if ask is distance else [net, box]), time_limit=20)
        assert made["tables"] == 1, ask
        assert made["weights"] <= 1, ask


OPPOSITE = {
    "the identity": (np.eye(2), np.zeros(2)),
    "shifted": ([[2.0, -1.0], [0.5, 1.0]], [0.25, -1.0]),
}


@pytest.mark.parametrize("name", OPPOSITE)
def test_opposite_relus_are_proved_to_be_affine(name):
    weight, bias = map(np.array, OPPOSITE[name])
    both = np.concatenate([weight, -weight]), np.concatenate([bias, -bias])
    net = network([both, activation.relu(), (np.concatenate([np.eye(2), -np.eye(2)], axis=1), np.zeros(2))])
    line, box = network([(weight, bias)]), [(-1, 2)] * 2
    apart = distance(net, line, box, time_limit=5)
    assert (apart.value, apart.proved) == (0.0, True)
    assert apart.bound < 1e-290
    for ask in (maximum, minimum, lipschitz):
        found, plain = ask(net, box, time_limit=5), ask(line, box)
        assert found.proved
        assert float(found) == pytest.approx(float(plain), rel=1e-12)
