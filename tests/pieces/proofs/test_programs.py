"""Proofs about the program that runs: in integers against all runs, in floating point against compiled C."""

import dataclasses

import numpy as np
import pytest
from compilers import call_c
from fixed_networks import smooth
from program_judges import judge_program
from random_networks import dense_network

from plunit.pieces import (
    FloatNetwork,
    Property,
    activation,
    bounds,
    holds,
    maximum,
    minimum,
    network,
    quantize,
    save_c,
)
from plunit.pieces.proofs import branching

STEP = network([([[1.0]], [0.0]), activation.hardtanh(-0.25, 0.25), ([[1.0]], [0.0])])


@pytest.mark.parametrize("first", range(0, 100, 10))
def test_a_hundred_programs_against_all_of_their_runs(first):
    assert {judge_program(seed).partition(":")[0] for seed in range(first, first + 10)} <= {"right", "refused"}


def test_numbers_that_a_proof_rests_on_cannot_be_changed():
    fixed = quantize(STEP, [(-1, 1)])
    layer, f = STEP.layers[0], STEP.layers[0].activation
    for array in (layer.weight, layer.bias, f.knots, f.slopes, f.at_zero, fixed.layers[0].weight):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    weight = np.array([[2.0]])
    net = network([(weight, [0.0])])
    weight[0, 0] = 5.0  # the caller's own array
    assert net([1.0]).tolist() == [2.0]


def test_a_search_without_a_bound_claims_nothing():
    found = maximum(FloatNetwork(smooth(0, 3, 16)), [(-1, 1)] * 3, time_limit=1e-9)
    assert found.bound == np.inf
    assert found.claim == ""


def test_the_largest_output_of_all_integers_of_16_bits():
    fixed = quantize(smooth(0, 1), [(-2, 2)])
    every = fixed.integers(np.arange(fixed.ends[0][0], fixed.ends[1][0] + 1)[:, None])
    for find, best in ((maximum, every.max()), (minimum, every.min())):
        found = find(fixed, [(-2, 2)])
        assert (found.value, found.bound, found.proved) == (*[np.ldexp(best, -fixed.layers[-1].fraction)] * 2, True)
        assert fixed.integers(found.q[None])[0, 0] == best


def test_boxes_with_too_many_integers_are_halved_down_to_few(monkeypatch):
    fixed, box = quantize(smooth(0, 1), [(-2, 2)], 8), [(-2, 2)]
    whole = maximum(fixed, box)
    monkeypatch.setattr(branching, "TRIED", 8)
    small = maximum(fixed, box)
    assert (small.value, small.bound, small.proved) == (whole.value, whole.bound, True)
    assert holds(fixed, Property.always(box, [[1.0]], [whole.value])).status == "proved"
    assert holds(fixed, Property.never(box, [([[-1.0]], [-whole.value])])).status == "refuted"


def test_a_plateau_of_all_integers_of_two_inputs_is_decided():
    flat = network([(np.eye(2), np.zeros(2)), activation.hardtanh(-0.25, 0.25), ([[1.0, 1.0]], [0.0])])
    fixed, box = quantize(flat, [(-2, 2)] * 2), [(-2, 2)] * 2
    found = maximum(fixed, box, time_limit=20)
    assert found.proved
    assert found.value == found.bound
    assert holds(fixed, Property.always(box, [[1.0]], [found.value]), time_limit=20).status == "proved"


def test_a_point_between_the_integers_is_no_counterexample():
    peak = network([([[1.0], [1.0], [1.0]], [-0.375, -0.5, -0.625]), activation.relu(), ([[8.0, -16.0, 8.0]], [0.0])])
    fixed = quantize(peak, [(0, 1)])
    step = float(fixed.step[0])
    narrow = [(0.5 - 0.4 * step, 0.5 + 0.4 * step)]  # the only integer is that of 0.5
    (y,) = fixed([0.5])
    assert holds(fixed, Property.always(narrow, [[1.0]], [y])).status == "proved"
    assert bounds(fixed, narrow).high == y


def test_constraints_count_for_the_inputs_that_the_program_gets():
    net = network([([[1.0, 1.0]], [0.0])])
    fixed = quantize(net, [(0, 1)] * 2)
    found = maximum(fixed, [(0, 1)] * 2, constraints=([[1.0, 1.0]], [0.7]), time_limit=5)
    assert found.x.sum() <= 0.7
    assert 0.7 - found.value <= 2 * fixed.step.max() + 1e-4
    with pytest.raises(ValueError, match=r"no x|no input"):
        maximum(fixed, [(0, 1)] * 2, constraints=([[1.0, 1.0]], [-1.0]))


def mixed(seed):
    rng, shapes = np.random.default_rng(seed), (activation.relu(), activation.plu(), activation.hardsigmoid())
    f = activation.stack([one.broadcast(1) for one in (*shapes, activation.absolute())])
    return network([(rng.normal(size=(4, 2)), [0.1, -0.3, 0.0, 1 / 3]), f, (rng.normal(size=(1, 4)), [0.1])])


FLOATS = {
    "plu": dense_network(0, 3, 12, 12, 2),
    "mixed": mixed(1),
    "steep": network([([[1e6]], [-3e5]), activation.hardtanh(), ([[1e-3]], [0.7])]),
}


@pytest.mark.parametrize("dtype", ["float", "double"])
@pytest.mark.parametrize("name", FLOATS)
def test_the_program_in_floating_point_is_the_compiled_one_to_the_bit(name, dtype, tmp_path):
    net = FLOATS[name]
    save_c(net, tmp_path / "net.h", "net", dtype=dtype)
    program = FloatNetwork(net, dtype)
    x = program.nearest(np.random.default_rng(3).uniform(-3, 3, (2000, net.inputs)))
    y = call_c("net", x, net.outputs, tmp_path, types=(dtype, dtype), flags=("-ffp-contract=off",))
    np.testing.assert_array_equal(program(x), y)


