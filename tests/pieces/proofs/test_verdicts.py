"""`holds` is never wrong, also where a limit is the maximum itself or a number beside it."""

from fractions import Fraction

import numpy as np
import pytest
import rational_networks
from random_networks import dense_network, random_network

from plunit.pieces import activation, maximum, network
from plunit.pieces.networks import exact_outputs
from plunit.pieces.proofs import linear, verdicts
from plunit.pieces.proofs.properties import Case, Condition, Property
from plunit.pieces.proofs.verdicts import holds


def large_sum():
    """1e16 relu(x) + relu(x) - 1e16 relu(x): 0 or 2 in floating point, and 1 at x = 1."""
    return network([([[1.0]] * 3, np.zeros(3)), activation.relu(), ([[1e16, 1.0, -1e16]], [0.0])])


def tenths():
    """0.1 x + 0.2 x - 0.3 x, which is 2.8e-17 at 1."""
    return network([([[1.0]] * 3, np.zeros(3)), activation.relu(), ([[0.1, 0.2, -0.3]], [0.0])])


def third():
    """1 - |3 x - 1|: the maximum is 1, at no number of double precision."""
    return network([([[3.0]], [-1.0]), activation.absolute(), ([[-1.0]], [1.0])])


def line():
    return network([([[1.0]], [0.0])])


NETS = [large_sum, tenths, third, line]


def test_a_property_of_layers_in_a_row_is_not_refuted_by_their_rounded_product():
    net = network([([[0.1]], [0.0]), ([[3.0]], [0.0])])
    limit = 3.3000000000000003
    assert Fraction(0.1) * 3 * 11 < Fraction(limit) < Fraction(0.1 * 3.0) * 11
    assert holds(net, Property.always([(0, 11)], [[1.0]], [limit])).status == "undecided"
    assert holds(net, Property.always([(0, 11)], [[1.0]], [limit + 1e-12])).status == "proved"
    assert holds(net, Property.always([(0, 11)], [[1.0]], [float(np.nextafter(limit, 0.0))])).status == "refuted"


@pytest.mark.parametrize("make", NETS)
@pytest.mark.parametrize("beside", [-1e-3, -1, 0, 1, 1e-3])
def test_a_limit_beside_the_maximum(make, beside):
    """beside: a number of units in the last place, or a part of the maximum."""
    net, box = make(), [(-1.0, 1.0)]
    ((_, high),) = rational_networks.extremes(net, box)
    near = float(high)
    limit = float(np.nextafter(near, beside * np.inf)) if abs(beside) == 1 else near + beside * max(near, 1e-3)
    always = holds(net, Property.always(box, [[1.0]], [limit]))
    never = holds(net, Property.never(box, [([[-1.0]], [-limit])]))
    assert always.status in ("undecided", "proved" if high <= Fraction(limit) else "refuted")
    assert never.status in ("undecided", "proved" if high < Fraction(limit) else "refuted")
    for found in (always, never):
        assert (found.x is None) == (found.y is None) == (found.status != "refuted")
        assert bool(found.reason) == (found.status == "undecided")
    if make is not large_sum and abs(beside) == 1e-3:
        assert "undecided" not in (always.status, never.status)


def test_exact_equality_is_decided_by_a_witness():
    """F = x over [-1, 1]: f <= 1 is undecidable by bounds, but f >= 1 has the witness 1."""
    assert holds(line(), Property.never([(-1, 1)], [([[-1.0]], [-1.0])])).status == "refuted"
    assert holds(line(), Property.always([(-1, 1)], [[1.0]], [1.0])).status in ("proved", "undecided")
    assert holds(line(), Property.never([(-1, 1)], [([[-1.0]], [np.nextafter(-1.0, -2)])])).status != "refuted"


@pytest.mark.parametrize("seed", range(17))  # the rational oracle needs 25 s for the next one
def test_a_witness_is_one_in_exact_arithmetic(seed):
    net, box = random_network(seed, 2, 4, 2), [(-2.0, 2.0), (-1.0, 1.5)]
    ((low, high),) = rational_networks.extremes(net, box)
    limit = float((low + high) / 2)
    found = holds(net, Property.always(box, [[1.0]], [limit]))
    if low < high:
        assert found.status == "refuted"
        assert exact_outputs(net, found.x)[0] > Fraction(limit)
        assert found.y == pytest.approx(net(found.x))


def two():
    """(x, -x) and |x|-like: outputs |x|, x."""
    f = activation.piecewise([0.0], [np.array([-1.0, 1.0]), 1.0])
    return network([([[1.0], [1.0]], [0.0, 0.0]), f, (np.eye(2), [0.0, 0.0])])


