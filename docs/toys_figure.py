"""Draw results/density/densities.png: the four toys, and the densities that the flows of seed 0 made of them.

python docs/toys_figure.py           # draws it from results/density/flows.json
python docs/toys_figure.py --store   # first trains the flows of `plunit run density --seeds 1`, and stores them
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
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from plunit.invertible import Flow, density
from plunit.lab.read.density import EXPERIMENTS, METHODS
from plunit.lab.style import settings
from plunit.lab.train import density as run

RESULTS = Path(__file__).parents[1] / "results" / "density"
STORED = RESULTS / "flows.json"
EXPERIMENT = EXPERIMENTS[0]
SPEC = EXPERIMENT.spec


def trained(method: str) -> list[list[float]]:
    """Train a flow of seed 0 for each toy as the experiment does, and return their parameters."""
    flows: list[Flow] = []
    train = run.trained

    def keep(*arguments: Any) -> tuple[list[Flow], Any]:
        made, losses = train(*arguments)
        flows.extend(made)
        return made, losses

    (cell,) = EXPERIMENT.cells([method], 1, "")
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(run, "trained", keep):
        run.compute(cell, Path(folder) / "scratch")
    return [[float(f"{value:.7g}") for value in parameters_to_vector(flow.parameters()).tolist()] for flow in flows]


def restored(method: str, stored: list[list[float]]) -> list[Flow]:
    """Return stored flows, one for each toy."""
    kind = "flux" if method == "annealed" else method  # what annealing ends with
    flows = []
    for values in stored:
        flow = Flow(density(SPEC.features, SPEC.blocks, activation=kind, generator=torch.Generator().manual_seed(0)))
        vector_to_parameters(torch.tensor(values), flow.parameters())
        flows.append(flow)
    return flows


@torch.no_grad()
def log_density(flows: list[Flow]) -> Any:
    """Return the logarithms of densities on the drawn square [toys, cells, cells, 1]."""
    return torch.stack([flow.log_prob(run.square(SPEC)) for flow in flows])[..., None].numpy()


def save(path: Path) -> None:
    """Draw the experiment's own figure of the stored flows, in few colours."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    with settings():
        steps = np.array([SPEC.steps])  # of the caption, which the figure does not show
        pictures = {method: log_density(restored(method, flows)) for method, flows in stored.items()}
        runs = {method: {"log_density": values, "steps": steps} for method, values in pictures.items()}
        next(EXPERIMENT.figures(runs)).figure.savefig(path, dpi=128)
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def store(_: bool) -> None:
    """Train the flows and store them."""
    found = {method: trained(method) for method in METHODS if method != "gaussian"}
    lines = ",\n".join(f' "{method}": {json.dumps(flows)}' for method, flows in found.items())
    STORED.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    figure_script.run(__doc__, save, RESULTS / "densities.png", store, action="store_true", help="train the flows anew")
