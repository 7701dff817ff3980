"""Draw results/cifar10/curves.png: training loss and test accuracy of the stored records.

Run: python docs/cifar10_figure.py
"""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from plunit.lab.read.cifar10_curves import draw, read
from plunit.lab.style import settings

PICTURE = Path(__file__).parents[1] / "results" / "cifar10" / "curves.png"
RECORDS = {"seeds": "20,000 steps, 5 seeds", "full": "100,000 steps, 1 seed"}


def save(path: Path) -> None:
    """Draw a column for each record."""
    with settings():
        figure = Figure(figsize=(8.8, 5.4))
        grid: Any = figure.subplots(2, len(RECORDS), sharex="col")
        for (name, title), (top, bottom) in zip(RECORDS.items(), grid.T, strict=True):
            draw(read(name), top, bottom)
            top.set_title(title)
        figure.legend(*grid[0, -1].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        figure.savefig(path, dpi=120)


if __name__ == "__main__":
    save(PICTURE)
