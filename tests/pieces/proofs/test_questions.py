"""Questions about values, against the enumeration of all patterns, polygons and curves."""

import itertools
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from plunit.pieces.proofs.highs import Contradiction, Solution
from plunit.pieces.proofs.program import Program
from plunit.pieces.proofs.regions import starts
from random_networks import dense_network

from plunit.pieces import (
    Undecided,
    activation,
    bounds,
    counterexample,
    curve,
    distance,
    maximum,
    minimum,
    network,
    polygons,
)
from plunit.pieces.proofs import maximising
from plunit.pieces.proofs.domain import Domain

pytest.importorskip("highspy")

ACTIVATIONS = {
    "plu": activation.plu(),
    "steep plu": activation.plu(3.0, 0.5),
    "relu": activation.relu(),
    "leaky relu": activation.leaky_relu(0.2),
    "hardtanh": activation.hardtanh(-0.5, 1.5),
    "hardsigmoid": activation.hardsigmoid(),
    "absolute": activation.absolute(),
}


def random_net(seed, *widths, f=None, outputs=1):
    return dense_network(seed, *widths, outputs, f=f, weight=1.5, bias=0.5)


def forced(inputs):
    """A constraint that every x meets: so one and two inputs go to the solver as well."""
    return np.zeros((1, inputs)), np.ones(1)


def by_enumeration(net, box, rows=None, limits=None):
    """The largest value over all patterns of one hidden layer, a linear program each."""
    linprog = pytest.importorskip("scipy.optimize").linprog
    ((layer, f),), last = net.hidden, net.layers[-1]
    weight, bias = layer.weight, layer.bias
    ends = np.pad(f.knots, ((0, 0), (1, 1)), constant_values=((0, 0), (-1e6, 1e6)))
    best = -np.inf
    for pattern in itertools.product(range(f.slopes.shape[-1]), repeat=len(bias)):
        unit = np.arange(len(bias))
        slope, intercept = f.slopes[unit, pattern], f.intercepts[unit, pattern]
        out = last.weight[0]
        a = [weight, -weight, *([] if rows is None else [rows])]
        b = [ends[unit, np.add(pattern, 1)] - bias, bias - ends[unit, pattern], *([] if rows is None else [limits])]
        found = linprog(-(out * slope) @ weight, A_ub=np.concatenate(a), b_ub=np.concatenate(b), bounds=box)
        if found.status == 0:
            best = max(best, -found.fun + out @ (slope * bias + intercept) + last.bias[0])
    return best


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_maximum_is_that_of_all_patterns(name):
    net, box = random_net(1, 3, 4, f=ACTIVATIONS[name]), [(-2, 1), (-1, 2), (0, 3)]
    found = maximum(net, box)
    assert found.proved
    assert found.value == pytest.approx(by_enumeration(net, box), abs=1e-9)
    assert found.bound == pytest.approx(found.value, abs=1e-6)
    assert found.value == net(found.x)[0]


@pytest.mark.parametrize("seed", range(20))
def test_two_inputs_through_the_solver_agree_with_polygons(seed):
    net = random_net(seed, 2, 6, 5, f=list(ACTIVATIONS.values())[seed % len(ACTIVATIONS)])
    box = ((-2, 2), (-1, 3))
    exact = polygons(net, box).values
    found = maximum(net, box, constraints=forced(2))
    assert found.value == pytest.approx(exact.max(), abs=1e-9)
    assert found.bound >= found.value
    lowest = minimum(net, box, constraints=forced(2))
    assert lowest.value == pytest.approx(exact.min(), abs=1e-9)
    assert lowest.value - 1e-6 <= lowest.bound <= lowest.value
    assert maximum(net, box).value == pytest.approx(exact.max(), abs=1e-9)


def test_one_input_is_its_curve():
    net = random_net(3, 1, 5, 4)
    exact = curve(net, -2, 3).values
    assert float(maximum(net, [(-2, 3)])) == pytest.approx(exact.max(), abs=1e-12)
    assert float(minimum(net, [(-2, 3)], constraints=forced(1))) == pytest.approx(exact.min(), abs=1e-9)


def test_constraints_hold_besides_the_box():
    net, box = random_net(5, 3, 4), [(-2, 2)] * 3
    rows, limits = np.array([[-1.0, -1.0, -1.0], [-1.0, 2.0, 0.0]]), np.array([3.0, 0.5])
    found = maximum(net, box, constraints=(rows, limits))
    assert found.proved
    assert (rows @ found.x <= limits + 1e-8).all()
    assert found.value == pytest.approx(by_enumeration(net, box, rows, limits), abs=1e-8)
    assert found.value < maximum(net, box).value - 1e-3


