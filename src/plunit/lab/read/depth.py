"""Gradients over depth: rows, claims, figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from plunit.base.ranges import Range
from plunit.ensemble import ACTIVATIONS
from plunit.lab.claims import Claim, measure_ratio, median, ratios
from plunit.lab.experiment import Experiment, Results, Runs
from plunit.lab.style import Picture, draw_band, listed, names, seeds_of
from plunit.lab.train import depth as run
from plunit.lab.train.depth import DepthSpec

_FLOOR = 1e-16


@dataclass(frozen=True)
class Depth(Experiment):
    """Gradients over depth; `start` says how the weights are drawn, `setting` how that differs from the paper."""

    start: str = ""
    setting: str = ""

    activations = ("tanh", "relu", "plu")
    choices = ACTIVATIONS
    columns = ("gradient_norm",)
    compute = staticmethod(run.compute)

    def axes(self) -> dict[str, Sequence[Any]]:
        """Return the depths."""
        return {"depth": self.spec.depths}

    def claims(self, runs: Runs, results: Results) -> Iterator[Claim]:
        """Yield what happens between the least depth and the largest."""
        if not runs.keys() >= {"tanh", "plu"}:
            return
        tanh, plu = (runs[activation]["gradient_norm"] for activation in ("tanh", "plu"))
        ends = f"depth {self.spec.depths[-1]} / depth {self.spec.depths[0]}"
        fall, bars = f"median of |dL/dW1|, {ends}", (Range(high=0.01), Range(high=0.1))
        sentence = f"Gradients vanish with depth for tanh, {self.start}."
        yield measure_ratio("gradients-tanh", sentence, fall, tanh[-1], tanh[0], *bars, setting=self.setting)
        sentence, bars = f"Gradients do not vanish with depth for PLU, {self.start}.", (Range(low=0.1), Range(low=0.01))
        yield measure_ratio("gradients-plu", sentence, fall, plu[-1], plu[0], *bars, setting=self.setting)
        sentence, bars = f"PLU's gradients fall less than tanh's, {self.start}.", (Range(low=2), Range(low=1))
        fall = f"median of (fall for PLU) / (fall for tanh), {ends}"
        falls = plu[-1] / plu[0], tanh[-1] / tanh[0]
        setting = f"compared with tanh {self.setting}".strip()
        yield measure_ratio("gradients-plu", sentence, fall, *falls, *bars, setting=setting)

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
        falls = {name: float(median(ratios(*arrays["gradient_norm"][[-1, 0]]))) for name, arrays in runs.items()}
        ends = f"depth {self.spec.depths[-1]} / depth {self.spec.depths[0]}"
        return f"Norm of the first layer's gradient, {ends}, {self.start}: {listed(falls)}."


EXPERIMENTS = (
    Depth("depth", "Gradients at depths 2 to 64, weights N(0, 1)", DepthSpec(), "7", start="with weights N(0, 1)"),
    Depth(
        "depth-scaled",
        "Gradients at depths 2 to 64, weights N(0, 1 / inputs)",
        DepthSpec(scale="fan_in"),
        "7",
        start="with weights N(0, 1 / inputs)",
        setting="with weights N(0, 1 / inputs)",
    ),
)
