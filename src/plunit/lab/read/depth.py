"""Gradients over depth: statistics and figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit.ensemble import ACTIVATIONS
from plunit.ensemble.nonlinearities import title_of
from plunit.lab.cell import Arrays
from plunit.lab.experiment import Experiment, Runs, Statistic, ratio
from plunit.lab.intervals import Column, median, ratios
from plunit.lab.pictures import LinePanel, Picture, count_seeds, draw_lines, list_names, list_values
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
        """Yield the gradient at the largest depth divided by that at the least."""
        falls = {name: {**arrays, "fall": _fall(arrays)} for name, arrays in runs.items()}
        for name, arrays in falls.items():
            words = f"median of |dL/dW1| of {title_of(name)}, {self._ends()}"
            yield Statistic(f"fall {name}", words, median(arrays["fall"]))
        yield from ratio(falls, "plu", "tanh", "fall", f"|dL/dW1| at {self._ends()},", "fall ")

    def _ends(self) -> str:
        return f"depth {self.spec.depths[-1]} / depth {self.spec.depths[0]}"

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw gradient norms over depth."""
        norms = {name: np.maximum(arrays["gradient_norm"], _FLOOR) for name, arrays in runs.items()}
        axes = {"xscale": "log", "xlabel": "depth (weight layers)", "ylabel": "|dL/dW1| before training"}
        caption = f"{self.title}: median and 5-95 % of {count_seeds(runs)}; zeros are drawn at {_FLOOR:g}."
        alt = f"Falling curves of gradient norms over depth for {list_names(runs)}."
        yield draw_lines(
            self.name, caption, alt, LinePanel(self.spec.depths, norms, axes, self.spec.depths), height=3.6
        )

    def finding(self, runs: Runs) -> str:
        """Give the factors by which gradients fall."""
        falls = {name: median(_fall(arrays)).value for name, arrays in runs.items()}
        return f"Norm of the first layer's gradient, {self._ends()}, {self.start}: {list_values(falls)}."


def _fall(arrays: Arrays) -> Column:
    return ratios(*arrays["gradient_norm"][[-1, 0]])


def _depth(name: str, spec: DepthSpec, start: str) -> Depth:
    return Depth(name, f"Vanishing gradients: networks of depth 2 to 64, {start}", spec, "7", start=start)


EXPERIMENTS = (
    _depth("depth", DepthSpec(), "with weights N(0, 1)"),
    _depth("depth-scaled", DepthSpec(scale="fan_in"), "with weights N(0, 1 / inputs)"),
)
