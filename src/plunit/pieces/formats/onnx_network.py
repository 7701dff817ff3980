"""A network as the nodes of an ONNX graph: Gemm, and for each activation as few standard operators as it needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from plunit.pieces.activation import Activation
from plunit.pieces.arrays import Floats
from plunit.pieces.networks import Network


class Graph:
    """Nodes and arrays under names of their own."""

    def __init__(self, onnx: Any, dtype: np.dtype[Any]) -> None:
        self.nodes: list[Any] = []
        self.tables: list[Any] = []
        self._onnx, self.dtype = onnx, dtype

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(self._onnx.helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def table(self, array: Any, name: str = "") -> str:
        """Add an array and return its name."""
        name = name or f"array_{len(self.tables)}"
        with np.errstate(over="ignore"):
            stored = np.ascontiguousarray(array, dtype=self.dtype).reshape(np.shape(array))
        if not np.array_equal(np.isfinite(stored), np.isfinite(array)):
            raise ValueError(f"numbers up to {np.abs(array).max():.1e} do not fit {self.dtype}; use dtype float64")
        self.tables.append(self._onnx.numpy_helper.from_array(stored, name))
        return name

    def index(self, number: int) -> str:
        """Add an array of one integer and return its name."""
        name = f"array_{len(self.tables)}"
        self.tables.append(self._onnx.numpy_helper.from_array(np.array([number], dtype=np.int64), name))
        return name


def check_knots(net: Network, dtype: np.dtype[Any]) -> None:
    """Raise ValueError if two knots of a unit become one number in this type: the step between them would be lost."""
    for f in net.activations:
        with np.errstate(over="ignore", invalid="ignore"):
            lost = (np.diff(f.knots) > 0) & (np.diff(f.knots.astype(dtype)) == 0)
        if lost.any():
            knot = f.knots[..., :-1][lost][0]
            raise ValueError(f"two knots near {knot} are one number in {dtype}; use dtype float64")


def add_network(graph: Graph, net: Network, x: str) -> None:
    """Add all layers of a single network, for the input of this name."""
    for weight, bias, f in zip(net.weights, net.biases, (*net.activations, None), strict=True):
        # all attributes are written, because some readers have no defaults
        affine = (graph.table(weight[0]), graph.table(bias[0]))
        x = graph.node("Gemm", x, *affine, alpha=1.0, beta=1.0, transA=0, transB=1)
        if f is not None:
            x = _activation(graph, f, x)


def _activation(graph: Graph, f: Activation, z: str) -> str:
    """Add f(z): Relu, PRelu, m + alpha (z - m) with m = Clip(z), or a sum over the pieces."""
    knots, slopes, at_zero = f.knots[0], f.slopes[0], f.at_zero[0]
    if knots.shape[1] == 1 and not knots.any() and (slopes[:, 1] == 1).all() and not at_zero.any():
        if not slopes[:, 0].any():
            return graph.node("Relu", z)
        # the attribute of LeakyRelu has single precision
        return graph.node("PRelu", z, graph.table(_shared(slopes[:, 0])))
    if _is_clip_form(knots, slopes, at_zero):
        return _clip_form(graph, knots, slopes[:, 0], z)
    return _sum_form(graph, knots, slopes, at_zero, z)


def _is_clip_form(knots: Floats, slopes: Floats, at_zero: Floats) -> bool:
    """Whether the slopes are alpha, 1, alpha, and f(z) = z between the knots."""
    if knots.shape[1] != 2 or at_zero.any() or (knots * [-1, 1] < 0).any():
        return False
    return bool((slopes[:, 1] == 1).all() and (slopes[:, 0] == slopes[:, 2]).all() and np.isfinite(knots).all())


def _clip_form(graph: Graph, knots: Floats, alpha: Floats, z: str) -> str:
    """Add m + alpha (z - m), m = clip(z), which is exactly z between the knots, because z - m is 0 there."""
    inner = _clip(graph, z, knots[:, 0], knots[:, 1])
    if not alpha.any():
        return inner
    beyond = graph.node("Mul", graph.node("Sub", z, inner), graph.table(_shared(alpha)))
    return graph.node("Add", inner, beyond)


def _sum_form(graph: Graph, knots: Floats, slopes: Floats, at_zero: Floats, z: str) -> str:
    """f(0) + sum_j slopes[j] (clip(z, knots[j - 1], knots[j]) - clip(0, knots[j - 1], knots[j]))."""
    ends = np.pad(knots, ((0, 0), (1, 1)), constant_values=((0, 0), (-np.inf, np.inf)))
    total = ""
    for j in range(slopes.shape[1]):
        low, high = ends[:, j], ends[:, j + 1]
        # a piece that starts at +inf is empty, and is put at the largest finite number
        largest = float(np.finfo(graph.dtype).max)
        start = np.clip(0.0, np.clip(low, -largest, largest), np.clip(high, -largest, largest))
        factor = np.where(np.isposinf(low), 0.0, slopes[:, j])
        if factor.any():
            part = _clip(graph, z, np.where(np.isposinf(low), -np.inf, low), high)
            part = graph.node("Sub", part, graph.table(_shared(start))) if start.any() else part
            part = graph.node("Mul", part, graph.table(_shared(factor))) if (factor != 1).any() else part
            total = graph.node("Add", total, part) if total else part
    total = total or graph.node("Mul", z, graph.table(np.zeros(1)))
    return graph.node("Add", total, graph.table(_shared(at_zero))) if at_zero.any() else total


def _clip(graph: Graph, z: str, low: Floats, high: Floats) -> str:
    """Add clip(z, low, high): one Clip if all units have the same finite ends, else Max and Min."""
    if np.isfinite([low, high]).all() and len(np.unique(low)) == len(np.unique(high)) == 1:
        return graph.node("Clip", z, graph.table(low[0]), graph.table(high[0]))
    if np.isfinite(low).any():
        z = graph.node("Max", z, graph.table(_shared(low)))
    return graph.node("Min", z, graph.table(_shared(high))) if np.isfinite(high).any() else z


def _shared(array: Floats) -> Floats:
    """Return one number if all units have the same."""
    return array[:1] if (array == array[0]).all() else array