CORNERS = {
    "a small corner": ([[-1.0, 0, 0], [0, -1.0, 0], [0, 0, -1.0]], [-0.99995] * 3),
    "a plane": ([[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]], [0.25, -0.25]),
    "a point": ([[1.0, 1.0, 1.0]], [-3.0]),
}


@pytest.mark.parametrize("name", CORNERS)
def test_a_domain_that_samples_miss_is_searched(name):
    net, box, constraints = random_net(5, 3, 4), [(-1, 1)] * 3, CORNERS[name]
    domain = Domain.of(net, box, constraints)
    assert domain.holds(starts(domain, 50)).all()
    found = maximum(net, box, constraints=constraints)
    assert domain.holds(found.x[None]).all()
    assert found.value == pytest.approx(by_enumeration(net, box, *map(np.array, constraints)), abs=1e-7)


def test_constraints_that_nothing_meets_are_an_error():
    with pytest.raises(ValueError, match="no x in the box meets the constraints"):
        maximum(random_net(0, 3, 4), [(-1, 1)] * 3, constraints=([[1.0, 0, 0]], [-5.0]))


def test_bounds_are_those_of_every_output():
    net, box = random_net(7, 3, 5, outputs=3), [(-1, 1)] * 3
    found = bounds(net, box)
    assert found.proved
    for i in range(3):
        assert found.high[i] == pytest.approx(maximum(net, box, output=i).value, abs=1e-6)
        assert found.low[i] == pytest.approx(minimum(net, box, output=i).value, abs=1e-6)
    values = net(np.random.default_rng(0).uniform(-1, 1, (10_000, 3)))
    assert (values >= found.low - 1e-9).all()
    assert (values <= found.high + 1e-9).all()


def test_distance_is_the_largest_difference():
    one = random_net(1, 3, 4, outputs=2)
    other = random_net(2, 3, 3, 4, f=activation.relu(), outputs=2)
    box = [(-1, 1)] * 3
    found = distance(one, other, box)
    assert found.proved
    assert np.abs(one(found.x) - other(found.x)).max() == pytest.approx(found.value, abs=1e-9)
    points = np.random.default_rng(0).uniform(-1, 1, (20_000, 3))
    sampled = np.abs(one(points) - other(points)).max()
    assert sampled <= found.value <= 2 * sampled
    assert distance(one, one, box).value == pytest.approx(0.0, abs=1e-9)


def test_a_counterexample_is_one():
    net = random_net(4, 4, 5, outputs=2)
    box = [(-2, 2)] * 4
    found = counterexample(net, box, (0, 1))
    values = net(found.x)
    assert values[0] > values[1]
    assert found.value == pytest.approx(values[0] - values[1])


def test_a_counterexample_that_ascent_finds_needs_no_program(monkeypatch):
    monkeypatch.setattr(Program, "maximise", None)
    net = random_net(4, 4, 5, outputs=2)
    assert counterexample(net, [(-2, 2)] * 4, (0, 1)).value > 0


def test_no_counterexample_is_proved():
    weight = np.eye(3)
    net = network([(weight, np.zeros(3)), activation.plu(), ([[1.0, 1, 1], [1.0, 1, 1]], [0.0, 0.5])])
    assert counterexample(net, [(-2, 2)] * 3, (0, 1)) is None
    assert counterexample(net, [(-2, 2)] * 3, (1, 0)).value == pytest.approx(0.5)


@pytest.fixture(scope="module")
def hard():
    return random_net(0, 8, 32, 32, outputs=1)


def test_a_time_limit_gives_a_point_and_a_bound(hard):
    found = maximum(hard, [(-2, 2)] * 8, time_limit=1.0)
    assert not found.proved
    assert found.value == hard(found.x)[0]
    assert found.bound > found.value
    # no value that ascent from other starts finds is above the bound
    points = np.random.default_rng(1).uniform(-2, 2, (100_000, 8))
    assert hard(points).max() <= found.bound


def test_an_undecided_question_is_an_error_with_the_best_point(hard):
    top = maximum(hard, [(-2, 2)] * 8, time_limit=0.5)
    level = (top.value + top.bound) / 2
    layers = [(layer.weight, layer.bias) for layer in hard.layers]
    last, bias = np.concatenate([layers[2][0], np.zeros((1, 32))]), np.array([layers[2][1][0], level])
    net = network([layers[0], activation.plu(), layers[1], activation.plu(), (last, bias)])
    with pytest.raises(Undecided, match="raise time_limit") as caught:
        counterexample(net, [(-2, 2)] * 8, (0, 1), time_limit=0.5)
    assert caught.value.best.value <= 0 < caught.value.best.bound


