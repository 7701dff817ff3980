"""The piecewise-linear operators of ONNX, one entry of a table for each.

`ELEMENTWISE` are functions of each number. `AFFINE` are maps of a whole tensor, and `PICKED` move numbers around: the
reference of onnx (`compute`) evaluates the former on rows of numbers and the latter on indices. `fold` computes arrays
that do not depend on the input.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from plunit.pieces.arrays import Floats, blocks
from plunit.pieces.formats.onnx_graphs.waves import Wave
from plunit.pieces.graphs import Budget, check_bytes

_LARGEST = float(np.finfo(np.float32).max)
_ZERO = Wave.line(0.0, 0.0)
_ONE = Wave.line(0.0, 1.0)
_BOOL = 9  # the number in TensorProto
FLOATS = {1: "FLOAT", 10: "FLOAT16", 11: "DOUBLE", 16: "BFLOAT16"}
"""Floating-point types, with their numbers and names in TensorProto."""


@dataclass(frozen=True)
class Call:
    """One node: its inputs (waves, arrays or None), its attributes, the opset version, and the shape of its result."""

    values: list[Any]
    attributes: dict[str, Any]
    version: int
    shape: tuple[int, ...]

    def wave(self, i: int) -> Wave:
        """Return an input as a wave."""
        value = self.values[i]
        return value if isinstance(value, Wave) else constant(value, self.shape)

    def waves(self) -> list[Wave]:
        """Return all inputs as waves."""
        return [self.wave(i) for i in range(len(self.values))]

    def array(self, i: int) -> Floats:
        """Return an input that must be an array; ValueError if it depends on the input of the network."""
        if i >= len(self.values) or self.values[i] is None or isinstance(self.values[i], Wave):
            raise ValueError(f"input {i} must be an array")
        found = np.asarray(self.values[i])
        if found.dtype.kind == "c":
            raise ValueError(f"input {i} must be real numbers, got {found.dtype}")
        return found

    def limit(self, i: int, name: str, default: float) -> Wave | None:
        """Return a limit of Clip, an input or in older models an attribute; None if there is none."""
        given = self.array(i) if len(self.values) > i and self.values[i] is not None else None
        limit = np.float32(self.attributes.get(name, default)) if given is None else given
        # exporters write the largest number of a type if there is no limit
        largest = np.finfo(limit.dtype).max if limit.dtype.kind == "f" else np.inf
        return None if np.abs(limit) >= largest else constant(limit, self.shape)


def attributes(node: Any) -> dict[str, Any]:
    """Return the attributes of a node by name."""
    from onnx.helper import get_attribute_value

    return {attribute.name: get_attribute_value(attribute) for attribute in node.attribute}


def full_name(node: Any) -> str:
    """Return the name of an operator, with its domain unless that is the standard one."""
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def constant(array: Any, shape: tuple[int, ...]) -> Wave:
    """Return an array as constants of the units of a tensor of this shape."""
    array = np.asarray(array)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"an array must hold real numbers, got {array.dtype}")
    if np.isnan(array).any():
        raise ValueError("an array must be finite, got NaN")
    if array.size == 1:
        return Wave.line(0.0, array.reshape(1).astype(np.float64))
    return Wave.line(0.0, np.broadcast_to(array, shape).reshape(-1).astype(np.float64))


def _divide(call: Call) -> Wave:
    divisor = call.array(1).astype(np.float64)
    if not divisor.all():
        raise ValueError("the divisor must not be 0")
    return call.wave(0) * constant(1 / divisor, call.shape)


def rounds(call: Call, kind: str) -> bool:
    """Whether the factors of an elementwise operator are rounded: 1 / divisor, unless that is a power of 2."""
    return kind == "Div" and bool((np.abs(np.frexp(call.array(1).astype(np.float64))[0]) != 0.5).any())


def _leaky(z: Wave, slope: Wave) -> Wave:
    return z.maximum(_ZERO) + slope * z.minimum(_ZERO)


def _clip(call: Call) -> Wave:
    z = call.wave(0)
    low, high = call.limit(1, "min", -_LARGEST), call.limit(2, "max", _LARGEST)
    z = z if low is None else z.maximum(low)
    return z if high is None else z.minimum(high)


def _hard_sigmoid(call: Call) -> Wave:
    slope, shift = (float(np.float32(call.attributes.get(n, v))) for n, v in (("alpha", 0.2), ("beta", 0.5)))
    return (call.wave(0) * Wave.line(0.0, slope) + Wave.line(0.0, shift)).maximum(_ZERO).minimum(_ONE)


def _cast(call: Call) -> Wave:
    z, kind = call.wave(0), call.attributes.get("to")
    is_mask = not z.slopes.any() and np.isin(z.intercepts, (0.0, 1.0)).all()
    if kind not in FLOATS and not (kind == _BOOL and is_mask):
        raise ValueError(f"only casts to {', '.join(FLOATS.values())} are supported")
    return z


def _dropout(call: Call) -> Wave:
    # an input since version 12, an attribute before version 7
    if (len(call.values) > 2 and call.values[2] is not None and call.array(2).any()) or not call.attributes.get(
        "is_test", call.version > 6
    ):
        raise ValueError("the node is in training mode; export the model in eval mode")
    return call.wave(0)


def _of_waves(function: Callable[..., Wave]) -> Callable[[Call], Wave]:
    return lambda call: function(*call.waves())


def _of_many(function: Callable[[Wave, Wave], Wave]) -> Callable[[Call], Wave]:
    return lambda call: reduce(function, call.waves())


ELEMENTWISE: dict[str, Callable[[Call], Wave]] = {
    "Abs": _of_waves(lambda z: z.maximum(-z)),
    "Add": _of_waves(lambda a, b: a + b),
    "And": _of_waves(lambda a, b: a.minimum(b)),
    "Cast": _cast,
    "Clip": _clip,
    "Div": _divide,
    "Dropout": _dropout,
    "Greater": _of_waves(lambda a, b: a > b),
    # different from Greater: two functions may tie on a whole piece
    "GreaterOrEqual": _of_waves(lambda a, b: _ONE - (b > a)),
    "HardSigmoid": _hard_sigmoid,
    "Identity": _of_waves(lambda z: z),
    "LeakyRelu": lambda call: _leaky(
        call.wave(0), Wave.line(0.0, np.float32(call.attributes.get("alpha", 0.01)).astype(np.float64))
    ),
    "Less": _of_waves(lambda a, b: b > a),
    "LessOrEqual": _of_waves(lambda a, b: _ONE - (a > b)),
    "Max": _of_many(Wave.maximum),
    "Min": _of_many(Wave.minimum),
    "Mul": _of_waves(lambda a, b: a * b),
    "Neg": _of_waves(lambda z: -z),
    "Not": _of_waves(lambda a: _ONE - a),
    "Or": _of_waves(lambda a, b: a.maximum(b)),
    "PRelu": _of_waves(_leaky),
    "Relu": _of_waves(lambda z: z.maximum(_ZERO)),
    "Sign": _of_waves(lambda z: (z > _ZERO) - (z < _ZERO)),
    "Sub": _of_waves(lambda a, b: a - b),
    "Sum": _of_many(lambda a, b: a + b),
    "Where": _of_waves(lambda mask, yes, no: mask.where(yes, no)),
}


AFFINE: dict[str, tuple[int, ...]] = {
    "BatchNormalization": (2, 3),
    "Conv": (2,),
    "Gemm": (2,),
    "GlobalAveragePool": (),
    "MatMul": (),
    "ReduceMean": (),
    "ReduceSum": (),
}
"""Operators that are affine in an input, and the indices of the inputs they add: with 0 there, they are linear."""

MEANS = ("GlobalAveragePool", "ReduceMean")
"""The operators of `AFFINE` that divide by the number of terms."""

PICKED = ("Concat", "Expand", "Flatten", "Gather", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze")

_FOLDED = """
    Add And Cast Clip Concat Constant ConstantOfShape Div Equal Exp Expand Flatten Gather Greater Identity Less Max Min
    Mul Neg Not Or Reciprocal Reshape Shape Sigmoid Slice Split Sqrt Squeeze Sub Transpose Unsqueeze Where
