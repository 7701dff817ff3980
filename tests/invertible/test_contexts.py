"""Conditional bijections: the battery of a bijection for fixed contexts, and densities that are known exactly."""

import math

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributions import Independent, Normal

from benchmarks.simulations import SIMULATIONS
from plunit.invertible import Conditional, Flow, ScaleShift, SmoothPLU, conditional

ACTIVATIONS = ["smooth", "annealed", "flux", "plain", "leaky"]


def seeded(perturb, activation="smooth", features=2, context=3, blocks=2, dtype=torch.float64):
    torch.manual_seed(0)
    return perturb(conditional(features, context, blocks, activation=activation, hidden=(8, 8)), 0.1).to(dtype)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_round_trip_log_det_of_the_jacobian_and_one_context_at_a_time(perturb, activation):
    bijection = seeded(perturb, activation).eval()
    x, context = torch.randn(20, 2, dtype=torch.float64), torch.randn(20, 3, dtype=torch.float64)
    y, log_det = bijection(x, context)
    back, inverse_log_det = bijection.inverse(y, context)
    torch.testing.assert_close(back, x, rtol=0, atol=1e-12)
    torch.testing.assert_close(inverse_log_det, -log_det, rtol=0, atol=1e-12)
    jacobian = torch.vmap(torch.func.jacrev(lambda p, c: bijection(p, c)[0]))(x, context)
    torch.testing.assert_close(log_det, torch.linalg.slogdet(jacobian)[1], rtol=0, atol=1e-10)
    flow = Flow(bijection)
    alone = torch.stack([flow.at(c).log_prob(p) for p, c in zip(x, context, strict=True)])
    torch.testing.assert_close(flow.log_prob(x, context), alone)
    torch.testing.assert_close(flow.at(context[0]).frozen().log_prob(x), flow.log_prob(x, context[0]))
    assert alone.std() > 0


def test_the_context_matters_and_starts_with_no_effect(perturb):
    fresh = Flow(conditional(2, 3, blocks=2))
    x, contexts = torch.randn(5, 2), torch.randn(2, 5, 3)
    assert torch.equal(fresh.log_prob(x, contexts[0]), fresh.log_prob(x, contexts[1]))
    moved = Flow(seeded(perturb, dtype=torch.float32))
    assert (moved.log_prob(x, contexts[0]) - moved.log_prob(x, contexts[1])).abs().min() > 1e-4


@pytest.mark.parametrize(
    ("x", "context", "batch"),
    [((2,), (3,), ()), ((7, 2), (3,), (7,)), ((2,), (7, 3), (7,)), ((4, 1, 2), (5, 3), (4, 5)), ((0, 2), (0, 3), (0,))],
)
def test_points_and_contexts_broadcast(perturb, x, context, batch):
    flow = Flow(seeded(perturb, dtype=torch.float32))
    x, context = torch.randn(x), torch.randn(context)
    log_prob = flow.log_prob(x, context)
    assert log_prob.shape == batch
    rows = zip(x.expand(*batch, 2).reshape(-1, 2), context.expand(*batch, 3).reshape(-1, 3), strict=True)
    expected = [flow.log_prob(p, c) for p, c in rows]
    if expected:
        torch.testing.assert_close(log_prob.reshape(-1), torch.stack(expected))


@pytest.mark.parametrize(("context", "shape"), [((3,), (6, 2)), ((5, 3), (6, 5, 2)), ((4, 5, 3), (6, 4, 5, 2))])
def test_samples_have_the_shape_of_their_contexts(perturb, context, shape):
    flow = Flow(seeded(perturb, dtype=torch.float32))
    context = torch.randn(context)
    x, log_prob = flow.sample_and_log_prob(6, context, generator=torch.Generator().manual_seed(0))
    assert x.shape == shape
    torch.testing.assert_close(flow.log_prob(x, context), log_prob, rtol=1e-4, atol=1e-4)
    assert torch.equal(flow.sample(6, context, generator=torch.Generator().manual_seed(0)), x)


def test_rsample_is_differentiable_in_parameters_and_context(perturb):
    flow = Flow(seeded(perturb))
    context = torch.randn(3, dtype=torch.float64, requires_grad=True)
    draw = lambda c: flow.rsample(4, c, generator=torch.Generator().manual_seed(0))  # noqa: E731
    assert torch.autograd.gradcheck(draw, (context,))
    draw(context).sum().backward()
    assert all(parameter.grad is not None for parameter in flow.parameters())
    assert not flow.sample(2, context).requires_grad