@pytest.mark.parametrize("dtype", ["float", "double"])
@pytest.mark.parametrize("name", FLOATS)
def test_answers_in_floating_point(name, dtype):
    net = FLOATS[name]
    program, box = FloatNetwork(net, dtype), [(-2, 1.1)] * net.inputs
    x = program.nearest(np.random.default_rng(4).uniform(-2, 1.1, (100_000, net.inputs)))
    y = program(x)
    found, ends = maximum(program, box, time_limit=20), bounds(program, box, time_limit=20)
    assert found.proved
    assert (program(found.x)[0], program.nearest(found.x[None]).tolist()) == (found.value, [found.x.tolist()])
    assert y[:, 0].max() <= found.bound
    assert ((ends.low <= y).all(), (y <= ends.high).all()) == (True, True)
    error = program.error(program.sides(np.array(box)))[0]
    first = np.eye(net.outputs)[:1]
    assert holds(program, Property.always(box, first, [found.bound + error])).status == "proved"
    below = holds(program, Property.always(box, first, [found.value - 2 * error]))
    assert below.status == "refuted"
    assert program(below.x)[0] == below.y[0] > found.value - 2 * error


def test_the_real_network_may_hold_where_the_program_does_not():
    tenth, box = network([([[0.1]], [0.0])]), [(0, 1)]
    rule = Property.always(box, [[1.0]], [0.1 + 1e-12])
    assert holds(tenth, rule).status == "proved"
    verdict = holds(FloatNetwork(tenth), rule)
    assert (verdict.status, verdict.x.tolist(), verdict.y.tolist()) == ("refuted", [1.0], [float(np.float32(0.1))])


def test_a_counterexample_in_double_that_is_no_float_is_none():
    line, x = network([([[1.0]], [0.0])]), 1 + 2.0**-40
    rule = Property.always([(0.5, x)], [[1.0]], [1 + 2.0**-45])
    assert holds(line, rule).status == "refuted"
    assert holds(FloatNetwork(line, "double"), rule).status == "refuted"
    assert holds(FloatNetwork(line), rule).status != "refuted"


def test_a_header_states_what_was_proved_about_its_program(tmp_path):
    fixed, box = quantize(STEP, [(-1, 1)]), [(-1, 1)]
    floating = FloatNetwork(STEP)
    for program, function, dtype in ((fixed, fixed, "double"), (floating, STEP, "float")):
        proofs = [holds(program, Property.always(box, [[1.0]], [0.26])), minimum(program, box)]
        save_c(function, tmp_path / "f.h", "f", dtype=dtype, proved=proofs)
        text = (tmp_path / "f.h").read_text()
        assert "Proved about this program:\n   no x in [-1.0, 1.0] has -1.0 y[0] < -0.26\n" in text
        assert f"\n   y[0] >= {proofs[1].bound!r} for every x in [-1.0, 1.0]" in text
    found = maximum(fixed, box, constraints=([[2.0]], [0.5]))
    assert found.claim == f"y[0] <= {found.bound!r} for every x in [-1.0, 1.0] with 2.0 x[0] <= 0.5"
    others = [
        maximum(STEP, box),  # about the real-number network
        maximum(FloatNetwork(STEP, "double"), box),
        maximum(quantize(STEP, box), box),
        holds(fixed, Property.always(box, [[1.0]], [0.24])),  # refuted
        dataclasses.replace(found, bound=np.inf, claim=""),
        "y[0] <= 1",
        bounds(fixed, box),
    ]
    for answer in others:
        with pytest.raises(ValueError, match="only what was proved about this program"):
            save_c(fixed, tmp_path / "g.h", proved=[answer])
    assert not (tmp_path / "g.h").exists()


ERRORS = [
    (lambda: FloatNetwork(STEP, "half"), "dtype must be one of double, float, got 'half'"),
    (lambda: FloatNetwork(network([([[1e39]], [0.0])])), "a number of the network is too large for float"),
    (lambda: maximum(FloatNetwork(STEP), [(0.1, 0.1)]), "input 0 has no float in [0.1, 0.1]"),
    (lambda: holds(FloatNetwork(STEP), Property.always([(0.1, 0.1)], [[1.0]], [0.0])), "input 0 has no float"),
    (lambda: maximum(quantize(STEP, [(-1, 1)]), [(-1, 2)]), "the program is for x in [[-1.0, 1.0]]"),
    (lambda: maximum(FloatNetwork(STEP), [(-1e39, 1)]), "too large"),
    (lambda: FloatNetwork(STEP)(1.0), "this network expects x of shape [..., 1], got ()"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_errors_are_one_line(call, message):
    with pytest.raises(ValueError, match=r"^[^\n]+$") as error:
        call()
    assert message in str(error.value)


@pytest.mark.parametrize("make", [FloatNetwork, lambda net: quantize(net, [(-1, 1)] * 3, bits=8)])
def test_inputs_that_were_not_found_are_not_called_impossible(make):
    """Few numbers of a type add up to 0.1, and the search finds none: neither a value nor their absence is claimed."""
    net = network([([[1.0, 2.0, -1.0], [0.5, -1.0, 1.0]], [0.0, 0.1]), activation.plu(), ([[1.0, 1.0]], [0.0])])
    found = maximum(make(net), [(-1, 1)] * 3, constraints=([[1.0] * 3, [-1.0] * 3], [0.1, -0.1]), time_limit=0.2)
    assert (found.value, found.proved, np.isnan(found.x).all()) == (-np.inf, False, True)
    assert found.bound >= net([[0.1, 0.0, 0.0]])[0, 0]
