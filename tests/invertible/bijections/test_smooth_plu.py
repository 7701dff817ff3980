import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from plunit.invertible import PLU, SmoothPLU


@pytest.mark.parametrize("direction", ["forward", "inverse"])
@pytest.mark.parametrize("alpha", [0.1, 3.0])
def test_special_values(alpha, direction):
    x = torch.tensor([torch.inf, -torch.inf, torch.nan, -0.0])[:, None]
    torch.testing.assert_close(getattr(SmoothPLU(1, alpha), direction)(x)[0], x, equal_nan=True)


def test_gradients_of_both_directions_and_all_parameters():
    torch.manual_seed(0)
    bijection = SmoothPLU(2, 0.4, 0.8, 0.6, learnable=True, learnable_rho=True).double()
    x = torch.randn(12, 2, dtype=torch.float64, requires_grad=True)
    names = [name for name, _ in bijection.named_parameters()]
    start = [p.detach().clone().requires_grad_() for p in bijection.parameters()]
    assert names == ["raw_alpha", "raw_c", "raw_rho"]

    def run(x, *parameters):
        values = dict(zip(names, parameters, strict=True))
        y = torch.func.functional_call(bijection, values, (x,))
        return *y, *torch.func.functional_call(Backwards(bijection), {f"of.{k}": v for k, v in values.items()}, (x,))

    assert gradcheck(run, (x, *start))
    assert gradgradcheck(lambda x: bijection(x)[0], (x,))


@pytest.mark.parametrize("alpha", [0.3, 1.0, 3.0])
def test_second_derivatives_of_the_inverse(alpha):
    start = [torch.tensor([value], dtype=torch.float64, requires_grad=True) for value in (alpha, 0.8, 0.6)]

    def run(y, alpha, c, rho):
        bijection = SmoothPLU(1, learnable=True, learnable_rho=True).double()
        raw = {"of.raw_alpha": alpha.log(), "of.raw_c": c.log(), "of.raw_rho": rho.logit()}
        return torch.func.functional_call(Backwards(bijection), raw, (y,))

    y = torch.tensor([[-3.0], [-0.6], [0.1], [0.5], [0.9], [2.0]], dtype=torch.float64, requires_grad=True)
    assert gradgradcheck(run, (y, *start))


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 10.0])
def test_the_gradient_of_rho_is_not_lost_to_rounding_in_the_inverse(alpha):
    y = torch.randn(4096, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = []
    for dtype in (torch.float32, torch.float64):
        bijection = SmoothPLU(1, alpha, learnable=True, learnable_rho=True).to(dtype)
        bijection.inverse(y.to(dtype))[0].square().mean().backward()
        found.append(bijection.raw_rho.grad.item())
    assert found[0] == pytest.approx(found[1], rel=1e-3)


class Backwards(torch.nn.Module):
    def __init__(self, of):
        super().__init__()
        self.of = of

    def forward(self, y):
        return self.of.inverse(y)


@pytest.mark.parametrize("direction", ["forward", "inverse"])
@pytest.mark.parametrize("alpha", [1e-4, 1.0, 1e4])
def test_gradients_stay_finite_far_out_and_at_alpha_one(alpha, direction):
    bijection = SmoothPLU(1, alpha, 1.0, 0.02, learnable=True, learnable_rho=True)
    x = torch.tensor([[-1e30], [0.0], [0.98], [1.0], [1.02], [1e30]], requires_grad=True)
    y, log_det = getattr(bijection, direction)(x)
    grads = torch.autograd.grad(y.sum() / 1e30 + log_det.sum(), [x, *bijection.parameters()])
    assert all(grad.isfinite().all() for grad in grads)


@pytest.mark.parametrize("learnable", [False, True])
def test_sharp_removes_the_corners_only(learnable):
    smooth = SmoothPLU(3, 0.2, 0.7, learnable=learnable).double().eval()
    sharp = smooth.sharp()
    assert isinstance(sharp, PLU)
    assert not sharp.training
    assert sharp.boundary
    assert bool(list(sharp.parameters())) == learnable
    assert torch.equal(sharp.alpha, smooth.alpha)
    assert torch.equal(sharp.c, smooth.c)
    shared = dict(smooth.named_parameters())
    assert all(parameter is shared[name] for name, parameter in sharp.named_parameters())
    smooth.rho = 1e-6
    x = torch.randn(100, 3, dtype=torch.float64)
    torch.testing.assert_close(sharp(x)[0], smooth(x)[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("alpha", [1e-4, 0.1, 1e4])
def test_beyond_the_corners_the_slope_is_alpha_to_the_bit(alpha):
    bijection = SmoothPLU(1, alpha)
    slope = bijection.alpha.log()[0]
    assert torch.equal(bijection(torch.tensor([9.0]))[1], slope)
    torch.testing.assert_close(bijection.inverse(torch.tensor([9e5]))[1], -slope, rtol=1e-6, atol=0)
