"""Methods to train a flow in PyTorch: test likelihoods on four toys and on two tables of scikit-learn.

    python -m benchmarks flow_methods                              # one seed, 300 steps: half a minute
    python -m benchmarks flow_methods --data wine                  # or cancer: eight splits, a minute
    python -m benchmarks flow_methods --full --store results/density   # five seeds, 3,000 steps: ten minutes

A method is the activation of `plunit.invertible.density`, which says how PLU's kinks are treated, or a Gaussian of full
covariance. Seeds give every method the same points. `--store` writes the likelihoods, and the flows of seed 0.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sklearn import datasets
from torch import Tensor
from torch.nn.utils import parameters_to_vector

from benchmarks import stacked
from plunit.base.files import write_csv
from plunit.invertible import LU, TOYS, Flow, density, toy
from plunit.lab.intervals import mean
from plunit.torch.threads import one_thread

METHODS = {
    "gaussian": "a Gaussian",
    "plain": "PLU, plain autograd",
    "leaky": "LeakyReLU, boundary term",
    "flux": "PLU, boundary term",
    "annealed": "PLU, annealed from SmoothPLU",
    "smooth": "SmoothPLU",
}
BATCH = 512
TEST_POINTS = 10_000
_GAUSSIAN_POINTS = 100_000

Draw = Callable[[int], Tensor]
"""Draws a number of training points."""


@dataclass(frozen=True)
class Setting:
    """Data sets of the same number of features, and how flows are trained on them."""

    data: tuple[str, ...]
    features: int
    seeds: int
    steps: int
    lr: float
    blocks: int


SETTINGS = {
    "toys": Setting(tuple(TOYS), 2, seeds=5, steps=3000, lr=0.02, blocks=12),
    # few rows: longer training, or more blocks, fits the rows and not the density
    "wine": Setting(("wine",), 13, seeds=8, steps=200, lr=0.01, blocks=1),
    "cancer": Setting(("breast_cancer",), 30, seeds=8, steps=300, lr=0.01, blocks=4),
}


def train(setting: Setting, method: str) -> Iterator[tuple[str, int, Flow, float]]:
    """Yield data set, seed, trained flow and test NLL in nats; all flows are trained together."""
    cases = [(name, seed) for name in setting.data for seed in range(setting.seeds)]
    draws, tests = zip(*(train_and_test(*case) for case in cases), strict=True)
    if method == "gaussian":
        flows = [gaussian(draw(_GAUSSIAN_POINTS)) for draw in draws]
    else:
        sources = [torch.Generator().manual_seed(seed) for _, seed in cases]
        flows = [Flow(density(setting.features, setting.blocks, activation=method, generator=one)) for one in sources]
        stacked.train(
            flows,
            lambda call, x: -call((x,)).mean(),
            lambda: (torch.stack([draw(BATCH) for draw in draws]),),
            steps=setting.steps,
            lr=setting.lr,
        )
    for case, flow, test in zip(cases, flows, tests, strict=True):
        with torch.no_grad():
            yield *case, flow, -float(flow.log_prob(test).mean())


def gaussian(x: Tensor) -> Flow:
    """Return the Gaussian of the mean and covariance of x, as a flow."""
    whiten = torch.linalg.inv(torch.linalg.cholesky(x.T.cov()))
    return Flow(LU.from_matrix(whiten, -whiten @ x.mean(0)))


def train_and_test(name: str, seed: int) -> tuple[Draw, Tensor]:
    """Return a function that draws training points, and the test points: of a table a fifth of the rows."""
    generator = torch.Generator().manual_seed(seed)
    if name in TOYS:
        test = toy(name, TEST_POINTS, torch.Generator().manual_seed(1_000_000 + seed))
        return lambda n: toy(name, n, generator), test
    rows = torch.from_numpy(getattr(datasets, f"load_{name}")().data).float()
    order = torch.randperm(len(rows), generator=generator)
    fifth = len(rows) // 5
    train, test = rows[order[fifth:]], rows[order[:fifth]]
    middle, spread = train.mean(0), train.std(0)
    train, test = (train - middle) / spread, (test - middle) / spread
    return lambda n: train[torch.randint(len(train), (n,), generator=generator)], test


def show(setting: Setting, found: dict[str, dict[str, list[float]]]) -> None:
    """Print the mean NLL of each method on each data set; of a table, the difference from the Gaussian's."""
    print(f"{'test NLL, nats':<32}{''.join(f'{name:>14}' for name in setting.data)}{'mean':>9}")
    for method, losses in found.items():
        means = [float(np.mean(losses[name])) for name in setting.data]
        text = f"{METHODS[method]:<32}{''.join(f'{value:>14.3f}' for value in means)}{np.mean(means):>9.3f}"
        if len(setting.data) == 1 and method != "gaussian":
            (name,) = setting.data
            gain = mean(np.subtract(losses[name], found["gaussian"][name]))
            text += f"   minus the Gaussian's: {gain.value:.2f} [{gain.low:.2f}, {gain.high:.2f}]"
        print(text, flush=True)


def store(folder: Path, rows: list[dict[str, object]], flows: dict[str, list[Flow]]) -> None:
    """Write summary.csv, and flows.json: for each method the parameters of the flows of seed 0."""
    write_csv(folder / "summary.csv", ("method", "data", "seed", "nll"), rows)
    numbers = {
        method: [[float(f"{value:.7g}") for value in parameters_to_vector(one.parameters()).tolist()] for one in each]
        for method, each in flows.items()
        if method != "gaussian"
    }
    lines = ",\n".join(f' "{method}": {json.dumps(values)}' for method, values in numbers.items())
    (folder / "flows.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


@one_thread()
def main(arguments: Sequence[str] = ()) -> None:
    """Train with every method and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks flow_methods", description="ways to train a flow")
    parser.add_argument("--data", choices=SETTINGS, default="toys")
    parser.add_argument("--full", action="store_true", help="all seeds and steps of the toys")
    parser.add_argument("--store", type=Path, help="folder for the likelihoods, and for the flows of seed 0")
    options = parser.parse_args(arguments)
    setting = SETTINGS[options.data]
    if options.data == "toys" and not options.full:
        setting = dataclasses.replace(setting, seeds=1, steps=300)
    print(f"flow methods: {setting.seeds} seed(s), {setting.steps:,} steps of {BATCH}, {setting.blocks} blocks")
    found: dict[str, dict[str, list[float]]] = {}
    rows: list[dict[str, object]] = []
    flows: dict[str, list[Flow]] = {}
    for method in METHODS:
        losses: dict[str, list[float]] = {name: [] for name in setting.data}
        for name, seed, flow, nll in train(setting, method):
            losses[name].append(nll)
            rows.append({"method": method, "data": name, "seed": seed, "nll": nll})
            if seed == 0:
                flows.setdefault(method, []).append(flow)
        found[method] = losses
    show(setting, found)
    if options.store:
        store(options.store, rows, flows)


if __name__ == "__main__":
    main()
