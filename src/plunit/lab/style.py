"""One look for all figures: colours for colour-blind readers, one line style for each activation, sizes for print."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from plunit.lab.cell import Arrays
from plunit.lab.intervals import worst_if_diverged
from plunit.lab.pictures import Picture
from plunit.lab.summary import label, listed, names

__all__ = ["COLOURS"]

COLOURS = {
    "tanh": "#0072B2",
    "relu": "#D55E00",
    "plu": "#009E73",
    "plu_learned": "#CC79A7",
    "identity": "#7F7F7F",
    "leaky_relu": "#E69F00",
    "hardtanh": "#56B4E9",
    "gelu": "#8C510A",
    "silu": "#332288",
    "elu": "#882255",
}
"""After Okabe and Ito; readers with any common colour blindness can distinguish them."""

MARKS = {"tanh": "s", "relu": "v", "plu": "o", "plu_learned": "D"}
LINES = {"tanh": (0, (5, 2)), "relu": (0, (1, 1)), "plu": "-", "plu_learned": (0, (4, 1, 1, 1))}

SETTINGS: dict[Any, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "figure.constrained_layout.use": True,
    "figure.dpi": 160,
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "savefig.facecolor": "white",
    "svg.fonttype": "none",
    "svg.hashsalt": "plunit",
}


def settings() -> Any:
    """Return the context in which figures are made."""
    return matplotlib.rc_context(SETTINGS)


def look(activation: str) -> dict[str, Any]:
    """Return the keywords of an activation's line."""
    return {
        "color": COLOURS.get(activation, "#000000"),
        "linestyle": LINES.get(activation, "-"),
        "label": label(activation),
    }


def draw_band(axes: Any, x: Any, values: Any, activation: str, **line: Any) -> None:
    """Draw the median over seeds, the last axis, and the band of 5 to 95 % of them."""
    values = worst_if_diverged(values)
    middle = np.median(values, axis=-1)
    low, high = np.quantile(values, [0.05, 0.95], axis=-1, method="nearest")
    style = {**look(activation), **line}
    axes.fill_between(x, low, high, color=style["color"], alpha=0.12, linewidth=0)
    axes.plot(x, middle, **style)


def distribution(name: str, title: str, runs: dict[str, Arrays], losses: dict[str, str]) -> Picture:
    """Draw the share of seeds at or below each loss, with a panel for each array of `losses` and what it is called."""
    figure = Figure(figsize=(5.2 if len(losses) == 1 else 7.4, 3.2))
    panels = figure.subplots(1, len(losses), squeeze=False, sharex=True, sharey=True)[0]
    for axes, (key, noun) in zip(panels, losses.items(), strict=True):
        for activation, arrays in runs.items():
            shares = np.linspace(0, 1, min(arrays[key].size, 200) + 1)
            found = np.quantile(worst_if_diverged(arrays[key]), shares, method="inverted_cdf")
            axes.step(found, shares, where="post", **look(activation))
        axes.set(xscale="log", xlabel=noun, ylim=(0, 1))
    panels[0].set(ylabel="share of seeds at or below")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    best = listed(
        {activation: float(worst_if_diverged(arrays[[*losses][-1]]).min()) for activation, arrays in runs.items()}
    )
    nouns = " and the ".join(losses.values())
    caption = f"{title}: the distribution of the {nouns} over seeds; further left is better. Best seeds: {best}."
    alt = f"Rising step curves of the share of seeds against the {nouns}, one for each of {names(runs)}."
    return Picture(name, caption, alt, figure)
