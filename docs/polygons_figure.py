"""Draw docs/polygons.png: a formula of two variables, and the network of README.md with its polygons.

python docs/polygons_figure.py    # draws it from results/readme/f.onnx, which `python tools/readme.py --run` stores
"""

import json
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from plunit.expressions import parse, sup_error
from plunit.lab.pictures import SETTINGS
from plunit.pieces import Network, load, polygons
from plunit.pieces.rounding import rounded_up

DOCS = Path(__file__).parent
STORED = DOCS.parent / "results" / "readme"
BOX = ((-2.0, 2.0), (-2.0, 2.0))


def draw(formula: str, net: Network) -> Figure:
    """Return the figure."""
    figure = Figure(figsize=(8, 4.1), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    x, y = np.meshgrid(*(np.linspace(*ends, 301) for ends in BOX))
    points = np.column_stack([x.ravel(), y.ravel()])
    wanted, found = parse(formula)(x, y), net(points).reshape(x.shape)
    look = {"extent": (*BOX[0], *BOX[1]), "origin": "lower", "cmap": "RdBu_r", "vmin": -2.6, "vmax": 2.6}
    left.imshow(wanted, **look)
    left.set_title(formula, fontsize=9)
    image = right.imshow(found, **look)
    pieces = polygons(net, BOX)
    right.add_collection(PolyCollection(pieces.corners, facecolors="none", edgecolors="black", linewidths=0.35))
    bound = rounded_up(sup_error(parse(formula), net, list(BOX)).bound)
    right.set_title(
        f"the network: linear on each of {len(pieces)} polygons,\nerror at most {bound}, proved", fontsize=9
    )
    figure.colorbar(image, ax=[left, right], shrink=0.8).ax.tick_params(labelsize=8)
    left.set_ylabel("y", fontsize=8)
    for axes in (left, right):
        axes.set_xlabel("x", fontsize=8)
        axes.grid(visible=False)
        axes.tick_params(labelsize=8)
    return figure


def save(path: Path) -> None:
    """Draw the stored network."""
    formula = json.loads((STORED / "shell.json").read_text(encoding="utf-8"))["formula"]
    with matplotlib.rc_context(SETTINGS):
        draw(formula, load(STORED / "f.onnx")).savefig(path, dpi=140)


if __name__ == "__main__":
    save(DOCS / "polygons.png")
