"""Draw results/cifar10/curves.png: training loss and test accuracy of the stored records.

Run: python docs/cifar10_figure.py
"""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from plunit.lab.read.cifar10_curves import draw, keep_common_seeds, read
from plunit.lab.style import settings

PICTURE = Path(__file__).parents[1] / "results" / "cifar10" / "curves.png"
RECORDS = ("seeds", "full")


def save(path: Path) -> None:
    """Draw a column for each record."""
    with settings():
        figure = Figure(figsize=(8.8, 5.4))
        grid: Any = figure.subplots(2, len(RECORDS), sharex="col")
        for name, (top, bottom) in zip(RECORDS, grid.T, strict=True):
            curves = keep_common_seeds(read(name)[1])
            draw(curves, top, bottom)
            one = next(iter(curves.values()))
            top.set_title(f"{one.steps:,} steps, {one.seeds} seed{'s' if one.seeds > 1 else ''}")
        figure.legend(*grid[0, -1].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        figure.savefig(path, dpi=120)


if __name__ == "__main__":
    save(PICTURE)
