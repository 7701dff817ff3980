"""Keep a long run of CIFAR-10 as a record of the package: `python tools/record.py RUNS NAME`.

It writes the finished run of the folder RUNS to src/plunit/lab/records/NAME.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from plunit.base.files import write_atomically, write_csv
from plunit.lab import plan, store
from plunit.lab.read.cifar10_curves import RECORDS, Curves, curve


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


def main(runs: Path, name: str) -> None:
    """Write the run of a folder of results as a record."""
    part = plan.load(runs)["cifar10"]
    found = store.collect(runs, {"cifar10": part}, {}, print)["cifar10"]
    about = {"spec": dataclasses.asdict(part.experiment().spec), "command": part.command()}
    write(RECORDS / name, {activation: curve(arrays) for activation, arrays in found.items()}, about)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
