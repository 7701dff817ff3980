"""The operators of ONNX that are piecewise-linear: one entry of a table for each.

`ELEMENTWISE` are functions of each number, `LINEAR` maps of a whole tensor, and `PICKED` move numbers around: onnx
itself says where to, asked about their indices. `folded` computes arrays that do not depend on the input.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from plunit.pieces.arrays import Floats
from plunit.pieces.formats.importer import Room, check_bytes
from plunit.pieces.formats.onnx_graphs.waves import Wave

_LARGEST = float(np.finfo(np.float32).max)
_ZERO = Wave.line(0.0, 0.0)
_ONE = Wave.line(0.0, 1.0)
Map = tuple[Callable[[Floats], Floats], Floats]
"""What is linear, of x [n, *shape], and what is added to it, which has the shape of the result."""

_FLOATS = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"}


@dataclass(frozen=True)
class Call:
    """One node: its inputs (waves, arrays or None), its attributes, and the shape that its inputs have together."""

    values: list[Any]
    attributes: dict[str, Any]
    shape: tuple[int, ...]

    def wave(self, i: int) -> Wave:
        """Return an input as a wave."""
        value = self.values[i]
        return value if isinstance(value, Wave) else constant(value, self.shape)

    def waves(self) -> list[Wave]:
        """Return all inputs as waves."""
        return [self.wave(i) for i in range(len(self.values))]

    def array(self, i: int) -> Floats:
        """Return an input that must not depend on the input of the network."""
        if i >= len(self.values) or self.values[i] is None or isinstance(self.values[i], Wave):
            raise ValueError(f"its input {i} must be an array")
        found = np.asarray(self.values[i])
        if found.dtype.kind == "c":
            raise ValueError(f"its input {i} must be real numbers, got {found.dtype}")
        return found

    def bound(self, i: int, name: str, default: float) -> Wave | None:
        """Return a limit of Clip, an input or in older models an attribute; None if there is none."""
        given = self.array(i) if len(self.values) > i and self.values[i] is not None else None
        limit = np.float32(self.attributes.get(name, default)) if given is None else given
        # the largest number of a type is how exporters write that there is no limit
        largest = np.finfo(limit.dtype).max if limit.dtype.kind == "f" else np.inf
        return None if np.abs(limit) >= largest else constant(limit, self.shape)


def attributes(node: Any) -> dict[str, Any]:
    """Return the attributes of a node by name."""
    from onnx.helper import get_attribute_value

    return {attribute.name: get_attribute_value(attribute) for attribute in node.attribute}


def constant(array: Any, shape: tuple[int, ...]) -> Wave:
    """Return an array as constants of the units of a tensor of this shape."""
    array = np.asarray(array)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"it takes an array of {array.dtype}, not of real numbers")
    if np.isnan(array).any():
        raise ValueError("it takes an array with NaN, and numbers must be finite")
    if array.size == 1:
        return Wave.line(0.0, array.reshape(1).astype(np.float64))
    return Wave.line(0.0, np.broadcast_to(array, shape).reshape(-1).astype(np.float64))


def _divided(call: Call) -> Wave:
    divisor = call.array(1).astype(np.float64)
    if not divisor.all():
        raise ValueError("it divides by 0")
    return call.wave(0) * constant(1 / divisor, call.shape)


def _leaky(z: Wave, slope: Wave) -> Wave:
    return z.maximum(_ZERO) + slope * z.minimum(_ZERO)


def _clip(call: Call) -> Wave:
    z = call.wave(0)
    low, high = call.bound(1, "min", -_LARGEST), call.bound(2, "max", _LARGEST)
    z = z if low is None else z.maximum(low)
    return z if high is None else z.minimum(high)


def _hard_sigmoid(call: Call) -> Wave:
    slope, shift = (float(np.float32(call.attributes.get(n, v))) for n, v in (("alpha", 0.2), ("beta", 0.5)))
    return (call.wave(0) * Wave.line(0.0, slope) + Wave.line(0.0, shift)).maximum(_ZERO).minimum(_ONE)


def _cast(call: Call) -> Wave:
    if call.attributes.get("to") not in _FLOATS:
        raise ValueError(f"it rounds to other numbers than {', '.join(_FLOATS.values())}")
    return call.wave(0)


def _dropout(call: Call) -> Wave:
    if len(call.values) > 2 and call.values[2] is not None and call.array(2).any():
        raise ValueError("it is in training mode; export the model in eval mode")
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
    "Div": _divided,
    "Dropout": _dropout,
    "Greater": _of_waves(lambda a, b: a > b),
    # not the same as Greater: two functions may tie on a whole piece
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


def _scaled(call: Call, i: int, name: str) -> Floats:
    return np.asarray(call.array(i).astype(np.float64) * call.attributes.get(name, 1.0))


def _gemm(call: Call) -> Map:
    """Return alpha x B + beta C."""
    shape = call.shape
    if call.attributes.get("transA", 0) or len(shape) < 2:
        raise ValueError(f"it takes an input [1, features] that is not transposed, got shape {list(shape)}")
    matrix = _scaled(call, 1, "alpha")
    weight = matrix.T if call.attributes.get("transB", 0) else matrix
    _check_matrix(weight, shape[-1])
    bias = _scaled(call, 2, "beta") if len(call.values) > 2 and call.values[2] is not None else np.zeros(())
    return lambda x: x @ weight, np.broadcast_to(bias, (*shape[:-1], weight.shape[1]))


def _check_matrix(weight: Floats, features: int) -> None:
    if weight.ndim != 2 or len(weight) != features:
        raise ValueError(f"its matrix has shape {weight.shape}, but {features} features come in")
    # a later layer may need a square matrix
    check_bytes(f"a layer of {weight.shape[1]:,} units", 8 * weight.shape[1] ** 2)


def _matmul(call: Call) -> Map:
    """Return x B, or A x."""
    shape = call.shape
    right = isinstance(call.values[0], Wave)
    matrix = call.array(1 if right else 0).astype(np.float64)
    if matrix.ndim == 2:
        _check_matrix(matrix if right else matrix.T, shape[-1 if right or len(shape) == 1 else -2])
    inner = max(1, shape[-1 if right or len(shape) == 1 else -2])
    check_bytes("its result", 8 * (math.prod(shape) // inner) * (matrix.size // inner))
    zeros = np.zeros(shape)
    bias = np.zeros(np.shape(zeros @ matrix if right else matrix @ zeros))
    # a vector is a row on the left and a column on the right; arrays of more axes are broadcast over the others
    lifted = ((1, *shape) if right else (*shape, 1)) if len(shape) == 1 else shape
    lifted = (1,) * (matrix.ndim - len(lifted)) + lifted

    def mapped(x: Floats) -> Floats:
        stack = x.reshape(-1, *lifted)
        return stack @ matrix if right else matrix @ stack

    return mapped, bias


def _conv(call: Call) -> Map:
    """The sum of x times the kernel over all its places, for each group of channels."""
    shape = call.shape
    kernel = call.array(1).astype(np.float64)
    axes = kernel.ndim - 2
    if (
        call.attributes.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID")
        or len(shape) != axes + 2
        or shape[0] != 1
    ):
        raise ValueError(f"it takes an input [1, channels, ...] and pads by numbers alone, got shape {list(shape)}")
    pads = call.attributes.get("pads", [0] * 2 * axes)
    steps, gaps = (call.attributes.get(name, [1] * axes) for name in ("strides", "dilations"))
    groups = call.attributes.get("group", 1)
    if kernel.shape[1] * groups != shape[1] or len(kernel) % groups:
        raise ValueError(f"its kernel has shape {kernel.shape}, but {shape[1]} channels come in")
    windows = [(size - 1) * gap + 1 for size, gap in zip(kernel.shape[2:], gaps, strict=True)]
    around = [(0, 0), (0, 0), *zip(pads[:axes], pads[axes:], strict=True)]
    picked: Any = (..., *(slice(None, None, step) for step in steps), *(slice(None, None, gap) for gap in gaps))
    over = [1, *range(2 + axes, 2 + 2 * axes)]

    padded = math.prod(size + sum(ends) for size, ends in zip(shape, around, strict=True))
    check_bytes("its padded input", 8 * padded * math.prod(kernel.shape[2:]))

    def mapped(x: Floats) -> Floats:
        if len(x) > 1:  # all windows of all rows would need much memory
            return np.concatenate([mapped(row[None]) for row in x])
        places = sliding_window_view(np.pad(x.reshape(shape), around), windows, axis=tuple(range(2, 2 + axes)))
        parts = zip(np.split(places[picked], groups, axis=1), np.split(kernel, groups), strict=True)
        sums = [np.tensordot(part, weights, (over, range(1, axes + 2))) for part, weights in parts]
        return np.moveaxis(np.concatenate(sums, axis=-1), -1, 1)

    result = mapped(np.zeros(shape)).shape
    check_bytes("its result", 8 * math.prod(result) ** 2)
    bias = call.array(2).astype(np.float64) if len(call.values) > 2 and call.values[2] is not None else np.zeros(1)
    return mapped, np.broadcast_to(bias.reshape(1, -1, *[1] * axes), result)


def _reduced(function: Callable[..., Floats]) -> Callable[[Call], Map]:
    """Return the sum or the mean over axes, which are an attribute or in later versions an input."""

    def linear(call: Call) -> Map:
        shape = call.shape
        given = (
            call.attributes.get("axes") if len(call.values) < 2 or call.values[1] is None else call.array(1).tolist()
        )
        keeps = bool(call.attributes.get("keepdims", 1))
        if given is None and call.attributes.get("noop_with_empty_axes", 0):
            raise ValueError("it reduces no axis; leave it out")
        axes = tuple(range(len(shape))) if given is None else tuple(axis % len(shape) for axis in given)
        bias = np.zeros(np.shape(function(np.zeros(shape), axis=axes, keepdims=keeps)))
        behind = tuple(axis + 1 for axis in axes)
        return lambda x: function(x.reshape(-1, *shape), axis=behind, keepdims=keeps), bias

    return linear


LINEAR: dict[str, Callable[[Call], Map]] = {
    "Conv": _conv,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "ReduceMean": _reduced(np.mean),
    "ReduceSum": _reduced(np.sum),
}
PICKED = ("Concat", "Expand", "Flatten", "Gather", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze")
KNOWN = ", ".join(sorted((*ELEMENTWISE, *LINEAR, *PICKED, "BatchNormalization")))

_FOLDED = """
    Add And Cast Clip Concat Constant ConstantOfShape Div Equal Exp Expand Flatten Gather Greater Identity Less Max Min
    Mul Neg Not Or Reciprocal Reshape Shape Sigmoid Slice Split Sqrt Squeeze Sub Transpose Unsqueeze Where
