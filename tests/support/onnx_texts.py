"""ONNX models of a few nodes, written as text."""

import re

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
make, to_proto = onnx.helper, onnx.numpy_helper.from_array


def graph(text):
    """Return the nodes of a text such as "h = MatMul(x, w); y = Clip<min=0.5>(h)"; an input may be left out.

    An operator of another domain is written with it: "y = ai.onnx.ml.Scaler(x)".
    """
    found = []
    for line in text.split("; "):
        outputs, kind, given, inputs = re.fullmatch(r"([\w, ]+) = ([\w.]+)(?:<(.*)>)?\((.*)\)", line).groups()
        options = eval(f"dict({given or ''})")
        names = [name.strip() for name in inputs.split(",")] if inputs else []
        domain, _, kind = kind.rpartition(".")
        found.append(make.make_node(kind, names, outputs.split(", "), domain=domain, **options))
    return found


def write(path, nodes, arrays=(), shape=("n", 3), version=17, kind=onnx.TensorProto.FLOAT, **model):
    """Write a model from x to y."""
    x, y = (make.make_tensor_value_info(name, kind, shape if name == "x" else None) for name in "xy")
    tables = [to_proto(np.asarray(array), name) for name, array in dict(arrays).items()]
    whole = make.make_graph(nodes, "g", [x], [y], tables)
    domains = model.get("domains", sorted({node.domain for node in nodes} - {""}))
    opsets = [make.make_opsetid("", version), *(make.make_opsetid(name, 1) for name in domains)]
    path.write_bytes(make.make_model(whole, opset_imports=opsets, ir_version=8).SerializeToString())
    return path
