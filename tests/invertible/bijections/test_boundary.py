"""The 1-D example: x ~ N(0, 1), z = PLU(w x), base N(0, 1). Its likelihood is known by quadrature."""

import math

import pytest
import torch

from plunit.invertible import PLU, LeakyReLU
from plunit.invertible.bijections import boundary
from plunit.torch import plu

X = torch.linspace(-12, 12, 240_001, dtype=torch.float64)
NORMAL = torch.exp(-X.square() / 2) / math.sqrt(2 * math.pi)


def true_nll(w, alpha=0.1):
    """-E[log p(x)] up to log sqrt(2 pi): by quadrature, and P(|w x| > 1) in closed form for the log-slope."""
    outside = math.erfc(1 / (w * math.sqrt(2)))
    return torch.trapezoid(NORMAL * plu(w * X, alpha).square() / 2, X).item() - math.log(alpha) * outside - math.log(w)


def true_gradient(w, alpha=0.1):
    """D true_nll / dw, of the closed form of the jump's term: log s jumps by log(alpha) at |x| = c / w."""
    slope = torch.where((w * X).abs() > 1, alpha, 1.0)
    smooth = torch.trapezoid(NORMAL * plu(w * X, alpha) * slope * X, X).item() - 1 / w
    edge = math.exp(-1 / (2 * w * w)) / math.sqrt(2 * math.pi)
    return smooth - 2 * math.log(alpha) * edge / w**2


def gradient(bijection, w, x):
    w = torch.tensor(w, dtype=x.dtype, requires_grad=True)
    z, log_det = bijection((w * x)[:, None])
    loss = (z[:, 0].square() / 2 - log_det - w.log()).mean()
    return torch.autograd.grad(loss, w)[0].item()


