"""Compare layers with the nodes of the graph that they were read from, evaluated one by one in NumPy.

`waves` has functions as pieces. Here every operator is stated once more, on numbers, without pieces. A graph on
which the two differ is refused: between its kinks, on both sides of each, and at each.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from plunit.pieces.activation import Activation
from plunit.pieces.arrays import Floats
from plunit.pieces.formats.importer import check_bytes
from plunit.pieces.networks import LayerLike

_NEAR = 1e-5  # functions of float32 constants may jump by 1e-6 at each kink (see `waves`)
_ROUNDING = 1e-9
_NUMBERS = 2**20
_PARTS = np.array([0.03, 0.29, 0.5, 0.83])

_Numbers = Callable[..., Any]


def _gemm(a: Any, b: Any, c: Any = 0.0, alpha: float = 1.0, beta: float = 1.0, **how: int) -> Any:
    return alpha * (a @ (b.T if how.get("transB", 0) else b)) + beta * (0.0 if c is None else c)


def _clip(x: Any, low: Any = None, high: Any = None, **ends: float) -> Any:
    low = ends.get("min", -np.inf) if low is None else low
    return np.minimum(np.maximum(x, low), ends.get("max", np.inf) if high is None else high)


def _normalised(x: Any, scale: Any, bias: Any, mean: Any, var: Any, epsilon: float = 1e-5, **_: Any) -> Any:
    axes = (1, -1, *[1] * (x.ndim - 2))
    scale, bias, mean, var = (part.reshape(axes) for part in (scale, bias, mean, var))
    return scale * (x - mean) / np.sqrt(var + epsilon) + bias


def _hard_sigmoid(x: Any, alpha: float = 0.2, beta: float = 0.5) -> Any:
    return np.clip(alpha * x + beta, 0, 1)


NUMBERS: dict[str, _Numbers] = {
    "Abs": np.abs,
    "Add": np.add,
    "And": np.logical_and,
    "BatchNormalization": _normalised,
    # the pieces are those of real numbers, so no step rounds
    "Cast": lambda x, **_: x.astype(np.float64),
    "Clip": _clip,
    "Div": np.divide,
    "Dropout": lambda x, *_, **__: x,
    "Flatten": lambda x, **_: x.reshape(len(x), -1),
    "Gemm": _gemm,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "HardSigmoid": _hard_sigmoid,
    "Identity": lambda x: x,
    "LeakyRelu": lambda x, alpha=0.01: np.where(x < 0, alpha * x, x),
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "MatMul": np.matmul,
    "Max": lambda *parts: reduce(np.maximum, parts),
    "Min": lambda *parts: reduce(np.minimum, parts),
    "Mul": np.multiply,
    "Neg": np.negative,
    "Not": np.logical_not,
    "Or": np.logical_or,
    "PRelu": lambda x, slope: np.where(x < 0, slope * x, x),
    "Relu": lambda x: np.maximum(x, 0),
    "Reshape": lambda x, shape, **_: x.reshape(len(x), -1),
    "Sign": np.sign,
    "Sub": np.subtract,
    "Sum": lambda *parts: reduce(np.add, parts),
    "Where": np.where,
}
"""What every operator that can be read computes, of arrays in float64 and of masks."""


def _computed(node: Any, values: Mapping[str, Any]) -> Any:
    """Return the value of a node."""
    inputs = [None if not name else _widened(values[name]) for name in node.input]
    return NUMBERS[node.op_type](*inputs, **attributes(node))


def attributes(node: Any) -> dict[str, Any]:
    """Return the attributes of a node by name."""
    from onnx.helper import get_attribute_value

    return {attribute.name: get_attribute_value(attribute) for attribute in node.attribute}


def probes(waves: Iterable[Floats], units: int) -> Floats:
    """Return points [n, units]: all of these knots [units, k], their neighbours, and points on both sides of each."""
    parts = [np.zeros((units, 1)), *(np.broadcast_to(knots, (units, knots.shape[1])) for knots in waves)]
    check_bytes("the points at its kinks", 8 * units * 7 * sum(part.shape[1] + 1 for part in parts))
    every = np.concatenate(parts, axis=1)
    knots = np.sort(np.where(np.isfinite(every), every, 0.0), axis=1)
    knots = knots[:, np.append(True, (np.diff(knots) > 0).any(axis=0))]
    reach = 1 + np.abs(knots).max(axis=1, keepdims=True)
    ends = [knots[:, :1] - 1000 * reach, knots[:, :1] - 2 * reach, knots[:, -1:] + 2 * reach]
    edges = np.concatenate([*ends[:2], knots, ends[2], knots[:, -1:] + 1000 * reach], axis=1)
    between = edges[:, :-1, None] + np.diff(edges)[:, :, None] * _PARTS
    sides = [np.nextafter(knots, end) for end in (-np.inf, np.inf)]
    return np.concatenate([edges, *sides, between.reshape(units, -1)], axis=1).T


class UnitNodes:
    """The nodes after an affine layer, or after the input, whose values depend on it."""

    def __init__(self, source: str, shape: tuple[int, ...]) -> None:
        self.source, self.shape = source, shape
        self.nodes: list[Any] = []
        self.knots: list[Floats] = []

    def add(self, node: Any, knots: Floats) -> None:
        """Add a node, and the knots of its value as a function of the source."""
        self.nodes.append(node)
        self.knots.append(knots)

    def check(self, output: str, layers: list[LayerLike], constants: dict[str, Any]) -> None:
        """Raise ValueError if the layers are not what the nodes compute for the value named `output`."""
        points = probes(self.knots, int(np.prod(self.shape)))
        many = points.shape[1] * max([len(self.nodes) + 1, *(part.shape[1] for part in self.knots)])
        check_bytes("the values at one point of each unit", 8 * many)
        rows = max(1, _NUMBERS // many)
        for start in range(0, len(points), rows):
            z = points[start : start + rows]
            with np.errstate(all="ignore"):
                graph, terms = self._values(output, z, constants)
                found, size = _values(layers, z)
            wrong = ~(np.abs(graph - found) <= _NEAR * size + _ROUNDING * terms)
            if wrong.any():
                i = tuple(int(axis[0]) for axis in np.nonzero(wrong))
                raise ValueError(
                    f"a unit at {z[i]:.6g} has the value {graph[i]:.6g} in the graph and {found[i]:.6g} on the pieces "
                    "found for it: its function jumps there, or rounding decides a comparison of equal values"
                )

    def _values(self, output: str, z: Floats, constants: dict[str, Any]) -> tuple[Floats, Floats]:
        """Return the value of a name for the source z [n, units], and the largest size of any value on the way."""
        values: dict[str, Any] = {self.source: z.reshape(len(z), *self.shape)}
        terms = np.abs(z)
        for node in self.nodes:
            result = _computed(node, ChainMap(values, constants))
            values[node.output[0]] = result
            terms = np.maximum(terms, np.abs(result.astype(np.float64)).reshape(z.shape))
        return values[output].astype(np.float64).reshape(z.shape), terms


def check_affine(node: Any, weight: Floats, bias: Floats, values: dict[str, Any]) -> None:
    """Raise ValueError if a node is not weight h + bias for the h of its first input."""
    h = np.random.default_rng(0).normal(size=(3, weight.shape[1]))
    graph = np.asarray(_computed(node, ChainMap({node.input[0]: h}, values)))
    size = np.abs(h) @ np.abs(weight.T) + np.abs(bias)
    if graph.shape != size.shape or (np.abs(graph - (h @ weight.T + bias)) > _ROUNDING * size).any():
        raise ValueError("it is not the product with a matrix that was read; write it as MatMul and Add")


def _widened(value: Any) -> Any:
    array = np.asarray(value)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _values(layers: list[LayerLike], z: Floats) -> tuple[Floats, Floats]:
    """Return what the layers are for z [n, units], and the size of the terms."""
    size = np.abs(z)
    for layer in layers:
        if isinstance(layer, Activation):
            slopes, intercepts = (np.atleast_2d(part) for part in (layer.slopes, layer.intercepts))
            knots = np.atleast_2d(layer.knots)
            beyond = np.sum(z[:, :, None] > knots, axis=2)
            slope, intercept = (_pieces(part, beyond) for part in (slopes, intercepts))
            finite = np.where(np.isfinite(knots), knots, 0.0)
            ends = (np.abs(slopes[:, :-1] * finite) + np.abs(intercepts[:, :-1])).max(axis=1, initial=0.0)
            z, size = slope * z + intercept, np.abs(slope * z) + np.abs(intercept) + ends
        else:
            factor, shift = np.diagonal(layer[0]), layer[1]
            z, size = factor * z + shift, np.abs(factor * z) + np.abs(shift)
    return z, size


def _pieces(part: Floats, beyond: Any) -> Floats:
    """Return the number of each unit's piece: part [units or 1, pieces], beyond [n, units]."""
    return np.asarray(part[np.arange(beyond.shape[1]) if len(part) > 1 else 0, beyond])
