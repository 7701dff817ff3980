"""Curves as CSV, and curves and networks as JSON; numbers read back to the same bits.

A curve in CSV has a row for each piece, for spreadsheets. A curve in JSON is an object with `knots` and other arrays, a
network an object with the list `layers`. The keys, in any order, distinguish the two.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from plunit.base.files import save_whole
from plunit.pieces.activation import Activation
from plunit.pieces.arrays import Floats
from plunit.pieces.boxes import labels
from plunit.pieces.exact.line_curves import Curve
from plunit.pieces.formats.importer import Content, Importer, Model, build
from plunit.pieces.graphs import LIMIT
from plunit.pieces.networks import Layer, Network, check_network

_COLUMNS = ("slope", "intercept", "start", "end", "tolerance")
"""The columns of each output in CSV; start and end are f(low) and f(high)."""

ARRAYS = {"knots": 1, "slopes": 2, "intercepts": 2, "values": 2, "tolerance": 2}
"""The arrays of a curve in JSON, and their numbers of axes."""

_KEYS = {"layers", "knots"}
"""The first is the key of a network in JSON, the second that of a curve."""


def save_csv(curve: Curve, path: str | Path) -> None:
    """Write one row for each piece: its ends, then slope, intercept, f(low), f(high) and tolerance of each output.

    Each row repeats the number of activation patterns of the whole curve.
    """
    parts = (curve.slopes, curve.intercepts, curve.values[:-1], curve.values[1:], curve.tolerance)
    columns = np.stack(parts, axis=2).reshape(len(curve.slopes), -1)
    table = np.column_stack([curve.knots[:-1], curve.knots[1:], columns]).tolist()
    names = [f"{name}_{i}" for i in range(curve.values.shape[1]) for name in _COLUMNS]
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["low", "high", "patterns", *names])
    writer.writerows([low, high, curve.patterns, *row] for low, high, *row in table)
    save_whole(path, text.getvalue())


def save_json(function: Curve | Network, path: str | Path, *, names: Sequence[str] = (), about: str = "") -> None:
    """Write a curve or a network as JSON.

    A curve has knots, slopes, intercepts and values, the tolerance of the slopes and the number of patterns. A network
    has `layers` in order: `weight` [out, in] and `bias` [out], or the `knots`, `slopes` and `at_zero` of the activation
    of each unit (see `Activation`); a missing knot is null. The `names` of the inputs and a text `about` the function
    become `inputs` and `about`.
    """
    save_whole(path, text_of(function, names=names, about=about))


def text_of(function: Curve | Network, *, names: Sequence[str] = (), about: str = "") -> str:
    """Return the text that `save_json` writes."""
    if isinstance(function, Curve):
        content = {name: getattr(function, name).tolist() for name in ARRAYS} | {"patterns": function.patterns}
    else:
        check_network(function)
        content = {"layers": [part for layer in function.layers for part in _parts(layer)]}
    given, lines = labels(1 if isinstance(function, Curve) else function.inputs, names, about)
    content |= {key: texts for key, texts in (("inputs", given), ("about", lines)) if texts}
    return json.dumps(content, indent=1) + "\n"


def _parts(layer: Layer) -> list[dict[str, Any]]:
    affine = {"weight": layer.weight.tolist(), "bias": layer.bias.tolist()}
    if (f := layer.activation) is None:
        return [affine]
    knots = [[knot if math.isfinite(knot) else None for knot in unit] for unit in f.knots.tolist()]
    return [affine, {"knots": knots, "slopes": f.slopes.tolist(), "at_zero": f.at_zero.tolist()}]


def load_json(path: str | Path) -> Any:
    """Return the Curve or the Network that `save_json` wrote; ValueError if the file holds neither."""
    try:
        return _parse(Path(path))
    except OSError:
        raise
    # a file of any content can fail in any way
    except Exception as error:
        reason = "lists are nested too deeply" if isinstance(error, RecursionError) else " ".join(str(error).split())
        raise ValueError(f"{path} is not a curve or a network: {reason}; save_json writes such files") from None


def _content(path: Path) -> Any:
    # an editor may put a byte-order mark first
    return json.loads(path.read_text(encoding="utf-8-sig"))


def _parse(path: Path) -> Curve | Network:
    content = _content(path)
    if not isinstance(content, dict):
        raise ValueError(f"the content must be an object, got {type(content).__name__}")
    if "layers" not in content:
        return _curve(content)
    layers = content["layers"]
    if not isinstance(layers, list) or not all(isinstance(layer, dict) for layer in layers):
        raise ValueError("layers must be a list of objects")
    return build([_layer(i, layer) for i, layer in enumerate(layers)])


def _curve(content: dict[str, Any]) -> Curve:
    if missing := {*ARRAYS, "patterns"} - set(content):
        raise ValueError(f"the curve lacks {', '.join(sorted(missing))}")
    arrays = {name: _array(name, content[name], axes) for name, axes in ARRAYS.items()}
    # intercepts are for other programs and follow from the rest
    del arrays["intercepts"]
    return Curve(**arrays, patterns=content["patterns"])


def _layer(place: int, layer: dict[str, Any]) -> Any:
    if set(layer) == {"weight", "bias"}:
        return _array("weight", layer["weight"], 2), _array("bias", layer["bias"], 1)
    if set(layer) != {"knots", "slopes", "at_zero"}:
        keys = "weight and bias, or knots, slopes and at_zero"
        raise ValueError(f"layer {place} must have {keys}, got {', '.join(sorted(layer)) or 'nothing'}")
    rows = layer["knots"] if isinstance(layer["knots"], list) else []
    knots = [[math.inf if knot is None else knot for knot in row] if isinstance(row, list) else row for row in rows]
    shape = _array("slopes", layer["slopes"], 2), _array("at_zero", layer["at_zero"], 1)
    return Activation(_array("knots", knots, 2), *shape)


def _array(name: str, content: Any, axes: int) -> Floats:
    """Return nested lists of numbers as an array; ValueError if they are anything else."""
    try:
        array = np.array(content)
    except ValueError:
        array = np.array(None)
    if array.ndim != axes or array.dtype.kind not in "if":
        raise ValueError(f"{name} must be numbers in lists of equal lengths, nested {axes} deep")
    return array.astype(np.float64)


def _through(curve: Curve) -> Network:
    """Return a curve as a network of one unit for each output, which extends the first and the last piece."""
    merged = curve.merge()
    # knots count from 0, or from the end of the domain closest to it, where f is one of the values
    start = min(max(0.0, merged.low), merged.high)
    # so values at the knots come back; across a steep piece, slope times width is off by more than rounding
    slopes = np.diff(merged.values, axis=0) / np.diff(merged.knots)[:, None]
    outputs = slopes.shape[1]
    knots = np.tile(merged.knots[1:-1] - start, (outputs, 1))
    return build([(np.ones((outputs, 1)), np.full(outputs, -start)), Activation(knots, slopes.T, merged(start))])


def _load(path: Path) -> Model:
    found = _parse(path)
    return Model(found if isinstance(found, Network) else _through(found))


def _recognises(content: Content) -> bool:
    first = re.match(r'\s*\{\s*"(\w*)', content.text())
    if first is None:
        return False
    if first[1] in _KEYS:  # save_json writes such a key first, so that a large file is read only once
        return True
    try:
        return content.size <= LIMIT and not _KEYS.isdisjoint(_content(content.path))
    except (ValueError, RecursionError):
        return False


IMPORTER = Importer(
    "a network or a curve in JSON",
    _recognises,
    _load,
    "write it with plunit.pieces.save_json",
)
