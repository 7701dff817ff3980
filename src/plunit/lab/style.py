"""One look for all figures: colours for colour-blind readers, one line style for each activation, sizes for print."""

from __future__ import annotations

import base64
import io
import re
import urllib.parse
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from plunit.base.files import shorten_name, write_atomically
from plunit.ensemble.nonlinearities import title_of
from plunit.lab.cell import Arrays

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
_LARGE = 90_000
_SAFE = " /:;,=()!@$*+[]{}|~?-_.'\n"  # what may stand in a quoted URL as it is


@dataclass(frozen=True)
class Picture:
    """A figure, its file name, its caption, and a description in words for readers who cannot see it."""

    name: str
    caption: str
    alt: str
    figure: Figure


def settings() -> Any:
    """Return the context in which figures are made."""
    return matplotlib.rc_context(SETTINGS)


label = title_of
"""Returns an activation's name as printed."""


def look(activation: str) -> dict[str, Any]:
    """Return the keywords of an activation's line."""
    return {
        "color": COLOURS.get(activation, "#000000"),
        "linestyle": LINES.get(activation, "-"),
        "label": label(activation),
    }


def draw_band(axes: Any, x: Any, values: Any, activation: str, **line: Any) -> None:
    """Draw the median over seeds, the last axis, and the band of 5 to 95 % of them."""
    low, middle, high = np.nanquantile(values, [0.05, 0.5, 0.95], axis=-1)
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
            found = np.quantile(np.nan_to_num(arrays[key], nan=np.inf), shares, method="inverted_cdf")
            axes.step(found, shares, where="post", **look(activation))
        axes.set(xscale="log", xlabel=noun, ylim=(0, 1))
    panels[0].set(ylabel="share of seeds at or below")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    best = listed({activation: float(np.nanmin(arrays[[*losses][-1]])) for activation, arrays in runs.items()})
    nouns = " and the ".join(losses.values())
    caption = f"{title}: the distribution of the {nouns} over seeds; further left is better. Best seeds: {best}."
    alt = f"Rising step curves of the share of seeds against the {nouns}, one for each of {names(runs)}."
    return Picture(name, caption, alt, figure)


def names(activations: Iterable[str]) -> str:
    """Print the names of activations, separated by commas."""
    return ", ".join(map(label, activations))


def seeds_of(runs: dict[str, Arrays], noun: str = "seed") -> str:
    """Return the largest number of seeds of any activation, with its noun.

    >>> seeds_of({"plu": {"seed": np.arange(1000)}}), seeds_of({"plu": {"seed": np.arange(1)}}, "split")
    ('1,000 seeds', '1 split')
    """
    count = max(int(arrays["seed"].size) for arrays in runs.values())
    return f"{count:,} {noun}{'s' if count != 1 else ''}"


def steps_of(runs: dict[str, Arrays]) -> int:
    """Return the largest number of training steps of any activation."""
    return max(int(arrays["steps"].max()) for arrays in runs.values())


def ranked(arrays: Arrays, by: str = "final_loss") -> Any:
    """Return the members from the least to the largest; NaN comes last."""
    return np.argsort(np.nan_to_num(arrays[by], nan=np.inf), kind="stable")


def median_loss(losses: Any) -> float:
    """Return the median; a loss that diverged is infinite."""
    return float(np.median(np.nan_to_num(losses, nan=np.inf)))


def medians(runs: dict[str, Arrays], key: str) -> dict[str, float]:
    """Return the median of a loss for each activation."""
    return {activation: median_loss(arrays[key]) for activation, arrays in runs.items()}


def lowest(runs: dict[str, Arrays], key: str) -> str:
    """Print the medians of a loss, and whose is the lowest: "ReLU 0.5, PLU 0.25; the lowest is PLU's"."""
    found = medians(runs, key)
    return f"{listed(found)}; the lowest is {label(min(found, key=lambda activation: found[activation]))}'s"


def median_member(arrays: Arrays, by: str = "final_loss") -> int:
    """Return the member in the middle of the order; the lower one of two."""
    return int(ranked(arrays, by)[(arrays[by].size - 1) // 2])


def number(value: float) -> str:
    """Print a number to three digits.

    >>> number(0.000123), number(41.96), number(0.0), number(12345.6)
    ('1.23e-04', '42', '0', '1.23e+04')
    """
    return f"{value:.3g}" if value == 0 or 0.001 <= abs(value) < 10000 else f"{value:.2e}"


def listed(values: dict[str, float]) -> str:
    """Print values by activation: "ReLU 0.5, PLU 0.25"."""
    return ", ".join(f"{label(activation)} {number(value)}" for activation, value in values.items())


def save(picture: Picture, folder: Path) -> str:
    """Write the figure as PNG and SVG, the same bytes each time; return the SVG, or a WebP if it is large, as a URL."""
    if engine := picture.figure.get_layout_engine():  # find the places of axes and legends once, not for every file
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
