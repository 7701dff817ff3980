"""`save_onnx`: a network or a curve as an ONNX model of Gemm and a few standard operators for each activation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from plunit.base.errors import missing
from plunit.base.files import save_whole
from plunit.pieces.activation import Activation
from plunit.pieces.arrays import Floats
from plunit.pieces.boxes import labels
from plunit.pieces.exact.line_curves import Curve
from plunit.pieces.float_errors import check_knots
from plunit.pieces.networks import Network, check_network
from plunit.pieces.rewriting import to_relu


def save_onnx(
    function: Network | Curve,
    path: str | Path,
    *,
    dtype: Any = "float64",
    relu: bool = False,
    names: Sequence[str] = (),
    about: str = "",
) -> None:
    """Write an ONNX model x [n, in] -> y [n, out]; needs the package `onnx`.

    Args:
        function: a network, or a curve, which is extended beyond its ends and loses its dead kinks.
        path: the file to write.
        dtype: "float64" or "float32", the type of x, y and all numbers between.
        relu: whether to write a plain ReLU network (`to_relu`), with only Gemm and Relu.
        names: the names of the inputs, stored as a JSON list under `inputs` in the model's metadata.
        about: the model's `doc_string`.

    Each layer of a network becomes a Gemm, ReLU becomes Relu, a leaky ReLU PRelu, PLU m + alpha (z - m) with
    m = Clip(z), and any other activation a sum over its pieces. `load` reads networks back.
    """
    save_whole(path, bytes_of(function, dtype, relu, names, about))


def bytes_of(
    function: Network | Curve, dtype: Any = "float64", relu: bool = False, names: Sequence[str] = (), about: str = ""
) -> bytes:
    """Return the bytes that `save_onnx` writes."""
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}")
    if relu and isinstance(function, Curve):
        raise ValueError("relu=True needs a network, got a curve; save the network of this curve")
    try:
        import onnx
    except ModuleNotFoundError as error:
        raise missing(error, "onnx", user="save_onnx") from None
    graph = Graph(onnx, kind)
    if isinstance(function, Curve):
        inputs, outputs = 1, function.values.shape[1]
        merged = function.merge()
        check_knots(merged.knots[:-1], kind)
        _add_curve(graph, merged, onnx)
    else:
        check_network(function)
        for _, f in function.hidden:
            check_knots(f.knots, kind)
        net = to_relu(function) if relu else function
        inputs, outputs = net.inputs, net.outputs
        add_network(graph, net, "x")
    graph.nodes[-1].output[0] = "y"
    return _model_bytes(onnx, graph, kind, inputs, outputs, *labels(inputs, names, about))


class Graph:
    """Nodes and arrays with unique names."""

    def __init__(self, onnx: Any, dtype: np.dtype[Any]) -> None:
        self.nodes: list[Any] = []
        self.tables: list[Any] = []
        self._onnx, self.dtype = onnx, dtype

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(self._onnx.helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def table(self, array: Any, name: str = "", dtype: Any = None) -> str:
        """Add an array, by default of the model's type, and return its name."""
        name = name or f"array_{len(self.tables)}"
        with np.errstate(over="ignore"):
            stored = np.ascontiguousarray(array, dtype=dtype or self.dtype).reshape(np.shape(array))
        if not np.array_equal(np.isfinite(stored), np.isfinite(array)):
            raise ValueError(f"numbers up to {np.abs(array).max():.1e} do not fit {self.dtype}; use dtype='float64'")
        self.tables.append(self._onnx.numpy_helper.from_array(stored, name))
        return name


def add_network(graph: Graph, net: Network, x: str) -> None:
    """Add all layers of a network, with the input named x."""
    for layer in net.layers:
        # all attributes are written, because some readers have no defaults
        affine = (graph.table(layer.weight), graph.table(layer.bias))
        x = graph.node("Gemm", x, *affine, alpha=1.0, beta=1.0, transA=0, transB=1)
        if layer.activation is not None:
            x = _activation(graph, layer.activation, x)


def _activation(graph: Graph, f: Activation, z: str) -> str:
    """Add f(z): Relu, PRelu, m + alpha (z - m) with m = Clip(z), or a sum over the pieces."""
    knots, slopes, at_zero = f.knots, f.slopes, f.at_zero
    if knots.shape[1] == 1 and not knots.any() and (slopes[:, 1] == 1).all() and not at_zero.any():
        if not slopes[:, 0].any():
            return graph.node("Relu", z)
        # the attribute of LeakyRelu is in single precision
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
        # a piece that starts at +inf is empty, and is moved to the largest finite number
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
    """Add clip(z, low, high): one Clip if all units share the same finite ends, else Max and Min."""
    if np.isfinite([low, high]).all() and len(np.unique(low)) == len(np.unique(high)) == 1:
        return graph.node("Clip", z, graph.table(low[0]), graph.table(high[0]))
    if np.isfinite(low).any():
        z = graph.node("Max", z, graph.table(_shared(low)))
    return graph.node("Min", z, graph.table(_shared(high))) if np.isfinite(high).any() else z


def _shared(array: Floats) -> Floats:
    """Return one number if all units share it, else all numbers."""
    return array[:1] if (array == array[0]).all() else array


def _model_bytes(
    onnx: Any, graph: Graph, kind: np.dtype[Any], inputs: int, outputs: int, names: list[str], about: list[str]
) -> bytes:
    make = onnx.helper
    number = make.np_dtype_to_tensor_dtype(kind)
    x = make.make_tensor_value_info("x", number, ["n", inputs])
    y = make.make_tensor_value_info("y", number, ["n", outputs])
    nodes = make.make_graph(graph.nodes, "plunit", [x], [y], graph.tables)
    model = make.make_model(nodes, opset_imports=[make.make_opsetid("", 17)], ir_version=8, producer_name="plunit")
    model.doc_string = "\n".join(about)
    if names:
        make.set_model_props(model, {"inputs": json.dumps(names)})
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


def _add_curve(graph: Graph, merged: Curve, onnx: Any) -> None:
    """Add the nodes of a curve."""
    # with a knot at infinity, a curve with one piece is no special case
    inner = graph.table(np.append(merged.knots[1:-1], np.inf)[None])
    beyond = graph.node("GreaterOrEqual", "x", inner)
    ones = graph.node("Cast", beyond, to=onnx.TensorProto.INT64)
    count = graph.node("ReduceSum", ones, graph.table([1], dtype=np.int64), keepdims=0)
    # x = inf is also beyond the knot at infinity
    piece = graph.node("Min", count, graph.table([len(merged.slopes) - 1], dtype=np.int64))
    tables = {"knots": merged.knots[:-1, None], "slopes": merged.slopes, "values": merged.values[:-1]}
    knot, slope, value = (graph.node("Gather", graph.table(table, name), piece) for name, table in tables.items())
    rise = graph.node("Mul", slope, graph.node("Sub", "x", knot))
    graph.node("Add", value, rise)
