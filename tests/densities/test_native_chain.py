"""The compiled program against the NumPy engine, and its bits: threads, chunks and processors do not change them."""

from dataclasses import replace

import numpy as np
import pytest
from compilers import TARGETS, narrow_program, needs_fma

from plunit.densities import Architecture, Sample, native_chain, numpy_chain, start
from plunit.densities.chain_state import MemberSteps, begin
from plunit.programs import loading

pytestmark = pytest.mark.usefixtures("compiler")
CARRIED = (
    *("theta", "mean", "square", "average", "best", "radii", "looks"),
    *("steps", "loss", "best_step", "mark", "waited"),
)
KINDS = [("smooth", 0.0), ("plu", 0.3), ("plu", 0.0), ("leaky", 0.0)]
kinds = pytest.mark.parametrize(("activation", "rho"), KINDS, ids=["smooth", "rounded plu", "plu", "leaky"])


def points(n, count, weighted=True, seed=1):
    rng = np.random.default_rng(seed)
    weight = rng.random(count).astype(np.float32)
    x = rng.standard_normal((count, n)) * np.linspace(0.5, 1.5, n)
    return Sample(x.astype(np.float32), weight / weight.mean() if weighted else None)


def member(form, seed=0, looks=200):
    return begin(start(form, np.random.default_rng(seed)), seed + 7, looks)


def carried(member):
    return [getattr(member, name) for name in CARRIED]


@kinds
@pytest.mark.parametrize(
    ("features", "blocks", "batch"),
    [(1, 3, 20), (2, 4, 64), (3, 2, 65), (4, 3, 150), (5, 1, 16), (7, 2, 33), (2, 0, 9), (64, 2, 100)],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_it_computes_what_the_numpy_engine_does(activation, rho, features, blocks, batch, weighted):
    form = Architecture(features, blocks, activation)
    one, other = member(form), member(form)
    training, tests = points(features, 170, weighted), points(features, 70, weighted, seed=2)
    steps = MemberSteps(np.linspace(0.02, 0.01, 4), training, batch, rho, tests, every=2)
    native_chain.advance([one], steps)
    numpy_chain.advance([other], steps)
    tolerance = 1e-5 if features < 64 else 3e-4  # Adam's first steps have the sign of a gradient, however small
    for name in CARRIED:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-4, atol=tolerance, err_msg=name)
    assert np.isfinite(one.looks[:2]).all()
    assert not np.array_equal(one.theta, member(form).theta)


def schedule(rho=0.0, features=3):
    training, tests = points(features, 500), points(features, 90, seed=2)
    return MemberSteps(np.linspace(0.05, 0.01, 60), training, 70, rho, tests, every=3, patience=9)


@kinds
@pytest.mark.parametrize("parts", [(1, 59), (7, 8, 45), (30, 30)])
def test_chunks_of_steps_have_the_same_bits(activation, rho, parts):
    form, plan = Architecture(3, 4, activation), schedule(rho)
    whole, pieces, first = member(form), member(form), 0
    native_chain.advance([whole], plan)
    for count in parts:
        native_chain.advance([pieces], replace(plan, rate=plan.rate[first : first + count]))
        first += count
    np.testing.assert_equal(carried(pieces), carried(whole))


@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_threads_and_company_have_the_same_bits(monkeypatch, threads):
    form, plan = Architecture(3, 4), schedule()
    alone = [member(form, seed) for seed in range(5)]
    for one in alone:
        native_chain.run(loading.library("chain"), one, plan)
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    together = [member(form, seed) for seed in range(5)]
    native_chain.advance(together, plan)
    np.testing.assert_equal(list(map(carried, together)), list(map(carried, alone)))


@needs_fma
@kinds
@pytest.mark.parametrize("target", TARGETS, ids=" ".join)
@pytest.mark.parametrize("features", [2, 3, 9])
def test_every_processor_computes_the_same_bits(target, activation, rho, features):
    form, plan = Architecture(features, 4, activation), schedule(rho, features)
    one, other = member(form), member(form)
    native_chain.run(narrow_program(target, "chain"), one, plan)
    native_chain.run(loading.library("chain"), other, plan)
    np.testing.assert_equal(carried(one), carried(other))
    assert np.isfinite(one.loss)


@kinds
def test_patience_stands_still_in_both_engines(activation, rho):
    form = Architecture(3, 2, activation)
    plan = replace(schedule(rho), rate=np.full(60, 1.0), every=1, patience=4)
    one, other = member(form), member(form)
    native_chain.advance([one], plan)
    numpy_chain.advance([other], plan)
    assert one.steps == other.steps < 60
    before = carried(one)
    native_chain.advance([one], plan)
    np.testing.assert_equal(carried(one), before)


@pytest.mark.parametrize("advance", [native_chain.advance, numpy_chain.advance], ids=["native", "numpy"])
def test_whole_numbers_beyond_those_of_float32(advance):
    """Above 2^24 only every other whole number is one of float32."""
    last, form = 2**24 + 1, Architecture(2, 2)
    better, worse = member(form), member(form)
    worse.loss = worse.mark = -1e9
    for one in (better, worse):
        one.steps, one.waited = last - 1, last - 1
    plan = MemberSteps(np.ones(1) * 0.01, points(2, 50), 20, tests=points(2, 30), every=last, patience=last)
    advance([better, worse], plan)
    assert (better.best_step, better.waited, better.steps) == (last, 0, last)
    assert (worse.best_step, worse.waited, worse.steps) == (0, last, last)
    advance([better, worse], plan)
    assert (better.steps, worse.steps) == (last + 1, last)


@kinds
@pytest.mark.parametrize("advance", [native_chain.advance, numpy_chain.advance], ids=["native", "numpy"])
def test_a_member_that_diverges_keeps_its_best_state(activation, rho, advance):
    form = Architecture(3, 4, activation)
    plan = replace(schedule(rho), rate=np.array([0.01] * 20 + [1e30] * 40), patience=np.inf)
    one = member(form)
    advance([one], plan)
    assert np.isnan(one.theta).any()
    assert np.isfinite(one.best).all()
    assert 3 <= one.best_step <= 21
    np.testing.assert_allclose(numpy_chain.mean_loss(replace(one.network(), rho=rho), plan.tests), one.loss, rtol=1e-5)