@pytest.fixture(scope="module")
def sample():
    return torch.randn(100_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize(("w", "noise"), [(0.4, 0.1), (0.607, 0.1), (1.0, 0.05), (2.0, 0.03)])
def test_corrected_gradient_is_the_true_one_and_the_plain_is_not(sample, w, noise):
    assert (true_nll(w + 0.01) - true_nll(w - 0.01)) / 0.02 == pytest.approx(true_gradient(w), abs=2e-3)
    assert gradient(PLU(1, boundary=True).double(), w, sample) == pytest.approx(true_gradient(w), abs=noise)
    assert abs(gradient(PLU(1).double(), w, sample) - true_gradient(w)) > 0.2


def edge(at):
    """The density of N(0, 1)."""
    return math.exp(-(at**2) / 2) / math.sqrt(2 * math.pi)


CASES = {
    # E[log slope of PLU^-1(w x)] = log(1/alpha) P(|w x| > 1)
    "inverse": (PLU(1, 0.2, boundary=True).inverse, lambda x, w: w * x, 1.5, 2 * math.log(5) * edge(1 / 1.5) / 1.5**2),
    # E[log slope of LeakyReLU(x + b)] = log(alpha) Phi(-b)
    "LeakyReLU": (LeakyReLU(1, boundary=True), lambda x, b: x + b, 0.5, -math.log(0.1) * edge(0.5)),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_the_mean_log_slope(sample, name):
    function, move, start, expected = CASES[name]
    at = torch.tensor(start, requires_grad=True)
    log_det = function(move(sample.float(), at)[:, None])[1]
    assert torch.autograd.grad(log_det.mean(), at)[0].item() == pytest.approx(expected, rel=0.15)


def test_the_term_reaches_c_and_leaves_alpha_s_own_gradient_alone(sample):
    """Scaling c by w is scaling x by 1/w: the boundary term of c has the other sign."""
    found = []
    for has_term in (False, True):
        bijection = PLU(1, 0.3, learnable=True, boundary=has_term).double()
        bijection(sample[:, None])[1].mean().backward()
        found.append(bijection.raw_alpha.grad)
    torch.testing.assert_close(*found)
    assert bijection.raw_c.grad.item() == pytest.approx(-2 * math.log(0.3) * edge(1), abs=0.03)


@pytest.mark.parametrize("direction", ["forward", "inverse"])
@pytest.mark.parametrize("kind", [PLU, LeakyReLU])
def test_values_are_exact_and_nothing_is_estimated_without_gradients(kind, direction, monkeypatch):
    x = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    plain, corrected = (getattr(kind(3, 0.2, boundary=how), direction)(x) for how in (False, True))
    torch.testing.assert_close(corrected, plain, rtol=0, atol=0)
    monkeypatch.setattr(boundary, "width", None)
    with torch.no_grad():
        assert torch.equal(getattr(kind(3, 0.2, boundary=True), direction)(x)[1], plain[1])


def normal(u):
    return torch.exp(-u.square() / 2) / math.sqrt(2 * math.pi)


def drawn(shape, count, generator):
    like = {"generator": generator, "dtype": torch.float64}
    u = torch.randn(count, **like)
    if shape == "outlier":
        u[0] = 1e4
    elif shape == "cauchy":
        u = u / torch.randn(count, **like)
    elif shape == "bimodal":
        u = 0.05 * u + 2 * torch.randn(count, **like).sign()
    return u


def exact_term(density, w, c, alpha=0.1):
    """d/dw E[log s(w u)] by quadrature: the outer mass, on a grid that has the kink as its end, at w -+ 1e-4."""
    masses = []
    for scale in (w + 1e-4, w - 1e-4):
        t = torch.linspace(0, 1, 2_000_001, dtype=torch.float64) * 2 * c / scale - c / scale
        masses.append(1 - torch.trapezoid(density(t), t).item())
    return math.log(alpha) * (masses[0] - masses[1]) / 2e-4


DENSITIES = {
    "normal": normal,
    "outlier": normal,
    "cauchy": lambda u: 1 / (math.pi * (1 + u.square())),
    "bimodal": lambda u: 10 * (normal((u - 2) / 0.05) + normal((u + 2) / 0.05)),
}
PLACES = [
    *((shape, count, c) for shape in ("normal", "outlier", "cauchy") for count in (512, 8192) for c in (0.5, 1.0)),
    ("cauchy", 512, 3.0),
    ("bimodal", 512, 1.95),
    ("bimodal", 512, 2.0),
    ("bimodal", 512, 2.05),
    ("bimodal", 8192, 2.05),
]


@pytest.mark.parametrize(("shape", "count", "c"), PLACES)
def test_the_estimate_is_the_exact_term_whatever_the_data(shape, count, c):
    """The mean of 100 batches, because a batch of 512 has 23 samples near the kink."""
    generator, bijection, found = torch.Generator().manual_seed(0), PLU(1, 0.1, c, boundary=True).double(), []
    for _ in range(100):
        w = torch.ones((), dtype=torch.float64, requires_grad=True)
        log_det = bijection((w * drawn(shape, count, generator))[:, None])[1]
        found.append(torch.autograd.grad(log_det.mean(), w)[0])
    ratio = torch.stack(found).mean().item() / exact_term(DENSITIES[shape], 1.0, c)
    assert 0.8 <= ratio <= 1.25


def test_samples_on_the_kink_itself_have_no_estimate():
    """A rounded column can have more samples at one place than are counted: no width, no density."""
    for u in (torch.ones(100, 1), torch.ones(1), torch.ones(1, 1)):  # and a single point has no neighbours
        u.requires_grad_()
        assert not torch.autograd.grad(PLU(1, boundary=True)(u)[1].sum(), u)[0].any()


def test_values_that_differ_from_sample_to_sample():
    """As those of a density that depends on a context: slopes and widths are columns [n, m]."""
    generator = torch.Generator().manual_seed(0)
    x, c = torch.randn(2, 50, generator=generator), torch.rand(2, 50, generator=generator).requires_grad_()
    bijection, log_alpha = PLU(2, boundary=True), torch.full((2, 50), math.log(0.1))
    found = torch.autograd.grad(bijection.boundary_term(x, log_alpha.exp(), log_alpha, c).sum(), c)[0]
    distance = (x.abs() - c).abs()
    h = distance.sort(1).values[:, 7:8]  # of 50, 8 are counted
    torch.testing.assert_close(found, torch.where(distance < h, math.log(10) / (2 * h), 0.0).detach())


def test_infinite_inputs_keep_their_value_and_have_no_gradient():
    x = torch.tensor([[0.5, math.inf], [-math.inf, 2.0], [0.3, 0.4]], requires_grad=True)
    _, plain = PLU(2)(x)
    bijection = PLU(2, learnable=True, alpha=0.1, boundary=True)
    _, corrected = bijection(x)
    torch.testing.assert_close(corrected, plain)
    corrected.sum().backward()
    assert x.grad.isfinite().all()
    assert bijection.raw_c.grad.isfinite().all()