"""
"""Operators on arrays that do not depend on the input: exporters write a learned slope of PLU as a sigmoid."""

_CONSTANTS = {"value", "value_float", "value_floats", "value_int", "value_ints"}
_NUMBERS = {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16}  # floats, integers and bool, as TensorProto numbers them


def folded(node: Any, values: list[Any], version: int, room: Room) -> list[Any]:
    """Compute the results of a node from arrays."""
    from onnx.reference import ReferenceEvaluator

    if node.op_type not in _FOLDED.split():
        raise ValueError(f"it is not known; known are {KNOWN}")
    room.take("its result", 8 * largest_size(node, values))
    named = {name: value for name, value in zip(node.input, values, strict=True) if name}
    results: Any = ReferenceEvaluator(node, opsets={"": version}).run(None, named)
    return list(results)


def largest_size(node: Any, values: list[Any]) -> int:
    """Return the most numbers that the results of a node on arrays can have; ValueError if that is not known."""
    given = attributes(node)
    if node.op_type == "Cast" and given.get("to") not in _NUMBERS:
        raise ValueError("it makes other things than numbers of an array")
    if node.op_type == "Constant":
        if set(given) - _CONSTANTS:
            raise ValueError(
                f"it has {', '.join(sorted(given))}; an array must be one of {', '.join(sorted(_CONSTANTS))}"
            )
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
    # arrays are broadcast, or put one after the other
    return int(max(math.prod(together), sum(map(math.prod, shapes))))
