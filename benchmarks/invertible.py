"""Flows of PyTorch and zuko's NSF: speed of log_prob, sample and training, and test likelihood of 2-D densities.

`python -m benchmarks.invertible --steps 3000 --seeds 2` makes the likelihoods of the docs; without options the training
is short, and the table says so. The peers' likelihoods and the compiled chain are in `python -m benchmarks densities`.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Sequence

import torch

from benchmarks.flows import BATCH, PEERS, Training, nsf, step_seconds, test_points
from benchmarks.timing import Bar, ratio, show
from plunit.invertible import TOYS, Flow, density, toy

POINTS = 4096
ACTIVATIONS = {
    "SmoothPLU, rho learned": "smooth",
    "exact PLU, annealed": "annealed",
    "exact PLU, boundary term": "flux",
    "exact PLU, plain autograd": "plain",
    "LeakyReLU, boundary term": "leaky",
}


def throughput() -> None:
    """Print the ratios of a frozen flow to zuko's NSF on the same batch."""
    theirs, x = nsf(), toy("moons", POINTS)
    flows = {"SmoothPLU": Flow(density(2)), "exact PLU": Flow(density(2, activation="flux"))}
    with torch.no_grad():
        for name, flow in flows.items():
            ours = flow.frozen()
            speed = 1 / ratio(lambda f=ours: f.log_prob(x), lambda: theirs().log_prob(x))
            show(f"log_prob, {name} flow / zuko NSF, speed, {POINTS:,} points", speed, Bar(5, at_least=True))
            speed = 1 / ratio(lambda f=ours: f.sample(POINTS), lambda: theirs().sample((POINTS,)))
            show(f"sample, {name} flow / zuko NSF, speed, {POINTS:,} points", speed, Bar(5, at_least=True))


def fit_seconds(activation: str, steps: int = 30, repeats: int = 5) -> float:
    """Return the processor seconds of one step of `Flow.fit`: the minimum of several repeats."""
    flow, x, taken = Flow(density(2, activation=activation)), toy("moons", 10_000), []
    for _ in range(repeats + 1):
        begun = time.process_time()
        flow.fit(x, steps, batch=BATCH)
        taken.append((time.process_time() - begun) / steps)
    return min(taken[1:])


def training_step() -> None:
    """Print the milliseconds of one step of `Flow.fit` on one thread, and the ratio to NSF's."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    ours, term, theirs = fit_seconds("smooth"), fit_seconds("flux"), step_seconds(PEERS["zuko NSF"])
    torch.set_num_threads(threads)
    show("one step of Flow.fit, 12 blocks, 512 points, one thread, ms", 1e3 * ours, Bar(5))
    show("  the same / one step of zuko NSF", ours / theirs)
    show("the same, exact PLU with the boundary term, ms", 1e3 * term, Bar(5))
    show("  the same / one step of zuko NSF", term / theirs)


def train(activation: str, name: str, seed: int, steps: int) -> Training:
    """Train a flow on fresh batches of 512."""
    torch.manual_seed(seed)
    flow, generator = Flow(density(2, activation=activation)), torch.Generator().manual_seed(seed)
    begun = time.process_time()
    flow.fit(lambda n: toy(name, n, generator), steps, lr=2e-2)
    seconds = time.process_time() - begun
    with torch.no_grad():
        nll = -flow.log_prob(test_points(name, seed)).mean().item()
    return Training(sum(parameter.numel() for parameter in flow.parameters()), nll, seconds)


def likelihoods(steps: int, seeds: int) -> None:
    """Print mean test NLL in nats, seconds per training and parameters of each kind of flow."""
    length = "" if steps >= 3000 else " (SHORT: the numbers of the docs need --steps 3000)"
    print(f"\ndensities: {steps} steps of {BATCH}, {seeds} seed(s), 10,000 test points{length}")
    print(f"{'model':<30}{''.join(f'{name:>14}' for name in TOYS)}{'mean':>9}{'s':>8}{'parameters':>12}")
    for label, activation in ACTIVATIONS.items():
        found = {name: [train(activation, name, seed, steps) for seed in range(seeds)] for name in TOYS}
        values = [statistics.mean(one.nll for one in some) for some in found.values()]
        seconds = statistics.mean(one.seconds for some in found.values() for one in some)
        cells = "".join(f"{value:>14.3f}" for value in values)
        count = found["moons"][0].parameters
        print(f"{label:<30}{cells}{statistics.mean(values):>9.3f}{seconds:>8.1f}{count:>12,}", flush=True)


def main(arguments: Sequence[str] = ()) -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description="plunit.invertible against its peers")
    parser.add_argument("--steps", type=int, default=100, help="training steps of each density (3000 for the docs)")
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args(arguments)
    print(f"invertible: float32, {torch.get_num_threads()} threads")
    throughput()
    training_step()
    likelihoods(options.steps, options.seeds)


if __name__ == "__main__":
    main(sys.argv[1:])
