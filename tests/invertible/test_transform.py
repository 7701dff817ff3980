"""Bijections inside torch.distributions, Pyro and zuko."""

import pytest
import torch
from torch.distributions import Independent, Normal, TransformedDistribution

from plunit.invertible import BijectionTransform, Flow, Inverse, density


def standard(n):
    return Independent(Normal(torch.zeros(n).double(), torch.ones(n).double()), 1)


@pytest.fixture
def flow():
    torch.manual_seed(0)
    return Flow(density(2, 3)).double()


def test_transformed_distribution_is_the_flow(flow):
    transform = BijectionTransform(Inverse(flow.bijection))  # from base to data
    distribution = TransformedDistribution(standard(2), [transform])
    x = torch.randn(7, 2).double()
    torch.testing.assert_close(distribution.log_prob(x), flow.log_prob(x))
    assert distribution.event_shape == (2,)
    assert distribution.rsample((4,)).requires_grad
    same = TransformedDistribution(standard(2), [BijectionTransform(flow.bijection).inv])
    torch.testing.assert_close(same.log_prob(x), flow.log_prob(x))


def test_samples_follow_the_density(flow):
    torch.manual_seed(1)
    distribution = TransformedDistribution(standard(2), [BijectionTransform(flow.bijection).inv])
    samples = distribution.sample((20_000,))
    assert torch.allclose(flow.bijection(samples)[0].std(0), torch.ones(2).double(), atol=0.03)


def test_cache_and_equality(flow):
    transform = BijectionTransform(flow.bijection)
    cached = transform.with_cache()
    x = torch.randn(3, 2).double()
    assert cached.inv(cached(x)) is x
    assert transform == cached
    assert hash(transform) == hash(cached)
    assert transform != BijectionTransform(density(2, 1))


def test_pyro_takes_it(flow):
    pyro = pytest.importorskip("pyro")
    base = pyro.distributions.Normal(torch.zeros(2).double(), torch.ones(2).double()).to_event(1)
    x = torch.randn(7, 2).double()

    def model():
        with pyro.plate("points", 7):
            transform = BijectionTransform(flow.bijection).inv
            pyro.sample("x", pyro.distributions.TransformedDistribution(base, [transform]), obs=x)

    trace = pyro.poutine.trace(model).get_trace()
    torch.testing.assert_close(trace.log_prob_sum(), flow.log_prob(x).sum())


def test_zuko_takes_it(flow):
    zuko = pytest.importorskip("zuko")
    distribution = zuko.distributions.NormalizingFlow(BijectionTransform(flow.bijection), standard(2))
    x = torch.randn(7, 2).double()
    torch.testing.assert_close(distribution.log_prob(x), flow.log_prob(x))
    samples, log_prob = distribution.rsample_and_log_prob((5,))
    torch.testing.assert_close(log_prob, flow.log_prob(samples))


def test_zuko_trains_it_as_a_lazy_transform():
    zuko = pytest.importorskip("zuko")
    torch.manual_seed(0)
    bijection = density(2, 2)
    base = zuko.lazy.UnconditionalDistribution(
        zuko.distributions.DiagNormal, torch.zeros(2), torch.ones(2), buffer=True
    )
    model = zuko.lazy.Flow([zuko.lazy.UnconditionalTransform(Handed(bijection))], base)
    loss = -model().log_prob(torch.randn(64, 2)).mean()
    loss.backward()
    assert all(parameter.grad is not None for parameter in bijection.parameters())


class Handed(torch.nn.Module):
    """A module that zuko registers, and that makes the transform when called."""

    def __init__(self, bijection):
        super().__init__()
        self.bijection = bijection

    def forward(self):
        return BijectionTransform(self.bijection)


def test_it_says_that_it_is_bijective_and_differentiates_both_ways():
    transform = BijectionTransform(density(2, 1).double())
    assert transform.bijective
    assert TransformedDistribution(standard(2), [transform]).rsample().requires_grad
    assert TransformedDistribution(standard(2), [transform.inv]).rsample().requires_grad
