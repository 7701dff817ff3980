"""PLU flows against zuko and nflows: throughput of log_prob and sample, and test likelihood of 2-D densities.

`python -m benchmarks.invertible --steps 3000 --seeds 2` makes the table of peers in docs/invertible.md; without options
the training is short, and the table says so.
"""

import argparse
import functools
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.timing import Bar, ratio, report
from plunit.invertible import TOYS, Flow, density, toy

BATCH = 4096


@dataclass(frozen=True)
class Entry:
    """A density model: how to make it, how to ask it for log-likelihoods, and how it is trained."""

    name: str
    make: Callable[[], nn.Module]
    log_prob: Callable[[Any, Tensor], Tensor]
    lr: float


def peers() -> tuple[Any, Any]:
    """Return the packages zuko and nflows."""
    try:
        import nflows.flows
        import nflows.transforms
        import zuko
    except ImportError as error:
        raise SystemExit(f"{error}; the peers come with: pip install zuko nflows") from None
    return zuko, nflows


def nsf(zuko: Any) -> nn.Module:
    """Return zuko's neural spline flow: 3 transforms, hidden layers 64 x 64."""
    return zuko.flows.NSF(2, transforms=3, hidden_features=(64, 64))


def maf(zuko: Any) -> nn.Module:
    """Return zuko's masked autoregressive flow of the same size."""
    return zuko.flows.MAF(2, transforms=3, hidden_features=(64, 64))


def lu_leaky(nflows: Any, blocks: int = 12) -> nn.Module:
    """Return nflows' LULinear + LeakyReLU, as many blocks as ours; of the slopes 0.1, 0.5 and 0.7 the best."""
    from nflows.distributions.normal import StandardNormal
    from nflows.transforms.lu import LULinear
    from nflows.transforms.nonlinearities import LeakyReLU

    parts = [part for _ in range(blocks) for part in (LULinear(2), LeakyReLU(0.5))]
    transform = nflows.transforms.CompositeTransform([*parts, LULinear(2)])
    return nflows.flows.Flow(transform, StandardNormal([2]))


def throughput(zuko: Any) -> None:
    """Print the ratios of a frozen flow to zuko's NSF on the same batch."""
    theirs, x = nsf(zuko), toy("moons", BATCH)
    flows = {"SmoothPLU": Flow(density(2)), "PLU": Flow(density(2, activation="flux"))}
    with torch.no_grad():
        for name, flow in flows.items():
            ours = flow.frozen()
            speed = 1 / ratio(lambda f=ours: f.log_prob(x), lambda: theirs().log_prob(x))
            report(f"log_prob, {name} flow / zuko NSF, speed, {BATCH:,} points", speed, Bar(5, at_least=True))
            speed = 1 / ratio(lambda f=ours: f.sample(BATCH), lambda: theirs().sample((BATCH,)))
            report(f"sample, {name} flow / zuko NSF, speed, {BATCH:,} points", speed, Bar(5, at_least=True))


def steps(count: int = 60, rounds: int = 5) -> None:
    """Print the milliseconds of processor time of a step of `Flow.fit` with 512 points, 12 blocks, on one thread."""
    threads, x = torch.get_num_threads(), toy("moons", 100_000)
    torch.set_num_threads(1)
    for activation in ("smooth", "flux", "leaky"):
        flow, times = Flow(density(2, activation=activation)), []
        for _ in range(rounds):
            start = time.process_time()
            flow.fit(x, count)
            times.append(1e3 * (time.process_time() - start) / count)
        report(
            f'training step of density(2, activation="{activation}"), ms',
            min(times),
            Bar(5) if activation == "smooth" else None,
        )
    torch.set_num_threads(threads)


def entries(zuko: Any, nflows: Any) -> list[Entry]:
    """Return all models of the table, with learning rates from short trials; see docs/invertible.md."""

    def ours(label: str, activation: str) -> Entry:
        make = functools.partial(density, 2, activation=activation)
        return Entry(label, lambda: Flow(make()), lambda flow, x: flow.log_prob(x), 2e-2)

    return [
        ours("SmoothPLU, rho learned", "smooth"),
        ours("PLU, annealed from SmoothPLU", "annealed"),
        ours("PLU, boundary term", "flux"),
        ours("PLU, plain autograd", "plain"),
        ours("LeakyReLU, boundary term", "leaky"),
        Entry("nflows LULinear + LeakyReLU", lambda: lu_leaky(nflows), lambda flow, x: flow.log_prob(x), 1e-2),
        Entry("zuko NSF", lambda: nsf(zuko), lambda flow, x: flow().log_prob(x), 1e-2),
        Entry("zuko MAF", lambda: maf(zuko), lambda flow, x: flow().log_prob(x), 5e-3),
    ]


def train(entry: Entry, name: str, seed: int, steps: int) -> tuple[nn.Module, float]:
    """Train a model on fresh batches of 512; return it and the seconds. Peers get the schedule of `Flow.fit`."""
    torch.manual_seed(seed)
    model, generator = entry.make(), torch.Generator().manual_seed(seed)
    start = time.perf_counter()
    if isinstance(model, Flow):
        model.fit(lambda n: toy(name, n, generator), steps, lr=entry.lr)
        return model, time.perf_counter() - start
    optimizer = torch.optim.Adam(model.parameters(), entry.lr, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        optimizer.zero_grad()
        (-entry.log_prob(model, toy(name, 512, generator)).mean()).backward()
        optimizer.step()
        schedule.step()
    return model, time.perf_counter() - start


def likelihoods(zuko: Any, nflows: Any, steps: int, seeds: int) -> None:
    """Print mean test NLL in nats, seconds per training and parameters of each model."""
    length = "" if steps >= 3000 else " (SHORT: the numbers of the docs need --steps 3000)"
    print(f"\ndensities: {steps} steps of 512, {seeds} seed(s), 10,000 test points{length}")
    print(f"{'model':<38}{''.join(f'{name:>14}' for name in TOYS)}{'mean':>9}{'s':>8}{'parameters':>12}")
    for entry in entries(zuko, nflows):
        rows, seconds = [], []
        for name in TOYS:
            found = []
            for seed in range(seeds):
                model, taken = train(entry, name, seed, steps)
                test = toy(name, 10_000, torch.Generator().manual_seed(1_000_000 + seed))
                with torch.no_grad():
                    found.append(-entry.log_prob(model, test).mean().item())
                seconds.append(taken)
            rows.append(statistics.mean(found))
        count = sum(parameter.numel() for parameter in model.parameters())
        cells = "".join(f"{value:>14.3f}" for value in rows)
        mean, spent = statistics.mean(rows), statistics.mean(seconds)
        print(f"{entry.name:<38}{cells}{mean:>9.3f}{spent:>8.1f}{count:>12,}", flush=True)


def main(arguments: Sequence[str] = ()) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description="plunit.invertible against its peers")
    parser.add_argument("--steps", type=int, default=100, help="training steps of each density (3000 for the docs)")
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args(arguments)
    zuko, nflows = peers()
    print(f"invertible: float32, {torch.get_num_threads()} threads")
    throughput(zuko)
    steps()
    likelihoods(zuko, nflows, options.steps, options.seeds)


if __name__ == "__main__":
    main(sys.argv[1:])
