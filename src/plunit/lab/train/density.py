"""Train flows on toys and tables, those of a cell side by side, and measure their test likelihoods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from plunit.base.errors import UserError, install
from plunit.base.ranges import COUNT, RATE, Range
from plunit.invertible import LU, TOYS, Flow, toy
from plunit.invertible import density as bijection
from plunit.lab.cell import Arrays, Cell
from plunit.lab.scratch import write_progress
from plunit.lab.train import stacked
from plunit.torch.threads import one_thread

_GAUSSIAN_POINTS = 100_000

Draw = Callable[[int], Tensor]
"""Draws so many training points."""


@dataclass(frozen=True)
class DensitySpec:
    """Flows trained by maximum likelihood.

    Attributes:
        data: names of data sets of the same number of features: toys of `plunit.invertible`, or tables of
            scikit-learn, of which a fifth of the rows, drawn anew for each seed, is the test set.
        features: their number of features.
        steps: steps of Adam, the step size falling to 0 along a half cosine.
        batch: points of each step: fresh ones of a toy, random rows of a table.
        lr: the step size at the start.
        blocks: (LU, activation), ended by LU.
        points: test points of a toy.
        half: half the side of the drawn square.
        cells: points of the drawn density along a side.
        samples: points drawn from the flow.
    """

    data: tuple[str, ...]
    features: Annotated[int, Range(1, 1024)] = 2
    steps: Annotated[int, COUNT] = 3000
    batch: Annotated[int, COUNT] = 512
    lr: Annotated[float, RATE] = 0.01
    blocks: Annotated[int, Range(1, 1024)] = 12
    points: Annotated[int, COUNT] = 10_000
    half: Annotated[float, Range(1e-3, 1e3)] = 2.6
    cells: Annotated[int, Range(2, 1000)] = 96
    samples: Annotated[int, COUNT] = 1000


@one_thread()
def compute(cell: Cell, scratch: Path) -> Arrays:
    """Return what a cell measures, for each data set of the spec D and seed S.

    steps [S], those taken; nll [D, S], test negative log-likelihood in nats of the flow as it is after training, a PLU
    network for "annealed"; loss [D, steps, S]; in two dimensions also log_density [D, cells, cells, S] over the drawn
    square and sample [D, samples, 2, S].
    """
    spec: DensitySpec = cell.spec
    members = [(name, seed) for name in spec.data for seed in cell.seeds]
    draws, tests = zip(*(train_and_test(name, seed, spec.points) for name, seed in members), strict=True)
    arrays: Arrays = {}
    if cell.activation == "gaussian":
        flows, steps = [gaussian(draw(_GAUSSIAN_POINTS)) for draw in draws], 0
    else:
        steps = spec.steps
        flows, losses = trained(spec, cell.activation, [seed for _, seed in members], draws, scratch)
        arrays["loss"] = losses.T.numpy()
    with torch.no_grad():
        arrays["nll"] = np.array([-float(flow.log_prob(test).mean()) for flow, test in zip(flows, tests, strict=True)])
        if spec.features == 2:
            arrays["log_density"] = np.stack([flow.log_prob(square(spec)).numpy() for flow in flows])
            samples = [
                flow.sample(spec.samples, generator=torch.Generator().manual_seed(seed))
                for flow, (_, seed) in zip(flows, members, strict=True)
            ]
            arrays["sample"] = torch.stack(samples).numpy()
    shape = (len(spec.data), len(cell.seeds))
    arrays = {name: np.moveaxis(value.reshape(*shape, *value.shape[1:]), 1, -1) for name, value in arrays.items()}
    return {"seed": np.array(cell.seeds), "steps": np.full(len(cell.seeds), steps), **arrays}


def trained(
    spec: DensitySpec, method: str, seeds: list[int], draws: Sequence[Draw], scratch: Path
) -> tuple[list[Flow], Tensor]:
    """Return a flow for each seed, trained on the points of its own draws, and the losses [steps, flows]."""
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    flows = [Flow(bijection(spec.features, spec.blocks, activation=method, generator=one)) for one in generators]
    losses = stacked.train(
        flows,
        lambda call, x: -call((x,)).mean(),
        lambda: (torch.stack([draw(spec.batch) for draw in draws]),),
        steps=spec.steps,
        lr=spec.lr,
        progress=lambda done: write_progress(scratch, done),
    )
    return flows, losses


def gaussian(x: Tensor) -> Flow:
    """Return the Gaussian of the mean and covariance of x, as a flow."""
    whiten = torch.linalg.inv(torch.linalg.cholesky(x.T.cov()))
    return Flow(LU.from_matrix(whiten, -whiten @ x.mean(0)))


def square(spec: DensitySpec) -> Tensor:
    """Return the points of the drawn square [cells, cells, 2], rows upwards."""
    side = torch.linspace(-spec.half, spec.half, spec.cells)
    y, x = torch.meshgrid(side, side, indexing="ij")
    return torch.stack([x, y], -1)


def train_and_test(name: str, seed: int, points: int) -> tuple[Draw, Tensor]:
    """Return a function that draws training points, and the test points, for one seed; the same for every method."""
    generator = torch.Generator().manual_seed(seed)
    if name in TOYS:
        test = toy(name, points, torch.Generator().manual_seed(1_000_000 + seed))
        return lambda n: toy(name, n, generator), test
    rows = table(name)
    order = torch.randperm(len(rows), generator=generator)
    fifth = len(rows) // 5
    train, test = rows[order[fifth:]], rows[order[:fifth]]
    mean, spread = train.mean(0), train.std(0)
    train, test = (train - mean) / spread, (test - mean) / spread
    return lambda n: train[torch.randint(len(train), (n,), generator=generator)], test


def prepare(say: Callable[[str], object]) -> None:
    """See that the tables are there."""
    table("wine")


def table(name: str) -> Tensor:
    """Return the rows of a table that ships with scikit-learn."""
    try:
        from sklearn import datasets
    except ImportError:
        raise UserError(f"the data set {name} needs scikit-learn: {install('sklearn')}") from None
    return torch.from_numpy(getattr(datasets, f"load_{name}")().data).float()
