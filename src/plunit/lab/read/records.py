"""Stored records of long runs, small enough for the package, and the curves they hold.

`python -m plunit.lab.read.records RUNS NAME` writes the finished run of the folder RUNS to lab/records/NAME.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from plunit.base.files import write_atomically, write_csv
from plunit.lab import plan, store
from plunit.lab.cell import Arrays
from plunit.lab.claims import Column

FOLDER = Path(__file__).parents[1] / "records"
WINDOW = 50


@dataclasses.dataclass(frozen=True)
class LossCurves:
    """What is kept of the runs of one activation, seeds on the last axis.

    Attributes:
        window: steps in a window.
        loss: mean training loss of each window [windows, seeds].
        test_step: steps after which the test set was evaluated [tests].
        test_loss: mean cross-entropy then [tests, seeds].
        test_accuracy: share of right answers then [tests, seeds].
    """

    window: int
    loss: Column
    test_step: Column
    test_loss: Column
    test_accuracy: Column

    @property
    def steps(self) -> int:
        """Number of steps in all windows."""
        return self.window * len(self.loss)

    @property
    def seeds(self) -> int:
        """Number of seeds."""
        return int(self.loss.shape[1])

    def at(self, step: int) -> Column:
        """Return the mean loss of the window that ends at a step [seeds]."""
        loss: Column = self.loss[step // self.window - 1]
        return loss

    def area(self, step: int) -> Column:
        """Return the mean loss of all steps up to one: the area under the curve, divided by its length [seeds]."""
        area: Column = np.mean(self.loss[: step // self.window], axis=0)
        return area

    def smoothed(self, steps: int) -> Column:
        """Return the mean loss of each `steps` steps [groups, seeds]; an incomplete last group is left out."""
        width = max(steps // self.window, 1)
        count = len(self.loss) // width
        loss: Column = self.loss[: count * width].reshape(count, width, -1).mean(1)
        return loss


Curves = dict[str, LossCurves]


def curve(arrays: Arrays, window: int = WINDOW) -> LossCurves:
    """Reduce the arrays of `compute` to a curve; steps beyond the last whole window are left out."""
    window = min(window, len(arrays["loss"]))
    count = len(arrays["loss"]) // window
    loss = arrays["loss"][: count * window].astype(np.float64).reshape(count, window, -1).mean(1)
    return LossCurves(window, loss, arrays["test_step"][:, 0], arrays["test_loss"], arrays["test_accuracy"])


def write(folder: Path, curves: Curves, about: dict[str, Any]) -> None:
    """Write a record: record.json, which says what was run, losses.csv and tests.csv."""
    losses, tests = [], []
    for activation, found in curves.items():
        for seed in range(found.seeds):
            first = {"activation": activation, "seed": seed}
            for i, loss in enumerate(found.loss[:, seed], 1):
                losses.append(first | {"step": i * found.window, "loss": f"{loss:.5f}"})
            columns = found.test_step, found.test_loss[:, seed], found.test_accuracy[:, seed]
            for step, loss, accuracy in zip(*columns, strict=True):
                tests.append(first | {"step": step, "loss": f"{loss:.6f}", "accuracy": f"{accuracy:.4f}"})
    seeds = {activation: found.seeds for activation, found in curves.items()}
    about = {**about, "window": next(iter(curves.values())).window, "seeds": seeds}
    write_csv(folder / "losses.csv", ("activation", "seed", "step", "loss"), losses)
    write_csv(folder / "tests.csv", ("activation", "seed", "step", "loss", "accuracy"), tests)
    write_atomically(folder / "record.json", (json.dumps(about, indent=2) + "\n").encode())


def read(name: str, folder: Path = FOLDER) -> Curves:
    """Return the curves of a stored record by activation; {} if there is no such record."""
    place, curves = folder / name, {}
    if not (place / "record.json").exists():
        return {}
    about = json.loads((place / "record.json").read_text())
    losses, tests = (
        list(csv.DictReader((place / file).read_text().splitlines())) for file in ("losses.csv", "tests.csv")
    )

    def column(rows: list[dict[str, str]], key: str, activation: str, seeds: int) -> Column:
        return np.array([float(row[key]) for row in rows if row["activation"] == activation]).reshape(seeds, -1).T

    for one in about["seeds"].items():
        step = column(tests, "step", *one)[:, 0].astype(int)
        kept = column(losses, "loss", *one), step, column(tests, "loss", *one), column(tests, "accuracy", *one)
        curves[one[0]] = LossCurves(about["window"], *kept)
    return curves


def main(runs: Path, name: str) -> None:
    """Write the run of a folder of results as a record of the package."""
    part = plan.load(runs)["cifar10"]
    found = store.collect(runs, {"cifar10": part}, {}, print)["cifar10"]
    about = {"spec": dataclasses.asdict(part.experiment().spec), "command": part.command()}
    write(FOLDER / name, {activation: curve(arrays) for activation, arrays in found.items()}, about)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
