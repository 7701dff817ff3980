"""Gradient norms over depth."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure

from plunit.lab.depth.spec import SPECS, TITLES
from plunit.lab.results import Results
from plunit.lab.style import Picture, look

_FLOOR = 1e-16


def figures(results: Results) -> Iterator[Picture]:
    """Draw the experiments that were run."""
    for name in results.names():
        if name in SPECS:
            yield _gradients(name, results)


def _gradients(name: str, results: Results) -> Picture:
    figure = Figure(figsize=(5.2, 3.4))
    axes = figure.subplots()
    depths = SPECS[name].depths
    for activation in results.activations(name):
        norms = np.maximum(results[name, activation]["gradient"], _FLOOR)
        low, middle, high = np.quantile(norms, [0.05, 0.5, 0.95], axis=1)
        style = look(activation)
        axes.fill_between(depths, low, high, color=style["color"], alpha=0.12, linewidth=0)
        axes.plot(depths, middle, marker="o", markersize=3, **style)
    axes.set(xscale="log", yscale="log", xlabel="depth (weight layers)", ylabel="|dL/dW1| at the start")
    axes.set_xticks(depths, [str(depth) for depth in depths])
    axes.minorticks_off()
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    caption = f"{TITLES[name]}: median and 5-95 % of {norms.shape[1]} seeds; zeros are drawn at {_FLOOR:g}."
    return Picture(name, name, caption, figure)
