"""Keep a finished run in the repository: `python -m plunit.lab.cifar10 RUNS` writes results/cifar10 from its folder."""

from __future__ import annotations

import sys
from pathlib import Path

from plunit.lab import experiments, plan, report, style
from plunit.lab.cifar10 import record
from plunit.lab.cifar10.figures import of_record


def main(folder: Path) -> None:
    """Write record and figure."""
    name = "cifar10"
    part = plan.load(folder)[name]
    results = plan.collect(folder, {name: part}, print)
    record.write(name, results, experiments.spec(name, part.steps), report.machine())
    draw()


def draw() -> None:
    """Draw the figure of the stored record anew."""
    stored = record.read("cifar10")
    if stored is None:
        raise SystemExit(f"there is no record in {record.FOLDER}")
    with style.settings():
        style.save(of_record(stored), record.FOLDER)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