@pytest.mark.parametrize(
    ("rows", "limits", "status"),
    [
        ([[1.0, 0.0], [0.0, -1.0]], [0.5, -0.6], "proved"),  # |x| <= 0.5 and x >= 0.6
        ([[1.0, 0.0], [0.0, -1.0]], [0.5, -0.4], "refuted"),
        ([[-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [-0.5, 0.4, 0.4], "proved"),  # |x| >= 0.5 and |x| <= 0.4
        ([[-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [-0.5, 0.4, 0.6], "refuted"),
    ],
)
def test_rows_of_a_condition_hold_together(rows, limits, status):
    assert holds(two(), Property.never([(-1, 1)], [(rows, limits)])).status == status


def test_conditions_and_cases_are_alternatives():
    impossible, possible = ([[1.0, 0.0]], [-0.1]), ([[0.0, 1.0]], [-0.9])
    assert holds(two(), Property.never([(-1, 1)], [impossible])).status == "proved"
    found = holds(two(), Property.never([(-1, 1)], [impossible, possible]))
    assert found.status == "refuted"
    assert found.x[0] <= -0.9
    boxes = [np.array([[low, low + 0.5]]) for low in (-0.5, 0.0, 0.5, -1.0)]
    nothing = np.zeros((0, 1)), np.zeros(0)
    cases = [Case(box, *nothing, (Condition(np.array([[0.0, 1.0]]), np.array([-0.9])),)) for box in boxes]
    assert holds(two(), Property(tuple(cases[:3]))).status == "proved"
    assert holds(two(), Property(tuple(cases))).x[0] <= -0.9


def test_cases_of_many_groups_are_all_looked_at(monkeypatch):
    monkeypatch.setattr(verdicts, "TOGETHER", 2)
    nothing = np.zeros((0, 1)), np.zeros(0)
    cases = [
        Case(np.array([[i, i + 1.0]]), *nothing, (Condition(np.array([[0.0, -1.0]]), np.array([-8.5])),))
        for i in range(9)
    ]
    assert holds(two(), Property(tuple(cases[:8]))).status == "proved"
    assert holds(two(), Property(tuple(cases))).x[0] >= 8.5


def test_constraints_belong_to_the_case():
    above = Property.always([(-1, 1)], [[0.0, 1.0]], [0.4], ([[1.0]], [0.3]))
    assert holds(two(), above).status == "proved"
    assert holds(two(), Property.always([(-1, 1)], [[0.0, 1.0]], [0.2], ([[1.0]], [0.3]))).status == "refuted"
    empty = Property.always([(-1, 1)], [[0.0, 1.0]], [-9.0], ([[1.0]], [-2.0]))
    assert holds(two(), empty).status == "proved"


def test_a_witness_keeps_to_the_constraints_exactly():
    """X <= 0.5 in a box of 1e9: 1.2 breaks it by 1e-9 of the box."""
    asked = Property.always([(-1e9, 1.2)], [[1.0]], [0.5], ([[1.0]], [0.5]))
    assert holds(line(), asked).status != "refuted"


def test_time_that_is_over_is_undecided():
    net = dense_network(0, 8, 48, 48, 1, weight=2.0, bias=0.5)
    found = holds(net, Property.always([(-2, 2)] * 8, [[1.0]], [net.layers[-1].weight.sum() + 60.0]), time_limit=0.3)
    assert found.status in ("undecided", "proved")
    found = holds(net, Property.always([(-2, 2)] * 8, [[1.0]], [25.0]), time_limit=0.2)
    assert found.status != "proved" or found.seconds < 5


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(12))
def test_a_simplex_that_lies_proves_nothing_false(seed, monkeypatch):
    rng, honest = np.random.default_rng(seed), linear._Simplex.solve

    def lie(self):
        dual, _, x = honest(self)
        kind = rng.integers(3)
        wrong = [rng.exponential(size=len(dual)), np.full(len(dual), np.nan), 1e300 * rng.random(len(dual))][kind]
        return wrong, wrong, x

    net, box = random_network(seed, 2, 3, 2), [(-2.0, 2.0), (-1.0, 1.5)]
    ((_, high),) = rational_networks.extremes(net, box)
    monkeypatch.setattr(linear._Simplex, "solve", lie)
    monkeypatch.setattr("plunit.pieces.proofs.branching.prover", lambda: "numpy")
    for limit in (float(high) + 1e-3, float(high) - 1e-3, float(high)):
        found = holds(net, Property.always(box, [[1.0]], [limit]), time_limit=0.2)
        assert found.status != ("refuted" if high <= Fraction(limit) else "proved")


@pytest.mark.parametrize("below", [1e-2, 1e-6, 1e-9])
@pytest.mark.parametrize("seed", range(6))
def test_a_witness_on_the_constraints_is_found(seed, below):
    """The largest value lies on a constraint, where rounding puts half of all points outside."""
    rng, net = np.random.default_rng(seed), dense_network(seed, 3, 6, 1, weight=1.5, bias=0.5)
    box, constraints = [(-2, 2)] * 3, (rng.normal(size=(2, 3)), rng.normal(size=2) * 0.3 + 0.3)
    top = maximum(net, box, constraints=constraints)
    limit = top.value - below * abs(top.value)
    assert holds(net, Property.always(box, [[1.0]], [limit], constraints=constraints)).status == "refuted"


@pytest.mark.parametrize(
    ("boxes", "limits", "status"),
    [
        ([(0.0, 1.0)], [], "refuted"),
        ([(0.0, 1.0), (10.0, 11.0)], [], "refuted"),
        ([(0.0, 1.0)], [-1.0], "proved"),  # no x is at most -1
    ],
)
def test_a_condition_without_rows_is_met_in_each_case_alone(boxes, limits, status):
    net = network([([[1.0]], [0.0]), activation.plu(), ([[1.0]], [0.0])])
    nothing = (Condition(np.zeros((0, 1)), np.zeros(0)),)
    property = Property([Case([box], np.ones((len(limits), 1)), limits, nothing) for box in boxes])
    found = holds(net, property)
    assert found.status == status
    assert found.x is None or property.contains(found.x, found.y)


@pytest.mark.parametrize(("shift", "status"), [(1e-9, "refuted"), (-1e-9, "proved"), (0.0, "undecided")])
def test_one_output_exceeds_another(shift, status):
    """f_0 - f_1 = shift - |x| / 3, by sums that round."""
    net = network([([[1.0]], [0.0]), activation.absolute(), ([[0.1], [0.1 + 1 / 3]], [shift, 0.0])])
    found = holds(net, Property.always([(-1, 1)], [[1.0, -1.0]], [0.0]))
    assert found.status == status
    if found.x is not None:
        assert found.y[0] > found.y[1]
