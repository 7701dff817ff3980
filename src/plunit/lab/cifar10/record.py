"""The stored record of a full run: results/cifar10 of the repository."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import plunit
from plunit.lab.cifar10.curves import Curve, curve
from plunit.lab.results import Results
from plunit.lab.store import write_atomically

FOLDER = Path(plunit.__file__).parents[2] / "results" / "cifar10"
"""Where the record is in a clone of the repository; an installed package has none."""

_LOSSES, _TESTS = ("activation", "seed", "step", "loss"), ("activation", "seed", "step", "loss", "accuracy")


@dataclasses.dataclass(frozen=True)
class Record:
    """A finished run: its curves by activation, and what was run where, as plain values."""

    curves: dict[str, Curve]
    about: dict[str, Any]


def write(name: str, results: Results, spec: Any, machine: dict[str, str], folder: Path = FOLDER) -> None:
    """Write the record of an experiment's results: record.json, losses.csv and tests.csv."""
    curves = {activation: curve(results[name, activation]) for activation in results.activations(name)}
    losses = [
        (activation, seed, (i + 1) * found.window, f"{loss:.5f}")
        for activation, found in curves.items()
        for seed in range(found.loss.shape[1])
        for i, loss in enumerate(found.loss[:, seed])
    ]
    tests = [
        (activation, seed, step, f"{found.test_loss[i, seed]:.6f}", f"{found.test_accuracy[i, seed]:.4f}")
        for activation, found in curves.items()
        for seed in range(found.loss.shape[1])
        for i, step in enumerate(found.test_step)
    ]
    about = {
        "experiment": name,
        "spec": dataclasses.asdict(spec),
        "window": next(iter(curves.values())).window,
        "machine": machine,
        "seconds": {activation: found.seconds.round(1).tolist() for activation, found in curves.items()},
        "images_per_second": {
            activation: (spec.batch * spec.steps / found.seconds).round().tolist()
            for activation, found in curves.items()
        },
        "final": {
            activation: {
                "training_loss": found.loss[-1].round(5).tolist(),
                "test_loss": found.test_loss[-1].round(5).tolist(),
                "test_accuracy": found.test_accuracy[-1].tolist(),
            }
            for activation, found in curves.items()
        },
    }
    _write_csv(folder / "losses.csv", _LOSSES, losses)
    _write_csv(folder / "tests.csv", _TESTS, tests)
    write_atomically(folder / "record.json", (json.dumps(about, indent=2) + "\n").encode())


def read(name: str, folder: Path = FOLDER) -> Record | None:
    """Return the stored record of an experiment, None if there is none."""
    path = folder / "record.json"
    if not path.exists():
        return None
    about = json.loads(path.read_text())
    if about["experiment"] != name:
        return None
    losses, tests = (
        list(csv.DictReader((folder / file).read_text().splitlines())) for file in ("losses.csv", "tests.csv")
    )
    return Record({key: _curve(key, about, losses, tests) for key in about["final"]}, about)


def _curve(activation: str, about: dict[str, Any], losses: list[dict[str, str]], tests: list[dict[str, str]]) -> Curve:
    losses, tests = ([row for row in rows if row["activation"] == activation] for rows in (losses, tests))
    seeds = len(about["seconds"][activation])

    def column(rows: list[dict[str, str]], name: str) -> Any:
        return np.array([float(row[name]) for row in rows]).reshape(seeds, -1).T

    return Curve(
        about["window"],
        column(losses, "loss"),
        column(tests, "step")[:, 0].astype(int),
        column(tests, "loss"),
        column(tests, "accuracy"),
        np.array(about["seconds"][activation]),
    )


def _write_csv(path: Path, columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write_atomically(path, text.getvalue().encode())
