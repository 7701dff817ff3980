"""The gradient of a flow's log density in x is that of the plain function; the boundary term is for parameters only."""

import pytest
import torch
from torch.func import grad, jvp, vmap

from plunit.invertible import PLU, Chain, Flow, Inverse, InvertibleNetwork, density, toy

KINDS = {
    **{name: (name, lambda chain: chain) for name in ("flux", "leaky", "annealed", "smooth")},
    "inverse": ("flux", lambda chain: Chain(Inverse(chain))),
}


@pytest.fixture(scope="module", params=KINDS)
def flow(request):
    """A flow after a few steps of training, so that kinks are among the data."""
    activation, wrap = KINDS[request.param]
    generator = torch.Generator().manual_seed(0)
    trained = Flow(wrap(density(2, 4, activation=activation, generator=generator)))
    trained.fit(lambda n: toy("moons", n, generator), 12, batch=128)
    return trained.double()


X = toy("moons", 64, torch.Generator().manual_seed(1)).double()
STEP = 1e-6


def differences(flow, x):
    """Central differences of log p, and the rows that have no kink between the two points."""
    found, smooth = [], torch.ones(len(x), dtype=torch.bool)
    with torch.no_grad():
        for axis in torch.eye(2, dtype=x.dtype):
            ahead, here, back = (flow.log_prob(x + shift * axis) for shift in (STEP, 0, -STEP))
            found.append((ahead - back) / (2 * STEP))
            smooth &= (ahead - 2 * here + back).abs() < 1e-8
    assert smooth.double().mean() > 0.9
    return torch.stack(found, -1), smooth


def by_autograd(flow, x):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(flow.log_prob(x).sum(), x)[0]


def by_forward_mode(flow, x):
    axes = torch.eye(2, dtype=x.dtype)
    return torch.stack([jvp(flow.log_prob, (x,), (axis.expand_as(x),))[1] for axis in axes], -1)


METHODS = {
    "autograd": by_autograd,
    "map": lambda flow, x: vmap(grad(flow.log_prob))(x),
    "grad of map": lambda flow, x: grad(lambda x: vmap(flow.log_prob)(x).sum())(x),
    "forward mode": by_forward_mode,
    "chain rule": lambda flow, x: grad(lambda z: flow.log_prob(2 * z).sum())(x / 2) / 2,
}


@pytest.mark.parametrize("mode", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("method", METHODS)
def test_the_score_is_that_of_finite_differences_whatever_the_other_points(flow, method, mode):
    expected, smooth = differences(flow, X)
    found = METHODS[method](flow.train(mode), X)
    torch.testing.assert_close(found[smooth], expected[smooth], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(METHODS[method](flow, X[:1]), found[:1], rtol=1e-9, atol=1e-9)


def parameter_gradients(flow, x):
    return torch.autograd.grad(flow.log_prob(x).mean(), list(flow.parameters()))


def test_parameters_have_the_boundary_term_in_training_whatever_x_is(flow):
    moving = parameter_gradients(flow.train(), X.clone().requires_grad_())
    still = parameter_gradients(flow, X)
    torch.testing.assert_close(moving, still, rtol=1e-7, atol=1e-9)
    without = parameter_gradients(flow.eval(), X)
    apart = max((a - b).abs().max().item() for a, b in zip(still, without, strict=True))
    has_term = any(getattr(module, "boundary", False) for module in flow.modules())
    assert (apart > 0.01) == has_term


def test_the_first_layer_has_the_boundary_term_of_all_kinks_behind_it():
    """Raise the bias of the first layer: the change of the mean log-slope, by differences over many samples."""
    network = InvertibleNetwork(1, 2, activation=lambda n, index: PLU(n, 0.4, learnable=True, boundary=True))
    flow = Flow(network.bijection).double()
    x = 0.7 + torch.randn(400_000, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    bias = flow.bijection.parts()[0].bias
    found = torch.autograd.grad(flow.log_prob(x.clone().requires_grad_()).mean(), bias)[0].item()
    means = []
    with torch.no_grad():
        for shift in (0.05, -0.1, 0.05):
            bias += shift
            means.append(flow.log_prob(x).mean().item())
    assert found == pytest.approx((means[0] - means[1]) / 0.1, abs=0.05)
    assert abs(torch.autograd.grad(flow.eval().log_prob(x).mean(), bias)[0].item() - found) > 0.2


@pytest.mark.parametrize("activation", ["flux", "leaky", "annealed"])
def test_training_has_the_term_in_every_mode_and_gives_the_mode_back(activation):
    losses = []
    for mode in (True, False):
        flow = Flow(density(2, 3, activation=activation, generator=torch.Generator().manual_seed(0))).train(mode)
        data = toy("moons", 500, torch.Generator().manual_seed(1))
        losses.append(flow.fit(data, 10, generator=torch.Generator().manual_seed(2)))
        assert flow.training == flow.bijection.training == flow.bijection.parts()[1].training == mode
    assert losses[0] == losses[1]
