"""The swirl and its inverse: rows, figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from plunit.lab.experiment import Experiment, Runs
from plunit.lab.pictures import Picture
from plunit.lab.style import look
from plunit.lab.summary import label, listed, median_member, medians, seeds_of, steps_of
from plunit.lab.train import warp as run
from plunit.lab.train.warp import WarpSpec


@dataclass(frozen=True)
class Warp(Experiment):
    """A map of the plane, learned by an invertible network."""

    activations = ("plu", "leaky_relu")
    choices = run.CHOICES
    columns = ("steps", "forward_error", "inverse_error", "round_trip")
    compute = staticmethod(run.compute)
    seeds = chunk = 5
    short = 300

    def finding(self, runs: Runs) -> str:
        """Give the errors of the inverse."""
        errors = medians(runs, "inverse_error")
        return f"Median error of the inverse, which no step saw, after {steps_of(runs):,} steps: {listed(errors)}."

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw a square grid mapped by the swirl and by the networks, and by the inverses."""
        spec: WarpSpec = self.spec
        figure = Figure(figsize=(2.9 * (1 + len(runs)), 5.8))
        panels: Any = figure.subplots(2, 1 + len(runs), sharex=True, sharey=True)
        lines = run.grid(spec)
        for row, turn, title in ((0, spec.turn, "F: the swirl"), (1, -spec.turn, "F⁻¹: its inverse")):
            _draw(panels[row, 0], spec, run.swirl(lines, turn).numpy(), "#444444")
            panels[row, 0].set_title(title)
        errors = []
        for column, (activation, arrays) in enumerate(runs.items(), 1):
            middle = median_member(arrays, "inverse_error")
            for row, key, noun in ((0, "forward", "F"), (1, "inverse", "F⁻¹")):
                _draw(panels[row, column], spec, arrays[key][..., middle], look(activation)["color"])
                panels[row, column].set_title(f"{noun} of the {label(activation)} network")
            values = (float(np.median(arrays[f"{key}_error"])) for key in ("forward", "inverse"))
            errors.append("{}: F {:.3f}, F⁻¹ {:.3f}".format(label(activation), *values))
        caption = (
            f"{self.title}, {steps_of(runs):,} steps: a square grid mapped by F and by the exact inverse of F, which "
            f"training never saw; the median of {seeds_of(runs)}. Root mean square errors: {'; '.join(errors)}."
        )
        alt = "Deformed grids: above, a swirl and what networks make of it; below, its inverse and theirs."
        yield Picture(self.name, caption, alt, figure)


def _draw(axes: Any, spec: WarpSpec, points: Any, colour: str) -> None:
    for line in points.reshape(2 * spec.lines, spec.dots, 2):
        axes.plot(*line.T, color=colour, linewidth=0.7)
    reach = 1.3 * spec.half
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xticks=[-2, 0, 2], yticks=[-2, 0, 2])
    axes.grid(visible=False)


EXPERIMENTS = (Warp("warp", "A swirl of the plane and its inverse", WarpSpec(), "6"),)
