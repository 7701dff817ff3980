"""Conditional flows compared with the exact density.

`python -m benchmarks.conditional --steps 4500` makes the numbers of docs/benchmarks.md; without options the training is
short, and the table says so. Seconds are processor time on one thread.
"""

import argparse
import sys
import time
from collections.abc import Sequence

import torch
from torch import Tensor

from benchmarks.simulations import SIMULATIONS, Simulation
from plunit.invertible import Flow, conditional

LONG = 4500


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


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="conditional flows")
    parser.add_argument("--steps", type=int, default=100, help=f"training steps of each density ({LONG} for the docs)")
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    length = "" if options.steps >= LONG else f" (SHORT: the numbers of the docs need --steps {LONG})"
    print(f"conditional densities: {options.steps} steps of 256, 10,000 test points{length}")
    print(f"{'simulation':<16}{'seed':>6}{'NLL - exact NLL':>18}{'s':>8}")
    for name, simulation in SIMULATIONS.items():
        for seed in range(options.seeds):
            above, spent = gap(simulation, options.steps, seed)
            print(f"{name:<16}{seed:>6}{above:>18.3f}{spent:>8.1f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
