"""Store runs of CIFAR-10 as a record of the package: `python tools/record.py RUNS NAME`.

Every finished cell of the folder RUNS is added to src/plunit/lab/records/NAME; a run of the same activation and seed is
replaced. Runs with another spec than the record's are refused. `--tree FOLDER` names the repository that made the
cells, if it is not this one. Its commit and the versions of libraries are stored with each run if both have the program
hash of the cell. The claims of results/fit/claims.csv that are judged on records are then judged again. Afterwards
`python tools/readme.py` and `python docs/cifar10_figure.py` bring the pages and the figure up to date.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import subprocess
from pathlib import Path
from typing import Any

from plunit.base.errors import UserError
from plunit.base.files import write_atomically, write_csv
from plunit.base.machine import describe_machine
from plunit.lab import store
from plunit.lab.cell import digest
from plunit.lab.claims import judge
from plunit.lab.experiment import catalogue
from plunit.lab.read.cifar10 import RECORDS, Curves, check_spec, curve, join, read
from plunit.lab.report import CLAIM_COLUMNS, claim_row

ROOT = Path(__file__).parents[1]
CLAIMS = ROOT / "results" / "fit" / "claims.csv"
VERSIONS = ("processor", "python", "numpy", "torch")


def write(folder: Path, curves: Curves, about: dict[str, Any]) -> None:
    """Write a record: losses.csv, tests.csv and, last, record.json, which says what was run."""
    losses, tests = [], []
    for activation, found in curves.items():
        for i, seed in enumerate(found.seed):
            first = {"activation": activation, "seed": int(seed)}
            for window, loss in enumerate(found.loss[:, i], 1):
                losses.append(first | {"step": window * found.window, "loss": f"{loss:.5f}"})
            columns = found.test_step, found.test_loss[:, i], found.test_accuracy[:, i]
            for step, loss, accuracy in zip(*columns, strict=True):
                tests.append(first | {"step": step, "loss": f"{loss:.6f}", "accuracy": f"{accuracy:.4f}"})
    about = {**about, "window": next(iter(curves.values())).window}
    write_csv(folder / "losses.csv", ("activation", "seed", "step", "loss"), losses)
    write_csv(folder / "tests.csv", ("activation", "seed", "step", "loss", "accuracy"), tests)
    write_atomically(folder / "record.json", (json.dumps(about, indent=1) + "\n").encode())


def add(runs: Path, name: str, tree: Path = ROOT, folder: Path = RECORDS) -> int:
    """Add the finished cells of a folder of results to a record; return how many there were."""
    about, curves = read(name, folder)
    stored = {(one["activation"], one["seed"]): one for one in about.get("runs", ())}
    source = describe_source(tree)
    found = {path: store.read_file(path) for path in sorted((runs / "cells").glob("cifar10-*.npz"))}
    cells = {path: one for path, one in found.items() if one[0]["experiment"] == "cifar10"}
    for path, (cell, arrays) in cells.items():
        about = about or {"spec": cell["spec"]}
        check_spec(str(path), cell["spec"], about["spec"])
        activation, program = cell["activation"], {"plunit": cell["plunit"], "program": cell["program"]}
        made = source if source["program"] == cell["program"] else {}
        curves[activation] = join(curves.get(activation), curve(arrays))
        for seed, seconds in zip(arrays["seed"].tolist(), arrays["seconds"].tolist(), strict=True):
            first = {"activation": activation, "seed": seed, "seconds": round(seconds, 1)}
            stored[activation, seed] = {**first, **program, **made}
    if cells:
        write(folder / name, curves, {**about, "runs": [stored[key] for key in sorted(stored)]})
    return len(cells)


def judge_again(path: Path = CLAIMS) -> None:
    """Write the rows of the claims that are judged on records again; the other rows stay."""
    name = "cifar10"
    one = dataclasses.replace(catalogue()[name])  # which has not read the records yet
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    first = [row["experiment"] for row in rows].index(name)
    others = [row for row in rows if row["experiment"] != name]
    ours = [claim_row(judged) for judged in judge({name: one}, {name: {}})]
    write_csv(path, CLAIM_COLUMNS, [*others[:first], *ours, *others[first:]])


def describe_source(tree: Path) -> dict[str, Any]:
    """Return the program hash that a tree has with the libraries installed here, its commit, and their versions.

    A cell with this hash was made by these sources and versions.
    """
    package = tree.resolve() / "src" / "plunit"
    command = ["git", "-C", str(tree), "describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    machine = describe_machine()
    program = digest(package / "lab" / "train" / "cifar10.py", package)
    return {"program": program, "commit": commit or "unknown", **{key: machine[key] for key in VERSIONS}}


def main() -> None:
    """Add the runs that the command line names."""
    parser = argparse.ArgumentParser(description="add the finished cells of a folder to a record of the package")
    parser.add_argument("runs", type=Path, help="folder of results")
    parser.add_argument("name", help="of the record")
    parser.add_argument("--tree", type=Path, default=ROOT, help="repository that made the runs")
    options = parser.parse_args()
    try:
        print(f"{add(options.runs, options.name, options.tree)} runs are in {RECORDS / options.name}")
        judge_again()
    except (UserError, store.Damaged) as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    main()
