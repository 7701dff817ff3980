"""Round-trip errors over depth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from plunit.lab.inverse.spec import SPECS, TITLES
from plunit.lab.results import Results
from plunit.lab.style import Picture, look

_CEILING = 1e3


def figures(results: Results) -> Iterator[Picture]:
    """Draw the experiments that were run."""
    for name in results.names():
        if name in SPECS:
            yield _round_trips(name, results)


def _round_trips(name: str, results: Results) -> Picture:
    spec = SPECS[name]
    figure = Figure(figsize=(7.6, 5.6))
    grid: Any = figure.subplots(len(spec.dtypes), len(spec.linears), squeeze=False, sharex=True, sharey="row")
    for (i, j), axes in np.ndenumerate(grid):
        for activation in results.activations(name):
            arrays = results[name, activation]
            error, bound = (np.median(arrays[key][j, i], axis=-1) for key in ("error", "bound"))
            if np.isnan(error).all():
                continue
            style = look(activation)
            axes.plot(spec.depths, np.minimum(error, _CEILING), marker="o", markersize=3, **style)
            if activation != "tanh":
                axes.plot(spec.depths, bound, color=style["color"], linewidth=0.9, linestyle=(0, (1, 2)))
        axes.set(xscale="log", yscale="log", title=f"{_LAYERS[spec.linears[j]]} layers, {spec.dtypes[i]}")
        axes.set_xticks(spec.depths, [str(depth) for depth in spec.depths])
        axes.minorticks_off()
    for axes in grid[-1]:
        axes.set_xlabel("depth (blocks)")
    for axes in grid[:, 0]:
        axes.set_ylabel("largest |F⁻¹(F(x)) - x|")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    seeds = len(results[name, results.activations(name)[0]]["seed"])
    caption = (
        f"{TITLES[name]}: median of {seeds} seeds, {spec.features} features. Dotted: the bound of the "
        f"certificate. Values at {_CEILING:g} stand for round trips that lose points: tanh rounds to +-1, where its "
        "inverse is infinite."
    )
    return Picture(name, name, caption, figure)


_LAYERS = {"lu": "LU", "orthogonal": "orthogonal"}
