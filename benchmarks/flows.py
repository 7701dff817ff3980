"""Flows of zuko and nflows on the toy densities: how they are made and trained, and a file that keeps their results."""

from __future__ import annotations

import datetime
import functools
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from plunit.invertible import stacked, toy

TEST_POINTS = 10_000
BATCH = 512


@dataclass(frozen=True)
class Peer:
    """A model of another package: how to make it, how to ask it for log-likelihoods, and its learning rate.

    `stackable` says whether PyTorch can train several side by side: not where the code selects by a mask.
    """

    make: Callable[[], nn.Module]
    log_prob: Callable[[Any, Tensor], Tensor]
    lr: float
    stackable: bool = True


def nsf(transforms: int = 3, hidden: tuple[int, ...] = (64, 64), bins: int = 8) -> nn.Module:
    """Return zuko's neural spline flow."""
    import zuko

    return zuko.flows.NSF(2, transforms=transforms, hidden_features=hidden, bins=bins)


def maf(transforms: int = 3, hidden: tuple[int, ...] = (64, 64)) -> nn.Module:
    """Return zuko's masked autoregressive flow."""
    import zuko

    return zuko.flows.MAF(2, transforms=transforms, hidden_features=hidden)


def quadratic_splines(transforms: int = 2, hidden: int = 4, bins: int = 8) -> nn.Module:
    """Return nflows' autoregressive rational-quadratic splines on [-5, 5], features reversed in between."""
    from nflows.distributions.normal import StandardNormal
    from nflows.flows import Flow
    from nflows.transforms import CompositeTransform, ReversePermutation
    from nflows.transforms.autoregressive import MaskedPiecewiseRationalQuadraticAutoregressiveTransform as Spline

    options: dict[str, Any] = {"num_bins": bins, "tails": "linear", "tail_bound": 5.0, "num_blocks": 1}
    parts = [part for _ in range(transforms) for part in (Spline(2, hidden, **options), ReversePermutation(2))]
    return Flow(CompositeTransform(parts), StandardNormal([2]))


def lu_leaky(blocks: int = 12) -> nn.Module:
    """Return nflows' LULinear + LeakyReLU, as many blocks as ours; of the slopes 0.1, 0.5 and 0.7 the best."""
    from nflows.distributions.normal import StandardNormal
    from nflows.flows import Flow
    from nflows.transforms import CompositeTransform
    from nflows.transforms.lu import LULinear
    from nflows.transforms.nonlinearities import LeakyReLU

    parts = [part for _ in range(blocks) for part in (LULinear(2), LeakyReLU(0.5))]
    return Flow(CompositeTransform([*parts, LULinear(2)]), StandardNormal([2]))


def _zuko(make: Callable[[], nn.Module], lr: float) -> Peer:
    return Peer(make, lambda model, x: model().log_prob(x), lr)


def _nflows(make: Callable[[], nn.Module], lr: float) -> Peer:
    return Peer(make, lambda model, x: model.log_prob(x), lr, stackable=False)


PEERS = {
    "zuko NSF": _zuko(nsf, 0.01),
    "zuko MAF": _zuko(maf, 0.005),
    "nflows LULinear + LeakyReLU": _nflows(lu_leaky, 0.01),
    "small zuko NSF, 1 x 8": _zuko(lambda: nsf(1, (8,)), 0.01),
    "small zuko NSF, 2 x 8": _zuko(lambda: nsf(2, (8,), 6), 0.01),
    "small zuko MAF, 4 x 16": _zuko(lambda: maf(4, (16,)), 0.01),
    "small zuko MAF, 8 x 8": _zuko(lambda: maf(8, (8,)), 0.01),
    "small nflows RQ, 2 x 4": _nflows(quadratic_splines, 0.01),
    "zuko NSF, 3 x 16 x 16": _zuko(lambda: nsf(3, (16, 16)), 0.01),
    "zuko MAF, 3 x 16 x 16": _zuko(lambda: maf(3, (16, 16)), 0.01),
}
"""By name; learning rates come from trials of 1,000 steps on other seeds."""