@pytest.mark.parametrize("activation", ["smooth", "flux"])
@pytest.mark.parametrize("training", [True, False])
def test_gradients_in_points_and_contexts_are_those_of_the_function(perturb, activation, training):
    flow = Flow(seeded(perturb, activation)).train(training)
    x = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    context = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(flow.log_prob, (x, context))


def test_a_learned_rounding_is_left_out_when_corners_are_removed(perturb):
    flow, x, context = Flow(seeded(perturb)), torch.randn(5, 2).double(), torch.randn(5, 3).double()
    sharp = Flow(flow.bijection.sharp())
    for part in flow.bijection.bijection.parts():
        if isinstance(part, SmoothPLU):
            part.rho = 1e-6
    network = flow.bijection.network[-1]
    with torch.no_grad():  # no context may move the rounding: the last of three numbers of every second leaf
        shape = (-1, 2, network.in_features)
        starts = [sum(flow.bijection.slots[:i]) for i in range(len(flow.bijection.slots))]
        for start, count in zip(starts, flow.bijection.slots, strict=True):
            if count == 3:
                network.weight.view(shape)[start + 2] = 0
                network.bias.view(-1, 2)[start + 2] = 0
    torch.testing.assert_close(sharp.log_prob(x, context), flow.log_prob(x, context), rtol=1e-4, atol=1e-4)


def test_a_linear_context_is_found_exactly():
    """For x | c ~ N(2 c, 1) the shift of one ScaleShift must become -2 c."""
    generator = torch.Generator().manual_seed(0)
    flow = Flow(Conditional(ScaleShift(1), 1, hidden=(), generator=generator))

    def draw(n):
        c = torch.randn(n, 1, generator=generator)
        return 2 * c + torch.randn(n, 1, generator=generator), c

    flow.fit(draw, 300, batch=1024, lr=0.05)
    c = torch.tensor([[-1.0], [0.0], [1.5]])
    expected = Independent(Normal(2 * c, torch.ones(3, 1)), 1)
    x = torch.linspace(-3, 3, 7)[:, None, None].expand(7, 3, 1)
    with torch.no_grad():
        torch.testing.assert_close(flow.log_prob(x, c), expected.log_prob(x), rtol=0, atol=0.15)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_the_density_of_such_a_context_is_nan_and_others_have_theirs(perturb, bad):
    flow = Flow(seeded(perturb)).eval()
    x, contexts = torch.randn(6, 2, dtype=torch.float64), torch.randn(6, 3, dtype=torch.float64)
    whole = flow.log_prob(x, contexts)
    contexts[2, 1] = bad
    some = flow.log_prob(x, contexts)
    assert some.isnan().tolist() == [False, False, True, False, False, False]
    assert torch.equal(some[[0, 1, 3, 4, 5]], whole[[0, 1, 3, 4, 5]])


def test_samples_of_contexts_without_numbers(perturb):
    """Of a meta or a fake tensor, and within vmap, nothing can be checked, and sampling works as before."""
    flow = Flow(seeded(perturb, dtype=torch.float32))
    assert flow.to("meta").sample(5, torch.zeros(4, 3, device="meta")).shape == (5, 4, 2)
    flow = Flow(seeded(perturb, dtype=torch.float32))
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert flow.sample(5, torch.zeros(4, 3)).shape == (5, 4, 2)
    draw = torch.vmap(lambda context: flow.sample(5, context), randomness="different")
    assert draw(torch.zeros(4, 3)).shape == (4, 5, 2)


def x_log_x(a, b):
    """The integral of log from a to b."""
    return b * math.log(b) - b - a * math.log(a) + a


NORMAL = 0.5 * math.log(2 * math.pi * math.e)
MEAN_LOG_PROB = {
    # the entropies of radius and angle, and of the factor radius; E log(radius) to second order
    "two moons": -(NORMAL + math.log(0.01)) - math.log(math.pi) - (math.log(0.1) - 0.01**2 / 0.1**2 / 2),
    # the entropy of a normal, and the mean logarithms of both factors on the diagonal
    "regression": -2 * NORMAL - x_log_x(0.1, 0.7) / 0.3 / 2 - x_log_x(0.3, 0.7) / 0.1 / 4,
}


@pytest.mark.parametrize("name", SIMULATIONS)
def test_points_follow_the_density(name):
    """The mean of log p over points is minus the entropy, here in closed form."""
    x, context = SIMULATIONS[name].draw(20_000, torch.Generator().manual_seed(0))
    assert x.shape == (20_000, SIMULATIONS[name].features)
    assert context.shape == (20_000, SIMULATIONS[name].context)
    found = SIMULATIONS[name].log_prob(x, context).mean().item()
    assert found == pytest.approx(MEAN_LOG_PROB[name], abs=0.03)
