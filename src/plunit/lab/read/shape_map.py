"""How the loss depends on alpha and c: a map of the median final loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from plunit.ensemble import ACTIVATIONS, ENGINES, MLP
from plunit.lab.cell import Arrays, Cell
from plunit.lab.experiment import Experiment, Runs, Statistic
from plunit.lab.intervals import FEWEST, Column, median, worst_if_diverged
from plunit.lab.pictures import Picture
from plunit.lab.read.parametric import PARAMETRIC
from plunit.lab.read.sine import SINE
from plunit.lab.summary import number
from plunit.lab.train import fit as run
from plunit.lab.train.fit import ShapeSpec


@dataclass(frozen=True)
class ShapeMap(Experiment):
    """A map of the final loss; `noun` names the fitted function."""

    noun: str = ""

    activations = ("plu",)
    choices = ACTIVATIONS
    columns = ("alpha", "c", "final_loss")
    compute = staticmethod(run.compute_map)
    engines = tuple(ENGINES)
    seeds = 32
    chunk = 4

    def seeds_within(self, seeds: int) -> int:
        """Return an eighth of the seeds, at least six for an interval and at most 32: each is trained at 257 points."""
        return min(max(seeds // 8, FEWEST), self.seeds)

    def cost(self, cell: Cell) -> float:
        """Estimate the work."""
        grid = len(self.spec.alphas) * len(self.spec.cs)
        return float(len(cell.seeds) * grid * self.spec.steps * MLP(self.spec.widths).parameters)

    def statistics(self, runs: Runs) -> Iterator[Statistic]:
        """Yield how the paper's choice ranks on the map of each seed."""
        if "plu" in runs:
            losses = table(self.spec, runs["plu"])
            below = (losses < losses[self.spec.chosen]).mean(axis=(0, 1))
            words = "median over seeds of the share of the map with a lower loss than the paper's alpha and c"
            yield Statistic("share of the map below", words, median(below))

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw the map."""
        if "plu" not in runs:
            return
        losses = table(self.spec, runs["plu"])
        medians, best = _best(losses)
        figure = Figure(figsize=(6.2, 5))
        axes = figure.subplots()
        image = axes.imshow(medians, origin="lower", norm=LogNorm(), cmap="cividis", aspect="auto")
        look: dict[str, Any] = {"markersize": 14, "markeredgecolor": "black", "linestyle": "none"}
        axes.plot(
            self.spec.chosen[1], self.spec.chosen[0], marker="*", color="white", label="the paper's choice", **look
        )
        axes.plot(best[1], best[0], marker="P", color="#7fd6ff", label="lowest", **look)
        axes.set_xticks(range(len(self.spec.cs)), [f"{c:g}" for c in self.spec.cs])
        axes.set_yticks(range(len(self.spec.alphas)), [f"{alpha:g}" for alpha in self.spec.alphas])
        axes.set(xlabel="c", ylabel="alpha")
        axes.grid(False)
        figure.colorbar(image, label="median final loss")
        handles, labels = axes.get_legend_handles_labels()
        legend = figure.legend(handles, labels, loc="outside lower center", ncols=2, facecolor="#808080", frameon=True)
        legend.get_frame().set_edgecolor("none")
        caption = f"{self.title}: median final loss over {losses.shape[-1]} seeds at each point."
        ends = f"{medians.min():.2g} to {medians.max():.2g}"
        alt = f"A heat map, c from left to right and alpha upwards; losses go from {ends}."
        yield Picture(self.name, caption, alt, figure)

    def finding(self, runs: Runs) -> str:
        """Compare the paper's choice with the best one."""
        if "plu" not in runs:
            return ""
        medians, best = _best(table(self.spec, runs["plu"]))
        chosen, least = (number(float(medians[at])) for at in (self.spec.chosen, best))
        where = f"alpha = {self.spec.alphas[best[0]]:g}, c = {self.spec.cs[best[1]]:g}"
        return f"For {self.noun}, the paper's choice has the median loss {chosen}; the lowest is {least}, at {where}."


def table(spec: ShapeSpec, arrays: Arrays) -> Column:
    """Return the final losses as [alphas, cs, seeds]; losses that diverged are infinite."""
    losses = arrays["final_loss"].reshape(-1, len(spec.alphas), len(spec.cs))
    return worst_if_diverged(np.moveaxis(losses, 0, -1))


def _best(losses: Column) -> tuple[Column, tuple[int, int]]:
    medians = np.median(losses, axis=-1)
    first, second = np.unravel_index(np.argmin(medians), medians.shape)
    return medians, (int(first), int(second))


EXPERIMENTS = tuple(
    ShapeMap(
        f"map-{fit.name}",
        f"Final loss for other alpha and c, {fit.noun}",
        ShapeSpec(**vars(fit.spec)),
        noun=fit.noun,
    )
    for fit in (SINE, PARAMETRIC)
)
