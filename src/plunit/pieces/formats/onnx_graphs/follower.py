"""Networks from ONNX models: a value of the graph is an array, or a function of each number of an affine tensor."""

from __future__ import annotations

import math
import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.formats.importer import Importer, Model, build
from plunit.pieces.formats.onnx_graphs.comparing import UnitNodes, compare_network
from plunit.pieces.formats.onnx_graphs.lowering import LOWERED, lower
from plunit.pieces.formats.onnx_graphs.operators import (
    AFFINE,
    ELEMENTWISE,
    FLOATS,
    MEANS,
    PICKED,
    Call,
    attributes,
    compute,
    fold,
    full_name,
    largest_size,
    linear_map,
    rounds,
)
from plunit.pieces.formats.onnx_graphs.waves import Wave
from plunit.pieces.graphs import Budget, Pick, Product, Tensor, Total, check_bytes, make_layers
from plunit.pieces.merging import slim


class Signal(NamedTuple):
    """A value that depends on the input: wave(z) for each number z of a tensor."""

    name: str
    tensor: Tensor
    wave: Wave
    shape: tuple[int, ...]


class GraphInput(NamedTuple):
    """The input of a graph: its name, its shape for one sample, and ONNX's name for the type of its numbers."""

    name: str
    shape: tuple[int, ...]
    kind: str


