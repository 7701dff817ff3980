"""Densities and samples of the toys, and test likelihoods of all data sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from plunit.invertible import toy
from plunit.lab.density.spec import METHODS, SPECS, TITLES
from plunit.lab.results import Results
from plunit.lab.style import Picture, look


def figures(results: Results) -> Iterator[Picture]:
    """Draw the experiments that were run."""
    for name in results.names():
        if name not in SPECS:
            continue
        yield _likelihoods(name, results)
        if SPECS[name].features == 2:
            yield from _pictures(name, results)


def _likelihoods(name: str, results: Results) -> Picture:
    spec, methods = SPECS[name], results.activations(name)
    figure = Figure(figsize=(1.9 * len(spec.data) + 2.2, 3.0))
    panels: Any = figure.subplots(1, len(spec.data), squeeze=False, sharey=True)[0]
    for d, (data, axes) in enumerate(zip(spec.data, panels, strict=True)):
        for place, method in enumerate(methods):
            nll = results[name, method]["nll"][d]
            axes.plot(nll, np.full(nll.shape, -place), "o", color=_colour(method), markersize=4, alpha=0.7)
        axes.set(title=data.replace("_", " "), xlabel="test NLL, nats")
        axes.set_yticks(-np.arange(len(methods)), [METHODS[method] for method in methods])
        axes.margins(0.12)
    seeds = results[name, methods[0]]["seed"].size
    caption = (
        f"{TITLES[name]}: test negative log-likelihood of {seeds} seeds, {_steps(name, results)}. Lower is better."
    )
    return Picture(name, f"{name}-likelihoods", caption, figure)


def _pictures(name: str, results: Results) -> Iterator[Picture]:
    """Yield the densities of seed 0, and its samples, methods side by side."""
    spec, methods = SPECS[name], [method for method in results.activations(name) if method != "gaussian"]
    for noun in ("densities", "samples"):
        figure = Figure(figsize=(1.5 * (1 + len(methods)), 1.55 * len(spec.data) + 0.3))
        panels: Any = figure.subplots(len(spec.data), 1 + len(methods), squeeze=False)
        for (d, m), axes in np.ndenumerate(panels):
            if m == 0:
                _scatter(axes, toy(spec.data[d], spec.samples), "#444444")
                axes.set_ylabel(spec.data[d])
            elif noun == "samples":
                _scatter(axes, results[name, methods[m - 1]]["sample"][d, ..., 0], _colour(methods[m - 1]))
            else:
                density = np.exp(results[name, methods[m - 1]]["log_density"][d, ..., 0])
                extent = (-spec.half, spec.half, -spec.half, spec.half)
                axes.imshow(density, origin="lower", extent=extent, cmap="viridis", vmax=np.quantile(density, 0.995))
            axes.set(xlim=(-spec.half, spec.half), ylim=(-spec.half, spec.half), aspect="equal", xticks=[], yticks=[])
            axes.grid(visible=False)
            if d == 0:
                axes.set_title(METHODS[methods[m - 1]].replace(", ", ",\n") if m else "data", fontsize=8)
        caption = f"{TITLES[name]}: data, and {noun} of the flows of seed 0, {_steps(name, results)}."
        yield Picture(name, f"{name}-{noun}", caption, figure)


def _scatter(axes: Any, points: Any, colour: str) -> None:
    axes.plot(*np.asarray(points).T, "o", color=colour, markersize=1.0, markeredgewidth=0, alpha=0.8)


def _steps(name: str, results: Results) -> str:
    lengths = {arrays["loss"].shape[1] for other, _, arrays in results.items() if other == name and "loss" in arrays}
    return f"{max(lengths):,} steps" if lengths else "no training"


def _colour(method: str) -> str:
    names = {"gaussian": "identity", "plain": "relu", "flux": "tanh", "annealed": "plu", "smooth": "plu_learned"}
    colour: str = look(names.get(method, "leaky_relu"))["color"]
    return colour
