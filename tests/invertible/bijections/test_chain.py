"""A chain computes the values of all its parts at once. Here the oracle calls part after part."""

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck, gradgradcheck
from torch.utils.checkpoint import checkpoint

from plunit.invertible import LU, PLU, Bijection, Chain, Inverse, LeakyReLU, ScaleShift, SmoothPLU, density
from plunit.invertible.bijections.bijection import Elementwise
from plunit.invertible.bijections.chain import are_blocks

CHAINS = {
    **{name: lambda name=name: density(3, 4, activation=name) for name in ("smooth", "annealed", "flux", "leaky")},
    "mixed": lambda: Chain(LU(3), PLU(3, 0.3), ScaleShift(3), PLU(3, 0.4, learnable=True), LU(3), PLU(3, 0.2), LU(3)),
    "half learned": lambda: Chain(LU(3), SmoothPLU(3), LU(3), SmoothPLU(3, learnable=True), LU(3)),
    "nested": lambda: Chain(density(3, 2), Chain(ScaleShift(3), Inverse(density(3, 2))), LeakyReLU(3)),
    "plain attributes": lambda: Chain(*(Scaled(3, factor) for factor in (2.0, 3.0, 2.0, [1, 2.5], [4, 0.5], ([3], 4)))),
    "tensors as attributes": lambda: Chain(*(Scaled(3, torch.tensor([2.0, factor, 0.5])) for factor in (3.0, 5.0))),
    "opaque": lambda: Chain(LU(3), Twice(3), density(3, 2), Twice(3), LU(3)),
}


class Twice(Bijection):
    """A bijection that is no leaf and tells nothing of its parts."""

    def forward(self, x):
        return 2 * x, torch.full(x.shape[:-1], self.features * 0.6931471805599453, dtype=x.dtype)

    def inverse(self, y):
        return y / 2, torch.full(y.shape[:-1], self.features * -0.6931471805599453, dtype=y.dtype)


class Scaled(Elementwise):
    """y = factor exp(raw_scale) x, where the factor is no tensor."""

    def __init__(self, features, factor):
        super().__init__(features)
        self._factor = factor
        self.raw_scale = nn.Parameter(torch.zeros(features))

    def raw(self):
        return (self.raw_scale,)

    def imply(self, *raw):
        factor = self._factor
        return (raw[0].exp() * (factor[-1] if isinstance(factor, (list, tuple)) else factor),)

    @staticmethod
    def evaluate(x, scale):
        return scale * x, scale.log()

    @staticmethod
    def invert(y, scale):
        return y / scale, -scale.log()


def alone(bijection, x, inverted=False):
    """Call part after part."""
    if not isinstance(bijection, (Chain, Inverse)):
        return bijection.inverse(x) if inverted else bijection(x)
    if isinstance(bijection, Inverse):
        return alone(bijection.bijection, x, not inverted)
    total = 0
    for part in bijection.parts()[::-1] if inverted else bijection.parts():
        x, log_det = alone(part, x, inverted)
        total = total + log_det
    return x, total


@pytest.fixture(params=CHAINS)
def chain(request, perturb):
    torch.manual_seed(0)
    return perturb(CHAINS[request.param]()).double()


@pytest.mark.parametrize("inverted", [False, True])
def test_a_chain_is_its_parts_one_after_the_other(chain, inverted):
    results = []
    for way in (chain.inverse if inverted else chain, lambda x: alone(chain, x, inverted)):
        x = torch.randn(4, 30, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64, requires_grad=True)
        y, log_det = way(x)
        loss = (y.sin().sum(-1) + log_det * y.detach().sum(-1).cos()).sum()
        results.append((y, log_det, *torch.autograd.grad(loss, [x, *chain.parameters()], materialize_grads=True)))
    torch.testing.assert_close(*results, rtol=1e-9, atol=1e-9)
    frozen, *parameters = chain.parameters()
    frozen.requires_grad_(False)
    for index in (0, 1):  # of both outputs one is used
        found, expected = (
            torch.autograd.grad(way(x.detach())[index].sum(), parameters, materialize_grads=True)
            for way in (chain.inverse if inverted else chain, lambda x: alone(chain, x, inverted))
        )
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def test_leaves_that_differ_in_their_tensors_only_are_implied_at_once(monkeypatch):
    calls, imply = [], Scaled.imply
    monkeypatch.setattr(Scaled, "imply", lambda self, *raw: calls.append(len(raw[0])) or imply(self, *raw))
    Chain(*(Scaled(2, factor) for factor in (2.0, 3.0, 2.0, 2.0)))(torch.randn(5, 2))
    assert sorted(calls) == [2, 3]  # three at once; the values of the other one, [2]


def test_blocks_have_derivatives_of_first_and_second_order():
    torch.manual_seed(0)
    chain = density(2, 2).double()
    assert are_blocks(chain.leaves())
    names, start = zip(
        *((name, p.detach().clone().requires_grad_()) for name, p in chain.named_parameters()), strict=True
    )

    def run(x, *parameters):
        return torch.func.functional_call(chain, dict(zip(names, parameters, strict=True)), (x,))

    x = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(run, (x, *start))
    assert gradgradcheck(run, (x, *start))


@pytest.mark.parametrize("activation", ["smooth", "flux"])
def test_checkpoints_of_parts_change_no_gradient(activation):
    chain, x = density(2, 3, activation=activation).double(), torch.randn(50, 2, dtype=torch.float64)
    expected = torch.autograd.grad(sum(part.sum() for part in chain(x)), list(chain.parameters()))
    y, total = x, 0
    for part in chain.parts():
        y, log_det = checkpoint(part, y, use_reentrant=False)
        total = total + log_det.sum()
    torch.testing.assert_close(torch.autograd.grad(y.sum() + total, list(chain.parameters())), expected)


@pytest.mark.parametrize("place", [0, 1])
def test_hooks_of_parts_are_called(place):
    chain, seen = density(2, 2), []
    other = density(2, 2)
    other.load_state_dict(chain.state_dict())
    chain.parts()[place].register_forward_hook(lambda module, args, output: seen.append(module))
    x = torch.randn(4, 2)
    torch.testing.assert_close(chain(x), alone(other, x))
    assert seen == [chain.parts()[place]]


def test_a_parametrised_part_is_computed_as_it_is():
    chain = density(2, 2)
    nn.utils.parametrize.register_parametrization(chain.parts()[1], "raw_alpha", Halved())
    x = torch.randn(7, 2)
    torch.testing.assert_close(chain(x), alone(chain, x))


class Halved(nn.Module):
    def forward(self, x):
        return x / 2