class Follower:
    """Follows a graph node by node, for one sample; the values so far, arrays and signals, are stored by name."""

    def __init__(self, source: GraphInput, constants: Mapping[str, Any], version: int, budget: Budget) -> None:
        self.values: dict[str, Any] = dict(constants)
        self.version = version
        self._kind = source.kind
        self._integers = set() if source.kind in FLOATS.values() else {source.name}
        self._steps: dict[int, UnitNodes] = {}
        self._lines: dict[int, tuple[Tensor, Floats, Floats]] = {}
        self._made: dict[tuple[int, int], Tensor] = {}
        self._checked: set[str] = set()
        self._unread: dict[str, str] = {}
        self._budget = budget
        self.rounded = False
        self._start(source.name, Tensor(math.prod(source.shape)), source.shape)

    def follow_lowered(self, node: Any) -> list[Any]:
        """Follow a node, or the simpler nodes that replace it, and return these."""
        if full_name(node) not in LOWERED or not isinstance(self.values.get(node.input[0]), Signal):
            self.follow(node)
            return [node]
        with _name_node(node):
            found = lower(node, self.values[node.input[0]].shape)
            self._budget.take("a group of arrays", sum(array.nbytes for array in found.arrays.values()))
            self.values.update(found.arrays)
            for each in found.nodes:
                self.follow(each)
        self._unread.update(dict.fromkeys(node.output, node.op_type))
        return found.nodes

    def follow(self, node: Any) -> None:
        """Compute the values of one node; ValueError, with the node's name, if it is not piecewise-linear."""
        with _name_node(node):
            values: list[Any] = [self._value(name) if name else None for name in node.input]
            kind = full_name(node)
            self._check_integers(node)
            if not any(isinstance(value, Signal) for value in values):
                self.values.update(zip(node.output, fold(node, values, self.version, self._budget), strict=False))
            elif kind in PICKED:
                self._pick(node, values)
            elif kind in AFFINE:
                self._map(node, values)
            elif kind in ELEMENTWISE:
                self._compute(node, values)
            elif kind == "Shape":
                empty = np.broadcast_to(0.0, values[0].shape)
                self.values[node.output[0]] = compute(node, {node.input[0]: empty}, self.version)[0]
            elif kind in ("IsInf", "IsNaN"):
                self.values[node.output[0]] = np.array(False)  # of finite numbers
            elif kind in _PROBABILITIES:
                raise ValueError(
                    "turning scores into probabilities is not piecewise-linear; extract the part up to the scores, "
                    f"{node.input[0]!r}, with {_CUT}"
                )
            else:
                raise ValueError(f"this operator is not piecewise-linear or not supported; supported: {_SUPPORTED}")
        self._unread.update(dict.fromkeys(node.output, node.op_type))

    def _value(self, name: str) -> Any:
        """Return the value of a name; ValueError if it is an output that is not supported."""
        if name not in self.values and name in self._unread:
            raise ValueError(f"input {name!r} is an output of {self._unread[name]} that is not supported")
        return self.values[name]

    def _check_integers(self, node: Any) -> None:
        """Raise ValueError if a node computes with integers, which overflow; it may move or cast them."""
        if self._integers.isdisjoint(node.input):
            return
        if node.op_type in (*PICKED, "Identity"):
            self._integers.update(node.output)
        elif node.op_type not in ("Cast", "Shape"):
            raise ValueError(
                f"the input of the network has type {self._kind}, and arithmetic on integers is not supported; cast "
                "the input to FLOAT first"
            )

    def output(self, name: str) -> Tensor:
        """Return the tensor of a value."""
        result = self.values.get(name)
        if not isinstance(result, Signal):
            raise ValueError(f"the output {name!r} must depend on the input of the model")
        return self._tensor(result)

    def _start(self, name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
        """Add a signal that is a tensor itself."""
        self._checked.add(name)
        self.values[name] = Signal(name, tensor, _SAME, shape)
        self._steps[tensor.number] = UnitNodes(name, shape, self.version)

    def _tensor(self, signal: Signal) -> Tensor:
        """Return a signal as a tensor: units, unless all waves are lines. The nodes are compared with the result."""
        root, slope, shift = self._root(signal.tensor)
        wave, kind = signal.wave, np.float64 if self._kind == "DOUBLE" else np.float32
        f, jump = wave.activation(kind) if wave.knots.shape[1] else (None, np.zeros(1))
        key = signal.tensor.number, id(wave)
        if key not in self._made and f is not None:
            self._made[key] = Tensor(signal.tensor.size, (signal.tensor,), activation=f, jump=jump)
        elif f is None and wave is not _SAME:
            factor, offset = wave.slopes[:, 0], wave.intercepts[:, 0]
            slope, shift = factor * slope, factor * shift + offset
            self._made.setdefault(key, _line(signal.tensor, factor, offset))
        if signal.name not in self._checked:
            self._steps[root.number].check(signal.name, (slope, shift), (f, jump), self.values)
            self._checked.add(signal.name)
        return self._made.get(key, signal.tensor)

    def _root(self, tensor: Tensor) -> tuple[Tensor, Floats, Floats]:
        """Return the tensor z of which a tensor is slope z + shift, by nodes that scale and shift each number."""
        slope, shift = np.ones(1), np.zeros(1)
        while tensor.number in self._lines:
            tensor, factor, offset = self._lines[tensor.number]
            slope, shift = slope * factor, slope * offset + shift
        return tensor, slope, shift

    def _step(self, node: Any, signal: Signal) -> None:
        """Record a node that computes a function of each number of a tensor, or only reshapes it."""
        root, slope, shift = self._root(signal.tensor)
        self._steps[root.number].add(node, signal.shape, signal.wave.compose(slope, shift).knots)

    def _compute(self, node: Any, values: list[Any]) -> None:
        """Follow a node that computes a function of each number of its inputs."""
        if "axis" in attributes(node):
            raise ValueError(
                "broadcasting along an axis, as in opset versions before 7, is not supported; export a later version"
            )
        shape = np.broadcast_shapes(*(_shape_of(value) for value in values if value is not None))
        self._budget.take("the result", 8 * math.prod(shape))
        for i, value in enumerate(values):
            if isinstance(value, Signal) and value.tensor.size != math.prod(shape):
                node, values = self._expanded(node, i, shape), [*values]
                values[i] = self.values[node.input[i]]
        signals = [value for value in values if isinstance(value, Signal)]
        tensor, waves = self._on_one_tensor(signals)
        if tensor is None:
            self._join(node, values, shape)
            return
        found = iter(waves)
        call = Call(
            [next(found) if isinstance(value, Signal) else value for value in values],
            attributes(node),
            self.version,
            shape,
        )
        wave = ELEMENTWISE[node.op_type](call)
        self.rounded |= rounds(call, node.op_type)
        self._budget.take("a function of the units", wave.nbytes)
        name = node.output[0]
        signal = Signal(name, tensor, wave, shape)
        self._step(node, signal)
        if wave.knots.shape[1] == 0 and (wave.slopes > 0).all():
            # so later kinks are where the graph has them, and not shifted by the bias
            slope, shift = wave.slopes[:, 0], wave.intercepts[:, 0]
            if (slope != 1).any() or shift.any():
                line = _line(tensor, slope, shift)
                self._lines[line.number] = tensor, slope, shift
                tensor = line
            signal = Signal(name, tensor, _SAME, shape)
        self.values[name] = signal

    def _on_one_tensor(self, signals: list[Signal]) -> tuple[Tensor | None, list[Wave]]:
        """Return signals as functions of the numbers of one tensor; None if that is impossible."""
        pairs = [(signal.tensor, signal.wave) for signal in signals]
        while len({tensor.number for tensor, _ in pairs}) > 1:
            i = max(range(len(pairs)), key=lambda i: pairs[i][0].number)
            tensor, wave = pairs[i]
            if tensor.number not in self._lines:
                return None, []
            tensor, slope, shift = self._lines[tensor.number]
            pairs[i] = tensor, wave.compose(slope, shift)
        return pairs[0][0], [wave for _, wave in pairs]

    def _join(self, node: Any, values: list[Any], shape: tuple[int, ...]) -> None:
        """Follow a node with values of several tensors: a sum, Max, which is b + relu(a - b), or Min."""
        kind = node.op_type
        if kind in ("Add", "Sub", "Sum"):
            signs = [-1.0 if kind == "Sub" and i else 1.0 for i in range(len(values))]
            parts = [(sign, value) for sign, value in zip(signs, values, strict=True) if isinstance(value, Signal)]
            others = [sign * value for sign, value in zip(signs, values, strict=True) if not isinstance(value, Signal)]
            bias = np.asarray(sum(others, np.zeros(shape)))
            self._affine(node, [value for _, value in parts], Total(tuple(sign for sign, _ in parts)), bias)
        elif kind in ("Max", "Min"):
            name, (*before, b) = node.output[0], node.input
            a = before[0] if len(before) == 1 else f"{name} before {b}"
            if len(before) > 1:
                self.follow(_node(kind, before, a))
            self.follow(_node("Sub", [a, b], f"{name} difference"))
            self.follow(_node("Relu", [f"{name} difference"], f"{name} excess"))
            last, rest = ("Add", b) if kind == "Max" else ("Sub", a)
            self.follow(_node(last, [rest, f"{name} excess"], name))
        else:
            raise ValueError("only sums, Max, Min and Concat may combine values of different layers")

    def _expanded(self, node: Any, i: int, shape: tuple[int, ...]) -> Any:
        """Return a node with an input broadcast to a shape."""
        name, sizes = f"{node.input[i]} as {shape}", f"shape {shape}"
        self.values[sizes] = np.array(shape)
        self.follow(_node("Expand", [node.input[i], sizes], name))
        inputs = [name if j == i else each for j, each in enumerate(node.input)]
        return _node(node.op_type, inputs, node.output[0], attributes(node))

    def _map(self, node: Any, values: list[Any]) -> None:
        """Follow a linear map of a tensor."""
        (signal, *more) = [value for value in values if isinstance(value, Signal)]
        if more:
            raise ValueError("two functions of the input are multiplied, which is not piecewise-linear")
        name = next(name for name, value in zip(node.input, values, strict=True) if value is signal)
        linear, bias = linear_map(node, name, signal.shape, self.values, self.version)
        self._affine(node, [signal], Product(linear, node.op_type in MEANS), bias)

    def _pick(self, node: Any, values: list[Any]) -> None:
        """Follow a node that moves numbers: onnx moves their indices, first those of signals, then those of arrays."""
        data = {
            name: value
            for name, value in zip(node.input, values, strict=True)
            if isinstance(value, Signal) or node.op_type == "Concat"
        }
        signals = [value for value in data.values() if isinstance(value, Signal)]
        arrays = [np.asarray(value, dtype=np.float64) for value in data.values() if not isinstance(value, Signal)]
        places, start = {}, 0
        for name in sorted(data, key=lambda name: not isinstance(data[name], Signal)):
            shape = _shape_of(data[name])
            places[name] = np.arange(start, start + math.prod(shape)).reshape(shape)
            start += math.prod(shape)
        moved = [places.get(name, value) for name, value in zip(node.input, values, strict=True)]
        self._budget.take("the result", 8 * largest_size(node, moved))
        results = compute(node, ChainMap(places, self.values), self.version)
        count = sum(signal.tensor.size for signal in signals)
        for name, index in zip(node.output, results, strict=False):
            flat = index.ravel()
            if len(signals) == 1 and not arrays and np.array_equal(flat, np.arange(count)):
                self.values[name] = Signal(name, signals[0].tensor, signals[0].wave, index.shape)
                self._step(node, self.values[name])
                continue
            bias = np.concatenate([np.zeros(count), *map(np.ravel, arrays)])[flat]
            tensors = tuple(self._tensor(signal) for signal in signals)
            pick = Pick(np.where(flat < count, flat, -1))
            self._start(name, Tensor(len(flat), tensors, pick, bias), index.shape)

    def _affine(self, node: Any, signals: list[Signal], linear: Total | Product, bias: Floats) -> None:
        """Add the tensor of a node that is affine in its signals; the bias has the shape of the result."""
        self._budget.take("the result", 8 * bias.size)
        tensors = tuple(self._tensor(signal) for signal in signals)
        rounded = node.op_type == "BatchNormalization"
        self._start(node.output[0], Tensor(bias.size, tensors, linear, bias.reshape(-1), rounded=rounded), bias.shape)


_SAME = Wave.line(1.0, 0.0)
_SUPPORTED = ", ".join(sorted((*ELEMENTWISE, *AFFINE, *LOWERED, *PICKED)))
_CUT = "onnx.utils.extract_model(..., check_model=False)"  # the check needs shapes that inner values often lack
_PROBABILITIES = ("LogSoftmax", "Sigmoid", "Softmax")


@contextmanager
def _name_node(node: Any) -> Iterator[None]:
    """Name the node in errors."""
    try:
        yield
    except (ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"node {node.name or node.output[0]!r}, {full_name(node)}: {error}") from None


def _line(tensor: Tensor, slope: Floats, shift: Floats) -> Tensor:
    """Return slope z + shift for each number z of a tensor."""
    factor, bias = (np.broadcast_to(part, (tensor.size,)) for part in (slope, shift))
    return Tensor(tensor.size, (tensor,), Pick(np.arange(tensor.size), factor), bias)


def _shape_of(value: Any) -> tuple[int, ...]:
    return value.shape if isinstance(value, Signal) else np.shape(value)


def _node(kind: str, inputs: Sequence[str], output: str, given: Mapping[str, Any] | None = None) -> Any:
    from onnx.helper import make_node

    return make_node(kind, inputs, [output], **(given or {}))


_DOMAINS = ("", "ai.onnx")

_BEGINS = re.compile(rb"\x08[\x01-\x7f][\x12\x1a\x22\x28\x32\x3a\x42]")
"""The version of the format, field 1 of a ModelProto, and then the tag of a field from 2 to 8."""


def _load(path: Path) -> Model:
    import onnx

    model = onnx.load(str(path), load_external_data=False)
    graph = model.graph
    _check_domains(model)
    for node in graph.node:
        node.domain = "" if node.domain in _DOMAINS else node.domain
    budget = Budget()
    _load_arrays(graph, path.parent, budget)
    constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    for what, ends in (("inputs", inputs), ("outputs", graph.output)):
        if len(ends) != 1:
            names = ", ".join(repr(value.name) for value in ends)
            raise ValueError(
                f"a network has one input and one output, but the {what} of this model are {names or 'none'}; extract "
                f"the part from one to the other with {_CUT}"
            )
    version = max((entry.version for entry in model.opset_import if entry.domain in _DOMAINS), default=1)
    shape, batch = _shape(inputs[0])
    kind = onnx.TensorProto.DataType.Name(inputs[0].type.tensor_type.elem_type)
    follower = Follower(GraphInput(inputs[0].name, shape, kind), constants, version, budget)
    nodes = [each for node in graph.node for each in follower.follow_lowered(node)]
    name = graph.output[0].name
    layers, jump, rounded = make_layers(follower.output(name), budget)
    net = build(slim(layers), budget)
    found = follower.values[name].shape
    if batch and found[:1] != (1,):
        raise ValueError(
            f"the output has shape {list(found)} for one sample, but its first axis must be that of the batch"
        )
    compare_network(net, jump, nodes, (inputs[0].name, name), shape, (follower.values, version))
    return Model(net, jump if jump.any() else None, rounded or follower.rounded)


def _check_domains(model: Any) -> None:
    """Raise ValueError if the standard operators are not declared, or if an operator is defined in the file."""
    declared = {entry.domain for entry in model.opset_import}
    if declared and declared.isdisjoint(_DOMAINS):
        raise ValueError(f"the model must declare the standard operators, got only {', '.join(sorted(declared))}")
    own = {(function.domain, function.name) for function in model.functions}
    for node in model.graph.node:
        if (node.domain, node.op_type) in own:
            raise ValueError(
                f"node {node.name or node.output[0]!r} is {full_name(node)}, which the file itself defines"
            )


def _load_arrays(graph: Any, folder: Path, budget: Budget) -> None:
    """Check the sizes of all arrays, and read those in a separate file."""
    from onnx.external_data_helper import load_external_data_for_tensor, uses_external_data
    from onnx.helper import tensor_dtype_to_np_dtype

    inside = (part.t for node in graph.node for part in node.attribute if part.HasField("t"))
    for tensor in (*graph.initializer, *inside):
        count = math.prod(tensor.dims)
        budget.take(f"array {tensor.name!r}", 8 * count)
        if uses_external_data(tensor):
            # without a length, the rest of the file would be read
            length = str(count * tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
            given = {entry.key: entry.value for entry in tensor.external_data}.setdefault("length", length)
            if given != length:
                raise ValueError(f"array {tensor.name!r} needs {length} bytes, but {given} are declared for its file")
            tensor.external_data.add(key="length", value=length)
            # onnx refuses paths outside the model's folder
            load_external_data_for_tensor(tensor, str(folder))


def _shape(value: Any) -> tuple[tuple[int, ...], bool]:
    """Return the shape of the input for one sample, and whether its first axis is a batch of any length."""
    axes = value.type.tensor_type.shape.dim
    sizes = [axis.dim_value for axis in axes]
    batch = len(sizes) > 1 and sizes[0] < 1
    sizes = [1, *sizes[1:]] if batch else sizes
    if not sizes or min(sizes) < 1:
        text = ", ".join(axis.dim_param or str(axis.dim_value) for axis in axes)
        raise ValueError(f"the input {value.name!r} has shape [{text}]; every axis but the first must be a number")
    check_bytes(f"a layer for an input of shape {sizes}", 8 * math.prod(sizes) ** 2)
    return tuple(np.asarray(sizes).tolist()), batch


IMPORTER = Importer(
    "an ONNX model",
    lambda content: _BEGINS.match(content.head) is not None,
    _load,
    "supported are affine maps, sums over layers and piecewise-linear activations",
)
