"""A curve as an ONNX model: values[i] + slopes[i] (x - knots[i]) after a count of the knots that x is beyond."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from plunit.pieces.curve import Curve


def save_onnx(curve: Curve, path: str | Path) -> None:
    """Write an ONNX model x [n, 1] -> y [n, out] in double precision; needs the package `onnx`.

    Beyond the ends of the domain the first and the last piece go on. Dead kinks are left out.
    """
    try:
        import onnx
    except ImportError:
        raise ImportError("save_onnx needs the package onnx: pip install onnx") from None
    make = onnx.helper
    nodes = [
        make.make_node("GreaterOrEqual", ["x", "inner"], ["beyond"]),
        make.make_node("Cast", ["beyond"], ["ones"], to=onnx.TensorProto.INT64),
        make.make_node("ReduceSum", ["ones", "axis"], ["count"], keepdims=0),
        # x = inf is beyond the knot at infinity too
        make.make_node("Min", ["count", "last"], ["piece"]),
        make.make_node("Gather", ["knots", "piece"], ["knot"]),
        make.make_node("Gather", ["slopes", "piece"], ["slope"]),
        make.make_node("Gather", ["values", "piece"], ["value"]),
        make.make_node("Sub", ["x", "knot"], ["step"]),
        make.make_node("Mul", ["slope", "step"], ["rise"]),
        make.make_node("Add", ["value", "rise"], ["y"]),
    ]
    double = onnx.TensorProto.DOUBLE
    x = make.make_tensor_value_info("x", double, ["n", 1])
    y = make.make_tensor_value_info("y", double, ["n", curve.values.shape[1]])
    graph = make.make_graph(nodes, "curve", [x], [y], _tables(curve.merged(), onnx.numpy_helper))
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))


def _tables(merged: Curve, numpy_helper: Any) -> list[Any]:
    # a knot at infinity, so that a curve of one piece is no special case
    tables = {
        "inner": np.append(merged.knots[1:-1], np.inf)[None],
        "axis": np.array([1], dtype=np.int64),
        "last": np.array([len(merged.slopes) - 1], dtype=np.int64),
        "knots": merged.knots[:-1, None],
        "values": merged.values[:-1],
        "slopes": merged.slopes,
    }
    return [numpy_helper.from_array(np.ascontiguousarray(table), name) for name, table in tables.items()]
