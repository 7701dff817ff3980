"""Networks from ONNX models: a value of the graph is an array, or a function of each unit of the last affine layer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from plunit.pieces.formats.importer import Content, Importer, Room, build, check_bytes
from plunit.pieces.formats.onnx_checking import UnitNodes, attributes, check_affine
from plunit.pieces.formats.onnx_ops import AFFINE, ELEMENTWISE, KNOWN, SHAPES, Call
from plunit.pieces.formats.waves import Wave
from plunit.pieces.networks import LayerLike, Network

_FOLDED = """
    Add And Cast Clip Concat Constant Div Equal Exp Greater Identity Less Max Min Mul Neg Not Or Reciprocal Reshape
    Sigmoid Sqrt Squeeze Sub Transpose Unsqueeze Where
"""
"""Operators on arrays that do not depend on the input: exporters write a learned slope of PLU as a sigmoid."""

_CONSTANTS = {"value", "value_float", "value_floats", "value_int", "value_ints"}
_NUMBERS = {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16}  # floats, integers and bool, as TensorProto numbers them


@dataclass(frozen=True, eq=False)
class Signal:
    """A value that depends on the input: wave(z) for the outputs z of affine layer `layer`, with these feature axes."""

    layer: int
    shape: tuple[int, ...]
    wave: Wave


class GraphChain:
    """The affine layers found so far, and the values of the graph by name."""

    def __init__(self, name: str, shape: tuple[int, ...], constants: Mapping[str, Any], version: int) -> None:
        self.values: dict[str, Any] = {**constants, name: Signal(0, shape, Wave.line(1.0, 0.0))}
        self.version = version
        self._layers: list[LayerLike] = []
        self._affine = 0
        self._steps = UnitNodes(name, shape)
        self._room = Room()

    def follow(self, node: Any) -> None:
        """Compute the value of one node; ValueError, with the node's name, if it is not piecewise-linear."""
        try:
            values = [self.values[name] if name else None for name in node.input]
            if any(isinstance(value, Signal) for value in values):
                result = self._signal(node, values)
            else:
                result = self._folded(node, values)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"node {node.name or node.output[0]!r}, {node.op_type}: {error}") from None
        self.values[node.output[0]] = result
        if isinstance(result, Signal):
            self._room.take("a function of the units", result.wave.nbytes)
        if isinstance(result, Signal) and node.op_type in AFFINE:
            self._steps = UnitNodes(node.output[0], result.shape)
        elif isinstance(result, Signal) and result.layer == self._affine:
            self._steps.add(node, result.wave.knots)

    def layers(self, output: str) -> list[LayerLike]:
        """Return all layers up to the value of this name."""
        result = self.values.get(output)
        if not isinstance(result, Signal) or len(result.shape) != 1:
            raise ValueError(f"its output {output!r} must have shape [batch, features] and depend on the input")
        return [*self._layers, *self._ended(output)]

    def _signal(self, node: Any, values: list[Any]) -> Any:
        """Compute a value that depends on the input."""
        kind = node.op_type
        signals = [value for value in values if isinstance(value, Signal)]
        layer, shape = signals[0].layer, signals[0].shape
        if any((signal.layer, signal.shape) != (layer, shape) for signal in signals):
            raise ValueError("it joins values of different layers, and only a chain of layers can be read")
        waves = [value.wave if isinstance(value, Signal) else value for value in values]
        call = Call(waves, attributes(node), shape)
        if kind in AFFINE:
            self._room.take("its matrix", 8 * call.array(1).size)
            return self._multiplied(AFFINE[kind](call), node)
        if kind in SHAPES:
            return Signal(layer, SHAPES[kind](call), call.wave(0))
        if kind in ELEMENTWISE:
            return Signal(layer, shape, ELEMENTWISE[kind](call))
        if kind in ("IsInf", "IsNaN"):
            return np.array(False)  # of finite numbers
        raise ValueError(f"it is not piecewise-linear, or not known; known are {KNOWN}")

    def _multiplied(self, affine: tuple[Any, Any], node: Any) -> Signal:
        """Add an affine layer after a signal."""
        source = self.values[node.input[0]]
        if not isinstance(source, Signal) or len(source.shape) != 1:
            raise ValueError("it must multiply values [batch, features] by a matrix from the right")
        weight, bias = affine
        if weight.ndim != 2 or weight.shape[1] != source.shape[0]:
            raise ValueError(f"its matrix has shape {weight.shape[::-1]}, but {source.shape[0]} features come in")
        check_bytes(f"a layer of {len(weight):,} units", 8 * len(weight) ** 2)
        bias = np.broadcast_to(bias, weight.shape[:1])
        check_affine(node, weight, bias, self.values)
        self._layers += [*self._ended(node.input[0]), (weight, bias)]
        self._affine += 1
        return Signal(self._affine, weight.shape[:1], Wave.line(1.0, 0.0))

    def _ended(self, name: str) -> list[LayerLike]:
        """Return the function between the last affine layer and the next one."""
        signal = self.values[name]
        if signal.layer != self._affine:
            raise ValueError("it takes a value of an earlier layer, and only a chain of layers can be read")
        wave, units = signal.wave, math.prod(signal.shape)
        found = [] if self._layers else [_diagonal(units, 1.0, 0.0)]
        if wave.knots.shape[1]:
            found.append(wave.activation())
        elif (wave.slopes != 1).any() or wave.intercepts.any():
            found = [_diagonal(units, wave.slopes, wave.intercepts[:, 0])]
        self._steps.check(name, found, self.values)
        return found

    def _folded(self, node: Any, values: list[Any]) -> Any:
        """Compute an array from arrays."""
        from onnx.reference import ReferenceEvaluator

        if node.op_type not in _FOLDED.split():
            raise ValueError(f"it is not known; known are {KNOWN}")
        self._room.take("its result", 8 * _size(node, values))
        named = {name: value for name, value in zip(node.input, values, strict=True) if name}
        results: Any = ReferenceEvaluator(node, opsets={"": self.version}).run(None, named)
        return results[0]


def _size(node: Any, values: list[Any]) -> int:
    """Return the most numbers that the result of a folded node can have; ValueError if that is not known."""
    given = attributes(node)
    if node.op_type == "Cast" and given.get("to") not in _NUMBERS:
        raise ValueError("it makes other things than numbers of an array")
    if node.op_type == "Constant":
        if set(given) - _CONSTANTS:
            raise ValueError(
                f"it has {', '.join(sorted(given))}; an array must be one of {', '.join(sorted(_CONSTANTS))}"
            )
        return sum(math.prod(value.dims) if name == "value" else np.size(value) for name, value in given.items())
    shapes: list[tuple[int, ...]] = [np.shape(value) for value in values if value is not None]
    rank = max(map(len, shapes), default=0)
    together = [max(axis) for axis in zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True)]
    # arrays are broadcast, or put one after the other
    return int(max(math.prod(together), sum(map(math.prod, shapes))))


def _diagonal(units: int, slopes: Any, shifts: Any) -> LayerLike:
    """Return the affine layer slope z + shift of every unit."""
    check_bytes(f"a layer of {units:,} units", 8 * units**2)
    return np.eye(units) * slopes, np.broadcast_to(shifts, (units,))


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
