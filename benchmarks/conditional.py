"""Conditional flows against the exact density, and what many features cost.

`python -m benchmarks.conditional --steps 4500` makes the numbers of docs/invertible.md; without options the training is
short, and the table says so. Seconds are processor time on one thread.
"""

import argparse
import multiprocessing
import resource
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

import torch
from torch import Tensor

from plunit.invertible import Flow, conditional, density
from plunit.invertible.invertible_network import Linear
from plunit.invertible.toys import SIMULATIONS, Simulation

LONG = 4500
FEATURES = 784


def gap(simulation: Simulation, steps: int, seed: int) -> tuple[float, float]:
    """Return mean test NLL minus that of the exact density, in nats, and the seconds of training."""
    generator = torch.Generator().manual_seed(seed)
    first, _ = simulation.draw(10_000, generator)
    centre, scale = first.mean(0), first.std(0)

    def draw(n: int) -> tuple[Tensor, Tensor]:
        x, context = simulation.draw(n, generator)
        return (x - centre) / scale, context

    flow = Flow(conditional(simulation.features, simulation.context, generator=generator))
    begin = time.process_time()
    flow.fit(draw, steps, batch=256, clip=1.0)
    spent = time.process_time() - begin
    x, context = simulation.draw(10_000, torch.Generator().manual_seed(1_000_000 + seed))
    with torch.no_grad():
        log_prob = flow.log_prob((x - centre) / scale, context) - scale.log().sum()
    return (simulation.log_prob(x, context) - log_prob).mean().item(), spent


def cost(linear: Linear, blocks: int, batch: int = 128, steps: int = 3) -> tuple[int, float, float]:
    """Return the parameters of a flow of 784 features, the seconds of a step, and the largest memory in MB."""
    torch.set_num_threads(1)
    flow = Flow(density(FEATURES, blocks, linear=linear))
    x, times = torch.randn(2 * FEATURES + 2, FEATURES), []
    for _ in range(steps):
        begin = time.process_time()
        flow.fit(lambda n: x[:n], 1, batch=batch)
        times.append(time.process_time() - begin)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    return sum(parameter.numel() for parameter in flow.parameters()), min(times), memory


def main(arguments: Sequence[str] = ()) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description="conditional flows and many features")
    parser.add_argument("--steps", type=int, default=100, help=f"training steps of each density ({LONG} for the docs)")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--blocks", type=int, default=12, help="of the flows of 784 features")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    length = "" if options.steps >= LONG else f" (SHORT: the numbers of the docs need --steps {LONG})"
    print(f"conditional densities: {options.steps} steps of 256, 10,000 test points{length}")
    print(f"{'simulation':<16}{'seed':>6}{'NLL - exact NLL':>18}{'s':>8}")
    for name, simulation in SIMULATIONS.items():
        for seed in range(options.seeds):
            above, spent = gap(simulation, options.steps, seed)
            print(f"{name:<16}{seed:>6}{above:>18.3f}{spent:>8.1f}", flush=True)
    print(f"\n{FEATURES} features, {options.blocks} blocks, batch 128, each in a process of its own")
    print(f"{'linear':<16}{'parameters':>12}{'s a step':>10}{'MB':>8}")
    kinds: tuple[Linear, ...] = ("householder", "lu")
    for linear in kinds:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            count, seconds, memory = pool.submit(cost, linear, options.blocks).result()
        print(f"{linear:<16}{count:>12,}{seconds:>10.3f}{memory:>8.0f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
