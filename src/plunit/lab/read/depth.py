"""Gradients over depth: rows, statistics, figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from plunit.ensemble import ACTIVATIONS
from plunit.lab.cell import Arrays
from plunit.lab.experiment import Experiment, Runs, Statistic, ratio
from plunit.lab.intervals import Column, median, ratios
from plunit.lab.pictures import Picture
from plunit.lab.style import draw_band
from plunit.lab.summary import label, listed, names, seeds_of
from plunit.lab.train import depth as run
from plunit.lab.train.depth import DepthSpec

_FLOOR = 1e-16


@dataclass(frozen=True)
class Depth(Experiment):
    """Gradients over depth; `start` says how the weights are drawn."""

    start: str = ""

    activations = ("tanh", "relu", "plu")
    choices = ACTIVATIONS
    columns = ("gradient_norm",)
    compute = staticmethod(run.compute)

    def axes(self) -> dict[str, Sequence[Any]]:
        """Return the depths."""
        return {"depth": self.spec.depths}

    def statistics(self, runs: Runs) -> Iterator[Statistic]:
        """Yield what happens to gradients between the least depth and the largest."""
        falls = {name: {**arrays, "fall": _fall(arrays)} for name, arrays in runs.items()}
        for name, arrays in falls.items():
            words = f"median of |dL/dW1| of {label(name)}, {self._ends()}"
            yield Statistic(f"fall {name}", words, median(arrays["fall"]))
        yield from ratio(falls, "plu", "tanh", "fall", f"|dL/dW1| at {self._ends()},", "fall ")

    def _ends(self) -> str:
        return f"depth {self.spec.depths[-1]} / depth {self.spec.depths[0]}"

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw gradient norms over depth."""
        figure = Figure(figsize=(5.2, 3.4))
        axes = figure.subplots()
        depths = self.spec.depths
        for activation, arrays in runs.items():
            draw_band(axes, depths, np.maximum(arrays["gradient_norm"], _FLOOR), activation, marker="o", markersize=3)
        axes.set(xscale="log", yscale="log", xlabel="depth (weight layers)", ylabel="|dL/dW1| at the start")
        axes.set_xticks(depths, [str(depth) for depth in depths])
        axes.minorticks_off()
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
        caption = f"{self.title}: median and 5-95 % of {seeds_of(runs)}; zeros are drawn at {_FLOOR:g}."
        yield Picture(self.name, caption, f"Falling curves of gradient norms over depth for {names(runs)}.", figure)

    def finding(self, runs: Runs) -> str:
        """Say by how much gradients fall."""
        falls = {name: median(_fall(arrays)).value for name, arrays in runs.items()}
        return f"Norm of the first layer's gradient, {self._ends()}, {self.start}: {listed(falls)}."


def _fall(arrays: Arrays) -> Column:
    return ratios(*arrays["gradient_norm"][[-1, 0]])


EXPERIMENTS = (
    Depth(
        "depth",
        "Vanishing gradients: the first layer's at depths 2 to 64, weights N(0, 1)",
        DepthSpec(),
        "7",
        start="with weights N(0, 1)",
    ),
    Depth(
        "depth-scaled",
        "Vanishing gradients: the first layer's at depths 2 to 64, weights N(0, 1 / inputs)",
        DepthSpec(scale="fan_in"),
        "7",
        start="with weights N(0, 1 / inputs)",
    ),
)
