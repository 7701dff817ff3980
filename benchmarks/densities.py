"""Densities by the compiled chain, zuko and nflows: seconds, parameters and test likelihood on four toys.

    python -m benchmarks densities                      # two minutes; peers' likelihoods from results/
    python -m benchmarks densities --full --store FILE  # an hour; what FILE has is not run again

Peers learn from 512 fresh points at each step; the compiled chain has 200,000 points, of which 10,000 are for
validation. All is on one thread, and seconds are those of the processor. Test points: 10,000 for each seed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from benchmarks.flows import BATCH, PEERS, step_seconds, test_points, train
from benchmarks.timing import Bar, show
from benchmarks.trainings import Store, Training
from plunit.densities import Architecture, Sample, chain, search, start
from plunit.densities.chain import MemberSteps, initial_member
from plunit.invertible import TOYS, toy

KEPT = Path(__file__).parents[1] / "results" / "densities" / "trainings.json"
POINTS = 200_000
SEEDS = 5
PEER_STEPS = 3000
LONG_SEEDS = 2  # of the peers that take 20,000 steps


@dataclass(frozen=True)
class Setting:
    """How a density of ours is trained."""

    blocks: int
    steps: int
    activation: str = "smooth"
    anneal: bool = False
    batch: int = 512
    lr: float = 0.006
    starts: int = 4

    @property
    def name(self) -> str:
        """The name in tables."""
        names = {"smooth": "SmoothPLU", "plu": "PLU, boundary term", "leaky": "LeakyReLU, boundary term"}
        return f"{'PLU, annealed' if self.anneal else names[self.activation]}, {self.blocks} blocks"


SMOOTH = Setting(48, 60_000)
ANNEALED = Setting(48, 60_000, "plu", anneal=True, batch=1024, lr=0.005, starts=8)
SHALLOW = Setting(12, 60_000)
SIZES = [Setting(blocks, 60_000) for blocks in (4, 8, 16, 24, 32)]
LENGTHS = [
    Setting(48, steps, lr=lr) for steps, lr in ((300, 0.02), (1000, 0.02), (3000, 0.02), (10_000, 0.01), (20_000, 0.01))
]
KINKED = [
    Setting(12, 60_000, "plu", anneal=True, batch=1024, lr=0.005, starts=2),
    Setting(24, 60_000, "plu", anneal=True, batch=1024, lr=0.005, starts=2),
    Setting(48, 60_000, "plu"),
    Setting(48, 60_000, "leaky"),
]
SMALL = [name for name in PEERS if name.startswith("small")]


def fit(setting: Setting, name: str, seed: int) -> Training:
    """Train one density of ours; the seconds include sampling the points."""
    begun = time.process_time()
    x = toy(name, POINTS, torch.Generator().manual_seed(seed)).numpy()
    form, held = Architecture(2, setting.blocks, setting.activation), POINTS // 20
    found = search(
        [form],
        Sample(x[held:]),
        Sample(x[:held]),
        starts=setting.starts,
        steps=setting.steps,
        batch=setting.batch,
        lr=setting.lr,
        anneal=setting.anneal,
        seed=seed,
    )
    seconds = time.process_time() - begun
    nll = -found[0].network().log_prob(test_points(name, seed).double().numpy()).mean()
    return Training(form.parameters, float(nll), seconds)


def ours(setting: Setting, store: Store, seeds: int = SEEDS) -> dict[str, list[Training]]:
    """Return the trainings of a setting by toy, from the store if it has them."""
    found: dict[str, list[Training]] = {}
    for name in TOYS:
        keys = [Store.key(setting.name, name, seed, setting.steps) for seed in range(seeds)]
        for seed, key in enumerate(keys):
            store.fill([key], lambda _, name=name, seed=seed: [fit(setting, name, seed)])
        found[name] = [store.trainings[key] for key in keys]
    return found


def theirs(model: str, steps: int, store: Store, seeds: int, *, run: bool) -> dict[str, list[Training]]:
    """Return the trainings of a peer by toy: those of the store and, with `run`, the missing ones."""
    cases = [(name, seed) for seed in range(seeds) for name in TOYS]
    keys = [Store.key(model, name, seed, steps) for name, seed in cases]
    if run:
        store.fill(keys, lambda places: train(PEERS[model], [cases[place] for place in places], steps))
    found: dict[str, list[Training]] = {name: [] for name in TOYS}
    for (name, _), key in zip(cases, keys, strict=True):
        if key in store.trainings:
            found[name].append(store.trainings[key])
    return found


def means(found: dict[str, list[Training]]) -> list[float]:
    """Return the mean NLL of each toy."""
    return [statistics.mean(one.nll for one in trainings) for trainings in found.values()]


def row(name: str, steps: int, found: dict[str, list[Training]]) -> None:
    """Print a line of the table."""
    if not all(found.values()):
        print(f"{name:<40} no results in this file", flush=True)
        return
    everyone = [one for trainings in found.values() for one in trainings]
    cells = "".join(f"{value:>13.3f}" for value in means(found))
    seconds = statistics.mean(one.seconds for one in everyone)
    print(
        f"{name:<40}{everyone[0].parameters:>8,}{steps:>8,}{seconds:>9.2f}{len(everyone) // len(TOYS):>6}{cells}"
        f"{statistics.mean(means(found)):>9.3f}",
        flush=True,
    )


def our_step_seconds(blocks: int = 12, batch: int = BATCH, steps: int = 1000, repeats: int = 7) -> float:
    """Return the processor seconds of one step of ours: the minimum of several repeats."""
    form = Architecture(2, blocks)
    member = initial_member(start(form, np.random.default_rng(0)), 0, 1)
    plan = MemberSteps(
        rate=np.full(steps, 0.01),
        training=Sample(toy("moons", POINTS, torch.Generator().manual_seed(0)).numpy()),
        batch=batch,
    )
    taken = []
    for _ in range(repeats):
        begun = time.process_time()
        chain.advance([member], plan)
        taken.append((time.process_time() - begun) / steps)
    return min(taken)


FIRST_CALL = """
import time
begun = time.perf_counter()
import numpy as np
from plunit.densities import Architecture, Sample, search
rng = np.random.default_rng(0)
angle, second = rng.uniform(0, np.pi, 20_000), rng.integers(0, 2, 20_000)
flip = 1 - 2 * second
x = np.stack([second + flip * np.cos(angle), 0.5 * second + flip * np.sin(angle)], 1)
x = (x + 0.1 * rng.standard_normal(x.shape) - [0.5, 0.25]) / np.sqrt([0.76, 0.5725 - 1 / np.pi])
forms = [Architecture(2, blocks) for blocks in (12, 24)]
best = search(forms, Sample(x[2000:]), Sample(x[:2000]), starts=4, steps=8000, keep=2, lr=0.02)[0]
print(time.perf_counter() - begun, best.loss + np.log(2 * np.pi), best.architecture.blocks)
"""


def first_call() -> tuple[float, float, int]:
    """Return wall seconds, validation NLL and blocks of a density of moons in a new process, on all its cores."""
    environment = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    command = [sys.executable, "-c", FIRST_CALL]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True, env=environment) for _ in "12345"]
    seconds, nll, blocks = min([float(word) for word in run.stdout.split()] for run in runs)
    return seconds, nll, int(blocks)


def equal_size(store: Store, mine: Sequence[dict[str, list[Training]]]) -> None:
    """Print the gap between small peers and our largest network of at most their size: the minimum over four toys."""
    for model in SMALL:
        found = theirs(model, PEER_STEPS, store, SEEDS, run=False)
        if not all(found.values()):
            continue
        count = found["moons"][0].parameters
        fitting = [one for one in mine if one["moons"][0].parameters <= count]
        own = max(fitting, key=lambda one: one["moons"][0].parameters)
        least = min(other - value for value, other in zip(means(own), means(found), strict=True))
        work = f"{model} ({count}) - SmoothPLU ({own['moons'][0].parameters}), NLL, least of 4 toys"
        show(work, least, Bar(0.1, at_least=True))


def bars(store: Store, smooth: dict[str, list[Training]], annealed: dict[str, list[Training]]) -> None:
    """Print the measured numbers and their bars."""
    per_step, their_step = our_step_seconds(), step_seconds(PEERS["zuko NSF"])
    work = f"one step, 12 blocks, 512 points: {1e3 * per_step:.4f} ms; zuko NSF {1e3 * their_step:.1f} ms; NSF / ours"
    show(work, their_step / per_step, Bar(200, at_least=True))
    nsf = theirs("zuko NSF", PEER_STEPS, store, SEEDS, run=False)
    nll = statistics.mean(means(smooth))
    show(f"mean NLL, SmoothPLU, 582 parameters: {nll:.4f}", nll, Bar(1.662))
    if all(nsf.values()):
        behind = nll - statistics.mean(means(nsf))
        show(f"  the same - zuko NSF, 3,000 steps: {behind:+.4f}", behind, Bar(0))
    seconds = statistics.mean(one.seconds for trainings in smooth.values() for one in trainings)
    show(f"  seconds ({seconds:.2f}) / those of zuko NSF", seconds / (PEER_STEPS * their_step), Bar(0.2))
    exact = statistics.mean(means(annealed))
    show(f"mean NLL, exact PLU by annealing, 486 parameters: {exact:.4f}", exact, Bar(1.70))
    wall, nll, blocks = first_call()
    show(
        f"moons from the first call, wall s on {os.cpu_count()} cores ({blocks} blocks, NLL {nll:.3f})", wall, Bar(1.0)
    )


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table and the bars."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks densities", description="densities against their peers")
    parser.add_argument("--full", action="store_true", help="five seeds, all peers, all sizes and lengths")
    parser.add_argument("--store", type=Path, help="JSON file that keeps each finished training")
    options = parser.parse_args(arguments)
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    seeds = SEEDS if options.full else 1
    store = Store(options.store if options.full else None)
    if not options.full:
        store.take(KEPT, set(PEERS))
    print(f"densities: one thread, seconds of the processor, {seeds} seed(s) of ours, 10,000 test points")
    print(f"{'':<40}{'params':>8}{'steps':>8}{'s':>9}{'seeds':>6}{''.join(f'{n:>13}' for n in TOYS)}{'mean':>9}")
    smooth, annealed = ours(SMOOTH, store, seeds), ours(ANNEALED, store, seeds)
    small = ours(SHALLOW, store, seeds)
    row(SHALLOW.name, SHALLOW.steps, small)
    row(SMOOTH.name, SMOOTH.steps, smooth)
    row(ANNEALED.name, ANNEALED.steps, annealed)
    sizes = [smooth, small, *(ours(setting, store) for setting in SIZES if options.full)]
    for setting in [*KINKED, *SIZES, *LENGTHS] if options.full else []:
        row(setting.name, setting.steps, ours(setting, store))
    lengths = {"zuko NSF": (300, 1000, PEER_STEPS)}
    for model in PEERS:
        for steps in lengths.get(model, (PEER_STEPS,)):
            row(model, steps, theirs(model, steps, store, SEEDS, run=options.full))
    row("zuko NSF", 20_000, theirs("zuko NSF", 20_000, store, LONG_SEEDS, run=options.full))
    bars(store, smooth, annealed)
    equal_size(store, sizes)


if __name__ == "__main__":
    main(sys.argv[1:])
