"""Learn the swirl and see what the network's inverse makes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from plunit.ensemble import one_thread
from plunit.invertible import PLU, Bijection, InvertibleNetwork, LeakyReLU, alternating, stacked
from plunit.lab import scratch as scratches
from plunit.lab.cell import Cell
from plunit.lab.store import Arrays
from plunit.lab.warp.spec import Warp

CHOICES: dict[str, Callable[..., Bijection]] = {"plu": PLU, "leaky_relu": LeakyReLU}


@one_thread()
def compute(cell: Cell, scratch: Path) -> Arrays:
    """Return what a cell measures; the last axis is that of the seeds S.

    loss [steps, S]; forward_error, inverse_error and round_trip [S]: root mean squares of |F - swirl|, of
    |F^-1 - swirl^-1|, which was never shown in training, and of |F^-1(F(x)) - x|; forward and inverse
    [points, 2, S], the images of the grid.
    """
    spec: Warp = cell.spec
    generators = [torch.Generator().manual_seed(seed) for seed in range(cell.first, cell.last)]
    make = alternating(CHOICES[cell.activation], spec.alpha, learnable=True)
    networks: list[nn.Module] = [
        InvertibleNetwork(2, spec.depth, activation=make, generator=generator) for generator in generators
    ]

    def draw() -> tuple[Tensor, Tensor]:
        x = torch.stack([square(spec, spec.batch, generator) for generator in generators])
        return x, swirl(x, spec.turn)

    losses = stacked.train(
        networks, _loss, draw, steps=spec.steps, lr=spec.lr, watch=lambda done: scratches.report(scratch, done)
    )
    members = [measured(spec, network, seed) for seed, network in enumerate(networks, cell.first)]
    arrays = {name: np.stack([member[name] for member in members], -1) for name in members[0]}
    return {"seed": np.arange(cell.first, cell.last), "loss": losses.numpy(), **arrays}


def swirl(x: Tensor, turn: float) -> Tensor:
    """Turn points (..., 2) about the origin by `turn * exp(-|x|^2 / 2)`; `-turn` undoes it, for |x| stays."""
    angle = turn * (-x.square().sum(-1) / 2).exp()
    cos, sin = angle.cos(), angle.sin()
    return torch.stack([cos * x[..., 0] - sin * x[..., 1], sin * x[..., 0] + cos * x[..., 1]], -1)


def grid(spec: Warp) -> Tensor:
    """Return the points of the drawn grid [2 * lines * dots, 2]: first the upright lines, then the level ones."""
    at, along = (torch.linspace(-spec.half, spec.half, n) for n in (spec.lines, spec.dots))
    upright = torch.cartesian_prod(at, along)
    return torch.cat([upright, upright.flip(-1)])


def _loss(call: Callable[..., Tensor], x: Tensor, y: Tensor) -> Tensor:
    return (call((x,)) - y).square().sum(-1).mean()


@torch.no_grad()
def measured(spec: Warp, network: nn.Module, seed: int) -> Arrays:
    """Return the errors of a network and the images of the grid."""
    assert isinstance(network, InvertibleNetwork)
    x = square(spec, spec.points, torch.Generator().manual_seed(10_000 + seed))
    errors = {
        "forward_error": network(x) - swirl(x, spec.turn),
        "inverse_error": network.inverse(x) - swirl(x, -spec.turn),
        "round_trip": network.inverse(network(x)) - x,
    }
    squares = {name: error.square().sum(-1).mean().sqrt().numpy() for name, error in errors.items()}
    lines = grid(spec)
    return squares | {"forward": network(lines).numpy(), "inverse": network.inverse(lines).numpy()}


def square(spec: Warp, n: int, generator: torch.Generator) -> Tensor:
    """Draw n points of the square."""
    return spec.half * (2 * torch.rand(n, 2, generator=generator) - 1)
