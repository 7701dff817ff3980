"""Random elementwise graphs of ONNX: what `load` accepts is the function of onnxruntime, also where two sides tie.

All constants and points are multiples of 1/4 and the graphs are shallow, so float32 is exact and kinks are hit.
"""

import numpy as np
import pytest

from plunit.pieces import load

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnx.printer")
onnxruntime = pytest.importorskip("onnxruntime")
make, to_proto = onnx.helper, onnx.numpy_helper.from_array

POINTS = np.arange(-40, 41, dtype=np.float32)[:, None] / 4
CONSTANTS = {f"c{i}": np.float32(number) for i, number in enumerate((-1.5, -1.0, -0.25, 0.0, 0.5, 1.0, 2.0))}
UNARY = ("Abs", "Neg", "Relu", "Sign", "LeakyRelu", "Identity")
BINARY = ("Add", "Sub", "Max", "Min")
COMPARISONS = ("Greater", "GreaterOrEqual", "Less", "LessOrEqual")


def random_nodes(rng):
    """Return a graph x -> y that ends in a Where."""
    numbers, masks, nodes = ["x"], [], []

    def add(kind, *inputs, pool, **attributes):
        name = f"n{len(nodes)}"
        nodes.append(make.make_node(kind, inputs, [name], **attributes))
        pool.append(name)

    def number(constant=0.0):
        return str(rng.choice(list(CONSTANTS) if rng.random() < constant else numbers))

    def mask():
        add(str(rng.choice(COMPARISONS)), number(), number(0.3), pool=masks)
        if rng.random() < 0.2:
            add("Not", masks[-1], pool=masks)
        if rng.random() < 0.2:
            add(str(rng.choice(["And", "Or"])), *rng.choice(masks, 2).tolist(), pool=masks)
        return masks[-1]

    for _ in range(int(rng.integers(1, 5))):
        kind = rng.integers(4)
        if kind == 0:
            name = str(rng.choice(UNARY))
            add(name, number(), pool=numbers, **({"alpha": 0.5} if name == "LeakyRelu" else {}))
        elif kind == 1:
            add(str(rng.choice(BINARY)), number(), number(0.5), pool=numbers)
        elif kind == 2:
            add("Mul", number(), str(rng.choice(list(CONSTANTS))), pool=numbers)
        else:
            add("Where", mask(), number(), number(0.3), pool=numbers)
    nodes.append(make.make_node("Where", [mask(), number(), number(0.2)], ["y"]))
    return nodes


def model_of(nodes):
    x, y = (make.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 1]) for name in "xy")
    graph = make.make_graph(nodes, "g", [x], [y], [to_proto(array, name) for name, array in CONSTANTS.items()])
    return make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8).SerializeToString()


def ran(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, {"x": POINTS})[0]


@pytest.mark.parametrize("seed", range(4))
def test_what_is_accepted_is_the_function_of_onnxruntime(seed, tmp_path):
    rng = np.random.default_rng(seed)
    accepted = 0
    for _ in range(120):
        nodes = random_nodes(rng)
        model = model_of(nodes)
        (tmp_path / "model").write_bytes(model)
        try:
            net = load(tmp_path / "model")
        except ValueError:
            continue
        accepted += 1
        np.testing.assert_allclose(
            net(POINTS), ran(model), rtol=0, atol=1e-6, err_msg=onnx.printer.to_text(onnx.load_from_string(model))
        )
    assert accepted > 20
