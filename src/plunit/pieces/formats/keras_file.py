"""Keras' .keras files, a zip archive of config.json and model.weights.h5, read without making an object of Keras."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from plunit.pieces.activation import Activation
from plunit.pieces.arrays import Floats
from plunit.pieces.formats.importer import Content, Importer, Layer, Room, build, check_bytes
from plunit.pieces.formats.keras_layers import LAYERS, Saved, kind_of
from plunit.pieces.networks import Network

_MEMBERS = ("config.json", "model.weights.h5")


def _recognises(content: Content) -> bool:
    return set(_MEMBERS) <= set(content.members)


def _read(path: Path) -> Network:
    import h5py

    with zipfile.ZipFile(path) as archive:
        for name in _MEMBERS:
            check_bytes(name, archive.getinfo(name).file_size)
        config, weights = (archive.read(name) for name in _MEMBERS)
    model = json.loads(config)
    if not isinstance(model, dict) or model.get("class_name") != "Sequential":
        kind = model.get("class_name") if isinstance(model, dict) else type(model).__name__
        raise ValueError(f"it holds {kind}, and only a Sequential is a chain of layers")
    with h5py.File(io.BytesIO(weights), "r") as file:
        return build(list(_sequential(model["config"], file, None, Room())))


def _sequential(config: dict[str, Any], group: Any, units: int | None, room: Room) -> Iterator[Layer]:
    """Yield the layers of a Sequential whose variables are in a group of the file."""
    seen: Counter[str] = Counter()
    for layer in config["layers"]:
        kind = kind_of(layer)
        if kind == "InputLayer":
            units = _features(layer)
            continue
        stem = _snake(layer["class_name"])
        place = _child(_child(group, "layers"), f"{stem}_{seen[stem]}" if seen[stem] else stem)
        seen[stem] += 1
        name = str(layer["config"].get("name"))
        if units is None:
            units = _features(layer)
        try:
            found = list(_one(kind, layer, place, units, room))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"layer {name!r}, {kind}: {error}") from None
        yield from found
        units = next((len(part[1]) for part in reversed(found) if not isinstance(part, Activation)), units)


def _one(kind: str, layer: dict[str, Any], place: Any, units: int, room: Room) -> Iterator[Layer]:
    if kind == "Sequential":
        yield from _sequential(layer["config"], place, units, room)
    elif kind in LAYERS:
        # the square matrix of a layer that scales each feature
        check_bytes(f"a layer of {units:,} features", 8 * units**2)
        for part in LAYERS[kind](Saved(layer["config"], _variables(place, room), units)):
            room.take("its matrix", 0 if isinstance(part, Activation) else np.asarray(part[0]).nbytes)
            yield part
    else:
        raise ValueError(f"it is not affine or piecewise-linear, or not known; known are {', '.join(LAYERS)}")


def _features(layer: dict[str, Any]) -> int:
    """Return the number of features that come into the first layer."""
    config = layer["config"]
    shape = (
        config.get("batch_shape") or config.get("build_input_shape") or layer.get("build_config", {}).get("input_shape")
    )
    if not isinstance(shape, list) or len(shape) != 2 or not isinstance(shape[1], int) or shape[1] < 1:
        raise ValueError(f"its input has shape {shape}; it must be [batch, features]")
    return shape[1]


def _snake(name: str) -> str:
    """Return the name of a class as Keras names its variables: ReLU is re_lu, PReLU p_re_lu."""
    apart = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", re.sub(r"\W+", "", name))
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", apart).lower()


def _child(group: Any, name: str) -> Any:
    """Return a group or array that lies in this very file."""
    import h5py

    link = group.get(name, getlink=True)
    if not isinstance(link, h5py.HardLink):
        raise ValueError(f"model.weights.h5 lacks {group.name}/{name}" if link is None else f"{name} is a link")
    return group[name]


def _variables(place: Any, room: Room) -> list[Floats]:
    """Return the variables of a layer in order, in float64."""
    group = _child(place, "vars")
    return [_array(_child(group, str(i)), room) for i in range(len(group))]


def _array(data: Any, room: Room) -> Floats:
    if getattr(data, "external", None) or getattr(data, "is_virtual", False):
        raise ValueError(f"{data.name} lies in another file")
    room.take(f"array {data.name}", 8 * int(np.prod(data.shape, dtype=object)))
    if data.dtype.kind not in "fi":
        raise ValueError(f"{data.name} holds {data.dtype}, not real numbers; quantised models are not read")
    return np.asarray(data[()], dtype=np.float64)


IMPORTER = Importer(
    "a Keras model",
    _recognises,
    _read,
    "a Sequential of Dense, PLU, ReLU and the like with inputs [batch, features] can be read",
)
