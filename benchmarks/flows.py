"""Flows of zuko and nflows on the toy densities."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from benchmarks import stacked
from benchmarks.trainings import Training
from plunit.invertible import toy

TEST_POINTS = 10_000
BATCH = 512


@dataclass(frozen=True)
class Peer:
    """A model of another package: its constructor, its log-likelihood, and its learning rate.

    `stackable` says whether PyTorch can train several side by side: not where the code selects by a mask.
    """

    make: Callable[[], nn.Module]
    log_prob: Callable[[Any, Tensor], Tensor]
    lr: float
    stackable: bool = True


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SystemExit(f"{error}; the peers come with: pip install zuko nflows") from None


def nsf(transforms: int = 3, hidden: tuple[int, ...] = (64, 64), bins: int = 8) -> nn.Module:
    """Return zuko's neural spline flow."""
    flow = _package("zuko").flows.NSF(2, transforms=transforms, hidden_features=hidden, bins=bins)
    return cast(nn.Module, flow)


def maf(transforms: int = 3, hidden: tuple[int, ...] = (64, 64)) -> nn.Module:
    """Return zuko's masked autoregressive flow."""
    return cast(nn.Module, _package("zuko").flows.MAF(2, transforms=transforms, hidden_features=hidden))


def quadratic_splines(transforms: int = 2, hidden: int = 4, bins: int = 8) -> nn.Module:
    """Return nflows' autoregressive rational-quadratic splines on [-5, 5], features reversed in between."""
    spline = _package("nflows.transforms.autoregressive").MaskedPiecewiseRationalQuadraticAutoregressiveTransform
    options: dict[str, Any] = {"num_bins": bins, "tails": "linear", "tail_bound": 5.0, "num_blocks": 1}
    reverse = _package("nflows.transforms").ReversePermutation
    return _composite(part for _ in range(transforms) for part in (spline(2, hidden, **options), reverse(2)))


def lu_leaky(blocks: int = 12) -> nn.Module:
    """Return nflows' LULinear + LeakyReLU with as many blocks, and the best of three slopes."""
    linear = _package("nflows.transforms.lu").LULinear
    leaky = _package("nflows.transforms.nonlinearities").LeakyReLU
    parts = [part for _ in range(blocks) for part in (linear(2), leaky(0.5))]
    return _composite([*parts, linear(2)])


def _composite(parts: Iterable[Any]) -> nn.Module:
    transform = _package("nflows.transforms").CompositeTransform(list(parts))
    normal = _package("nflows.distributions.normal").StandardNormal([2])
    return cast(nn.Module, _package("nflows.flows").Flow(transform, normal))


def _zuko(make: Callable[[], nn.Module], lr: float) -> Peer:
    return Peer(make, lambda model, x: model().log_prob(x), lr)


def _nflows(make: Callable[[], nn.Module], lr: float) -> Peer:
    return Peer(make, lambda model, x: model.log_prob(x), lr, stackable=False)


PEERS = {
    "zuko NSF": _zuko(nsf, 0.01),
    "zuko MAF": _zuko(maf, 0.005),
    "nflows LULinear + LeakyReLU": _nflows(lu_leaky, 0.01),
    "small zuko NSF, 1 x 4": _zuko(lambda: nsf(1, (4,)), 0.01),
    "small zuko NSF, 2 x 8": _zuko(lambda: nsf(2, (8,), 6), 0.01),
    "small zuko MAF, 4 x 16": _zuko(lambda: maf(4, (16,)), 0.01),
    "small zuko MAF, 3 x 8": _zuko(lambda: maf(3, (8,)), 0.01),
    "small nflows RQ, 2 x 4": _nflows(quadratic_splines, 0.01),
    "zuko NSF, 3 x 16 x 16": _zuko(lambda: nsf(3, (16, 16)), 0.01),
    "zuko MAF, 3 x 16 x 16": _zuko(lambda: maf(3, (16, 16)), 0.01),
}
"""By name; learning rates come from trials of 1,000 steps on other seeds, 0.01 for the small ones without trials."""


class Likelihood(nn.Module):
    """A peer's model whose call returns log-likelihoods."""

    def __init__(self, peer: Peer, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.model, self.ask = peer.make(), peer.log_prob

    def forward(self, x: Tensor) -> Tensor:
        """Return log p(x)."""
        return self.ask(self.model, x)


def train(peer: Peer, cases: Sequence[tuple[str, int]], steps: int) -> list[Training]:
    """Train a model for each (toy, seed) on fresh batches of 512, the learning rate falling along a half cosine.

    The models are trained side by side where PyTorch can do that, which is several times as fast; the results differ by
    rounding only. The seconds are those of one model, scaled from a few steps.
    """
    models = [Likelihood(peer, seed) for _, seed in cases]
    sources = [torch.Generator().manual_seed(seed) for _, seed in cases]

    def draw() -> list[Tensor]:
        return [toy(name, BATCH, source) for (name, _), source in zip(cases, sources, strict=True)]

    if peer.stackable:
        stacked.train(
            models, lambda call, x: -call((x,)).mean(), lambda: (torch.stack(draw()),), steps=steps, lr=peer.lr
        )
    else:
        optimizers = [torch.optim.Adam(model.parameters(), peer.lr, fused=True) for model in models]
        schedules = [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps) for optimizer in optimizers]
        for _ in range(steps):
            for model, optimizer, schedule, x in zip(models, optimizers, schedules, draw(), strict=True):
                step(model, optimizer, x)
                schedule.step()
    found = []
    seconds = steps * step_seconds(peer)
    for model, (name, seed) in zip(models, cases, strict=True):
        with torch.no_grad():
            nll = -model(test_points(name, seed)).mean().item()
        found.append(Training(sum(parameter.numel() for parameter in model.parameters()), nll, seconds))
    return found


def step(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor) -> None:
    """Take one step of maximum likelihood."""
    optimizer.zero_grad()
    (-model(x).mean()).backward()
    optimizer.step()


def step_seconds(peer: Peer, steps: int = 20, repeats: int = 5) -> float:
    """Return the processor seconds of one step of a model: the minimum of several repeats."""
    model, generator = Likelihood(peer, 0), torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters(), peer.lr, fused=True)
    taken = []
    for _ in range(repeats + 1):
        begun = time.process_time()
        for _ in range(steps):
            step(model, optimizer, toy("moons", BATCH, generator))
        taken.append((time.process_time() - begun) / steps)
    return min(taken[1:])


def test_points(name: str, seed: int) -> Tensor:
    """Return the test points of a seed, the same for all models."""
    return toy(name, TEST_POINTS, torch.Generator().manual_seed(1_000_000 + seed))
