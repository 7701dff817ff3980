"""Base densities that follow the flow to another precision, and keep out of the user's own distribution."""

import pytest
import torch
from torch import distributions as d

from plunit.invertible import PLU, BijectionTransform, Flow, ScaleShift, density

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


@pytest.mark.parametrize("name", BASES)
def test_a_base_moves_to_another_device(name):
    flow = Flow(ScaleShift(2), BASES[name]()).to("meta")
    assert flow.base.origin.device.type == "meta"
    assert flow.base.draw((3,), None).device.type == "meta" if flow.base.distribution.has_rsample else True


def test_gradients_still_reach_what_a_base_was_made_from():
    mean = torch.zeros(2, requires_grad=True)
    flow = Flow(ScaleShift(2), d.MultivariateNormal(mean, torch.eye(2))).double()
    flow.log_prob(torch.ones(3, 2, dtype=torch.float64)).sum().backward()
    torch.testing.assert_close(mean.grad, torch.full((2,), 3.0))


def test_the_base_takes_the_precision_of_the_bijection():
    flow = Flow(density(2, 1).double())
    assert flow.sample(3).dtype == torch.float64
    assert Flow(density(2, 1).double()).fit(torch.randn(50, 2), 2).step == 2


def test_a_flow_over_another_base_is_trained():
    torch.manual_seed(0)
    flow = Flow(density(2, 2), BASES["StudentT"]()).double()
    losses = flow.fit(torch.randn(200, 2) * 3, 60, lr=0.05).losses
    assert losses[-1] < losses[0] - 0.3
