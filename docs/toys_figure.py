"""Draw results/density/densities.png from results/density/flows.json: four toys, and densities that flows made of them.

python docs/toys_figure.py
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor
from torch.nn.utils import vector_to_parameters

from plunit.invertible import TOYS, Flow, density, toy
from plunit.lab.pictures import settings

RESULTS = Path(__file__).parents[1] / "results" / "density"
STORED = RESULTS / "flows.json"
TITLES = {
    "plain": "PLU,\nplain autograd",
    "flux": "PLU,\nboundary term",
    "annealed": "PLU,\nannealed",
    "smooth": "SmoothPLU",
    "leaky": "LeakyReLU,\nboundary term",
}
BLOCKS, HALF, CELLS, POINTS = 12, 2.6, 96, 1000
"""Blocks of a flow, half the side of the drawn square, points of a density along a side, and points of each toy."""


def restored(method: str, stored: list[list[float]]) -> list[Flow]:
    """Return stored flows, one for each toy."""
    kind = "flux" if method == "annealed" else method  # what annealing ends with
    seeds = (torch.Generator().manual_seed(0) for _ in stored)  # of the permutations, which are not parameters
    flows = [Flow(density(2, BLOCKS, activation=kind, generator=seed)) for seed in seeds]
    for flow, values in zip(flows, stored, strict=True):
        vector_to_parameters(torch.tensor(values), flow.parameters())
    return flows


def square() -> Tensor:
    """Return the points of the drawn square [cells, cells, 2], rows upwards."""
    side = torch.linspace(-HALF, HALF, CELLS)
    y, x = torch.meshgrid(side, side, indexing="ij")
    return torch.stack([x, y], -1)


@torch.no_grad()
def draw(stored: dict[str, list[list[float]]]) -> Figure:
    """Draw a row for each toy: its points, then the density of each method."""
    figure = Figure(figsize=(1.5 * (1 + len(stored)), 1.55 * len(TOYS) + 0.3))
    panels: Any = figure.subplots(len(TOYS), 1 + len(stored), squeeze=False)
    generator = torch.Generator().manual_seed(0)
    for axes, name in zip(panels[:, 0], TOYS, strict=True):
        dots = {"markersize": 1.0, "markeredgewidth": 0, "alpha": 0.8, "rasterized": True}
        axes.plot(*toy(name, POINTS, generator).numpy().T, "o", color="#777777", **dots)
        axes.set_ylabel(name)
    panels[0, 0].set_title("data", fontsize=8)
    for column, (method, flows) in zip(panels.T[1:], stored.items(), strict=True):
        column[0].set_title(TITLES[method], fontsize=8)
        for axes, flow in zip(column, restored(method, flows), strict=True):
            found = flow.log_prob(square()).exp().numpy()
            axes.imshow(found, origin="lower", extent=(-HALF, HALF) * 2, cmap="viridis", vmax=np.quantile(found, 0.995))
    for axes in panels.flat:
        axes.set(xlim=(-HALF, HALF), ylim=(-HALF, HALF), aspect="equal", xticks=[], yticks=[])
        axes.grid(visible=False)
    return figure


def save(path: Path) -> None:
    """Draw the stored flows in few colours."""
    with settings():
        draw(json.loads(STORED.read_text(encoding="utf-8"))).savefig(path, dpi=128)
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


if __name__ == "__main__":
    save(RESULTS / "densities.png")
