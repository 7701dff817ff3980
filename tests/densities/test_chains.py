"""Gradients and steps in NumPy against finite differences, quadrature and PyTorch; the compiled program against NumPy.

Threads, chunks and processors do not change the bits of the compiled program.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from compilers import TARGETS, narrow_program, needs_fma

from plunit.densities import Architecture, Sample, chain, numpy_chain, start
from plunit.densities.chain import MemberSteps, initial_member, mean_loss
from plunit.densities.numpy_chain import advance, differentiate, radii
from plunit.invertible import to_flow, toy
from plunit.programs import libraries

KINDS = [("smooth", 0.0), ("plu", 0.3), ("plu", 0.0), ("leaky", 0.0)]
kinds = pytest.mark.parametrize(("activation", "rho"), KINDS, ids=["smooth", "rounded plu", "plu", "leaky"])
compiled = pytest.mark.usefixtures("compiler")


def points(n, count=40, weighted=False, seed=1, dtype=np.float64):
    rng = np.random.default_rng(seed)
    weight, x = rng.random(count), rng.standard_normal((count, n)) * np.linspace(0.5, 1.5, n)
    return Sample(x.astype(dtype), (weight / weight.mean()).astype(dtype) if weighted else None)


def member(form, seed=0, looks=200, dtype=np.float64):
    begun = start(form, np.random.default_rng(seed))
    return initial_member(
        replace(begun, theta=begun.theta.astype(dtype), sign=begun.sign.astype(dtype)), seed + 7, looks
    )


@kinds
@pytest.mark.parametrize(("features", "blocks"), [(1, 2), (2, 3), (4, 2), (3, 0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_is_that_of_the_loss(random_network, activation, rho, features, blocks, weighted):
    """Of every parameter. Without radii no term for the kinks is estimated, and no point is at a kink."""
    network, sample, h = random_network(features, blocks, activation, rho), points(features, 40, weighted), 1e-6

    def loss(index, shift):
        theta = network.theta.copy()
        theta[index] += shift
        return mean_loss(replace(network, theta=theta), sample)

    expected = [(loss(i, h) - loss(i, -h)) / (2 * h) for i in range(network.architecture.parameters)]
    np.testing.assert_allclose(differentiate(network, sample), expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("name", ["log_diagonal", "alpha", "c", "rho"])
def test_beyond_its_limit_a_number_has_no_gradient(random_network, name):
    network = random_network(2, 2, "smooth")
    network.views[name][0, 1] = 17.0
    gradient = network.architecture.views(differentiate(replace(network), points(2)))[name]
    assert gradient[0, 1] == 0
    assert gradient[0, 0] != 0


def expected_loss(network):
    """The loss of N(0, 1) by the midpoint rule."""
    x = (np.arange(100_000) + 0.5) / 100_000 * 16 - 8
    z, log_det = network.forward(x[None])
    return ((0.5 * z[0] ** 2 - log_det) * np.exp(-(x**2) / 2)).sum() * 16 / 100_000 / math.sqrt(2 * math.pi)


@pytest.mark.parametrize(("activation", "seed"), [("plu", 2), ("plu", 3), ("leaky", 0), ("leaky", 4)])
def test_at_kinks_the_gradient_is_that_of_the_expected_loss(random_network, activation, seed):
    """Samples that cross a kink count: without the estimated term the error is many times as large."""
    network, h = random_network(1, 2, activation, seed=seed), 0.02
    x = np.random.default_rng(0).standard_normal((200_000, 1))
    found, plain = np.zeros(network.theta.shape), np.zeros(network.theta.shape)
    for batch in x.reshape(100, 2000, 1):
        plain += differentiate(network, Sample(batch)) / 100
        found += differentiate(replace(network, radii=radii(network, batch)), Sample(batch)) / 100
    steps = h * np.eye(len(network.theta))
    shifted = [[expected_loss(replace(network, theta=network.theta + s * step)) for s in (1, -1)] for step in steps]
    expected = np.array([(up - down) / (2 * h) for up, down in shifted])
    assert np.abs(found - expected).max() < 0.05
    assert np.abs(plain - expected).max() > 0.25


def test_the_radius_is_the_distance_of_the_nearest_samples(random_network):
    network, x = random_network(2, 1, "plu"), points(2, 49).x
    u = network.weights[0] @ x.T + network.views["bias"][0][:, None]
    kinks = np.exp(network.views["c"][0])[:, None]
    expected = np.sort(np.minimum(np.abs(u - kinks), np.abs(u + kinks)), axis=1)[:, 6]
    np.testing.assert_allclose(radii(network, x)[0], expected)


def test_steps_are_those_of_adam_in_pytorch():
    form, x = Architecture(2, 3), toy("moons", 64, torch.Generator().manual_seed(0)).double()
    ours = member(form)
    flow = to_flow(start(form, np.random.default_rng(0))).double()
    optimizer = torch.optim.Adam(flow.parameters(), lr=0.01)
    for rate in (0.01, 0.02, 0.005, 0.01):
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        (-flow.log_prob(x).mean()).backward()
        optimizer.step()
    advance([ours], MemberSteps(np.array([0.01, 0.02, 0.005, 0.01]), Sample(x.numpy()), batch=64))
    found = replace(ours.network(), theta=ours.theta).log_prob(x.numpy())
    np.testing.assert_allclose(found, flow.log_prob(x).detach().numpy(), atol=1e-9)


def test_patience_and_the_best_state():
    """A step size that is far too large makes things worse, and the member stands still."""
    form, sample = Architecture(2, 2), points(2, 400)
    one = member(form)
    advance([one], MemberSteps(np.full(100, 3.0), sample, 50, tests=sample, every=1, patience=4))
    assert one.steps < 100
    seen = one.looks[: one.steps]
    assert np.isfinite(seen).all()
    assert np.isnan(one.looks[one.steps :]).all()
    assert one.loss == seen.min()
    assert one.best_step == seen.argmin() + 1
    assert one.steps == seen.argmin() + 1 + 4
    np.testing.assert_allclose(mean_loss(one.network(), sample), one.loss)


def test_the_running_mean_is_validated():
    form, sample = Architecture(2, 1), points(2, 200)
    one = member(form)
    seen = [one.theta.copy()]
    average = seen[0].copy()
    for step in range(30):
        advance([one], MemberSteps(np.array([0.05]), sample, 50, tests=sample, every=30))
        average += (one.theta - average) * max(0.001, min(1, 9 / (10 + step)))
    np.testing.assert_allclose(one.average, average)
    np.testing.assert_allclose(one.looks[0], mean_loss(replace(one.network(), theta=average), sample))


def test_there_must_be_room_for_the_looks():
    sample = points(2)
    with pytest.raises(ValueError, match="room for 2 validations, but these steps have 3"):
        advance([member(Architecture(2, 1), looks=2)], MemberSteps(np.ones(30), sample, 5, tests=sample, every=10))


CARRIED = (
    *("theta", "mean", "square", "average", "best", "radii", "looks"),
    *("steps", "loss", "best_step", "mark", "waited"),
)


def carried(member):
    return [getattr(member, name) for name in CARRIED]


def single(n, count, weighted=True, seed=1):
    return points(n, count, weighted, seed, np.float32)


def small(form, seed=0):
    return member(form, seed, dtype=np.float32)


@compiled
@kinds
@pytest.mark.parametrize(
    ("features", "blocks", "batch"),
    [(1, 3, 20), (2, 4, 64), (3, 2, 65), (4, 3, 150), (5, 1, 16), (7, 2, 33), (2, 0, 9), (64, 2, 100)],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_it_computes_what_the_numpy_engine_does(activation, rho, features, blocks, batch, weighted):
    form = Architecture(features, blocks, activation)
    one, other = small(form), small(form)
    training, tests = single(features, 170, weighted), single(features, 70, weighted, seed=2)
    steps = MemberSteps(np.linspace(0.02, 0.01, 4), training, batch, rho, tests, every=2)
    chain.advance([one], steps)
    numpy_chain.advance([other], steps)
    tolerance = 1e-5 if features < 64 else 3e-4  # Adam's first steps have the sign of a gradient, however small
    for name in CARRIED:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-4, atol=tolerance, err_msg=name)
    assert np.isfinite(one.looks[:2]).all()
    assert not np.array_equal(one.theta, small(form).theta)


def schedule(rho=0.0, features=3):
    training, tests = (single(features, count, seed=seed) for count, seed in ((500, 1), (90, 2)))
    return MemberSteps(np.linspace(0.05, 0.01, 60), training, 70, rho, tests, every=3, patience=9)


@compiled
@kinds
@pytest.mark.parametrize("parts", [(1, 59), (7, 8, 45), (30, 30)])
def test_chunks_of_steps_have_the_same_bits(activation, rho, parts):
    form, plan = Architecture(3, 4, activation), schedule(rho)
    whole, pieces, first = small(form), small(form), 0
    chain.advance([whole], plan)
    for count in parts:
        chain.advance([pieces], replace(plan, rate=plan.rate[first : first + count]))
        first += count
    np.testing.assert_equal(carried(pieces), carried(whole))


@compiled
@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_threads_and_company_have_the_same_bits(monkeypatch, threads):
    form, plan = Architecture(3, 4), schedule()
    alone = [small(form, seed) for seed in range(5)]
    for one in alone:
        chain.advance_member(libraries.library("chain"), one, plan)
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    together = [small(form, seed) for seed in range(5)]
    chain.advance(together, plan)
    np.testing.assert_equal(list(map(carried, together)), list(map(carried, alone)))


@compiled
@needs_fma
@kinds
@pytest.mark.parametrize("target", TARGETS, ids=" ".join)
@pytest.mark.parametrize("features", [2, 3, 9])
def test_every_processor_computes_the_same_bits(target, activation, rho, features):
    form, plan = Architecture(features, 4, activation), schedule(rho, features)
    one, other = small(form), small(form)
    chain.advance_member(narrow_program(target, "chain"), one, plan)
    chain.advance_member(libraries.library("chain"), other, plan)
    np.testing.assert_equal(carried(one), carried(other))
    assert np.isfinite(one.loss)


@compiled
@kinds
def test_patience_stands_still_in_both_engines(activation, rho):
    form = Architecture(3, 2, activation)
    plan = replace(schedule(rho), rate=np.full(60, 1.0), every=1, patience=4)
    one, other = small(form), small(form)
    chain.advance([one], plan)
    numpy_chain.advance([other], plan)
    assert one.steps == other.steps < 60
    before = carried(one)
    chain.advance([one], plan)
    np.testing.assert_equal(carried(one), before)


@compiled
@pytest.mark.parametrize("advance", [chain.advance, numpy_chain.advance], ids=["native", "numpy"])
def test_whole_numbers_beyond_those_of_float32(advance):
    """Above 2^24 only every other whole number is one of float32."""
    last, form = 2**24 + 1, Architecture(2, 2)
    better, worse = small(form), small(form)
    worse.loss = worse.mark = -1e9
    for one in (better, worse):
        one.steps, one.waited = last - 1, last - 1
    plan = MemberSteps(np.ones(1) * 0.01, single(2, 50), 20, tests=single(2, 30), every=last, patience=last)
    advance([better, worse], plan)
    assert (better.best_step, better.waited, better.steps) == (last, 0, last)
    assert (worse.best_step, worse.waited, worse.steps) == (0, last, last)
    advance([better, worse], plan)
    assert (better.steps, worse.steps) == (last + 1, last)


@compiled
@kinds
@pytest.mark.parametrize("advance", [chain.advance, numpy_chain.advance], ids=["native", "numpy"])
def test_a_member_that_diverges_keeps_its_best_state(activation, rho, advance):
    form = Architecture(3, 4, activation)
    plan = replace(schedule(rho), rate=np.array([0.01] * 20 + [1e30] * 40), patience=np.inf)
    one = small(form)
    advance([one], plan)
    assert np.isnan(one.theta).any()
    assert np.isfinite(one.best).all()
    assert 3 <= one.best_step <= 21
    np.testing.assert_allclose(mean_loss(replace(one.network(), rho=rho), plan.tests), one.loss, rtol=1e-5)
