"""Figures: one look for all, the numbers in their captions, and how they are saved.

Panels stand one below the other, so that a figure is legible on a phone.
"""

from __future__ import annotations

import base64
import io
import re
import urllib.parse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from plunit.base.files import shorten_name, write_atomically
from plunit.ensemble.nonlinearities import title_of
from plunit.lab.cell import Arrays
from plunit.lab.intervals import Column, worst_if_diverged

__all__ = ["COLOURS", "Picture"]

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

LINES = {"tanh": (0, (5, 2)), "relu": (0, (1, 1)), "plu": "-", "plu_learned": (0, (4, 1, 1, 1))}

SETTINGS: dict[Any, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "figure.constrained_layout.use": True,
    "figure.dpi": 160,
    "font.size": 11,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "savefig.facecolor": "white",
    "svg.fonttype": "none",
    "svg.hashsalt": "plunit",
}
FIGURE_WIDTH = 4.8
"""Inches of a panel: on a phone 390 pixels wide, its letters are 11 pixels high."""

_DARK = (
    "<style>text{font-family:'DejaVu Sans',Verdana,sans-serif}@media (prefers-color-scheme:dark){"
    "text{fill:#e6e9ed!important}"
    "[style*='fill: #ffffff']{fill:#1d232a!important}"
    "[style*='stroke: #000000']{stroke:#e6e9ed!important}"
    "[style*='stroke: #b0b0b0']{stroke:#7d8894!important}"
    "use[style*='fill: #000000'],path[style*='fill: #000000']{fill:#e6e9ed!important}}</style>"
)
"""Paper, ink and grid of a figure for readers with a dark screen; data keep their colours."""

_PATH = re.compile(r' d="[^"]*"')
_DIGITS = re.compile(r"(\d\.\d\d)\d+")  # a hundredth of a point is more than a screen can show
_LARGE = 90_000  # bytes of an SVG beyond which the report shows a WebP instead
_SAFE = " /:;,=()!@$*+[]{}|~?-_.'\n"  # characters that need no quoting in a URL


@dataclass(frozen=True)
class Picture:
    """A figure, its file name, its caption, and a description in words for readers who cannot see it."""

    name: str
    caption: str
    alt: str
    figure: Figure


def save(picture: Picture, folder: Path) -> str:
    """Write the figure as PNG and SVG, the same bytes each time; return the SVG, or a WebP if it is large, as a URL."""
    if engine := picture.figure.get_layout_engine():  # place axes and legends once, not for every file
        engine.execute(picture.figure)
        picture.figure.set_layout_engine("none")
    png, svg = io.BytesIO(), io.StringIO()
    picture.figure.savefig(png, format="png", metadata={"Software": None})
    picture.figure.savefig(svg, format="svg", metadata={"Date": None})
    head, defs, rest = svg.getvalue().partition("<defs>")
    text = (head + _DARK + defs + _PATH.sub(lambda path: _DIGITS.sub(r"\1", path[0]), rest)).encode()
    for kind, content in (("png", png.getvalue()), ("svg", text)):
        write_atomically(folder / f"{shorten_name(picture.name)}.{kind}", content)
    if len(text) <= _LARGE:
        return "data:image/svg+xml," + urllib.parse.quote(text, safe=_SAFE)
    webp = io.BytesIO()
    Image.open(png).convert("RGB").save(webp, "webp", quality=80, method=6)
    return "data:image/webp;base64," + base64.b64encode(webp.getvalue()).decode()


def look(activation: str) -> dict[str, Any]:
    """Return the keywords of an activation's line."""
    return {
        "color": COLOURS.get(activation, "#000000"),
        "linestyle": LINES.get(activation, "-"),
        "label": title_of(activation),
    }


def settings() -> Any:
    """Return the context in which figures are drawn."""
    return matplotlib.rc_context(SETTINGS)


