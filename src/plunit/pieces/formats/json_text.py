"""Curves and networks as JSON: every number is written so that it reads back as the same bits."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from plunit.base.files import save_whole
from plunit.pieces.activation import Activation
from plunit.pieces.arrays import Floats
from plunit.pieces.exact_curves import Curve
from plunit.pieces.formats.csv_table import check_intercepts, reading
from plunit.pieces.formats.importer import Importer, build
from plunit.pieces.networks import Network, check_network

ARRAYS = {"knots": 1, "slopes": 2, "intercepts": 2, "values": 2, "tolerance": 2}
"""The arrays in a file, and their numbers of axes."""


_START = re.compile(r'\s*\{\s*"(layers|knots)"')


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
    with reading(path, "save_json", "a curve or a network"):
        content = _content(Path(path))
    with reading(path, "save_json", "a network" if "layers" in content else "a curve"):
        return _to_network(content["layers"]) if "layers" in content else _to_curve(content)


def _content(path: Path) -> dict[str, Any]:
    # an editor may put a byte-order mark first
    content = json.loads(path.read_text(encoding="utf-8-sig"))
    if not isinstance(content, dict):
        raise ValueError(f"it holds a {type(content).__name__}, not an object")
    return content


def _of_curve(curve: Curve) -> dict[str, Any]:
    return {**{name: getattr(curve, name).tolist() for name in ARRAYS}, "patterns": curve.patterns}


def _to_curve(content: dict[str, Any]) -> Curve:
    missing = {*ARRAYS, "patterns"} - set(content)
    if missing:
        raise ValueError(f"it lacks {', '.join(sorted(missing))}")
    arrays = {name: _array(name, content[name], axes) for name, axes in ARRAYS.items()}
    intercepts = arrays.pop("intercepts")
    curve = Curve(**arrays, patterns=content["patterns"])
    check_intercepts(curve, intercepts)
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
    content = _content(path)
    return _to_network(content["layers"]) if "layers" in content else _through(_to_curve(content))


IMPORTER = Importer(
    "a network or a curve in JSON",
    lambda content: _START.match(content.text()) is not None,
    _read,
    "write it with plunit.pieces.save_json",
)
