"""ONNX models: recognised as protocol buffers with the fields of a ModelProto, read as a chain of layers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from plunit.pieces.formats.importer import Content, Importer, Room, build, check_bytes
from plunit.pieces.formats.onnx_graph import GraphChain
from plunit.pieces.networks import Network

_FIELDS = {1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 14: 2, 20: 2, 25: 2, 26: 2}
"""The fields of a ModelProto and how each is written: 0 for a number, 2 for bytes with their length before them."""

_GRAPH, _OPSETS = 7, 8
_DOMAINS = ("", "ai.onnx")


def _recognises(content: Content) -> bool:
    """Whether the whole file is a sequence of the fields of a ModelProto, with a graph and its operators' versions."""
    if not content.head or content.head[0] >> 3 not in _FIELDS:
        return False
    found = set()
    with content.path.open("rb") as file:
        while file.tell() < content.size:
            tag = _varint(file)
            number, kind = tag >> 3, tag & 7
            if _FIELDS.get(number) != kind:
                return False
            length = _varint(file)
            if kind == 2:
                file.seek(length, 1)
            found.add(number)
        return {_GRAPH, _OPSETS} <= found and file.tell() == content.size


def _varint(file: BinaryIO) -> int:
    """Read a number of 7 bits a byte, the last byte being below 128; 0 at the end of the file."""
    value = 0
    for shift in range(0, 63, 7):
        byte = file.read(1)
        value |= (byte[0] & 127) << shift if byte else 0
        if not byte or byte[0] < 128:
            break
    return value


def _read(path: Path) -> Network:
    import onnx

    model = onnx.load(str(path), load_external_data=False)
    graph = model.graph
    if any(entry.domain not in _DOMAINS for entry in model.opset_import if _is_used(graph, entry.domain)):
        raise ValueError("it has operators of its own, which are not known here")
    _load_arrays(graph, path.parent)
    constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    if len(inputs) != 1 or len(graph.output) != 1:
        raise ValueError(f"it has {len(inputs)} inputs and {len(graph.output)} outputs; a network has one of each")
    version = max((entry.version for entry in model.opset_import if entry.domain in _DOMAINS), default=1)
    chain = GraphChain(inputs[0].name, _shape(inputs[0]), constants, version)
    for node in graph.node:
        chain.follow(node)
    return build(chain.layers(graph.output[0].name))


def _load_arrays(graph: Any, folder: Path) -> None:
    """Check the sizes of all arrays, and read those that lie in a file beside the model."""
    from onnx.external_data_helper import load_external_data_for_tensor, uses_external_data
    from onnx.helper import tensor_dtype_to_np_dtype

    room = Room()
    inside = (part.t for node in graph.node for part in node.attribute if part.HasField("t"))
    for tensor in (*graph.initializer, *inside):
        count = math.prod(tensor.dims)
        room.take(f"array {tensor.name!r}", 8 * count)
        if uses_external_data(tensor):
            # without a length, the rest of the file would be read
            length = str(count * tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
            given = {entry.key: entry.value for entry in tensor.external_data}.setdefault("length", length)
            if given != length:
                raise ValueError(f"array {tensor.name!r} needs {length} bytes, and {given} lie beside the model")
            tensor.external_data.add(key="length", value=length)
            # onnx refuses places outside the model's folder
            load_external_data_for_tensor(tensor, str(folder))


def _is_used(graph: Any, domain: str) -> bool:
    return any(node.domain == domain for node in graph.node)


def _shape(value: Any) -> tuple[int, ...]:
    """Return the axes of the input without that of the batch."""
    axes = value.type.tensor_type.shape.dim
    sizes = tuple(axis.dim_value for axis in axes)[1:]
    if not sizes or min(sizes) < 1:
        text = ", ".join(axis.dim_param or str(axis.dim_value) for axis in axes)
        raise ValueError(f"its input {value.name!r} has shape [{text}]; it must be [batch, features] with a number")
    check_bytes(f"a layer for an input of shape {list(sizes)}", 8 * math.prod(sizes) ** 2)
    return tuple(np.asarray(sizes).tolist())


IMPORTER = Importer(
    "an ONNX model", _recognises, _read, "a chain of affine layers and piecewise-linear activations can be read"
)
