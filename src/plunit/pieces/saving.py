"""Curves as CSV and JSON files: every number is written so that it reads back as the same bits."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np

from plunit.pieces.curve import Curve


def save_csv(curve: Curve, path: str | Path) -> None:
    """Write one row for each piece: low, high, then slope, intercept, f(low) and f(high) of every output."""
    names = [f"{part}_{i}" for i in range(curve.values.shape[1]) for part in ("slope", "intercept", "start", "end")]
    columns = np.stack([curve.slopes, curve.intercepts, curve.values[:-1], curve.values[1:]], axis=2)
    rows = np.column_stack([curve.knots[:-1], curve.knots[1:], columns.reshape(len(columns), -1)])
    with Path(path).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["low", "high", *names])
        writer.writerows(rows.tolist())


def load_csv(path: str | Path) -> Curve:
    """Read what `save_csv` wrote."""
    with Path(path).open(newline="") as file:
        header, *rows = csv.reader(file)
    if header[:3] != ["low", "high", "slope_0"]:
        raise ValueError(f"{path} is not a curve: it starts {header[:3]}, but save_csv writes low, high, slope_0, ...")
    table = np.array(rows, dtype=np.float64)
    parts = table[:, 2:].reshape(len(table), -1, 4)
    return Curve(
        np.append(table[:, 0], table[-1, 1]),
        np.concatenate([parts[:, :, 2], parts[-1:, :, 3]]),
        parts[:, :, 0],
    )


def save_json(curve: Curve, path: str | Path) -> None:
    """Write knots, slopes, intercepts and values, with the number of patterns and the tolerance."""
    names = ("knots", "slopes", "intercepts", "values", "tolerance")
    content = {name: getattr(curve, name).tolist() for name in names}
    Path(path).write_text(json.dumps({**content, "patterns": curve.patterns}, indent=1) + "\n")


def load_json(path: str | Path) -> Curve:
    """Read what `save_json` wrote."""
    content = json.loads(Path(path).read_text())
    missing = {"knots", "values", "slopes", "patterns", "tolerance"} - set(content)
    if missing:
        raise ValueError(f"{path} is not a curve: it lacks {', '.join(sorted(missing))}; save_json writes them")
    knots, values, slopes = content["knots"], content["values"], content["slopes"]
    return Curve(knots, values, slopes, content["patterns"], np.array(content["tolerance"]))
