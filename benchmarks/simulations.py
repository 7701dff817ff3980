"""Simulators whose conditional densities are known exactly, to judge conditional flows.

- two moons: a crescent in the plane, moved and mirrored by a context of two numbers.
- regression: a normal of two correlated numbers whose mean, spread and correlation depend on one number.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor
from torch.distributions import MultivariateNormal, Normal


@dataclass(frozen=True)
class Simulation:
    """A simulator: `draw(n, generator)` returns points and contexts, `log_prob(x, context)` their exact log density."""

    features: int
    context: int
    draw: Callable[[int, Generator | None], tuple[Tensor, Tensor]]
    log_prob: Callable[[Tensor, Tensor], Tensor]


def _draw_moons(n: int, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
    theta = 2 * torch.rand(n, 2, generator=generator) - 1
    angle = math.pi * (torch.rand(n, generator=generator) - 0.5)
    radius = 0.1 + 0.01 * torch.randn(n, generator=generator)
    crescent = torch.stack([radius * angle.cos() + 0.25, radius * angle.sin()], -1)
    return crescent + _moved_by(theta), theta


def _moved_by(theta: Tensor) -> Tensor:
    first, second = theta.unbind(-1)
    return torch.stack([-(first + second).abs(), second - first], -1) / math.sqrt(2)


def _log_prob_moons(x: Tensor, theta: Tensor) -> Tensor:
    v = x - _moved_by(theta) - x.new_tensor([0.25, 0.0])
    radius = v.norm(dim=-1)
    normal: Tensor = Normal(0.1, 0.01).log_prob(radius)  # type: ignore[no-untyped-call]
    inside = normal - (math.pi * radius).log()
    return torch.where(v[..., 0] > 0, inside, -math.inf)


def _draw_regression(n: int, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
    c = 4 * torch.rand(n, 1, generator=generator) - 2
    mean, factor = _mean_and_factor(c)
    return mean + (factor @ torch.randn(n, 2, 1, generator=generator))[..., 0], c


def _log_prob_regression(x: Tensor, c: Tensor) -> Tensor:
    mean, factor = _mean_and_factor(c)
    log_density: Tensor = MultivariateNormal(mean, scale_tril=factor).log_prob(x)  # type: ignore[no-untyped-call]
    return log_density


def _mean_and_factor(c: Tensor) -> tuple[Tensor, Tensor]:
    mean = torch.cat([torch.sin(2 * c), 0.5 * c.abs()], -1)
    rows = [torch.cat([0.1 + 0.3 * c.abs(), 0 * c], -1), torch.cat([0.3 * c.sin(), 0.5 - 0.1 * c], -1)]
    return mean, torch.stack(rows, -2)


SIMULATIONS = {
    "two moons": Simulation(2, 2, _draw_moons, _log_prob_moons),
    "regression": Simulation(2, 1, _draw_regression, _log_prob_regression),
}
"""The simulators by name."""
