"""What `capacity` and `frequency` share: final losses over a series of fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit.ensemble import ACTIVATIONS, ENGINES, MLP
from plunit.lab.cell import Arrays, Cell
from plunit.lab.experiment import Experiment, Runs, Statistic
from plunit.lab.intervals import Column, median, paired_ratios, ratios
from plunit.lab.style import draw_band
from plunit.lab.summary import label
from plunit.lab.train import series as run


@dataclass(frozen=True)
class Series(Experiment):
    """Fits that differ in one thing."""

    activations = ("tanh", "relu", "plu")
    choices = ACTIVATIONS
    columns = ("final_loss",)
    compute = staticmethod(run.compute)
    engines = tuple(ENGINES)
    seeds = 256

    def cost(self, cell: Cell) -> float:
        """Estimate the work."""
        weights = sum(MLP(one.widths).parameters for one in self.spec.fits().values())
        return float(len(cell.seeds) * self.spec.steps * weights)

    def loss(self, arrays: Arrays, fit: str) -> Arrays:
        """Return seeds and final losses of one fit."""
        return {"seed": arrays["seed"], "loss": arrays["final_loss"][[*self.spec.fits()].index(fit)]}

    def advantage(self, runs: Runs, fit: str) -> Column:
        """Return ReLU / PLU, the ratio of their final losses, seed by seed, at one fit."""
        return paired_ratios(self.loss(runs["relu"], fit), self.loss(runs["plu"], fit), "loss")

    def compare_advantages(self, runs: Runs, above: tuple[str, str], below: tuple[str, str]) -> Statistic:
        """Return the median of the advantage of one fit divided by that of another; each is (fit, its name)."""
        parts = [self.advantage(runs, fit) for fit, _ in (above, below)]
        words = f"median of final loss ReLU / PLU with {above[1]}, divided by the same with {below[1]}"
        return Statistic(f"ratio {above[1]} / ratio {below[1]}", words, median(ratios(*parts)))

    def compare_fits(self, runs: Runs, above: tuple[str, str, str], below: tuple[str, str, str]) -> Statistic:
        """Return the median ratio of two losses; each is (activation, fit, the name of the fit)."""
        (name, fit, size), (other, base, its_size) = above, below
        values = paired_ratios(self.loss(runs[name], fit), self.loss(runs[other], base), "loss")
        words = f"median of final loss {label(name)} ({size}) / {label(other)} ({its_size})"
        return Statistic(f"{name} {size} / {other} {its_size}", words, median(values))

    def draw(self, axes: Any, runs: Runs, x: Sequence[float], fits: Sequence[str]) -> None:
        """Draw the final losses of some fits over x, both on logarithmic axes, a tick at each."""
        for activation, arrays in runs.items():
            losses = np.stack([self.loss(arrays, fit)["loss"] for fit in fits])
            draw_band(axes, x, losses, activation, marker="o", markersize=3)
        axes.set(xscale="log", yscale="log")
        axes.set_xticks(x, [run.fraction(one) for one in x])
        axes.minorticks_off()
