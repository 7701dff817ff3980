"""Draw docs/plu.png: PLU beside tanh and ReLU, and what small networks of each make of a sine.

python docs/plu_figure.py                # draws it from results/fit/sine.json
python docs/plu_figure.py --store runs   # first stores the median networks of `plunit run sine` there
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from figure_script import run, save_stored
from matplotlib.figure import Figure

from plunit import plu
from plunit.ensemble import MLP, forward
from plunit.lab import plan, store
from plunit.lab.pictures import look, median_member

DOCS = Path(__file__).parent
STORED = DOCS.parent / "results" / "fit" / "sine.json"
SHOWN = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, 0), "plu": plu}


def median_networks(folder: Path) -> dict[str, Any]:
    """Return the median network of each activation, of the sine in a folder of results."""
    cells = plan.load(folder)["sine"].cells()
    arrays = store.read_all(folder, cells, print)
    found = {}
    for name in SHOWN:
        seeds = store.join([arrays[cell] for cell in cells if cell.activation == name])
        member = median_member(seeds)
        found[name] = {
            "seeds": int(seeds["seed"].size),
            "seed": int(seeds["seed"][member]),
            "loss": float(seeds["final_loss"][member]),
            "theta": seeds["theta"][:, member].tolist(),
        }
    return found


def draw(networks: dict[str, Any]) -> Figure:
    """Return the figure."""
    figure = Figure(figsize=(9, 2.6), layout="constrained")
    first, *panels = figure.subplots(1, 4, width_ratios=[1.15, 1, 1, 1])
    x = np.linspace(-3, 3, 601)
    for name, function in SHOWN.items():
        first.plot(x, function(x), **look(name))
    first.set_title("activations", fontsize=9)
    first.set(ylim=(-1.6, 1.6))
    first.legend(fontsize=8, frameon=False)
    x = np.linspace(-2 * np.pi, 2 * np.pi, 1001)
    for axes, (name, network) in zip(panels, networks.items(), strict=True):
        theta = np.asarray(network["theta"])[:, None]
        axes.plot(x, np.sin(x), color="0.6", linewidth=1)
        axes.plot(x, forward(MLP((1, 3, 3, 1), name), theta, x[None])[0, :, 0], **look(name))
        axes.set(ylim=(-1.6, 1.6), yticks=[])
        axes.set_xticks([-2 * np.pi, 0, 2 * np.pi], ["-2\N{GREEK SMALL LETTER PI}", "0", "2\N{GREEK SMALL LETTER PI}"])
        axes.set_title(
            f"{look(name)['label']} fits a sine\nmedian of {network['seeds']:,}: loss {network['loss']:.2g}", fontsize=9
        )
    for axes in (first, *panels):
        axes.tick_params(labelsize=8)
    return figure


def save(path: Path) -> None:
    """Draw the stored networks."""
    save_stored(draw, STORED, path)


def store_medians(folder: Path) -> None:
    """Store the median networks of a folder of results."""
    STORED.write_text(json.dumps(median_networks(folder), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run(__doc__, save, DOCS / "plu.png", store_medians, type=Path, metavar="FOLDER", help="results with the sine")
