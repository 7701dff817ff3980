"""One step of the branch and bound: the compiled program against NumPy, and both against rational arithmetic."""

import time
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest
import rational_networks
from random_networks import dense_network, random_network, scaled_network

from plunit.pieces import activation, network
from plunit.pieces.networks import exact_outputs
from plunit.pieces.proofs import bounding, linear
from plunit.pieces.proofs.bounding import Nodes, Query, bound_nodes
from plunit.pieces.proofs.properties import Comparison, Condition, Domain
from plunit.programs.libraries import choose_engine

SHAPES = [
    activation.plu(),
    activation.relu(),
    activation.absolute(),
    activation.hardtanh(-0.5, 1.5),
    activation.piecewise([-1.0, -0.5, 0.0, 0.5, 1.0], [0.0, 2.0, -1.0, 3.0, 0.5, 1.0], 0.25),
]


@pytest.fixture(scope="module")
def native():
    if choose_engine(None, "prove") == "numpy":
        pytest.skip("no compiler")
    return "native"


def asked(seed, inputs, goals=1, gradient=False, constraints=None):
    net = dense_network(seed, inputs, 6, 5, 2, f=SHAPES[seed % len(SHAPES)], weight=1.5, bias=0.5)
    domain = Domain.of(net, [(-2, 1.5)] * inputs, constraints)
    rows = np.random.default_rng(seed).normal(size=(goals, 2))
    return Query.of(net, domain, [rows], gradient=gradient)


def copied(nodes):
    return Nodes(*(getattr(nodes, field.name).copy() for field in fields(nodes)))


@pytest.mark.parametrize("gradient", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("goals", [1, 2])
@pytest.mark.parametrize("seed", range(10))
def test_the_compiled_program_does_what_numpy_does(seed, goals, gradient, native):
    constraints = ([[1.0] * 3], [1.0]) if seed % 3 == 0 else None
    query = asked(seed, 3, 1 if gradient else goals, gradient, constraints)
    nodes = Nodes.roots(query, query.domain.box[None])
    nodes.floors[:] = -np.inf if gradient else -1.0
    for _ in range(5):
        other = copied(nodes)
        one, two = bound_nodes(query, nodes, native), bound_nodes(query, other, "numpy")
        first, second = (np.where(part.bounds < 0, -np.inf, part.bounds) for part in (nodes, other))
        np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-11)
        alive = first[:, 0] > -np.inf
        np.testing.assert_allclose(nodes.box[alive], other.box[alive], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(one.gradient[alive], two.gradient[alive], rtol=1e-9, atol=1e-11)
        same = (one.branch[alive] == two.branch[alive]).all(axis=1)
        assert (~same).sum() <= 1  # scores may tie
        left = alive & (one.branch[:, 0] >= 0)
        nodes = nodes[left].halves(one.branch[left], query.net.tables.knots)
        if not len(nodes):
            break


@pytest.mark.parametrize("engine", ["native", "numpy"])
@pytest.mark.parametrize("seed", range(24))
def test_a_root_is_not_bounded_too_low(seed, engine, native):
    net, box = random_network(seed, 2, 4, 2), [(-2.0, 2.0), (-1.0, 1.5)]
    query = Query.of(net, Domain.of(net, box), [np.array([[1.0]])])
    nodes = Nodes.roots(query, query.domain.box[None])
    floor = nodes.floors[0, 0] = -1e3
    bound_nodes(query, nodes, engine)
    (_, high), *_ = rational_networks.extremes(net, box)
    assert Fraction(float(nodes.bounds[0, 0])) + Fraction(floor) >= high


@pytest.mark.parametrize("engine", ["native", "numpy"])
@pytest.mark.parametrize("seed", range(20))
def test_a_bound_without_gaps_is_rounded_up(seed, engine, native):
    """A linear network in three layers: nothing but rounding is between the bound and the largest value."""
    net, box = (
        dense_network(seed, 2, 50, 50, 50, 1, f=activation.piecewise([-9e9], [1.0, 1.0])),
        [(0.5, 1.0), (0.1, 0.3)],
    )
    query = Query.of(net, Domain.of(net, box), [np.array([[1.0]])])
    ((_, high),) = rational_networks.extremes(net, box)
    nodes = Nodes.roots(query, query.domain.box[None])
    nodes.floors[:] = floor = float(high) - 1e-6
    bound_nodes(query, nodes, engine)
    excess = Fraction(float(nodes.bounds[0, 0])) + Fraction(floor) - high
    assert 0 <= excess <= Fraction(1e-9)
    narrow = Nodes.roots(query, np.array([[[high_end, high_end] for _, high_end in box]]))
    corner = exact_outputs(net, np.array([high_end for _, high_end in box]))[0]
    narrow.floors[:] = floor = float(corner) - 1e-9
    bound_nodes(query, narrow, engine)
    assert 0 <= Fraction(float(narrow.bounds[0, 0])) + Fraction(floor) - corner <= Fraction(1e-9)


@pytest.mark.parametrize("engine", ["native", "numpy"])
@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2)])
@pytest.mark.parametrize("one", [1.0, -1.0])
def test_terms_that_cancel_count_by_their_size(one, order, engine, native):
    """1e16 x + x - 1e16 x, of which floating point may make 0."""
    last = np.array([1e16, one, -1e16])[list(order)]
    net = network([([[1.0]] * 3, np.zeros(3)), activation.relu(), ([last], [0.0])])
    query = Query.of(net, Domain.of(net, [(0.5, 1)]), [np.array([[one]])])
    nodes = Nodes.roots(query, query.domain.box[None])
    bound_nodes(query, nodes, engine)
    assert 1 <= nodes.bounds[0, 0] <= 1e4


