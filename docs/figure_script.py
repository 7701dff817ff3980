"""One style for the figures of the pages, and what their scripts share: draw stored results, after storing new ones."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib.figure import Figure

from plunit.lab.pictures import COLOURS, FIGURE_WIDTH, SETTINGS

STYLE = {
    **SETTINGS,
    "axes.prop_cycle": cycler(color=[COLOURS[name] for name in ("plu", "tanh", "relu", "plu_learned", "leaky_relu")]),
}
WIDTH = FIGURE_WIDTH


def save_figure(figure: Figure, path: Path) -> None:
    """Save a figure that was drawn within `style()`."""
    figure.savefig(path, dpi=160)


def style() -> Any:
    """Return the context in which figures are drawn."""
    return matplotlib.rc_context(STYLE)


def save_stored(draw: Callable[[Any], Figure], stored: Path, path: Path) -> None:
    """Draw the content of a JSON file."""
    with style():
        save_figure(draw(json.loads(stored.read_text(encoding="utf-8"))), path)


def run(
    about: str | None, save: Callable[[Path], None], picture: Path, store: Callable[..., None], **option: Any
) -> None:
    """Store, if --store was given, and draw."""
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--store", **option)
    if wanted := parser.parse_args().store:
        store(wanted)
    save(picture)
