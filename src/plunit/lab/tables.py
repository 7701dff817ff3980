"""Results for other programs: summary.csv, claims.csv, timings.csv and histories.npz; docs/results.md explains them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from plunit.files import write_atomically, write_csv
from plunit.lab.claims import Claim
from plunit.lab.experiment import Experiment, Results
from plunit.lab.paper import STATEMENTS

COLUMNS = ("experiment", "activation", "seed", "alpha", "c", "depth", "final_loss", "dead_units", "gradient_norm")
"""The first columns of summary.csv; experiments may add more."""

CLAIM_COLUMNS = (
    *("experiment", "source", "statement", "primary", "setting", "sentence", "statistic"),
    *("n", "value", "low", "high", "claimed", "weaker", "verdict"),
)


def write_tables(folder: Path, experiments: dict[str, Experiment], results: Results, claims: list[Claim]) -> None:
    """Write all tables of a folder; the same results give the same bytes, except in timings.csv."""
    rows = [row for name, runs in results.items() for row in experiments[name].rows(runs)]
    names = dict.fromkeys([*COLUMNS, *(column for row in rows for column in row)])
    write_csv(folder / "summary.csv", tuple(names), rows)
    write_csv(folder / "claims.csv", CLAIM_COLUMNS, map(_claim, claims))
    write_csv(folder / "timings.csv", ("experiment", "activation", "seed", "seconds"), _timings(results))
    _write_histories(folder / "histories.npz", results)


def _claim(claim: Claim) -> dict[str, Any]:
    source = STATEMENTS[claim.statement].section if claim.statement else "ours"
    ranges = {"claimed": str(claim.claimed), "weaker": str(claim.weaker)}
    return {**vars(claim), **ranges, "primary": claim.primary, "verdict": claim.verdict, "source": source}


def _timings(results: Results) -> list[dict[str, Any]]:
    return [
        {"experiment": name, "activation": activation, "seed": int(seed), "seconds": round(float(seconds), 3)}
        for name, runs in results.items()
        for activation, arrays in runs.items()
        if "seconds" in arrays
        for seed, seconds in zip(arrays["seed"], arrays["seconds"], strict=True)
    ]


def _write_histories(path: Path, results: Results) -> None:
    """Write, for each "experiment.activation", the losses [recorded steps, seeds]."""
    histories: dict[str, Any] = {
        f"{name}.{activation}": arrays["history"]
        for name, runs in results.items()
        for activation, arrays in runs.items()
        if "history" in arrays
    }
    buffer = io.BytesIO()
    np.savez(buffer, **histories)
    write_atomically(path, buffer.getvalue())
