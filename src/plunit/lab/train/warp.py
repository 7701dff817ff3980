"""Learn the swirl, a map of the plane with a known inverse, and see what the network's inverse makes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from torch import Tensor, nn

from plunit.base.ranges import COUNT, RATE, Range
from plunit.invertible import PLU, Bijection, InvertibleNetwork, LeakyReLU, alternating
from plunit.lab.cell import Arrays, Cell
from plunit.lab.scratch import write_progress
from plunit.lab.train import stacked
from plunit.torch.threads import one_thread


@dataclass(frozen=True)
class WarpSpec:
    """The swirl: x is turned about the origin by an angle `turn * exp(-|x|^2 / 2)`.

    Attributes:
        steps: steps of Adam, the step size falling to 0 along a half cosine.
        batch: points of each step, uniform on the square.
        lr: the step size at the start.
        depth: blocks (LU layer, activation) of the network.
        alpha: slope of the activation at the start, 1 / alpha in every other block; it is learned, for each unit.
        turn: the largest angle.
        half: half the side of the square.
        lines: lines of the drawn grid, in each direction ...
        dots: ... and points of each.
        points: test points, uniform on the square.
    """

    steps: Annotated[int, COUNT] = 3000
    batch: Annotated[int, COUNT] = 512
    lr: Annotated[float, RATE] = 0.02
    depth: Annotated[int, Range(1, 1024)] = 16
    alpha: Annotated[float, Range(1e-6, 1)] = 0.7
    turn: float = 2.0
    half: Annotated[float, Range(1e-3, 1e3)] = 2.0
    lines: Annotated[int, Range(2, 1000)] = 17
    dots: Annotated[int, Range(2, 1000)] = 81
    points: Annotated[int, COUNT] = 4096


CHOICES: dict[str, Callable[..., Bijection]] = {"plu": PLU, "leaky_relu": LeakyReLU}


@one_thread()
def compute(cell: Cell, scratch: Path) -> Arrays:
    """Return what a cell measures; the last axis is that of the seeds S.

    steps [S]; loss [steps, S]; forward_error, inverse_error and round_trip [S]: root mean squares of |F - swirl|, of
    |F^-1 - swirl^-1|, which was never shown in training, and of |F^-1(F(x)) - x|; forward and inverse
    [points, 2, S], the images of the grid.
    """
    spec: WarpSpec = cell.spec
    generators = [torch.Generator().manual_seed(seed) for seed in cell.seeds]
    make = alternating(CHOICES[cell.activation], spec.alpha, learnable=True)
    networks: list[nn.Module] = [
        InvertibleNetwork(2, spec.depth, activation=make, generator=generator) for generator in generators
    ]

    def draw() -> tuple[Tensor, Tensor]:
        x = torch.stack([square(spec, spec.batch, generator) for generator in generators])
        return x, swirl(x, spec.turn)

    losses = stacked.train(
        networks,
        lambda call, x, y: (call((x,)) - y).square().sum(-1).mean(),
        draw,
        steps=spec.steps,
        lr=spec.lr,
        progress=lambda done: write_progress(scratch, done),
    )
    members = [measured(spec, network, seed) for seed, network in enumerate(networks, cell.first)]
    arrays = {name: np.stack([member[name] for member in members], -1) for name in members[0]}
    steps = np.full(len(cell.seeds), spec.steps)
    return {"seed": np.array(cell.seeds), "steps": steps, "loss": losses.numpy(), **arrays}


def swirl(x: Tensor, turn: float) -> Tensor:
    """Turn points (..., 2) about the origin by `turn * exp(-|x|^2 / 2)`; `-turn` undoes it, because |x| stays."""
    angle = turn * (-x.square().sum(-1) / 2).exp()
    cos, sin = angle.cos(), angle.sin()
    return torch.stack([cos * x[..., 0] - sin * x[..., 1], sin * x[..., 0] + cos * x[..., 1]], -1)


def grid(spec: WarpSpec) -> Tensor:
    """Return the points of the drawn grid [2 * lines * dots, 2]: first the upright lines, then the level ones."""
    at, along = (torch.linspace(-spec.half, spec.half, n) for n in (spec.lines, spec.dots))
    upright = torch.cartesian_prod(at, along)
    return torch.cat([upright, upright.flip(-1)])


@torch.no_grad()
def measured(spec: WarpSpec, network: nn.Module, seed: int) -> Arrays:
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


def square(spec: WarpSpec, n: int, generator: torch.Generator) -> Tensor:
    """Draw n points of the square."""
    return spec.half * (2 * torch.rand(n, 2, generator=generator) - 1)
