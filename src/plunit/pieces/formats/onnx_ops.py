"""The operators of ONNX that are piecewise-linear: one entry of a table for each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.formats.waves import Wave

_LARGEST = float(np.finfo(np.float32).max)
_ZERO = Wave.line(0.0, 0.0)
_ONE = Wave.line(0.0, 1.0)
_FLOATS = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"}


@dataclass(frozen=True)
class Call:
    """One node: its inputs (waves, arrays or None), its attributes, and the axes of the features without the batch."""

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
        return np.asarray(self.values[i])

    def bound(self, i: int, name: str, default: float) -> Wave | None:
        """Return a limit of Clip, an input or in older models an attribute; None if there is none."""
        given = self.array(i) if len(self.values) > i and self.values[i] is not None else None
        limit = np.float32(self.attributes.get(name, default)) if given is None else given
        # the largest number of a type is how exporters write that there is no limit
        largest = np.finfo(limit.dtype).max if limit.dtype.kind == "f" else np.inf
        return None if np.abs(limit) >= largest else constant(limit, self.shape)


def constant(array: Any, shape: tuple[int, ...]) -> Wave:
    """Return an array as constants of the units, for features of this shape after the axis of the batch."""
    array = np.asarray(array)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"it takes an array of {array.dtype}, not of real numbers")
    if np.isnan(array).any():
        raise ValueError("it takes an array with NaN, and numbers must be finite")
    # the batch may have any length, so a constant must have length 1 on that axis
    if array.ndim > len(shape) + 1 or (array.ndim == len(shape) + 1 and array.shape[0] != 1):
        raise ValueError(f"it takes an array of shape {array.shape}, which does not fit features of shape {shape}")
    if array.size == 1:
        return Wave.line(0.0, array.reshape(1).astype(np.float64))
    return Wave.line(0.0, np.broadcast_to(array, (1, *shape)).reshape(-1).astype(np.float64))


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


def _batch_norm(call: Call) -> Wave:
    """(x - mean) / sqrt(var + epsilon) * scale + bias, along the first axis after that of the batch."""
    if call.attributes.get("training_mode", 0):
        raise ValueError("it is in training mode; export the model in eval mode")
    scale, bias, mean, var = (call.array(i).astype(np.float64) for i in range(1, 5))
    factor = scale / np.sqrt(var + call.attributes.get("epsilon", 1e-5))
    axes = (1, -1, *[1] * (len(call.shape) - 1))
    factor, shift = factor.reshape(axes), (bias - factor * mean).reshape(axes)
    return call.wave(0) * constant(factor, call.shape) + constant(shift, call.shape)


def _of_waves(function: Callable[..., Wave]) -> Callable[[Call], Wave]:
    return lambda call: function(*call.waves())


def _of_many(function: Callable[[Wave, Wave], Wave]) -> Callable[[Call], Wave]:
    return lambda call: reduce(function, call.waves())


ELEMENTWISE: dict[str, Callable[[Call], Wave]] = {
    "Abs": _of_waves(lambda z: z.maximum(-z)),
    "Add": _of_waves(lambda a, b: a + b),
    "And": _of_waves(lambda a, b: a.minimum(b)),
    "BatchNormalization": _batch_norm,
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


def gemm(call: Call) -> tuple[Floats, Floats]:
    """Return weight [out, in] and bias of alpha x B + beta C."""
    if call.attributes.get("transA", 0):
        raise ValueError("it transposes its input, which mixes the samples of a batch")
    matrix = call.array(1).astype(np.float64) * call.attributes.get("alpha", 1.0)
    weight = matrix if call.attributes.get("transB", 0) else matrix.T
    if len(call.values) < 3 or call.values[2] is None:
        return weight, np.zeros(len(weight))
    bias = call.array(2).astype(np.float64) * call.attributes.get("beta", 1.0)
    return weight, constant(bias, weight.shape[:1]).intercepts[:, 0]


def matmul(call: Call) -> tuple[Floats, Floats]:
    """Return weight [out, in] and bias of x B."""
    weight = call.array(1).astype(np.float64).T
    return weight, np.zeros(weight.shape[:1])


def flatten(call: Call) -> tuple[int, ...]:
    """Return the axes of the features after Flatten."""
    if call.attributes.get("axis", 1) != 1:
        raise ValueError(
            f"it flattens from axis {call.attributes['axis']}, not from axis 1, the first after that of the batch"
        )
    return (math.prod(call.shape),)


def reshape(call: Call) -> tuple[int, ...]:
    """Return the axes of the features after Reshape, which must be [batch, all features]."""
    units, target = math.prod(call.shape), call.array(1).reshape(-1).tolist()
    if len(target) != 2 or target[1] not in (units, -1) or target == [-1, -1]:
        raise ValueError(f"it reshapes to {target}; [batch, {units}] keeps the samples of a batch apart")
    return (units,)


AFFINE = {"Gemm": gemm, "MatMul": matmul}
SHAPES = {"Flatten": flatten, "Reshape": reshape}
KNOWN = ", ".join(sorted((*ELEMENTWISE, *AFFINE, *SHAPES)))