@pytest.mark.parametrize("engine", ["native", "numpy"])
def test_units_on_a_piece_between_adjacent_knots_stay_there(engine, native):
    """Z in [1, 1 + eps]: the middle of the two rounds to 1, and the piece is still the one between them."""
    eps = 2.0**-52
    f = activation.piecewise([1.0, 1.0 + eps], [0.0, 1.0, 0.0])
    query = Query.of(
        net := network([([[1.0]], [0.0]), f, ([[1.0]], [0.0])]), Domain.of(net, [(0, 2)]), [np.ones((1, 1))]
    )
    nodes = Nodes.roots(query, query.domain.box[None]).with_splits(2)
    nodes.split_unit[:], nodes.split_low[:], nodes.split_high[:] = 0, [1.0, -np.inf], [np.inf, 1.0 + eps]
    bound_nodes(query, nodes, engine)
    assert nodes.bounds[0, 0] >= 1 + eps / 2 - 1
    assert nodes.box[0, 0, 1] >= 1 + eps
    np.testing.assert_array_equal(nodes.ranges[0, 0], [1.0, 1.0 + eps])


@pytest.mark.parametrize("engine", ["native", "numpy"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_overflow_proves_nothing(engine, native):
    net = network([([[1.0], [1.0]], [0.0, 0.5]), activation.relu(), ([[1e200, -1e200]], [0.0])])
    query = Query.of(net, Domain.of(net, [(-1, 1)]), [np.array([[1e200]])])
    nodes = Nodes.roots(query, query.domain.box[None])
    bound_nodes(query, nodes, engine)
    assert nodes.bounds[0, 0] == np.inf


@pytest.mark.parametrize("engine", ["native", "numpy"])
def test_an_input_that_cannot_be_halved_is_no_branch(engine, native):
    net = network([([[1.0], [3.0]], [-1.0, -3.0]), activation.absolute(), ([[1.0, -0.3]], [0.0])])
    query = Query.of(net, Domain.of(net, [(1 - 2.0**-53, 1 + 2.0**-52)]), [np.ones((1, 1))])
    nodes = Nodes.roots(query, np.array([[[1.0, 1 + 2.0**-52]]]))
    assert bound_nodes(query, nodes, engine).branch[0, 0] != 0


def test_halves_cover_their_node():
    query = asked(1, 2)
    nodes = Nodes.roots(query, np.array([[[-1.0, 3.0], [0.0, 1.0]]] * 2))
    both = nodes.halves(np.array([[0, -1], [2 + 3, 0]]), query.net.tables.knots)
    np.testing.assert_array_equal(both.box[:2, 0], [[-1, 1], [1, 3]])
    knot = query.net.tables.knots[3, 0]
    np.testing.assert_array_equal(both.split_unit[2:, 0], [3, 3])
    np.testing.assert_array_equal(both.split_low[2:, 0], [-np.inf, knot])
    np.testing.assert_array_equal(both.split_high[2:, 0], [knot, np.inf])


def test_tables_hold_the_exact_intercepts():
    f = activation.piecewise([-0.1, 0.2, 0.2, 0.7], [0.1, 0.3, 5.0, 0.7, 1 / 3], 0.1)
    net = network([([[1.0], [2.0]], [0.0, 1.0]), f, (np.ones((1, 2)), [0.0]), activation.relu(), ([[1.0]], [0.0])])
    tables = net.tables
    assert tables.knots.shape == (3, 4)
    unit = rational_networks.rational(net)[0][2][0]
    for piece, z in [(0, Fraction(-1)), (1, Fraction(0)), (3, Fraction(1, 2)), (4, Fraction(2))]:
        rest = rational_networks.activate(unit, z)[0] - Fraction(tables.slopes[0, piece]) * z
        assert Fraction(tables.low[0, piece]) <= rest <= Fraction(tables.high[0, piece])
        assert tables.high[0, piece] - tables.low[0, piece] <= 2e-16


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_simplex_that_lies_makes_no_bound_wrong(seed, monkeypatch):
    """Multipliers at random, and every program is said to have no point."""
    rng, honest = np.random.default_rng(seed), linear._Simplex.solve

    def lie(self):
        dual, _, x = honest(self)
        return rng.exponential(size=len(dual)), rng.exponential(size=len(dual)) * rng.integers(0, 2, len(dual)), x

    monkeypatch.setattr(linear._Simplex, "solve", lie)
    net, box = random_network(seed, 2, 4, 2), [(-2.0, 2.0), (-1.0, 1.5)]
    query = Query.of(net, Domain.of(net, box, ([[1.0, 1.0], [-1.0, 0.5]], [1.0, 2.0])), [np.array([[1.0]])])
    nodes = Nodes.roots(query, query.domain.box[None])
    nodes.floors[:] = -1e3
    (_, high), *_ = rational_networks.extremes(net, box, ([[1.0, 1.0], [-1.0, 0.5]], [1.0, 2.0]))
    for _ in range(4):
        answer = bound_nodes(query, nodes, "numpy")
        assert Fraction(float(nodes.bounds.max())) - 1000 >= high
        inner = answer.branch[:, 0] >= 0
        if not inner.all():
            break
        nodes = nodes.halves(answer.branch, query.net.tables.knots)


@pytest.mark.parametrize("gradient", [False, True], ids=["values", "gradients"])
def test_time_that_is_over_ends_the_work_on_a_node(gradient, native):
    """The bounds of one node of this network take about a second."""
    net = dense_network(0, 784, 1536, 1536, 1, f=activation.relu())
    query = Query.of(net, Domain.of(net, [(-1, 1)] * 784), [np.ones((1, 1))], gradient=gradient)
    nodes, _ = Nodes.roots(query, query.domain.box[None]), query.task
    start = time.process_time()
    assert bound_nodes(query, nodes, native, 0.05) is None
    assert time.process_time() - start < 0.25


@pytest.mark.parametrize("engine", ["native", "numpy"])
def test_a_round_without_time_has_no_answer(engine, native):
    net = dense_network(0, 20, 64, 64, 1, f=activation.relu())
    query = Query.of(net, Domain.of(net, [(-1, 1)] * 20), [np.ones((1, 1))])
    nodes = Nodes.roots(query, np.tile([-1.0, 1.0], (64, 20, 1)))
    assert bound_nodes(query, nodes, engine, 0.0) is None
    assert nodes.bounds[-1] == np.inf
    assert bound_nodes(query, nodes[:2], engine) is not None


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("make", [random_network, scaled_network])
def test_exact_values_are_within_the_errors(seed, make):
    net = make(seed, 3, 6, 3)
    query = Query.of(net, Domain.of(net, [(-2, 2)] * 3), [np.ones((1, 1))])
    for x in np.random.default_rng(seed).choice([-1.0, 0.1, 0.3, 2.0], (5, 3)):
        *_, (y, error) = query.enclosures(x[None])
        exact = exact_outputs(net, x)
        assert all(abs(Fraction(a) - b) <= Fraction(e) for a, b, e in zip(y[0], exact, error[0], strict=True))
        assert error.max() <= 1e-10 * max(1.0, max(np.abs(z).max() for z, _ in query.enclosures(x[None]))) * 1e3


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_conditions_are_met_as_in_rational_arithmetic(seed, strict):
    """Limits at the value itself, and at its neighbours, where rounding would decide."""
    net, row = dense_network(seed, 3, 20, 20, 2, weight=1.5), np.array([1.0, -0.5])
    query = Query.of(net, Domain.of(net, [(-2, 2)] * 3), [row[None]])
    for x in np.random.default_rng(seed).uniform(-2, 2, (4, 3)):
        exact = sum(Fraction(a) * y for a, y in zip(row.tolist(), exact_outputs(net, x), strict=True))
        near = float(exact)
        for limit in (near, np.nextafter(near, 9), np.nextafter(near, -9), near + 0.1, near - 0.1):
            expected = exact < Fraction(float(limit)) if strict else exact <= Fraction(float(limit))
            assert query.meets(x, [Condition(row[None], [limit], strict)]) == expected
            bar = Comparison(((0, Fraction(1)), (1, Fraction(-1, 2))), exact, strict=strict)
            assert query.meets(x, [Condition(row[None], [limit], exact=(bar,))]) == (
                exact <= Fraction(float(limit)) and not strict
            )


@pytest.mark.parametrize(
    ("last", "bias", "above"), [([1, 1], -1e16, True), ([1, 1], -1e16 - 2, False), ([1, 0], -1e16, False)]
)
def test_the_sign_of_a_sum_that_cancels_is_exact(last, bias, above):
    """1e16 + 1 + bias, which is 0 or 2 in floating point; and 1e16 - 1e16."""
    net = network([([[1e16], [1.0]], [0.0, 0.0]), activation.identity(), ([last], [bias])])
    query = Query.of(net, Domain.of(net, [(-1, 1)]), [np.ones((1, 1))])
    assert query.meets(np.array([1.0]), [Condition([[-1.0]], [0.0], strict=True)]) == above


def test_exact_arithmetic_is_used_only_where_rounding_could_decide(monkeypatch):
    net = dense_network(0, 3, 20, 1)
    query = Query.of(net, Domain.of(net, [(-2, 2)] * 3), [np.ones((1, 1))])
    monkeypatch.setattr(bounding, "exact_outputs", None)
    x = np.array([0.5, -0.25, 1.0])
    for limit, expected in ((net(x)[0] + 1e-6, True), (net(x)[0] - 1e-6, False)):
        assert query.meets(x, [Condition([[1.0]], [limit])]) == expected
    with pytest.raises(TypeError):
        query.meets(x, [Condition([[1.0]], [net(x)[0]])])
