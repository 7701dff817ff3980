"""Draw docs/plu.png: tanh, ReLU and PLU, and the median small network of each on a sine.

python docs/plu_figure.py                # draws it from results/fit/sine.json
python docs/plu_figure.py --store runs   # first stores the median networks of `plunit run sine` there
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from figure_script import WIDTH, run, save_stored
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
    figure = Figure(figsize=(WIDTH, 5.0))
    top, bottom = figure.subplots(2, 1)
    x = np.linspace(-3, 3, 601)
    for name, function in SHOWN.items():
        top.plot(x, function(x), **look(name), linewidth=2.2)
    top.set(xlim=(-3, 3), ylim=(-1.6, 1.6), title="three activations")
    top.legend(loc="upper left")
    x = np.linspace(-2 * np.pi, 2 * np.pi, 1001)
    bottom.plot(x, np.sin(x), color="0.82", linewidth=7, label="sine")
    for name, network in networks.items():
        y = forward(MLP((1, 3, 3, 1), name), np.asarray(network["theta"])[:, None], x[None])[0, :, 0]
        bottom.plot(x, y, **{**look(name), "label": f"{look(name)['label']}: {network['loss']:.2g}"}, linewidth=2.2)
    seeds = {network["seeds"] for network in networks.values()}
    bottom.set(xlim=(x[0], x[-1]), ylim=(-1.35, 2.3), yticks=[-1, 0, 1])
    bottom.set_title(f"a sine, and the median of {seeds.pop():,} networks, with its loss")
    bottom.set_xticks([-2 * np.pi, 0, 2 * np.pi], ["$-2\\pi$", "$0$", "$2\\pi$"])
    bottom.legend(loc="upper center", ncols=2)
    return figure


def save(path: Path) -> None:
    """Draw the stored networks."""
    save_stored(draw, STORED, path)


def store_medians(folder: Path) -> None:
    """Store the median networks of a folder of results."""
    STORED.write_text(json.dumps(median_networks(folder), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run(__doc__, save, DOCS / "plu.png", store_medians, type=Path, metavar="FOLDER", help="results with the sine")
