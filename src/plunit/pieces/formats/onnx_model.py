"""Networks and curves as ONNX models.

A curve is values[i] + slopes[i] (x - knots[i]) after a count of the knots that x is beyond; a network is its layers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from plunit.files import save_whole
from plunit.pieces.curve_data import Curve
from plunit.pieces.formats.onnx_network import Graph, add_network, check_knots
from plunit.pieces.networks import Network, single
from plunit.pieces.relu import to_relu


def save_onnx(function: Network | Curve, path: str | Path, *, dtype: Any = "float64", relu: bool = False) -> None:
    """Write an ONNX model x [n, in] -> y [n, out]; needs the package `onnx`.

    Args:
        function: a network, or a curve, whose first and last piece go on beyond the ends and whose dead kinks are left
            out.
        path: the file.
        dtype: "float64" or "float32", that of x, of y and of all numbers between.
        relu: write the network as a plain ReLU network (`to_relu`), of Gemm and Relu alone.

    In a network each layer is a Gemm, ReLU is Relu, a leaky ReLU PRelu, PLU m + alpha (z - m) with m = Clip(z), and any
    other activation a sum over its pieces. `load` reads networks back.
    """
    save_whole(path, bytes_of(function, dtype=dtype, relu=relu))


def bytes_of(function: Network | Curve, *, dtype: Any = "float64", relu: bool = False) -> bytes:
    """Return what `save_onnx` writes."""
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}")
    if relu and isinstance(function, Curve):
        raise ValueError("relu=True rewrites networks, and this is a curve; give the network it was found from")
    try:
        import onnx
    except ImportError:
        raise ImportError("save_onnx needs the package onnx: pip install onnx") from None
    graph = Graph(onnx, kind)
    if isinstance(function, Curve):
        inputs, outputs = 1, function.values.shape[1]
        _add_curve(graph, function.merged(), onnx)
    else:
        single(function)
        check_knots(function, kind)
        net = to_relu(function, only_relu=True) if relu else function
        inputs, outputs = net.inputs, net.outputs
        add_network(graph, net, "x")
    graph.nodes[-1].output[0] = "y"
    return _model_bytes(onnx, graph, kind, inputs, outputs)


def _model_bytes(onnx: Any, graph: Graph, kind: np.dtype[Any], inputs: int, outputs: int) -> bytes:
    make = onnx.helper
    number = make.np_dtype_to_tensor_dtype(kind)
    x = make.make_tensor_value_info("x", number, ["n", inputs])
    y = make.make_tensor_value_info("y", number, ["n", outputs])
    nodes = make.make_graph(graph.nodes, "plunit", [x], [y], graph.tables)
    model = make.make_model(nodes, opset_imports=[make.make_opsetid("", 17)], ir_version=8, producer_name="plunit")
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


def _add_curve(graph: Graph, merged: Curve, onnx: Any) -> None:
    """Add the nodes of a curve."""
    # with a knot at infinity, a curve of one piece needs no special case
    inner = graph.table(np.append(merged.knots[1:-1], np.inf)[None])
    beyond = graph.node("GreaterOrEqual", "x", inner)
    ones = graph.node("Cast", beyond, to=onnx.TensorProto.INT64)
    count = graph.node("ReduceSum", ones, graph.index(1), keepdims=0)
    # x = inf is beyond the knot at infinity too
    piece = graph.node("Min", count, graph.index(len(merged.slopes) - 1))
    tables = {"knots": merged.knots[:-1, None], "slopes": merged.slopes, "values": merged.values[:-1]}
    knot, slope, value = (graph.node("Gather", graph.table(table, name), piece) for name, table in tables.items())
    rise = graph.node("Mul", slope, graph.node("Sub", "x", knot))
    graph.node("Add", value, rise)
