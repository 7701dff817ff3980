"""Densities by invertible networks, which the paper only mentions: rows, figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from plunit.invertible import toy
from plunit.lab.experiment import Experiment, Runs
from plunit.lab.pictures import Picture
from plunit.lab.style import look
from plunit.lab.summary import seeds_of, steps_of
from plunit.lab.train import density as run
from plunit.lab.train.density import DensitySpec

METHODS = {
    "gaussian": "Gaussian",
    "plain": "PLU, plain autograd",
    "flux": "PLU, boundary term",
    "annealed": "PLU, annealed",
    "smooth": "SmoothPLU",
    "leaky": "leaky ReLU, boundary term",
}
"""What a flow's activation is and how it is trained, in the place of an activation: the names of
`plunit.invertible.density` and a Gaussian of full covariance."""

_COLOURS = {"gaussian": "identity", "plain": "relu", "flux": "tanh", "annealed": "plu", "smooth": "plu_learned"}


@dataclass(frozen=True)
class Density(Experiment):
    """Flows trained by maximum likelihood."""

    activations = tuple(METHODS)
    choices = METHODS
    columns = ("nll", "steps")
    compute = staticmethod(run.compute)
    prepare = staticmethod(run.prepare)
    seeds = chunk = 5
    short = 300

    def axes(self) -> dict[str, Sequence[Any]]:
        """Return the names of the data sets."""
        return {"data": self.spec.data}

    def finding(self, runs: Runs) -> str:
        """Give the mean likelihoods."""
        means = (f"“{METHODS[method]}” {arrays['nll'].mean():.2f}" for method, arrays in runs.items())
        return f"Mean test negative log-likelihood in nats, {steps_of(runs):,} steps: {', '.join(means)}."

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw densities and samples of two-dimensional data, and likelihoods of all."""
        if self.spec.features == 2:
            yield from self._pictures({name: arrays for name, arrays in runs.items() if name != "gaussian"})
        yield self._likelihoods(runs)

    def _likelihoods(self, runs: Runs) -> Picture:
        spec = self.spec
        figure = Figure(figsize=(1.9 * len(spec.data) + 2.2, 3.0))
        panels: Any = figure.subplots(1, len(spec.data), squeeze=False, sharey=True)[0]
        for d, (data, axes) in enumerate(zip(spec.data, panels, strict=True)):
            for place, (method, arrays) in enumerate(runs.items()):
                nll = arrays["nll"][d]
                axes.plot(nll, np.full(nll.shape, -place), "o", color=_colour(method), markersize=4, alpha=0.7)
            axes.set(title=data.replace("_", " "), xlabel="test NLL, nats")
            axes.set_yticks(-np.arange(len(runs)), [METHODS[method] for method in runs])
            axes.margins(0.12)
        what = f"test negative log-likelihood of {seeds_of(runs)}, {steps_of(runs):,} steps"
        caption = f"{self.title}: {what}. Lower is better."
        alt = f"Dots for each seed, a row for each of {', '.join(METHODS[method] for method in runs)}."
        return Picture(f"{self.name}-likelihoods", caption, alt, figure)

    def _pictures(self, runs: Runs) -> Iterator[Picture]:
        """Yield the densities of seed 0, and its samples, methods side by side."""
        spec: DensitySpec = self.spec
        side = (-spec.half, spec.half)
        generator = torch.Generator().manual_seed(0)
        points = [toy(data, spec.samples, generator) for data in spec.data]
        for noun, key in (("densities", "log_density"), ("samples", "sample")):
            figure = Figure(figsize=(1.5 * (1 + len(runs)), 1.55 * len(spec.data) + 0.3))
            panels: Any = figure.subplots(len(spec.data), 1 + len(runs), squeeze=False)
            for d, (data, first, *row) in enumerate(zip(spec.data, *panels.T, strict=True)):
                _scatter(first, points[d], "#777777")
                first.set_ylabel(data)
                for axes, (method, arrays) in zip(row, runs.items(), strict=True):
                    values = arrays[key][d, ..., 0]
                    if noun == "samples":
                        _scatter(axes, values, _colour(method))
                    else:
                        top = np.quantile(np.exp(values), 0.995)
                        axes.imshow(np.exp(values), origin="lower", extent=side * 2, cmap="viridis", vmax=top)
            for axes in panels.flat:
                axes.set(xlim=side, ylim=side, aspect="equal", xticks=[], yticks=[])
                axes.grid(visible=False)
            for axes, title in zip(panels[0], ("data", *(METHODS[method] for method in runs)), strict=True):
                axes.set_title(title.replace(", ", ",\n"), fontsize=8)
            caption = f"{self.title}: data, and {noun} of the flows of seed 0, {steps_of(runs):,} steps."
            alt = f"A row for each of {', '.join(spec.data)}: the data, then the {noun} of {len(runs)} flows."
            yield Picture(f"{self.name}-{noun}", caption, alt, figure)


def _scatter(axes: Any, points: Any, colour: str) -> None:
    dots = {"markersize": 1.0, "markeredgewidth": 0, "alpha": 0.8, "rasterized": True}
    axes.plot(*np.asarray(points).T, "o", color=colour, **dots)


def _colour(method: str) -> str:
    colour: str = look(_COLOURS.get(method, "leaky_relu"))["color"]
    return colour


_TOY_NAMES = ("moons", "gaussians", "checkerboard", "pinwheel")
_WINE = DensitySpec(("wine",), features=13, steps=200, blocks=1)
_CANCER = DensitySpec(("breast_cancer",), features=30, steps=300, blocks=4)
EXPERIMENTS = (
    Density("density", "Densities: four toys", DensitySpec(_TOY_NAMES, lr=0.02), "6"),
    # few rows: longer training, or more blocks, fits the rows and not the density
    Density("density-wine", "Densities: wine of scikit-learn", _WINE, "6"),
    Density("density-cancer", "Densities: breast cancer of scikit-learn", _CANCER, "6"),
)
