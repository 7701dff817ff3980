"""Draw results/density/densities.png from results/density/flows.json: four toys, and densities that flows made of them.

python docs/toys_figure.py
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from figure_script import WIDTH, save_stored
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor
from torch.nn.utils import vector_to_parameters

from plunit.invertible import TOYS, Flow, density, toy

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
    """Draw a row for the data and for each method, and a column for each toy."""
    figure = Figure(figsize=(WIDTH, 1.03 * (1 + len(stored)) + 0.25))
    panels: Any = figure.subplots(1 + len(stored), len(TOYS))
    generator = torch.Generator().manual_seed(0)
    for axes, name in zip(panels[0], TOYS, strict=True):
        dots = {"markersize": 1.2, "markeredgewidth": 0, "alpha": 0.8, "rasterized": True}
        axes.plot(*toy(name, POINTS, generator).numpy().T, "o", color="#777777", **dots)
        axes.set_title(name, fontsize=10)
    for row, name in zip(panels, ("data", *(TITLES[method] for method in stored)), strict=True):
        row[0].set_ylabel(name, fontsize=10, rotation=0, ha="right", va="center")
    for row, (method, flows) in zip(panels[1:], stored.items(), strict=True):
        for axes, flow in zip(row, restored(method, flows), strict=True):
            found = flow.log_prob(square()).exp().numpy()
            axes.imshow(found, origin="lower", extent=(-HALF, HALF) * 2, cmap="viridis", vmax=np.quantile(found, 0.995))
    for axes in panels.flat:
        axes.set(xlim=(-HALF, HALF), ylim=(-HALF, HALF), aspect="equal", xticks=[], yticks=[])
        axes.grid(visible=False)
    return figure


def save(path: Path) -> None:
    """Draw the stored flows in few colours."""
    save_stored(draw, STORED, path)
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


if __name__ == "__main__":
    save(RESULTS / "densities.png")
