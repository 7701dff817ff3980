"""Results for other programs: summary.csv, claims.csv and histories.npz."""

from __future__ import annotations

import csv
import dataclasses
import io
from pathlib import Path
from typing import Any

import numpy as np

from plunit.lab import experiments
from plunit.lab.claims import Claim
from plunit.lab.results import Results
from plunit.lab.store import write_atomically

COLUMNS = (
    "experiment",
    "activation",
    "seed",
    "alpha",
    "c",
    "depth",
    "final_loss",
    "dead_units",
    "gradient_norm",
)
"""The first columns of summary.csv; experiments may add more."""


def write_summary(folder: Path, results: Results) -> None:
    """Write summary.csv, one row for each trained network, blank where a column does not apply."""
    rows = [row for package in experiments.packages(results.names()) for row in package.rows(results)]
    _write_csv(folder / "summary.csv", tuple(dict.fromkeys([*COLUMNS, *(name for row in rows for name in row)])), rows)


def write_claims(folder: Path, claims: list[Claim]) -> None:
    """Write claims.csv, one row for each claim."""
    rows = [dataclasses.asdict(claim) | _verdict(claim) for claim in claims]
    names = [field.name for field in dataclasses.fields(Claim)]
    _write_csv(folder / "claims.csv", (*names, "verdict"), rows)


def write_histories(folder: Path, results: Results) -> None:
    """Write histories.npz: for each "experiment.activation" the losses [recorded steps, seeds]."""
    histories: dict[str, Any] = {
        f"{name}.{activation}": arrays["history"] for name, activation, arrays in results.items() if "history" in arrays
    }
    buffer = io.BytesIO()
    np.savez(buffer, **histories)
    write_atomically(folder / "histories.npz", buffer.getvalue())


def _verdict(claim: Claim) -> dict[str, Any]:
    return {"claimed": str(claim.claimed), "weaker": str(claim.weaker), "verdict": claim.verdict}


def _write_csv(path: Path, columns: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(path, text.getvalue().encode())
