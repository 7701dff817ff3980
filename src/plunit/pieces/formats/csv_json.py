"""Curves as CSV, and curves and networks as JSON: every number reads back as the same bits.

A curve in CSV is a row for each piece. A curve in JSON is an object of its arrays, `knots` first; a network is an
object with the list `layers`. What a JSON file holds is decided by these keys, in one reader, `_parsed`.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from plunit.base.files import save_whole
from plunit.pieces.activation import Activation
from plunit.pieces.arrays import Floats
from plunit.pieces.exact_curves import NEAR, Curve
from plunit.pieces.formats.importer import Importer, build
from plunit.pieces.networks import Network, check_network

COLUMNS = ("slope", "intercept", "start", "end", "tolerance")
"""The columns of each output in CSV; start and end are f(low) and f(high)."""

ARRAYS = {"knots": 1, "slopes": 2, "intercepts": 2, "values": 2, "tolerance": 2}
"""The arrays of a curve in JSON, and their numbers of axes."""


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
    with _reading(path, "save_csv"), Path(path).open(newline="", encoding="utf-8-sig") as file:
        table, patterns = _table(list(csv.reader(file)))
        parts = table[:, 2:].reshape(len(table), -1, len(COLUMNS)).transpose(2, 0, 1)
        slopes, intercepts, start, end, tolerance = parts
        _check_joined("high", "low", table[:, 1:2], table[:, 0:1])
        _check_joined("end", "start", end, start)
        knots = np.append(table[:, 0], table[-1, 1])
        curve = Curve(knots, np.concatenate([start, end[-1:]]), slopes, patterns, tolerance)
        _check_intercepts(curve, intercepts)
        return curve


def _header(outputs: int) -> list[str]:
    return ["low", "high", "patterns", *(f"{name}_{i}" for i in range(outputs) for name in COLUMNS)]


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


def save_json(function: Curve | Network, path: str | Path) -> None:
    """Write a curve or a network.

    A curve is its knots, slopes, intercepts and values, with the tolerance of the slopes and the number of patterns. A
    network is its `layers` in order: `weight` [out, in] and `bias` [out], or the `knots`, `slopes` and `at_zero` of the
    activation of each unit (see `Activation`); a missing knot is null.
    """
    save_whole(path, text_of(function))


def text_of(function: Curve | Network) -> str:
    """Return what `save_json` writes."""
    content = _of_network(function) if isinstance(function, Network) else _of_curve(function)
    return json.dumps(content, indent=1) + "\n"


def load_json(path: str | Path) -> Any:
    """Read what `save_json` wrote, a Curve or a Network; ValueError if the file is neither."""
    with _reading(path, "save_json", "a curve or a network"):
        content = _content(Path(path))
    with _reading(path, "save_json", "a network" if "layers" in content else "a curve"):
        return _parsed(content)


def _content(path: Path) -> dict[str, Any]:
    # an editor may put a byte-order mark first
    content = json.loads(path.read_text(encoding="utf-8-sig"))
    if not isinstance(content, dict):
        raise ValueError(f"it holds a {type(content).__name__}, not an object")
    return content


def _parsed(content: dict[str, Any]) -> Curve | Network:
    """Return a network if the object has `layers`, else a curve."""
    return _to_network(content["layers"]) if "layers" in content else _to_curve(content)


def _of_curve(curve: Curve) -> dict[str, Any]:
    return {**{name: getattr(curve, name).tolist() for name in ARRAYS}, "patterns": curve.patterns}


def _to_curve(content: dict[str, Any]) -> Curve:
    missing = {*ARRAYS, "patterns"} - set(content)
    if missing:
        raise ValueError(f"it lacks {', '.join(sorted(missing))}")
    arrays = {name: _array(name, content[name], axes) for name, axes in ARRAYS.items()}
    intercepts = arrays.pop("intercepts")
    curve = Curve(**arrays, patterns=content["patterns"])
    _check_intercepts(curve, intercepts)
    return curve


def _of_network(net: Network) -> dict[str, Any]:
    check_network(net)
    layers: list[dict[str, Any]] = []
    for layer in net.layers:
        layers.append({"weight": layer.weight.tolist(), "bias": layer.bias.tolist()})
        if (f := layer.activation) is not None:
            knots = [[knot if math.isfinite(knot) else None for knot in unit] for unit in f.knots.tolist()]
            layers.append({"knots": knots, "slopes": f.slopes.tolist(), "at_zero": f.at_zero.tolist()})
    return {"layers": layers}


def _to_network(content: Any) -> Network:
    if not isinstance(content, list) or not all(isinstance(layer, dict) for layer in content):
        raise ValueError("layers must be a list of objects")
    return build([_layer(i, layer) for i, layer in enumerate(content)])


def _layer(place: int, layer: dict[str, Any]) -> Any:
    if set(layer) == {"weight", "bias"}:
        return _array("weight", layer["weight"], 2), _array("bias", layer["bias"], 1)
    if set(layer) != {"knots", "slopes", "at_zero"}:
        known = "weight and bias, or knots, slopes and at_zero"
        raise ValueError(f"layer {place} must have {known}; it has {', '.join(sorted(layer)) or 'nothing'}")
    rows = layer["knots"] if isinstance(layer["knots"], list) else []
    knots = [[math.inf if knot is None else knot for knot in row] if isinstance(row, list) else row for row in rows]
    shape = _array("slopes", layer["slopes"], 2), _array("at_zero", layer["at_zero"], 1)
    return Activation(_array("knots", knots, 2), *shape)


def _array(name: str, content: Any, axes: int) -> Floats:
    """Return nested lists of numbers as an array."""
    try:
        array = np.array(content)
    except ValueError:
        array = np.array(None)
    if array.ndim != axes or array.dtype.kind not in "if":
        raise ValueError(f"{name} must be numbers in lists of equal lengths, nested {axes} deep")
    return array.astype(np.float64)


@contextmanager
def _reading(path: str | Path, writer: str, what: str = "a curve") -> Iterator[None]:
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


def _check_intercepts(curve: Curve, intercepts: Floats) -> None:
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


def _through(curve: Curve) -> Network:
    """Return a curve as a network of one unit for each output; its first and last piece go on beyond the ends."""
    merged = curve.merged()
    # knots count from 0, or from the end of the domain that is next to it: there f is one of the values
    start = min(max(0.0, merged.low), merged.high)
    # values at the knots come back; across a steep piece, its slope times its width is off by more than rounding
    slopes = np.diff(merged.values, axis=0) / np.diff(merged.knots)[:, None]
    outputs = slopes.shape[1]
    knots = np.tile(merged.knots[1:-1] - start, (outputs, 1))
    return build([(np.ones((outputs, 1)), np.full(outputs, -start)), Activation(knots, slopes.T, merged(start))])


def _read(path: Path) -> Network:
    found = _parsed(_content(path))
    return found if isinstance(found, Network) else _through(found)


IMPORTER = Importer(
    "a network or a curve in JSON",
    lambda content: re.match(r'\s*\{\s*"(layers|knots)"', content.text()) is not None,
    _read,
    "write it with plunit.pieces.save_json",
)
