"""Train every (alpha, c) of a grid from the same seeds, all as members of one ensemble."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from plunit.base.ranges import SHARE, WIDTH
from plunit.ensemble import MLP, initial, train
from plunit.lab.cell import Arrays, Cell
from plunit.lab.train.fit import FitSpec, final_loss, fixed


@dataclass(frozen=True)
class ShapeSpec:
    """A grid of alpha and c; every grid point is trained from the same seeds.

    Attributes:
        fit: the experiment; its alpha and c are the paper's choice and must be on the grid.
        alphas: values of alpha.
        cs: values of c.
    """

    fit: FitSpec
    alphas: Annotated[tuple[float, ...], SHARE] = (
        *(0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3),
        *(0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1),
    )
    cs: Annotated[tuple[float, ...], WIDTH] = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.25, 1.5, 2, 2.5, 3, 4, 5)

    def __post_init__(self) -> None:
        if self.fit.alpha not in self.alphas or self.fit.c not in self.cs or self.fit.batch:
            raise ValueError(f"alphas must hold {self.fit.alpha}, cs {self.fit.c}, and fit.batch must be 0")

    @property
    def chosen(self) -> tuple[int, int]:
        """Where the paper's choice is on the grid."""
        return self.alphas.index(self.fit.alpha), self.cs.index(self.fit.c)


def compute(cell: Cell, scratch: Path) -> Arrays:
    """Return seed, alpha, c, final_loss [S] and theta [rows, S] with S = seeds x alphas x cs, in that order."""
    spec: ShapeSpec = cell.spec
    fit, network = spec.fit, MLP(spec.fit.widths, cell.activation)
    start = initial(network, [np.random.default_rng(seed) for seed in cell.seeds])
    seed, alpha, c = (
        np.array(column, dtype=np.float32)
        for column in zip(*itertools.product(cell.seeds, spec.alphas, spec.cs), strict=True)
    )
    trained = train(
        network,
        start.repeat(len(alpha) // len(cell.seeds), axis=1),
        fixed(fit),
        steps=fit.steps,
        lr=fit.lr,
        alpha=alpha,
        c=c,
        stride=fit.steps,
        engine=cell.engine,
    )
    loss = final_loss(fit, network, trained.theta, alpha, c)
    return {"seed": seed.astype(np.int64), "alpha": alpha, "c": c, "final_loss": loss, "theta": trained.theta}
