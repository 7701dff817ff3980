"""Train every (alpha, c) of the grid from the same seeds, all as members of one ensemble."""

from __future__ import annotations

import itertools

import numpy as np
import torch

from plunit.ensemble import Network, initial, train
from plunit.lab.cell import Cell
from plunit.lab.fit.compute import final_loss, fixed
from plunit.lab.shape.spec import ShapeMap
from plunit.lab.store import Arrays


def compute(cell: Cell) -> Arrays:
    """Return seed, alpha, c, final_loss [S] and theta [rows, S] with S = seeds x alphas x cs, in that order."""
    spec: ShapeMap = cell.spec
    fit, network = spec.fit, Network(spec.fit.widths, cell.activation)
    seeds = range(cell.first, cell.last)
    start = initial(network, [np.random.default_rng(seed) for seed in seeds])
    seed, alpha, c = (
        torch.tensor(column, dtype=torch.float32)
        for column in zip(*itertools.product(seeds, spec.alphas, spec.cs), strict=True)
    )
    trained = train(
        network,
        start.repeat_interleave(len(alpha) // len(seeds), dim=1),
        fixed(fit),
        steps=fit.steps,
        lr=fit.lr,
        alpha=alpha,
        c=c,
        stride=fit.steps,
        engine=cell.engine,
    )
    loss = final_loss(fit, network, trained.theta, alpha, c)
    arrays = {"seed": seed.long(), "alpha": alpha, "c": c, "final_loss": loss, "theta": trained.theta}
    return {name: tensor.numpy() for name, tensor in arrays.items()}
