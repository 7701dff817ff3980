import math

import pytest
import torch
from oracles import exact as exact_plu

from plunit.invertible import PLU, Chain, Frozen, LeakyReLU, Orthogonal, SmoothPLU, Tanh


@pytest.mark.parametrize(("alpha", "c"), [(0.1, 1.0), (3.0, 0.5), (1.0, 2.0)])
def test_plu_is_the_function_of_the_paper_on_both_sides_of_alpha_one(alpha, c):
    bijection = PLU(1, alpha, c).double()
    alpha, c = bijection.alpha.item(), bijection.c.item()
    x = [-7.0, -c, -0.3, 0.0, 0.2, c, 1.7, 30.0]
    y, log_det = bijection(torch.tensor(x, dtype=torch.float64)[:, None])
    assert y[:, 0].tolist() == pytest.approx([float(exact_plu(value, alpha, c)) for value in x], rel=1e-15)
    assert log_det.tolist() == pytest.approx([math.log(alpha) if abs(value) > c else 0.0 for value in x])


def test_each_feature_has_its_own_alpha_and_c():
    bijection = PLU(2, learnable=True).double()
    with torch.no_grad():
        bijection.raw_alpha.copy_(torch.tensor([0.5, 2.0]).log())
        bijection.raw_c.copy_(torch.tensor([1.0, 3.0]).log())
    y, log_det = bijection(torch.tensor([2.0, 4.0], dtype=torch.float64))
    assert y.tolist() == pytest.approx([1.5, 5.0])
    assert log_det.item() == pytest.approx(0.0, abs=1e-6)


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
    y, log_det = Tanh(1)(torch.tensor([[40.0]]))
    assert y.item() == 1.0  # to rounding: the way back is lost, the log-slope is not
    assert log_det.item() == pytest.approx(2 * (math.log(2) - 40), rel=1e-6)


def test_repr():
    assert repr(PLU(3, learnable=True, boundary=True)) == "PLU(3, learnable=True, boundary=True)"
    assert repr(LeakyReLU(3)) == "LeakyReLU(3)"
    assert repr(Frozen(Chain(PLU(3), Orthogonal(3)))) == "Frozen(PLU, Orthogonal)"


@pytest.mark.parametrize("direction", ["forward", "inverse"])
@pytest.mark.parametrize("c", [0.001, 0.1, 0.3, 0.7, 1.7, 100.0])
def test_a_fixed_kink_is_where_it_was_put(c, direction):
    plu, x = PLU(1, 0.1, c), torch.tensor([c])
    above = torch.nextafter(x, torch.tensor(torch.inf))
    assert plu.alpha.item() == torch.tensor(0.1).item()
    value, log_det = getattr(plu, direction)(x)
    assert torch.equal(value, x)
    assert log_det == 0
    assert getattr(plu, direction)(above)[1] != 0


def test_tanh_far_out_has_slope_zero_on_both_sides():
    assert Tanh(1)(torch.tensor([[-math.inf], [math.inf]]))[1].tolist() == [-math.inf, -math.inf]
