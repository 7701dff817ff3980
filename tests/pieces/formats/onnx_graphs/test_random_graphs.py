"""Random graphs of ONNX: the networks that `load` returns agree with onnxruntime, also where two sides tie.

In elementwise graphs all constants and points are multiples of 1/4, and they are shallow, so float32 is exact and kinks
are hit. Graphs of layers have matrices of -1, 0 and 1, and join values of any layers.
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


def ran(model, x=POINTS):
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


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


WIDTH = 3
SIGNS = np.random.default_rng(0).integers(-1, 2, size=(6, WIDTH, WIDTH)).astype(np.float32)
TABLES = {f"w{i}": matrix for i, matrix in enumerate(SIGNS)} | {"b": np.float32([0.5, -1.0, 0.0])}
TABLES |= {"first": np.array([0]), "rest": np.array([1]), "all": np.array([WIDTH]), "axis": np.array([1])}


def random_layers(rng):
    """Return a graph x -> y of maps, activations and joins, each of any earlier values."""
    nodes, values = [], ["x"]

    def add(kind, *inputs, out=None, **attributes):
        name = out or f"n{len(nodes)}"
        nodes.append(make.make_node(kind, inputs, [name], **attributes))
        return name

    def value():
        # mostly recent ones, so that graphs are deep
        return values[-min(len(values), int(rng.geometric(0.6)))]

    for _ in range(int(rng.integers(3, 25))):
        kind = str(
            rng.choice(
                ["Gemm", "Gemm", "MatMul", "Relu", "Relu", "Abs", "Add", "Add", "Sub", "Max", "Min", "turn", "bias"]
            )
        )
        if kind == "Gemm":
            values.append(add(kind, value(), f"w{rng.integers(6)}", "b", transB=int(rng.integers(2))))
        elif kind == "MatMul":
            values.append(add(kind, value(), f"w{rng.integers(6)}"))
        elif kind in ("Relu", "Abs"):
            values.append(add(kind, value()))
        elif kind == "bias":
            values.append(add("Add", "b", value()))
        elif kind == "turn":
            one, other = value(), value()
            start, end = add("Slice", one, "first", "rest", "axis"), add("Slice", other, "rest", "all", "axis")
            values.append(add("Concat", end, start, axis=1))
        else:
            values.append(add(kind, value(), str(rng.choice(values))))
    add("Sum", values[-1], str(rng.choice(values)), out="y")
    return nodes


@pytest.mark.parametrize("seed", range(60))
def test_layers_that_are_joined_are_the_function_of_onnxruntime(seed, tmp_path):
    rng = np.random.default_rng(seed)
    x, y = (make.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", WIDTH]) for name in "xy")
    graph = make.make_graph(
        random_layers(rng), "g", [x], [y], [to_proto(array, name) for name, array in TABLES.items()]
    )
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8).SerializeToString()
    (tmp_path / "model").write_bytes(model)
    points = (rng.integers(-12, 13, size=(200, WIDTH)) / 4).astype(np.float32)
    np.testing.assert_allclose(
        load(tmp_path / "model")(points),
        ran(model, points),
        rtol=1e-6,
        err_msg=onnx.printer.to_text(onnx.load_from_string(model)),
    )


def random_window(rng):
    """Return a pool or a convolution of a random tensor: its shape, the operator, its attributes, and its version."""
    kind = str(
        rng.choice(
            ["MaxPool", "AveragePool", "Conv", "GlobalMaxPool", "GlobalAveragePool"], p=[0.4, 0.35, 0.15, 0.05, 0.05]
        )
    )
    axes = int(rng.integers(1, 3))
    shape = (1, *rng.integers(1, [3, *[7] * axes]).tolist())
    if kind.startswith("Global"):
        return shape, kind, {}, 17

    def numbers(low, high, count=axes):
        return rng.integers(low, high, size=count).tolist()

    kernel = numbers(1, 4)
    given = {"kernel_shape": kernel, "strides": numbers(1, 4)}
    padding = str(rng.choice(["pads", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    given |= {"pads": [int(rng.integers(size)) for size in kernel * 2]} if padding == "pads" else {"auto_pad": padding}
    if rng.random() < 0.3 and not padding.startswith("SAME"):  # onnxruntime refuses both for Conv
        given["dilations"] = numbers(1, 3)
    if kind != "Conv" and rng.random() < 0.4:
        given["ceil_mode"] = 1
    if kind == "AveragePool" and rng.random() < 0.5:
        given["count_include_pad"] = 1
    return shape, kind, given, int(rng.choice([19, 22]))


@pytest.mark.parametrize("seed", range(4))
def test_pools_and_convolutions_are_those_of_onnxruntime(seed, tmp_path):
    rng = np.random.default_rng(seed)
    compared = 0
    for _ in range(60):
        shape, kind, given, version = random_window(rng)
        kernel = rng.integers(-2, 3, size=(2, shape[1], *given.get("kernel_shape", ()))).astype(np.float32)
        nodes = [
            make.make_node("Relu", ["x"], ["r"]),
            make.make_node(kind, ["r", "k"][: 1 + (kind == "Conv")], ["y"], **given),
        ]
        x, y = (
            make.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape if name == "x" else None) for name in "xy"
        )
        graph = make.make_graph(nodes, "g", [x], [y], [to_proto(kernel, "k")] if kind == "Conv" else [])
        model = make.make_model(graph, opset_imports=[make.make_opsetid("", version)], ir_version=8).SerializeToString()
        (tmp_path / "model").write_bytes(model)
        points = (rng.integers(-8, 9, size=(5, *shape)) / 4).astype(np.float32)
        try:
            net = load(tmp_path / "model")
        except ValueError:
            continue
        wanted = [ran(model, point).reshape(-1) for point in points]
        compared += 1
        np.testing.assert_allclose(
            net(points.reshape(5, -1)), wanted, rtol=1e-6, atol=1e-6, err_msg=str((kind, shape, given))
        )
    assert compared > 30
