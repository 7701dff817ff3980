"""Gradients and steps of the NumPy engine, against finite differences, quadrature and PyTorch."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from plunit.densities import Architecture, DensityNetwork, Sample, start
from plunit.densities.chain_state import MemberSteps, begin
from plunit.densities.numpy_chain import advance, differentiate, mean_loss, radii
from plunit.invertible import to_flow, toy

KINDS = [("smooth", 0.0), ("plu", 0.3), ("plu", 0.0), ("leaky", 0.0)]


def points(n, count=40, weighted=False, seed=1):
    rng = np.random.default_rng(seed)
    weight = rng.random(count) if weighted else None
    return Sample(1.5 * rng.standard_normal((count, n)), weight if weight is None else weight / weight.mean())


@pytest.mark.parametrize(("activation", "rho"), KINDS, ids=["smooth", "rounded plu", "plu", "leaky"])
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


def member(form, seed=0, looks=100):
    begun = start(form, np.random.default_rng(seed))
    begun = replace(begun, theta=begun.theta.astype(np.float64), sign=begun.sign.astype(np.float64))
    return begin(begun, seed, looks)


def test_steps_are_those_of_adam_in_pytorch():
    form, x = Architecture(2, 3), toy("moons", 64, torch.Generator().manual_seed(0)).double()
    ours = member(form)
    flow = to_flow(DensityNetwork(form, ours.theta.copy(), ours.order, ours.sign))
    optimizer = torch.optim.Adam(flow.parameters(), lr=0.01)
    for rate in (0.01, 0.02, 0.005, 0.01):
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        (-flow.log_prob(x).mean()).backward()
        optimizer.step()
    advance([ours], MemberSteps(np.array([0.01, 0.02, 0.005, 0.01]), Sample(x.numpy()), batch=64))
    found = DensityNetwork(form, ours.theta, ours.order, ours.sign).log_prob(x.numpy())
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
    with pytest.raises(ValueError, match="room for 2 looks, 3 are asked for"):
        advance([member(Architecture(2, 1), looks=2)], MemberSteps(np.ones(30), sample, 5, tests=sample, every=10))
