import pytest
import torch
from torch import nn

from plunit.invertible import (
    LU,
    PLU,
    Chain,
    Inverse,
    InvertibleNetwork,
    LeakyReLU,
    Orthogonal,
    Permutation,
    ScaleShift,
    SmoothPLU,
    Tanh,
    density,
)

BIJECTIONS = {
    "PLU": lambda n: PLU(n),
    "PLU expanding": lambda n: PLU(n, 3.0, 0.5),
    "PLU learned": lambda n: PLU(n, 0.3, learnable=True),
    "PLU flux": lambda n: PLU(n, 0.3, learnable=True, boundary=True),
    "SmoothPLU": lambda n: SmoothPLU(n),
    "SmoothPLU expanding": lambda n: SmoothPLU(n, 4.0, 0.7, 0.9),
    "SmoothPLU learned": lambda n: SmoothPLU(n, 0.3, rho=0.2, learnable=True, learnable_rho=True),
    "SmoothPLU sharp": lambda n: SmoothPLU(n, 0.05, rho=0.02),
    "LeakyReLU": lambda n: LeakyReLU(n),
    "LeakyReLU flux": lambda n: LeakyReLU(n, 2.0, learnable=True, boundary=True),
    "Tanh": lambda n: Tanh(n),
    "LU": lambda n: LU(n),
    "Orthogonal": lambda n: Orthogonal(n),
    "ScaleShift": lambda n: ScaleShift(n),
    "Permutation": lambda n: Permutation([*range(1, n), 0]),
    "Inverse": lambda n: Inverse(LU(n)),
    "Chain": lambda n: Chain(LU(n), PLU(n, 0.5), ScaleShift(n), SmoothPLU(n, 2.0)),
    "density": lambda n: density(n, 4),
    "network": lambda n: InvertibleNetwork(n, 4, linear="orthogonal").bijection,
}


def moved(module, scale=0.2):
    """Move all parameters off their start."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += scale * torch.randn_like(parameter)
    return module


@pytest.fixture
def perturb():
    return moved


@pytest.fixture
def make():
    """Make a bijection of the table by name, perturbed, with the random numbers of a fixed seed."""

    def build(name, features, dtype=torch.float64, seed=3) -> nn.Module:
        torch.manual_seed(seed)
        return moved(BIJECTIONS[name](features)).to(dtype)

    return build


def pytest_generate_tests(metafunc):
    if "bijection_name" in metafunc.fixturenames:
        metafunc.parametrize("bijection_name", BIJECTIONS)


def kinked_points(bijection, count, dtype=torch.float64):
    """Random points of which many sit on, or next to, a kink or the end of a rounding; in chains up to rounding."""
    if type(bijection) is Chain:  # the kinks of the second part, seen through the first
        first, second, *_ = bijection.parts()
        return first.inverse(kinked_points(second, count, dtype))[0].detach()
    n = bijection.features
    x = 1.5 * torch.randn(count, n, dtype=dtype)
    special = [torch.zeros(n, dtype=dtype)]
    with torch.no_grad():
        c = getattr(bijection, "c", torch.ones(n, dtype=dtype)).to(dtype)
        rho = getattr(bijection, "rho", torch.zeros(n, dtype=dtype)).to(dtype)
    for edge in (c, c * (1 - rho), c * (1 + rho)):
        special += [edge, -edge, torch.nextafter(edge, 2 * edge), torch.nextafter(edge, 0 * edge)]
    for index, row in enumerate(special):
        x[index::40] = torch.where(torch.rand(len(x[index::40]), n) < 0.7, row, x[index::40])
    return x


@pytest.fixture
def points():
    return kinked_points