"""
"""Operators on arrays that do not depend on the input; exporters write a learned slope of PLU as a sigmoid."""

_CONSTANTS = {"value", "value_float", "value_floats", "value_int", "value_ints"}
_NUMBERS = {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16}  # floats, integers and bool in TensorProto


def fold(node: Any, values: list[Any], version: int, budget: Budget) -> list[Any]:
    """Return the results of a node whose inputs are arrays."""
    if full_name(node) not in _FOLDED.split():
        raise ValueError(f"this operator is not supported on arrays; supported: {', '.join(_FOLDED.split())}")
    budget.take("the result", 8 * largest_size(node, values))
    named = {name: value for name, value in zip(node.input, values, strict=True) if name}
    return list(_evaluator(node, version).run(None, named))


def largest_size(node: Any, values: list[Any]) -> int:
    """Return the largest size that the results of a node on arrays can have; ValueError if that is unknown."""
    given = attributes(node)
    if node.op_type == "Cast" and given.get("to") not in _NUMBERS:
        raise ValueError("an array may be cast only to numbers")
    if node.op_type == "Constant":
        if set(given) - _CONSTANTS:
            raise ValueError(f"an array must be one of {', '.join(sorted(_CONSTANTS))}, got {', '.join(sorted(given))}")
        return sum(math.prod(value.dims) if name == "value" else np.size(value) for name, value in given.items())
    if node.op_type == "ConstantOfShape":
        return int(math.prod(np.ravel(values[0]).tolist()))
    if node.op_type == "Expand":
        return math.prod(np.broadcast_shapes(np.shape(values[0]), tuple(np.ravel(values[1]).tolist())))
    if node.op_type == "Gather":
        return int(np.size(values[0]) * np.size(values[1]))
    shapes: list[tuple[int, ...]] = [np.shape(value) for value in values if value is not None]
    rank = max(map(len, shapes), default=0)
    together = [max(axis) for axis in zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True)]
    # arrays are broadcast or concatenated
    return int(max(math.prod(together), sum(map(math.prod, shapes))))


def _evaluator(node: Any, version: int) -> Any:
    """Return onnx's reference evaluator of a node; it needs a graph, because it ignores the version of a single node.

    Operators of versions before 7 are evaluated as those of 7, because the reference has more of these.
    """
    from onnx import ValueInfoProto
    from onnx.helper import make_graph
    from onnx.reference import ReferenceEvaluator

    names = dict.fromkeys(name for name in node.input if name), node.output
    inputs, outputs = ([ValueInfoProto(name=name) for name in each] for each in names)
    return ReferenceEvaluator(make_graph([node], "node", inputs, outputs), opsets={"": max(version, 7)})


@lru_cache(maxsize=256)
def _reused_evaluator(node: bytes, version: int) -> Any:
    """Return `_evaluator` of a serialised node, cached because linear maps evaluate a node for many blocks of rows."""
    from onnx import NodeProto

    return _evaluator(NodeProto.FromString(node), version)


_DROPPED = {"broadcast", "consumed_inputs", "is_test", "spatial"}
"""Attributes of the first versions, which later versions imply."""


def compute(node: Any, values: Mapping[str, Any], version: int) -> list[Any]:
    """Return the results of a node, in float64."""
    is_float = node.op_type == "Cast" and attributes(node).get("to") in FLOATS
    if is_float or node.op_type == "Dropout":
        # the pieces are in real numbers, so no step rounds; the reference does not support every form of Dropout
        return [np.asarray(values[node.input[0]], dtype=np.float64)]
    if node.op_type == "Clip":
        return [_compute_clip(node, values)]
    if any(attribute.name in _DROPPED for attribute in node.attribute):
        whole, node = node, type(node)(op_type=node.op_type, input=node.input, output=node.output)
        node.attribute.extend(attribute for attribute in whole.attribute if attribute.name not in _DROPPED)
    if node.op_type == "BatchNormalization":
        version = max(version, 14)  # for earlier versions, the reference supports only training
    named = {name: _widen(values[name]) for name in node.input if name}
    return list(_reused_evaluator(node.SerializeToString(), version).run(None, named))


def _compute_clip(node: Any, values: Mapping[str, Any]) -> Any:
    """Return the result of Clip; the reference accepts its limits only as inputs, and only of the type of x."""
    x, *limits = ([_widen(values[name])] if name else [] for name in node.input)
    given = attributes(node)
    low, high = (*limits, [], [])[:2]
    low, high = low or [given.get("min", -np.inf)], high or [given.get("max", np.inf)]
    return np.minimum(np.maximum(x[0], low[0]), high[0])


def _widen(value: Any) -> Any:
    array = np.asarray(value)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def linear_map(
    node: Any, name: str, shape: tuple[int, ...], values: dict[str, Any], version: int
) -> tuple[Floats | Callable[[Floats], Floats], Floats]:
    """Return the linear part of a node, for its input of this name and shape, and the bias that it adds.

    The linear part is a matrix, or a function of rows of numbers.
    """
    if name not in node.input[: 2 if node.op_type in ("Gemm", "MatMul") else 1]:
        raise ValueError("the weights and the bias must be arrays that do not depend on the input of the network")
    if node.op_type == "BatchNormalization":
        _check_batch_norm(node, version)
    numbers = _numbers(node, name, shape, values)
    check_bytes("the array of its terms", 8 * numbers)
    bias = np.asarray(compute(node, ChainMap({name: np.zeros(shape)}, values), version)[0])
    if node.op_type == "MatMul" and node.input[0] == name and math.prod(shape[:-1]) == 1:
        matrix = np.asarray(values[node.input[1]], dtype=np.float64)
        if matrix.ndim == 2:
            return matrix.T, bias
    plain, zeros = type(node).FromString(node.SerializeToString()), dict[str, Any]()
    for i in AFFINE[node.op_type]:
        if i < len(node.input) and node.input[i]:
            plain.input[i] = f"{node.input[i]} as 0"
            zeros[plain.input[i]] = np.zeros(np.shape(values[node.input[i]]))
    batch = not node.op_type.startswith("Reduce") and node.input[0] == name and not attributes(node).get("transA", 0)
    batch = batch and len(shape) == bias.ndim > 1 and shape[0] == bias.shape[0] == 1
    step = max(1, 2**20 // numbers) if batch else 1

    def linear(x: Floats) -> Floats:
        parts = (x[block].reshape(-1, *shape[1:]) for block in blocks(len(x), step))
        found = (compute(plain, ChainMap({name: part}, zeros, values), version)[0] for part in parts)
        return np.concatenate([part.reshape(-1, bias.size) for part in found])

    return linear, bias


def _check_batch_norm(node: Any, version: int) -> None:
    """Raise ValueError in training mode, which versions write differently, or unless there is one scale per channel."""
    given = attributes(node)
    training = given.get("training_mode", 0) if version >= 14 else len(node.output) > 1
    if training if version >= 7 else not given.get("is_test", 0):
        raise ValueError("the node is in training mode; export the model in eval mode")
    if not given.get("spatial", 1):
        raise ValueError("spatial=0, a scale for each place of a channel, is not supported; export a later version")


def _numbers(node: Any, name: str, shape: tuple[int, ...], values: dict[str, Any]) -> int:
    """Return how many numbers a linear map computes for one sample, intermediate ones included."""
    if node.op_type not in ("Conv", "Gemm", "MatMul"):
        return max(1, math.prod(shape))
    first, given = node.input[0] == name, attributes(node)
    other: tuple[int, ...] = np.shape(values[node.input[1 if first else 0]])
    if node.op_type != "Conv":
        inner = max(1, shape[-1 if first or len(shape) == 1 else -2])
        return max(1, (math.prod(shape) // inner) * (math.prod(other) // inner))
    axes, kernel = len(shape) - 2, other[2:]
    if len(kernel) != axes or tuple(given.get("kernel_shape", kernel)) != kernel:
        raise ValueError(f"a kernel of shape {other} does not fit an input of shape {shape}")
    reach = [(size - 1) * gap + 1 for size, gap in zip(kernel, given.get("dilations", [1] * axes), strict=True)]
    pads = pads_of(given, shape[2:], reach)
    padded = [size + low + high for size, low, high in zip(shape[2:], pads[:axes], pads[axes:], strict=True)]
    if any(size < window for size, window in zip(padded, reach, strict=True)):
        raise ValueError(f"a kernel of shape {other} does not fit an input of shape {shape}")
    return int(max(1, shape[1] * math.prod(padded), math.prod(other[:2])) * math.prod(reach))


def pads_of(given: Mapping[str, Any], sizes: Sequence[int], reach: Sequence[int]) -> list[int]:
    """Return the padding before all axes, then after all, from the attributes of a node whose window has this reach."""
    rule, axes = given.get("auto_pad", b"NOTSET").decode(), len(sizes)
    if rule in ("NOTSET", ""):
        return list(given.get("pads", [0] * 2 * axes))
    if rule == "VALID":
        return [0] * 2 * axes
    if rule not in ("SAME_UPPER", "SAME_LOWER"):
        raise ValueError(f"auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, got {rule!r}")
    strides = given.get("strides", [1] * axes)
    # ceil(size / stride) windows
    ends = [(-(-size // stride) - 1) * stride for size, stride in zip(sizes, strides, strict=True)]
    whole = [max(0, end + window - size) for end, window, size in zip(ends, reach, sizes, strict=True)]
    first = [(pad + (rule == "SAME_LOWER")) // 2 for pad in whole]
    return [*first, *(pad - low for pad, low in zip(whole, first, strict=True))]
