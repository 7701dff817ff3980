"""Draw docs/swirl.png: a grid mapped by the swirl and by networks that learned it, and by the inverses.

python docs/swirl_figure.py           # draws it from results/warp/networks.json
python docs/swirl_figure.py --store   # first trains the networks of `plunit run warp`, and stores the median ones
"""

import json
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import figure_script
import numpy as np
import torch
from PIL import Image

from plunit.invertible import InvertibleNetwork, alternating
from plunit.lab.cell import Arrays
from plunit.lab.read.warp import EXPERIMENTS
from plunit.lab.style import settings
from plunit.lab.summary import median_member
from plunit.lab.train import warp as run

DOCS = Path(__file__).parent
STORED = DOCS.parent / "results" / "warp" / "networks.json"
EXPERIMENT = EXPERIMENTS[0]


def median_network(activation: str) -> dict[str, Any]:
    """Train the networks of an activation as the experiment does, and return the one with the median error."""
    kept, measured = [], run.measured

    def keep(spec: Any, network: Any, seed: int) -> Arrays:
        kept.append(network)
        return measured(spec, network, seed)

    (cell,) = EXPERIMENT.cells([activation], EXPERIMENT.seeds, "")
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(run, "measured", keep):
        arrays = run.compute(cell, Path(folder) / "scratch")
    member = median_member(arrays, "inverse_error")
    state = {name: value.tolist() for name, value in kept[member].state_dict().items()}
    errors = np.sort(arrays["inverse_error"]).tolist()
    return {"steps": int(arrays["steps"][0]), "errors": errors, "seed": cell.seeds[member], "state": state}


def restored(activation: str, stored: dict[str, Any]) -> InvertibleNetwork:
    """Return a stored network."""
    make = alternating(run.CHOICES[activation], EXPERIMENT.spec.alpha, learnable=True)
    network = InvertibleNetwork(2, EXPERIMENT.spec.depth, activation=make)
    network.load_state_dict({name: torch.tensor(value) for name, value in stored["state"].items()})
    return network


def measured(activation: str, stored: dict[str, Any]) -> Arrays:
    """Return what the experiment draws of a stored network."""
    arrays = run.measured(EXPERIMENT.spec, restored(activation, stored), stored["seed"])
    one = {name: value[..., None] for name, value in arrays.items()}
    return one | {"seed": np.array([stored["seed"]]), "steps": np.array([stored["steps"]])}


def save(path: Path) -> None:
    """Draw the experiment's own figure of the stored networks, in few colours."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    with settings():
        (picture,) = EXPERIMENT.figures({name: measured(name, one) for name, one in stored.items()})
        picture.figure.savefig(path, dpi=120)
    few = Image.open(path).convert("RGB").quantize(64, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def store(_: bool) -> None:
    """Train the networks and store the median ones."""
    STORED.parent.mkdir(exist_ok=True)
    found = {activation: median_network(activation) for activation in EXPERIMENT.activations}
    STORED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    figure_script.run(__doc__, save, DOCS / "swirl.png", store, action="store_true", help="train the networks anew")