@dataclass(frozen=True)
class Training:
    """What a training gave: parameters, test NLL in nats, and seconds of the processor on one thread."""

    parameters: int
    nll: float
    seconds: float


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
    rounding only. The seconds are those of one model alone, scaled from a few steps.
    """
    models = [Likelihood(peer, seed) for _, seed in cases]
    sources = [torch.Generator().manual_seed(seed) for _, seed in cases]

    def draw(some: slice) -> tuple[Tensor]:
        chosen = list(zip(cases, sources, strict=True))[some]
        return (torch.stack([toy(name, BATCH, source) for (name, _), source in chosen]),)

    together = [slice(None)] if peer.stackable else [slice(i, i + 1) for i in range(len(cases))]
    for some in together:
        loss = functools.partial(draw, some)
        stacked.train(models[some], lambda call, x: -call((x,)).mean(), loss, steps=steps, lr=peer.lr)
    found = []
    seconds = steps * step_seconds(peer)
    for model, (name, seed) in zip(models, cases, strict=True):
        with torch.no_grad():
            nll = -model(test_points(name, seed)).mean().item()
        found.append(Training(sum(parameter.numel() for parameter in model.parameters()), nll, seconds))
    return found


def step_seconds(peer: Peer, steps: int = 20, repeats: int = 5) -> float:
    """Return the seconds of the processor of one step of a model alone: the least of several repeats."""
    model, generator = Likelihood(peer, 0), torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters(), peer.lr, fused=True)
    taken = []
    for _ in range(repeats + 1):
        begun = time.process_time()
        for _ in range(steps):
            optimizer.zero_grad()
            (-model(toy("moons", BATCH, generator)).mean()).backward()
            optimizer.step()
        taken.append((time.process_time() - begun) / steps)
    return min(taken[1:])


def test_points(name: str, seed: int) -> Tensor:
    """Return the test points of a seed, the same for all models."""
    return toy(name, TEST_POINTS, torch.Generator().manual_seed(1_000_000 + seed))


class Store:
    """Trainings in a JSON file, by model, toy, seed and steps, with the versions that made them.

    Without a path nothing is kept. A file made with other versions is refused.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.versions = {name: metadata.version(name) for name in ("torch", "zuko", "nflows")}
        self.trainings: dict[str, Training] = {}
        if path and path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        try:
            kept = json.loads(path.read_text())
            versions, found = kept["versions"], {key: Training(**one) for key, one in kept["trainings"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as fault:
            sys.exit(f"{path} is not a file of trainings ({fault!r}): name another file")
        if versions != self.versions:
            sys.exit(f"{path} was made with {versions}, this run has {self.versions}: name another file")
        self.trainings |= found

    @staticmethod
    def key(model: str, toy: str, seed: int, steps: int) -> str:
        """Return the name of a training in the file."""
        return f"{model}; {toy}; seed {seed}; {steps} steps"

    def fill(self, keys: Sequence[str], make: Callable[[list[int]], Sequence[Training]]) -> list[Training]:
        """Return the trainings of these keys; those that the file lacks, by their places, are made now and kept."""
        missing = [place for place, key in enumerate(keys) if key not in self.trainings]
        if missing:
            for place, made in zip(missing, make(missing), strict=True):
                self.trainings[keys[place]] = made
            self._write()
        return [self.trainings[key] for key in keys]

    def _write(self) -> None:
        """Write the file, whole or not at all, with what another process may have added."""
        if self.path is None:
            return
        if self.path.exists():
            mine = self.trainings
            self._read(self.path)
            self.trainings |= mine
        now = datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
        rounded = {
            key: {name: round(value, 4) for name, value in asdict(self.trainings[key]).items()}
            for key in sorted(self.trainings)
        }
        text = json.dumps({"date": now, "versions": self.versions, "trainings": rounded}, indent=1)
        temporary = self.path.with_name(self.path.name + ".part")
        temporary.write_text(text + "\n")
        temporary.replace(self.path)
