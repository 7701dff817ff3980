"""One look for all figures: colours for colour-blind readers, one line style for each activation, sizes for print."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

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
"""After Okabe and Ito; told apart with any common colour blindness."""

LINES = {"tanh": (0, (5, 2)), "relu": (0, (1, 1)), "plu": "-", "plu_learned": (0, (4, 1, 1, 1))}
LABELS = {"relu": "ReLU", "plu": "PLU", "plu_learned": "PLU, learned", "leaky_relu": "leaky ReLU", "gelu": "GELU"}

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


@dataclass(frozen=True)
class Picture:
    """A figure, the experiment it belongs to ("" for none), its file name and its caption."""

    experiment: str
    name: str
    caption: str
    figure: Figure


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


def label(activation: str) -> str:
    """Return an activation's name as printed."""
    return LABELS.get(activation, activation)


def save(picture: Picture, folder: Path) -> None:
    """Write the figure as PNG and as SVG; the same figure gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    place(picture.figure)
    picture.figure.savefig(folder / f"{picture.name}.png", metadata={"Software": None})
    picture.figure.savefig(folder / f"{picture.name}.svg", metadata={"Date": None})


def place(figure: Figure) -> None:
    """Find the places of axes and legends once, rather than for every file."""
    if engine := figure.get_layout_engine():
        engine.execute(figure)
        figure.set_layout_engine("none")


def data_url(picture: Picture, folder: Path) -> str:
    """Return the saved PNG inside a URL, for a page without other files."""
    return "data:image/png;base64," + base64.b64encode((folder / f"{picture.name}.png").read_bytes()).decode()
