"""Base densities that follow the flow to another precision; bijections inside torch.distributions, Pyro and zuko."""

import pytest
import torch
from torch import distributions as d

from plunit.invertible import PLU, BijectionTransform, Flow, Inverse, ScaleShift, density

ZERO, ONE = torch.zeros(2), torch.ones(2)
BASES = {
    "MultivariateNormal": lambda: d.MultivariateNormal(ZERO + 0.3, torch.tensor([[2.0, 0.5], [0.5, 1.0]])),
    "from precision": lambda: d.MultivariateNormal(ZERO, precision_matrix=torch.eye(2)),
    "Independent": lambda: d.Independent(d.Laplace(ZERO, ONE), 1),
    "expanded": lambda: d.Independent(d.Normal(torch.zeros(1), torch.ones(1)).expand((2,)), 1),
    "StudentT": lambda: d.Independent(d.StudentT(torch.tensor([3.0, 5.0])), 1),
    "MixtureSameFamily": lambda: d.MixtureSameFamily(
        d.Categorical(torch.ones(3)), d.Independent(d.Normal(torch.randn(3, 2), torch.ones(3, 2)), 1)
    ),
    "TransformedDistribution": lambda: d.TransformedDistribution(
        d.Independent(d.Normal(ZERO, ONE), 1),
        [d.AffineTransform(ONE, 2 * ONE, event_dim=1), BijectionTransform(PLU(2))],
    ),
    "LowRank": lambda: d.LowRankMultivariateNormal(ZERO, torch.ones(2, 1), ONE),
}


@pytest.mark.parametrize("name", BASES)
def test_a_base_follows_the_flow_to_another_precision(name):
    torch.manual_seed(0)
    base = BASES[name]()
    flow, x = Flow(density(2, 2), base), torch.randn(20, 2)
    before = flow.log_prob(x)
    flow.double()
    torch.manual_seed(1)
    sample, log_prob = flow.sample_and_log_prob(50)
    assert sample.dtype == log_prob.dtype == flow.log_prob(x.double()).dtype == torch.float64
    torch.testing.assert_close(flow.log_prob(x.double()).float(), before, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(flow.log_prob(sample), log_prob)
    if name != "TransformedDistribution":  # a bijection in it is shared, as that of a flow is
        assert base.log_prob(x).dtype == torch.float32  # the user's own distribution stays as it was
    torch.manual_seed(1)
    assert torch.equal(Flow(flow.bijection, base).double().sample(50), sample.detach())
    assert len(flow.fit(torch.randn(50, 2), 2).losses) == 2
    flow.to("meta")
    assert flow.origin.device.type == "meta"
    assert flow._draw((3,), None).device.type == "meta" if flow.base.has_rsample else True


def test_gradients_still_reach_what_a_base_was_made_from():
    mean = torch.zeros(2, requires_grad=True)
    flow = Flow(ScaleShift(2), d.MultivariateNormal(mean, torch.eye(2))).double()
    flow.log_prob(torch.ones(3, 2, dtype=torch.float64)).sum().backward()
    torch.testing.assert_close(mean.grad, torch.full((2,), 3.0))


def standard(n):
    return d.Independent(d.Normal(torch.zeros(n).double(), torch.ones(n).double()), 1)


@pytest.fixture
def flow():
    torch.manual_seed(0)
    return Flow(density(2, 3)).double()


def test_transformed_distribution_is_the_flow(flow):
    transform = BijectionTransform(Inverse(flow.bijection))  # from base to data
    distribution = d.TransformedDistribution(standard(2), [transform])
    x = torch.randn(7, 2).double()
    torch.testing.assert_close(distribution.log_prob(x), flow.log_prob(x))
    assert distribution.event_shape == (2,)
    assert transform.bijective
    assert distribution.rsample((4,)).requires_grad
    same = d.TransformedDistribution(standard(2), [BijectionTransform(flow.bijection).inv])
    torch.testing.assert_close(same.log_prob(x), flow.log_prob(x))
    cached = transform.with_cache()
    assert cached.inv(cached(x)) is x
    assert transform == cached != BijectionTransform(flow.bijection)


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
