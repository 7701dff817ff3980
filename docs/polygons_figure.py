"""Draw docs/polygons.png: a network of two inputs as the flat polygons that it is made of.

python docs/polygons_figure.py            # draws it from results/readme/f.onnx
python docs/polygons_figure.py --store    # first fits the network, half a minute
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from figure_script import WIDTH, run, save_figure, style
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from plunit.expressions import parse, sup_error
from plunit.pieces import Network, load, polygons
from plunit.pieces.rounding import rounded_up

DOCS = Path(__file__).parent
STORED = DOCS.parent / "results" / "readme" / "f.onnx"
FORMULA = "sqrt(x**2 + y**2) * sin(3*x)"
LOW, HIGH = -2.0, 2.0


def draw(net: Network) -> Figure:
    """Return the figure: the colour of a polygon is the value at its middle, lit from above."""
    figure = Figure(figsize=(WIDTH, 4.7))
    axes = figure.subplots()
    box = [(LOW, HIGH)] * 2
    pieces = polygons(net, box)
    middles = np.array([corners.mean(0) for corners in pieces.corners])
    scale = ScalarMappable(Normalize(-2.8, 2.8), "RdYlBu_r")
    normals = np.column_stack([-pieces.gradients[:, 0], np.full(len(pieces), 5.0)])
    light = normals @ [-0.2, 0.8, 0.56] / np.linalg.norm(normals, axis=1)
    colours = np.clip(scale.to_rgba(net(middles)[:, 0])[:, :3] * (0.62 + 0.6 * light[:, None]), 0, 1)
    axes.add_collection(PolyCollection(pieces.corners, facecolors=colours, edgecolors="white", linewidths=0.5))
    bound = rounded_up(sup_error(parse(FORMULA), net, box).bound)
    axes.set_title(f"{FORMULA}\nas {len(pieces)} flat polygons, error at most {bound} (proved)", fontsize=10)
    axes.set(xlim=(LOW, HIGH), ylim=(LOW, HIGH), aspect="equal", xlabel="x", ylabel="y")
    axes.set(xticks=[-2, -1, 0, 1, 2], yticks=[-2, -1, 0, 1, 2])
    axes.grid(visible=False)
    figure.colorbar(scale, ax=axes, shrink=0.85, pad=0.02, ticks=[-2, 0, 2])
    return figure


def save(path: Path) -> None:
    """Draw the stored network."""
    with style():
        save_figure(draw(load(STORED)), path)


def store(_: bool) -> None:
    """Fit the network and store it."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--low", f"{LOW}", "--high", f"{HIGH}", "--save", str(STORED)]
        subprocess.run([sys.executable, "-m", "plunit.cli", "fit", FORMULA, *options], cwd=folder, check=True)


if __name__ == "__main__":
    run(__doc__, save, DOCS / "polygons.png", store, action="store_true", help="fit the network first")
