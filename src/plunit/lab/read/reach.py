"""What each activation can do on the sine: second-order steps beside Adam's, rows, claims and the figure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from plunit.base.ranges import Range
from plunit.ensemble import ACTIVATIONS, ENGINES
from plunit.lab.cell import Cell
from plunit.lab.claims import Claim, measure_ratio
from plunit.lab.experiment import Experiment, Results, Runs
from plunit.lab.read.fit import EXPERIMENTS as FITS
from plunit.lab.style import Picture, label, listed, look, median_loss, number
from plunit.lab.train import reach as run
from plunit.lab.train.reach import ReachSpec


@dataclass(frozen=True)
class Reach(Experiment):
    """The losses that networks of a shape can reach."""

    activations = ("tanh", "relu", "plu", "plu_learned")
    choices = ACTIVATIONS
    columns = ("adam_loss", "final_loss", "taken")
    compute = staticmethod(run.compute)
    engines = tuple(ENGINES)

    def cost(self, cell: Cell) -> float:
        """Estimate the work, in Adam's steps; a second-order one takes as long as about 30."""
        return float(len(cell.seeds) * 22 * (self.spec.fit.steps + 30 * self.spec.steps))

    def claims(self, runs: Runs, results: Results) -> Iterator[Claim]:
        """Yield how far the activations are apart, and how far Adam stays above what each can do."""
        for above, below, least in (("plu", "tanh", 10), ("relu", "plu", 10)):
            if {above, below} <= runs.keys():
                one, other = label(above), label(below)
                yield measure_ratio(
                    "",
                    f"On the sine, {other} can reach a loss {least} times as low as {one}.",
                    f"median of loss after second-order steps {one} / {other}",
                    runs[above]["final_loss"],
                    runs[below]["final_loss"],
                    Range(low=least),
                    Range(low=1),
                )
        for name, arrays in runs.items():
            yield measure_ratio(
                "",
                f"On the sine, second-order steps lead {label(name)} to a lower loss than Adam's.",
                f"median of loss of {label(name)}, Adam / second-order steps",
                arrays["adam_loss"],
                arrays["final_loss"],
                Range(low=1.1),
                Range(low=1),
            )

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw the share of starts at or below each loss, after Adam and after second-order steps."""
        figure = Figure(figsize=(7.4, 3.2))
        panels = figure.subplots(1, 2, sharex=True, sharey=True)
        titles = (f"Adam, {self.spec.fit.steps:,} steps", f"second order, up to {self.spec.steps:,} steps")
        for axes, key, title in zip(panels, ("adam_loss", "final_loss"), titles, strict=True):
            for activation, arrays in runs.items():
                losses = np.sort(np.nan_to_num(arrays[key], nan=np.inf))
                axes.step(losses, np.arange(1, losses.size + 1) / losses.size, where="post", **look(activation))
            axes.set(xscale="log", xlabel="loss", ylim=(0, 1), title=title)
        panels[0].set(ylabel="share of starts at or below")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        best = listed({name: float(np.nanmin(arrays["final_loss"])) for name, arrays in runs.items()})
        caption = f"{self.title}: losses from the same starts, after Adam and after second-order steps. Best: {best}."
        alt = f"Two panels: rising curves of the share of starts against the loss, for {', '.join(map(label, runs))}."
        yield Picture(self.name, caption, alt, figure)

    def finding(self, runs: Runs) -> str:
        """Compare the medians."""
        medians = [
            {name: median_loss(arrays[key]) for name, arrays in runs.items()} for key in ("final_loss", "adam_loss")
        ]
        best = listed({name: float(np.nanmin(arrays["final_loss"])) for name, arrays in runs.items()})
        starts = max(arrays["seed"].size for arrays in runs.values())
        return (
            f"Median losses over {starts:,} starts after second-order steps: {listed(medians[0])} (best {best}), "
            f"where Adam ends at {', '.join(number(value) for value in medians[1].values())}."
        )


EXPERIMENTS = (Reach("reach", "What each activation can do on the sine", ReachSpec(FITS[0].spec)),)
