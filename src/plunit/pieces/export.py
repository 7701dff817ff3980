"""Curves as programs: an ONNX model and a C header, both values[i] + slopes[i] (x - knots[i]) after a search for i.

Beyond the ends of the domain the first and the last piece go on. Dead kinks are left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.curve import Curve

_HEADER = """\
/* {name}: a piecewise-linear function of one variable, {pieces} pieces on [{low}, {high}], {outputs} output(s).
   Beyond the ends the first and the last piece go on. */
#ifndef {guard}
#define {guard}

static const double {name}_knots[{pieces}] = {knots};
static const double {name}_values[{pieces}][{outputs}] = {values};
static const double {name}_slopes[{pieces}][{outputs}] = {slopes};

/* y[0..{last}] = {name}(x) */
static inline void {name}(double x, double *y) {{
    int low = 0, high = {pieces} - 1;
    while (low < high) {{
        int middle = (low + high + 1) / 2;
        if (x >= {name}_knots[middle]) low = middle;
        else high = middle - 1;
    }}
    for (int i = 0; i < {outputs}; i++)
        y[i] = {name}_values[low][i] + {name}_slopes[low][i] * (x - {name}_knots[low]);
}}

#endif
"""


def save_c(curve: Curve, path: str | Path, name: str = "curve") -> None:
    """Write a C99 header without dependencies that defines `void name(double x, double *y)`."""
    if not re.fullmatch(r"[A-Za-z]\w*", name, flags=re.ASCII):
        raise ValueError(f"name must be a C identifier, got {name!r}")
    merged = curve.merged()
    outputs = merged.values.shape[1]
    text = _HEADER.format(
        name=name,
        guard=f"{name.upper()}_H",
        pieces=len(merged.slopes),
        outputs=outputs,
        last=outputs - 1,
        low=merged.low,
        high=merged.high,
        knots=_braces(merged.knots[:-1]),
        values=_braces(merged.values[:-1]),
        slopes=_braces(merged.slopes),
    )
    Path(path).write_text(text)


def save_onnx(curve: Curve, path: str | Path) -> None:
    """Write an ONNX model x [n, 1] -> y [n, out] in double precision; needs the package `onnx`."""
    try:
        import onnx
    except ImportError:
        raise ImportError("save_onnx needs the package onnx: pip install onnx") from None
    make = onnx.helper
    nodes = [
        make.make_node("GreaterOrEqual", ["x", "inner"], ["beyond"]),
        make.make_node("Cast", ["beyond"], ["ones"], to=onnx.TensorProto.INT64),
        make.make_node("ReduceSum", ["ones", "axis"], ["piece"], keepdims=0),
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
        "knots": merged.knots[:-1, None],
        "values": merged.values[:-1],
        "slopes": merged.slopes,
    }
    return [numpy_helper.from_array(np.ascontiguousarray(table), name) for name, table in tables.items()]


def _braces(array: Floats) -> str:
    if array.ndim == 1:
        return "{" + ", ".join(repr(float(number)) for number in array) + "}"
    return "{" + ",\n    ".join(_braces(row) for row in array) + "}"
