"""Heat maps of the median final loss over alpha and c."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from plunit.lab.results import Results
from plunit.lab.shape.claims import table
from plunit.lab.shape.spec import SPECS, TITLES
from plunit.lab.style import Picture


def figures(results: Results) -> Iterator[Picture]:
    """Draw the maps that were run."""
    for name in results.names():
        if name in SPECS and results.has(name, "plu"):
            yield _map(name, results)


def _map(name: str, results: Results) -> Picture:
    spec = SPECS[name]
    losses = table(spec, results[name, "plu"])
    medians = np.median(losses, axis=-1)
    figure = Figure(figsize=(6.2, 5))
    axes = figure.subplots()
    image = axes.imshow(medians, origin="lower", norm=LogNorm(), cmap="cividis", aspect="auto")
    chosen = spec.alphas.index(spec.fit.alpha), spec.cs.index(spec.fit.c)
    best = np.unravel_index(np.argmin(medians), medians.shape)
    axes.plot(
        chosen[1], chosen[0], "*", color="white", markeredgecolor="black", markersize=15, label="the paper's choice"
    )
    axes.plot(
        best[1], best[0], "o", color="none", markeredgecolor="white", markeredgewidth=2, markersize=12, label="lowest"
    )
    axes.set_xticks(range(len(spec.cs)), [f"{c:g}" for c in spec.cs])
    axes.set_yticks(range(len(spec.alphas)), [f"{alpha:g}" for alpha in spec.alphas])
    axes.set(xlabel="c", ylabel="alpha")
    axes.grid(False)
    figure.colorbar(image, label="median final loss")
    handles, labels = axes.get_legend_handles_labels()
    legend = figure.legend(handles, labels, loc="outside lower center", ncols=2, facecolor="#808080", frameon=True)
    legend.get_frame().set_edgecolor("none")
    caption = f"{TITLES[name]}: median final loss over {losses.shape[-1]} seeds at each point."
    return Picture(name, name, caption, figure)
