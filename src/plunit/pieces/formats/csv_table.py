"""Checks for every reader of curves: a file that does not hold what it should is an error of one line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from plunit.base.files import save_whole
from plunit.pieces.arrays import Floats
from plunit.pieces.exact_curves import NEAR, Curve


@contextmanager
def reading(path: str | Path, writer: str, what: str = "a curve") -> Iterator[None]:
    """Turn any exception from a file's content into one line with the file and the function that writes such files."""
    try:
        yield
    except OSError:
        raise
    except RecursionError:
        raise ValueError(f"{path} is not {what}: it is nested too deeply; {writer} writes such files") from None
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} is not {what}: {reason}; {writer} writes such files") from None


def check_intercepts(curve: Curve, intercepts: Floats) -> None:
    """Raise ValueError if the intercepts in a file are not those of its slopes and values."""
    if intercepts.shape != curve.slopes.shape:
        raise ValueError(f"intercepts must have a number for each slope, got shape {intercepts.shape}")
    size = np.abs(curve.values[:-1]) + np.abs(curve.slopes * curve.knots[:-1, None])
    wrong = ~(np.abs(intercepts - curve.intercepts) <= NEAR * size)
    if wrong.any():
        i, output = (int(index[0]) for index in np.nonzero(wrong))
        raise ValueError(
            f"intercept {intercepts[i, output]} of piece {i} contradicts its slope and values, by which it is "
            f"{curve.intercepts[i, output]}"
        )


COLUMNS = ("slope", "intercept", "start", "end", "tolerance")
"""The columns of each output; start and end are f(low) and f(high)."""


def _header(outputs: int) -> list[str]:
    return ["low", "high", "patterns", *(f"{name}_{i}" for i in range(outputs) for name in COLUMNS)]


def save_csv(curve: Curve, path: str | Path) -> None:
    """Write one row for each piece: its ends, then slope, intercept, f(low), f(high) and tolerance of every output.

    The number of activation patterns is that of the whole curve, and stands in every row.
    """
    pieces = len(curve.slopes)
    parts = (curve.slopes, curve.intercepts, curve.values[:-1], curve.values[1:], curve.tolerance)
    columns = np.stack(parts, axis=2).reshape(pieces, -1).tolist()
    ends = zip(curve.knots[:-1].tolist(), curve.knots[1:].tolist(), strict=True)
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(_header(curve.values.shape[1]))
    writer.writerows([low, high, curve.patterns, *row] for (low, high), row in zip(ends, columns, strict=True))
    save_whole(path, text.getvalue())


def load_csv(path: str | Path) -> Curve:
    """Read what `save_csv` wrote; ValueError if the file is not a curve."""
    # a spreadsheet may put a byte-order mark first
    with reading(path, "save_csv"), Path(path).open(newline="", encoding="utf-8-sig") as file:
        table, patterns = _table(list(csv.reader(file)))
        parts = table[:, 2:].reshape(len(table), -1, len(COLUMNS)).transpose(2, 0, 1)
        slopes, intercepts, start, end, tolerance = parts
        _check_joined("high", "low", table[:, 1:2], table[:, 0:1])
        _check_joined("end", "start", end, start)
        knots = np.append(table[:, 0], table[-1, 1])
        curve = Curve(knots, np.concatenate([start, end[-1:]]), slopes, patterns, tolerance)
        check_intercepts(curve, intercepts)
        return curve


def _table(rows: list[list[str]]) -> tuple[Floats, int]:
    """Return the numbers of all columns but `patterns`, and the number that stands there."""
    header, *pieces = [row for row in rows if row] or [[]]
    outputs = (len(header) - 3) // len(COLUMNS)
    if outputs < 1 or header != _header(outputs):
        raise ValueError(f"it starts {','.join(header)[:60]!r}, not low,high,patterns,slope_0,...")
    if not pieces:
        raise ValueError("it has a header but no pieces")
    for i, row in enumerate(pieces):
        if len(row) != len(header):
            raise ValueError(f"piece {i} has {len(row)} columns, but the header has {len(header)}")
    patterns = {row[2] for row in pieces}
    if len(patterns) != 1 or not (text := patterns.pop()).isdecimal():
        raise ValueError("the column patterns must hold one positive integer in all rows")
    return np.array([[float(number) for number in (*row[:2], *row[3:])] for row in pieces]), int(text)


def _check_joined(last: str, first: str, before: Floats, after: Floats) -> None:
    """Raise ValueError if a piece does not start where the one before it ends."""
    wrong = np.flatnonzero((before[:-1] != after[1:]).any(axis=1))
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(
            f"piece {i + 1} has {first} {after[i + 1].tolist()}, but piece {i} has {last} {before[i].tolist()}"
        )
