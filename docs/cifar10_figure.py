"""Draw results/cifar10/curves.png: training loss and test accuracy of the stored records.

Run: python docs/cifar10_figure.py
"""

from pathlib import Path

from plunit.lab.experiment import catalogue
from plunit.lab.pictures import settings
from plunit.lab.read.cifar10 import Evidence, draw

PICTURE = Path(__file__).parents[1] / "results" / "cifar10" / "curves.png"
STEPS = (20_000, 100_000)


def save(path: Path) -> None:
    """Draw two panels for each number of steps."""
    one = catalogue()["cifar10"]
    with settings():
        known = ((step, found) for step in STEPS for found in one.evidence({}, one.activations, step))
        draw([Evidence(f"{step:,} steps", found.curves) for step, found in known]).savefig(path, dpi=120)


if __name__ == "__main__":
    save(PICTURE)