def subplots(
    rows: int, columns: int = 1, height: float = 3.0, width: float = FIGURE_WIDTH, **options: Any
) -> tuple[Any, Any]:
    """Return a figure and its axes [rows, columns]."""
    figure = Figure(figsize=(width * columns, height * rows))
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def add_legend(figure: Figure, axes: Any, columns: int = 3) -> None:
    """Put the legend of the axes below the figure."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=columns)


def label_ticks(axis: Any, values: Sequence[Any], labels: Iterable[Any]) -> None:
    """Put ticks at these values of a logarithmic axis only."""
    axis.set_ticks(values, [str(label) for label in labels])
    axis.set_tick_params(which="minor", length=0)
    axis.set_minor_formatter("")


def draw_band(axes: Any, x: Any, values: Any, activation: str, **line: Any) -> None:
    """Draw the median over seeds, the last axis, and the band of 5 to 95 % of them."""
    values = worst_if_diverged(values)
    middle = np.median(values, axis=-1)
    low, high = np.quantile(values, [0.05, 0.95], axis=-1, method="nearest")
    style = {**look(activation), **line}
    axes.fill_between(x, low, high, color=style["color"], alpha=0.12, linewidth=0)
    axes.plot(x, middle, **style)


class LinePanel(NamedTuple):
    """Lines over x: the values [x, seeds] of each activation, keywords of `axes.set`, and ticks with their labels."""

    x: Sequence[Any]
    values: dict[str, Column]
    axes: dict[str, Any]
    ticks: Sequence[Any] = ()


def draw_lines(name: str, caption: str, alt: str, *panels: LinePanel, **options: Any) -> Picture:
    """Draw panels one below the other: medians over seeds, and the band of 5 to 95 % of them."""
    figure, grid = subplots(len(panels), **options)
    for axes, panel in zip(grid[:, 0], panels, strict=True):
        marks = {"marker": "o", "markersize": 4} if len(panel.x) < 20 else {}
        for activation, values in panel.values.items():
            draw_band(axes, panel.x, values, activation, **marks)
        axes.set(**{"yscale": "log", **panel.axes})
        if panel.ticks:
            label_ticks(axes.xaxis, panel.x, panel.ticks)
    add_legend(figure, grid[0, 0])
    return Picture(name, caption, alt, figure)


def draw_distribution(name: str, title: str, runs: dict[str, Arrays], losses: dict[str, str]) -> Picture:
    """Draw the fraction of seeds at or below each loss; `losses` names the arrays, a panel for each, in words."""
    figure, panels = subplots(len(losses), sharex=True)
    for axes, (key, noun) in zip(panels[:, 0], losses.items(), strict=True):
        for activation, arrays in runs.items():
            shares = np.linspace(0, 1, min(arrays[key].size, 200) + 1)
            found = np.quantile(worst_if_diverged(arrays[key]), shares, method="inverted_cdf")
            axes.step(found, shares, where="post", **look(activation))
        axes.set(xscale="log", xlabel=noun, ylim=(0, 1), ylabel="fraction of seeds")
    add_legend(figure, panels[0, 0])
    last = [*losses][-1]
    best = list_values({name: float(worst_if_diverged(arrays[last]).min()) for name, arrays in runs.items()})
    nouns = " and the ".join(losses.values())
    caption = f"{title}: fraction of seeds at or below the {nouns}; further left is better. Best seeds: {best}."
    alt = f"Rising step curves of the fraction of seeds against the {nouns}, one for each of {list_names(runs)}."
    return Picture(name, caption, alt, figure)


def list_names(activations: Iterable[str]) -> str:
    """Return the names of activations, separated by commas."""
    return ", ".join(map(title_of, activations))


def count_seeds(runs: dict[str, Arrays], noun: str = "seed") -> str:
    """Return the largest number of seeds of any activation, with its noun.

    >>> count_seeds({"plu": {"seed": np.arange(1000)}}), count_seeds({"plu": {"seed": np.arange(1)}}, "split")
    ('1,000 seeds', '1 split')
    """
    count = max(int(arrays["seed"].size) for arrays in runs.values())
    return f"{count:,} {noun}{'s' if count != 1 else ''}"


def number(value: float) -> str:
    """Return a number to three digits.

    >>> number(0.000123), number(41.96), number(0.0), number(12345.6)
    ('1.23e-04', '42', '0', '1.23e+04')
    """
    return f"{value:.3g}" if value == 0 or 0.001 <= abs(value) < 10000 else f"{value:.2e}"


def list_values(values: dict[str, float]) -> str:
    """Return values by activation: "ReLU 0.5, PLU 0.25"."""
    return ", ".join(f"{title_of(activation)} {number(value)}" for activation, value in values.items())


def medians(runs: dict[str, Arrays], key: str) -> dict[str, float]:
    """Return the median of a loss for each activation."""
    return {activation: float(np.median(worst_if_diverged(arrays[key]))) for activation, arrays in runs.items()}


def list_medians(runs: dict[str, Arrays], key: str) -> str:
    """Return the medians of a loss, and whose is the lowest: "ReLU 0.5, PLU 0.25; the lowest is PLU's"."""
    found = medians(runs, key)
    return f"{list_values(found)}; the lowest is {title_of(min(found, key=lambda activation: found[activation]))}'s"


def rank(arrays: Arrays, by: str = "final_loss") -> Any:
    """Return the members from the lowest loss to the highest; those that diverged come last."""
    return np.argsort(worst_if_diverged(arrays[by]), kind="stable")


def median_member(arrays: Arrays, by: str = "final_loss") -> int:
    """Return the member in the middle of the order; the lower one of two."""
    return int(rank(arrays, by)[(arrays[by].size - 1) // 2])
