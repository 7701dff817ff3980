"""Activations: values at and beside kinks and corners, bounds of what is learned, gradients of SmoothPLU."""

import math

import pytest
import torch
from oracles import exact as exact_plu
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call

from plunit.invertible import PLU, Inverse, LeakyReLU, SmoothPLU, Tanh

directions = pytest.mark.parametrize("direction", ["forward", "inverse"])


@pytest.mark.parametrize(("alpha", "c"), [(0.1, 1.0), (3.0, 0.5), (1.0, 2.0)])
def test_plu_is_the_function_of_the_paper_on_both_sides_of_alpha_one(alpha, c):
    bijection = PLU(1, alpha, c).double()
    alpha, c = bijection.alpha.item(), bijection.c.item()
    x = [-7.0, -c, -0.3, 0.0, 0.2, c, 1.7, 30.0]
    y, log_det = bijection(torch.tensor(x, dtype=torch.float64)[:, None])
    assert y[:, 0].tolist() == pytest.approx([float(exact_plu(value, alpha, c)) for value in x], rel=1e-15)
    assert log_det.tolist() == pytest.approx([math.log(alpha) if abs(value) > c else 0.0 for value in x])


@pytest.mark.parametrize(("kind", "options"), [(PLU, {}), (SmoothPLU, {"learnable_rho": True})])
@pytest.mark.parametrize("raw", [-1e4, 1e4])
def test_bounds_hold_whatever_the_raw_parameters(raw, kind, options):
    bijection = kind(1, learnable=True, **options)
    with torch.no_grad():
        for parameter in bijection.parameters():
            parameter.fill_(raw)
    assert 0 < bijection.alpha.item() < math.inf
    assert 0 < bijection.c.item() < math.inf
    y, log_det = bijection(torch.tensor([[0.5]]))
    assert y.isfinite().all()
    assert log_det.isfinite().all()


def test_leaky_relu_at_zero_and_below():
    y, log_det = LeakyReLU(1, 0.2)(torch.tensor([[-2.0], [0.0], [3.0]]))
    torch.testing.assert_close(y, torch.tensor([[-0.4], [0.0], [3.0]]))
    torch.testing.assert_close(log_det, torch.tensor([math.log(0.2), 0.0, 0.0]))


def test_the_inverse_of_tanh_exists_on_the_open_interval_only():
    x, _ = Tanh(1).inverse(torch.tensor([[0.5], [1.0], [1.5]]))
    assert x[0].isfinite()
    assert x[1].isinf()
    assert x[2].isnan()
    y, log_det = Tanh(1)(torch.tensor([[40.0], [-math.inf]]))
    assert y[0].item() == 1.0  # to rounding: the way back is lost, the log-slope is not
    assert log_det.tolist() == pytest.approx([2 * (math.log(2) - 40), -math.inf], rel=1e-6)


@directions
@pytest.mark.parametrize("c", [0.001, 0.1, 0.3, 0.7, 1.7, 100.0])
def test_a_fixed_kink_is_where_it_was_put(c, direction):
    plu, x = PLU(1, 0.1, c), torch.tensor([c])
    above = torch.nextafter(x, torch.tensor(torch.inf))
    assert plu.alpha.item() == torch.tensor(0.1).item()
    value, log_det = getattr(plu, direction)(x)
    assert torch.equal(value, x)
    assert log_det == 0
    assert getattr(plu, direction)(above)[1] != 0


@directions
@pytest.mark.parametrize("alpha", [0.1, 3.0])
def test_special_values_of_smooth_plu(alpha, direction):
    x = torch.tensor([torch.inf, -torch.inf, torch.nan, -0.0])[:, None]
    torch.testing.assert_close(getattr(SmoothPLU(1, alpha), direction)(x)[0], x, equal_nan=True)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 3.0])
def test_derivatives_of_smooth_plu_in_both_directions_and_all_parameters(alpha):
    bijection = SmoothPLU(1, learnable=True, learnable_rho=True).double()
    start = [torch.tensor([value], dtype=torch.float64, requires_grad=True) for value in (alpha, 0.8, 0.6)]
    x = torch.tensor([[-3.0], [-0.6], [0.1], [0.5], [0.9], [2.0]], dtype=torch.float64, requires_grad=True)

    def run(x, alpha, c, rho, inverted):
        raw = {"raw_alpha": alpha.log(), "raw_c": c.log(), "raw_rho": rho.logit()}
        if inverted:
            return functional_call(
                Inverse(bijection), {f"bijection.{name}": value for name, value in raw.items()}, (x,)
            )
        return functional_call(bijection, raw, (x,))

    for inverted in (False, True):
        assert gradcheck(run, (x, *start, inverted))
        assert gradgradcheck(run, (x, *start, inverted))


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 10.0])
def test_the_gradient_of_rho_is_not_lost_to_rounding_in_the_inverse(alpha):
    y = torch.randn(4096, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = []
    for dtype in (torch.float32, torch.float64):
        bijection = SmoothPLU(1, alpha, learnable=True, learnable_rho=True).to(dtype)
        bijection.inverse(y.to(dtype))[0].square().mean().backward()
        found.append(bijection.raw_rho.grad.item())
    assert found[0] == pytest.approx(found[1], rel=1e-3)


@directions
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
    assert sharp.boundary
    assert not sharp.training
    assert {*sharp.parameters()} == {*smooth.parameters()}
    assert bool(list(sharp.parameters())) == learnable
    smooth.rho = 1e-6
    x = torch.randn(100, 3, dtype=torch.float64)
    torch.testing.assert_close(sharp(x)[0], smooth(x)[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("alpha", [1e-4, 0.1, 1e4])
def test_beyond_the_corners_the_slope_is_alpha_to_the_bit(alpha):
    bijection = SmoothPLU(1, alpha)
    slope = bijection.alpha.log()[0]
    assert torch.equal(bijection(torch.tensor([9.0]))[1], slope)
    torch.testing.assert_close(bijection.inverse(torch.tensor([9e5]))[1], -slope, rtol=1e-6, atol=0)
