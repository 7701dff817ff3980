"""Flows as densities: log_prob, samples, bases, and networks of `plunit.densities` as flows."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.distributions import Independent, MultivariateNormal, Normal

from plunit.densities import Architecture, start
from plunit.invertible import Flow, ScaleShift, density, to_flow


def seeded(activation="smooth", blocks=3):
    return Flow(density(2, blocks, activation=activation, generator=torch.Generator().manual_seed(0)))


def test_log_prob_of_a_known_density():
    flow = Flow(ScaleShift(2))
    with torch.no_grad():
        flow.bijection.raw_scale.copy_(torch.tensor([0.5, -1.0]))
        flow.bijection.shift.copy_(torch.tensor([1.0, 2.0]))
    scale = torch.tensor([0.5, -1.0]).exp()
    expected = Independent(Normal(-torch.tensor([1.0, 2.0]) / scale, 1 / scale), 1)
    x = torch.randn(10, 2)
    torch.testing.assert_close(flow.log_prob(x), expected.log_prob(x))
    torch.testing.assert_close(flow(x), flow.log_prob(x))


@pytest.mark.parametrize("frozen", [False, True])
def test_samples_follow_the_density(frozen):
    flow = seeded("flux").double()
    flow = flow.frozen() if frozen else flow
    samples, log_prob = flow.sample_and_log_prob(20_000, generator=torch.Generator().manual_seed(0))
    assert samples.dtype == torch.float64
    torch.testing.assert_close(log_prob, flow.log_prob(samples))
    assert torch.equal(samples, flow.sample(20_000, generator=torch.Generator().manual_seed(0)))
    with torch.no_grad():  # E_p[q / p] = 1 for any density q within reach of p
        q = MultivariateNormal(samples.mean(0), 0.3 * samples.T.cov())
        assert (q.log_prob(samples) - log_prob).exp().mean().item() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("activation", ["smooth", "flux"])
def test_half_precision_has_a_likelihood_and_says_that_it_has_no_samples(activation, dtype):
    flow, x = seeded(activation), torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
    expected = flow.log_prob(x)
    flow = flow.to(dtype)
    torch.testing.assert_close(flow.log_prob(x.to(dtype)).float(), expected, rtol=0.1, atol=0.2)
    with pytest.raises(TypeError, match=rf"needs float32 or float64, got {dtype}; convert the module by \.float\(\)"):
        flow.sample(3)
    assert flow.float().sample(3).view(-1).isfinite().all()


def network(activation, features=3, dtype=np.float64, rho=0.0):
    form, rng = Architecture(features, 5, activation), np.random.default_rng(0)
    begun = start(form, rng)
    theta = (begun.theta + 0.2 * rng.standard_normal(form.parameters)).astype(dtype)
    return replace(begun, theta=theta, sign=begun.sign.astype(dtype), rho=rho)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-3), (np.float64, 1e-9)])
@pytest.mark.parametrize("activation", ["smooth", "plu", "leaky"])
def test_it_is_the_same_density(activation, dtype, tolerance):
    ours = network(activation, dtype=dtype)
    x = np.random.default_rng(1).standard_normal((200, 3)).astype(dtype)
    flow = to_flow(ours)
    theirs = flow.log_prob(torch.from_numpy(x)).detach()
    assert theirs.dtype == torch.from_numpy(x).dtype
    np.testing.assert_allclose(ours.log_prob(x), theirs.numpy(), atol=tolerance)
    z, _ = flow.bijection(torch.from_numpy(x))
    np.testing.assert_allclose(ours.forward(x.T)[0].T, z.detach().numpy(), atol=tolerance)
    back, _ = ours.inverse(z.detach().numpy().T)
    np.testing.assert_allclose(back.T, flow.bijection.inverse(z)[0].detach().numpy(), atol=10 * tolerance)


def test_numbers_beyond_their_limit_are_kept_at_it():
    ours = network("smooth")
    for name in ("alpha", "c", "rho", "log_diagonal"):
        ours.views[name][0, 0] = -30.0
    x = np.random.default_rng(1).standard_normal((50, 3))
    np.testing.assert_allclose(ours.log_prob(x), to_flow(ours).log_prob(torch.from_numpy(x)).detach(), rtol=1e-6)
