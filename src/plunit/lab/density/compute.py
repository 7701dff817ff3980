"""Train the flows of a cell side by side, and measure them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from plunit.ensemble import one_thread
from plunit.invertible import LU, RHO, Flow, stacked
from plunit.invertible import density as bijection
from plunit.lab import scratch as scratches
from plunit.lab.cell import Cell
from plunit.lab.claims import Column
from plunit.lab.density.data import train_and_test
from plunit.lab.density.spec import Density
from plunit.lab.store import Arrays

_GAUSSIAN_POINTS = 100_000


@one_thread()
def compute(cell: Cell, scratch: Path) -> Arrays:
    """Return what a cell measures, for each data set of the spec D and seed S.

    nll [D, S], test negative log-likelihood in nats of the flow as it is after training, an exact PLU network for
    "annealed"; loss [D, steps, S]; in two dimensions also log_density [D, cells, cells, S] over the drawn square and
    sample [D, samples, 2, S].
    """
    spec: Density = cell.spec
    members = [(name, seed) for name in spec.data for seed in range(cell.first, cell.last)]
    pairs = [train_and_test(name, seed, spec.points) for name, seed in members]
    draws, tests = [draw for draw, _ in pairs], [test for _, test in pairs]
    arrays: Arrays = {}
    if cell.activation == "gaussian":
        flows = [gaussian(draw(_GAUSSIAN_POINTS)) for draw in draws]
    else:
        flows, arrays["loss"] = trained(spec, cell.activation, members, draws, scratch)
    arrays["nll"] = _nll(flows, tests)
    if spec.features == 2:
        arrays |= _pictures(spec, flows, [seed for _, seed in members])
    shape = (len(spec.data), cell.last - cell.first)
    arrays = {name: np.moveaxis(value.reshape(*shape, *value.shape[1:]), 1, -1) for name, value in arrays.items()}
    return {"seed": np.arange(cell.first, cell.last), **arrays}


def trained(
    spec: Density,
    method: str,
    members: list[tuple[str, int]],
    draws: list[Callable[[int], Tensor]],
    scratch: Path,
) -> tuple[list[Flow], Column]:
    """Return a trained flow for each member, a data set's name and a seed, and the losses [members, steps]."""
    flows = [
        Flow(bijection(spec.features, spec.blocks, activation=method, generator=torch.Generator().manual_seed(seed)))
        for _, seed in members
    ]
    losses = stacked.train(
        flows,
        lambda call, x: -call((x,)).mean(),
        lambda: (torch.stack([draw(spec.batch) for draw in draws]),),
        steps=spec.steps,
        lr=spec.lr,
        anneal=RHO if method == "annealed" else None,
        watch=lambda done: scratches.report(scratch, done),
    )
    return flows, losses.T.numpy()


def gaussian(x: Tensor) -> Flow:
    """Return the Gaussian of the mean and covariance of x, as a flow."""
    whiten = torch.linalg.inv(torch.linalg.cholesky(x.T.cov()))
    return Flow(LU.from_matrix(whiten, -whiten @ x.mean(0)))


@torch.no_grad()
def _nll(flows: list[Flow], tests: list[Tensor]) -> Column:
    return np.array([-float(flow.log_prob(test).mean()) for flow, test in zip(flows, tests, strict=True)])


@torch.no_grad()
def _pictures(spec: Density, flows: list[Flow], seeds: list[int]) -> Arrays:
    points = square(spec)
    samples = [
        flow.sample(spec.samples, torch.Generator().manual_seed(seed)) for flow, seed in zip(flows, seeds, strict=True)
    ]
    return {
        "log_density": np.stack([flow.log_prob(points).numpy() for flow in flows]),
        "sample": torch.stack(samples).numpy(),
    }


def square(spec: Density) -> Tensor:
    """Return the points of the drawn square [cells, cells, 2], rows upwards."""
    side = torch.linspace(-spec.half, spec.half, spec.cells)
    y, x = torch.meshgrid(side, side, indexing="ij")
    return torch.stack([x, y], -1)