class Enough(Exception):
    """The search need not go on."""


def test_a_handler_of_the_caller_is_called_and_the_search_goes_on(hard):
    hits, told = [], []

    def tell(part, text):
        signal.raise_signal(signal.SIGINT)
        told.append(text)
        if len(told) == 5:
            raise Enough

    before = signal.signal(signal.SIGINT, lambda *_: hits.append(1))
    try:
        with pytest.raises(Enough):
            maximum(hard, [(-2, 2)] * 8, time_limit=300.0, progress=tell)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(hits) == 5


def test_error_of_progress_stops_a_search_and_is_raised(hard):
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError):
        maximum(hard, [(-2, 2)] * 8, time_limit=300.0, progress=lambda part, text: 1 / 0)
    assert threading.active_count() == before


def test_search_outside_the_main_thread(hard):
    with ThreadPoolExecutor(2) as pool:
        tasks = [pool.submit(maximum, hard, [(-2, 2)] * 8, time_limit=1.0) for _ in range(2)]
    assert all(task.result().bound > task.result().value for task in tasks)


def test_progress_shows_gap_and_time(hard):
    said = []

    def tell(part, text):
        said.append((part, text))
        if len(said) == 5:
            raise Enough

    with pytest.raises(Enough):
        maximum(hard, [(-2, 2)] * 8, time_limit=300.0, progress=tell)
    assert all(re.fullmatch(r"gap [\d.e+-]+ after \d+ s", text) for _, text in said)
    assert all(0 <= part <= 1 for part, _ in said)


def test_a_solver_that_is_wrong_is_not_believed(monkeypatch):
    net = random_net(1, 3, 4)

    def wrong(self, goal, **options):
        return Solution("optimal", None, -100.0)

    monkeypatch.setattr(Program, "maximise", wrong)
    with pytest.raises(Contradiction, match="the network has the value"):
        maximum(net, [(-2, 2)] * 3)


def test_a_solver_that_is_wrong_once_is_asked_again(monkeypatch):
    net, box = random_net(1, 3, 4), [(-2, 2)] * 3
    right, calls = Program.maximise, []

    def sometimes(self, goal, **options):
        calls.append(goal)
        return Solution("infeasible", None, -np.inf) if len(calls) == 1 else right(self, goal, **options)

    monkeypatch.setattr(Program, "maximise", sometimes)
    assert maximum(net, box).value == pytest.approx(by_enumeration(net, box), abs=1e-9)
    assert len(calls) == 2


NET = random_net(0, 3, 4, outputs=2)
FOLD = random_net(0, 3, 4, f=activation.relu())
LINE = curve(random_net(0, 1, 4), -1, 1)


def spike(width):
    """A tent of height 1 over so narrow a foot that the solver would not see it."""
    f = activation.piecewise([1.0, 1 + width, 1 + 2 * width], [0.0, 1 / width, -1 / width, 0.0])
    return network([([[1.0, 0, 0]], [0.0]), f, ([[1.0]], [0.0])])


def test_a_narrow_spike_is_found():
    assert maximum(spike(1e-6), [(-3, 3)] * 3).value == pytest.approx(1.0, abs=1e-6)


def test_an_error_of_the_polygons_is_raised(monkeypatch):
    """Only pieces that cannot be listed lead to the solver."""

    def broken(*all_of, **options):
        raise ValueError("something else")

    net = random_net(0, 2, 5)
    monkeypatch.setattr(maximising, "polygons", broken)
    with pytest.raises(ValueError, match="something else"):
        maximum(net, [(-1, 1)] * 2)
    monkeypatch.setattr(maximising, "polygons", partial(polygons, limit=2))
    exact = polygons(net, ((-1, 1), (-1, 1))).values.max()
    assert maximum(net, [(-1, 1)] * 2).value == pytest.approx(exact)


@pytest.mark.parametrize("gap", [1e-8, 0.0, -1e-8])
def test_a_counterexample_in_three_inputs_is_certain_or_undecided(gap):
    """f_0 - f_1 = gap - |x_0|: within 1e-6 of the outputs."""
    net = network([(np.eye(3), np.zeros(3)), activation.absolute(), ([[1.0, 9, 9], [2.0, 9, 9]], [gap, 0.0])])
    box = [(-1, 1)] * 3
    if gap == 0:
        with pytest.raises(Undecided):
            counterexample(net, box, (0, 1))
        return
    found = counterexample(net, box, (0, 1))
    assert found is None if gap < 0 else 0 < found.value <= gap


