"""What small networks can do, not what training makes of them: second-order steps from the paper's own starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from plunit.base.ranges import COUNT, Range
from plunit.ensemble import MLP, finish_members, initial, train
from plunit.lab.cell import Arrays, Cell
from plunit.lab.train.fit import FitSpec, final_loss, fixed


@dataclass(frozen=True)
class ReachSpec:
    """A function, Adam's steps, and those of Levenberg and Marquardt from the same starts.

    Attributes:
        fit: the experiment, with Adam's steps; without batches.
        steps: of Levenberg and Marquardt, at most; a member that stalls ends earlier.
        damping: of the first of them.
    """

    fit: FitSpec
    steps: Annotated[int, COUNT] = 400
    damping: Annotated[float, Range(1e-9, 1e9)] = 0.1

    def __post_init__(self) -> None:
        if self.fit.batch:
            raise ValueError(f"fit.batch must be 0, because all points count at each step, got {self.fit.batch}")


def compute(cell: Cell, scratch: Path) -> Arrays:
    """Return seed, adam_loss, final_loss and taken [S], the steps until each stalled, and theta [rows, S]."""
    spec: ReachSpec = cell.spec
    fit, network = spec.fit, MLP(spec.fit.widths, cell.activation)
    start = initial(network, [np.random.default_rng(seed) for seed in cell.seeds], alpha=fit.alpha, c=fit.c)
    shape: dict[str, Any] = {"alpha": fit.alpha, "c": fit.c, "engine": cell.engine}
    adam = train(network, start, fixed(fit), steps=fit.steps, lr=fit.lr, stride=fit.steps, **shape)
    found = finish_members(network, start, fixed(fit), steps=spec.steps, damping=spec.damping, **shape)
    return {
        "seed": np.array(cell.seeds),
        "theta": found.theta,
        "adam_loss": final_loss(fit, network, adam.theta),
        "final_loss": final_loss(fit, network, found.theta),
        "taken": found.steps,
    }
