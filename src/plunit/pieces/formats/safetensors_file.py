"""Networks as safetensors files: arrays, and in the metadata a list of layers in JSON.

The metadata have one entry, `layers`: a JSON list with an object for each layer in order. Its one key is the kind of
layer, and its value the options. Numbers may be given as the name of an array with one value for each unit.

    {"linear": {"weight": "0.weight", "bias": "0.bias"}}     names of arrays [out, in] and [out]; bias may be left out
    {"plu": {"alpha": 0.1, "c": 1.0}}                        and "leaky_relu": {"slope": 0.01}
    {"relu": {}}                                             and "relu6", "hardsigmoid", "absolute", "identity"
    {"hardtanh": {"low": -1.0, "high": 1.0}}
    {"piecewise": {"knots": "1.knots", "slopes": "1.slopes", "at_zero": "1.at_zero"}}
                                                             names of arrays [units, k], [units, k + 1] and [units]

With such a list a state dict of PyTorch becomes a network:
save_file(model.state_dict(), path, metadata={"layers": json.dumps([{"linear": {"weight": "0.weight", ...}}, ...])}).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from plunit.base.files import save_whole
from plunit.pieces import activation
from plunit.pieces.activation import Activation
from plunit.pieces.arrays import Floats
from plunit.pieces.formats.importer import Content, Importer, Layer, Room, build
from plunit.pieces.networks import Network, check_network

_ACTIVATIONS: dict[str, Callable[..., Activation]] = {
    "absolute": activation.absolute,
    "hardsigmoid": activation.hardsigmoid,
    "hardtanh": activation.hardtanh,
    "identity": activation.identity,
    "leaky_relu": activation.leaky_relu,
    "plu": activation.plu,
    "relu": activation.relu,
    "relu6": activation.relu6,
    "piecewise": Activation,
}


def save_safetensors(net: Network, path: str | Path) -> None:
    """Write a network as arrays with a list of layers, which `load` reads back with the same numbers."""
    from safetensors.numpy import save as written

    check_network(net)
    arrays: dict[str, Floats] = {}
    layers: list[dict[str, dict[str, str]]] = []

    def add(kind: str, **parts: Floats) -> None:
        names = {part: f"{len(layers)}.{part}" for part in parts}
        arrays.update({names[part]: np.ascontiguousarray(array) for part, array in parts.items()})
        layers.append({kind: names})

    for layer in net.layers:
        add("linear", weight=layer.weight, bias=layer.bias)
        if (f := layer.activation) is not None:
            add("piecewise", knots=f.knots, slopes=f.slopes, at_zero=f.at_zero)
    save_whole(path, written(arrays, metadata={"layers": json.dumps(layers)}))


def _recognises(content: Content) -> bool:
    length = int.from_bytes(content.head[:8], "little")
    return 2 <= length <= content.size - 8 and content.head[8:9] == b"{"


def _read(path: Path) -> Network:
    from safetensors import safe_open

    with safe_open(str(path), "np") as file:
        layers = json.loads((file.metadata() or {}).get("layers", "null"), object_pairs_hook=_once)
        if not isinstance(layers, list):
            raise ValueError("its metadata have no list `layers`, so it does not say how its arrays make a network")
        names, room = set(file.keys()), Room()
        return build([_layer(i, layer, file, names, room) for i, layer in enumerate(layers)])


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; ValueError if a key occurs twice, because one of its values would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"a layer has the keys {', '.join(key for key, _ in pairs)}, one of them twice")
    return found


def _layer(i: int, layer: Any, file: Any, names: set[str], room: Room) -> Layer:
    """Build a layer from an object with one key."""
    if not isinstance(layer, dict) or len(layer) != 1 or not isinstance(next(iter(layer.values())), dict):
        raise ValueError(f'layer {i} must be an object such as {{"relu": {{}}}}, got {json.dumps(layer)[:60]}')
    ((kind, options),) = layer.items()
    parts = {name: _value(i, name, value, file, names, room) for name, value in options.items()}
    if kind == "linear" and {"weight"} <= set(parts) <= {"weight", "bias"}:
        weight = parts["weight"]
        return weight, parts.get("bias", np.zeros(np.shape(weight)[:1]))
    if kind in _ACTIVATIONS:
        try:
            return _ACTIVATIONS[kind](**parts)
        except TypeError:
            pass
    known = ", ".join(("linear", *_ACTIVATIONS))
    raise ValueError(f"layer {i} is {kind!r} with {sorted(parts)}, which is not a known layer; known are {known}")


def _value(i: int, name: str, value: Any, file: Any, names: set[str], room: Room) -> Any:
    """Return a number, or the array of this name in float64."""
    if isinstance(value, str):
        if value not in names:
            raise ValueError(f"layer {i} names the array {value!r}, which is not in the file")
        room.take(f"{name} of layer {i}", 8 * math.prod(file.get_slice(value).get_shape()))
        array = file.get_tensor(value)
        if array.dtype.kind != "f":
            raise ValueError(f"layer {i}: {name} must be floating-point numbers, got {array.dtype}")
        return array.astype(np.float64)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"layer {i}: {name} must be a number or the name of an array, got {json.dumps(value)[:60]}")
    return float(value)


IMPORTER = Importer(
    "a safetensors file", _recognises, _read, "plunit.pieces.save_safetensors writes files with a list of layers"
)