def test_gaps_are_measured_by_the_values_of_the_network(monkeypatch):
    """500 PLU(x + 0.5) - 500 PLU(x + 0.498) has values up to 1, though its terms are 500 times as large."""
    net = network([([[1.0, 0, 0]] * 2, [0.5, 0.498]), activation.plu(), ([[500.0, -500.0]], [0.0])])
    right = Program.maximise

    def above(self, goal, **options):
        return replace(right(self, goal, **options), bound=1.0005)

    assert maximum(net, [(-1, 1)] * 3).proved
    monkeypatch.setattr(Program, "maximise", above)
    found = maximum(net, [(-1, 1)] * 3)
    assert found.value == pytest.approx(1.0)
    assert found.bound >= 1.0005
    assert not found.proved


def test_a_program_too_large_for_memory_is_refused():
    wide = np.ones((20_000, 3)), np.zeros(20_000)
    net = network([wide, activation.plu(), (np.ones((1, 20_000)), [0.0])])
    with pytest.raises(ValueError, match="GB are allowed; take a smaller network"):
        maximum(net, [(-1, 1)] * 3, time_limit=5)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: maximum(NET, (-3, 3)), ValueError, r"a box of 3 input\(s\) is 3 pair\(s\) \(low, high\)"),
        (lambda: maximum(NET, [(-3, 3)]), ValueError, r"a box of 3 input\(s\) is 3 pair\(s\) .*got 1"),
        (lambda: maximum(NET, [(-3, 3), (3, -3), (0, 1)]), ValueError, "low < high.*input 1"),
        (lambda: maximum(NET, [(-3, 3), (0, np.nan), (0, 1)]), ValueError, "low < high.*input 1"),
        (lambda: maximum(NET, [(-1, 1)] * 3, output=2), ValueError, "0 to 1, got 2"),
        (lambda: maximum(NET, [(-1, 1)] * 3, output=True), ValueError, "0 to 1, got True"),
        (lambda: maximum(NET, [(-1, 1)] * 3, output=0.5), ValueError, "0 to 1, got 0.5"),
        (lambda: maximum(NET, [(-1, 1)] * 3, output="0"), ValueError, "0 to 1, got '0'"),
        (lambda: maximum(NET, [(-1, 1)] * 3, time_limit=True), ValueError, "positive number of seconds.*got True"),
        (lambda: maximum(NET, [(-1, 1)] * 3, time_limit="5"), ValueError, "positive number of seconds.*got '5'"),
        (lambda: maximum(NET, [(-1, 1)] * 3, constraints=([[1e300, 0, 0]], [1.0])), ValueError, "at most 1e.09"),
        (lambda: counterexample(NET, [(-1, 1)] * 3, (0,)), ValueError, "a pair of outputs"),
        (lambda: distance(LINE, LINE, [(-1, 1)]), TypeError, "domain of their own"),
        (lambda: maximum(spike(1e-12), [(-3, 3)] * 3), ValueError, "a piece of width .* cannot see"),
        (lambda: maximum(NET, [(-1, 1)] * 3, time_limit=0), ValueError, "positive number of seconds"),
        (lambda: maximum(NET, [(-1, 1)] * 3, constraints=[1]), ValueError, r"a pair \(A, b\)"),
        (lambda: maximum(NET, [(-1, 1)] * 3, constraints=([[1, 2]], [1])), ValueError, r"A \[m, 3\]"),
        (lambda: maximum(NET, [(-1, 1)] * 3, constraints=([[1, 2, np.inf]], [1])), ValueError, "finite"),
        (lambda: maximum("net", [(-1, 1)] * 3), TypeError, "needs a plunit.pieces.Network"),
        (lambda: counterexample(NET, [(-1, 1)] * 3, (0, 5)), ValueError, "0 to 1, got 5"),
        (lambda: distance(NET, NET), TypeError, "without a box"),
        (
            lambda: distance(NET, random_net(0, 3, 4), [(-1, 1)] * 3),
            ValueError,
            "3 -> 2 and 3 -> 1",
        ),
        (lambda: maximum(FOLD, [(-1e12, 1e12)] * 3), ValueError, "beyond which HiGHS cannot be trusted"),
    ],
)
def test_bad_input_is_one_clear_line(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_without_the_solver_the_extra_is_named():
    code = (
        "import sys; sys.modules['highspy'] = None\n"
        "import numpy as np\n"
        "from plunit.pieces import activation, maximum, network\n"
        "net = network([(np.eye(3), np.zeros(3)), activation.plu(), (np.ones((1, 3)), [0.0])])\n"
        "try: maximum(net, [(-1, 1)] * 3)\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'plunit[exact]'" in done.stdout
