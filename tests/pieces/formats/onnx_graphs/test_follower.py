"""Reading ONNX: every operator against onnxruntime, all forms of PLU, and what is refused."""

import numpy as np
import pytest
from model_files import POINTS, export, onnx_values

from plunit.pieces import load
from plunit.pieces.formats.onnx_graphs import follower
from plunit.pieces.formats.onnx_graphs.layering import chain
from plunit.pieces.formats.onnx_graphs.operators import ELEMENTWISE, LINEAR, PICKED
from plunit.pieces.formats.onnx_graphs.waves import Wave

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
make, to_proto = onnx.helper, onnx.numpy_helper.from_array

RNG = np.random.default_rng(1)
WEIGHT, BIAS = RNG.normal(size=(3, 3)).astype(np.float32), RNG.normal(size=3).astype(np.float32)
PARTS = np.array([-0.5, 0.25, 2.0], dtype=np.float32)
TWO = np.float32(2)


def node(kind, *inputs, out="y", **attributes):
    return make.make_node(kind, list(inputs), [out], **attributes)


def write(path, nodes, arrays=(), shape=("n", 3), version=17, kind=onnx.TensorProto.FLOAT, **model):
    """Write a model from x to y."""
    x, y = (make.make_tensor_value_info(name, kind, shape if name == "x" else None) for name in "xy")
    tables = [to_proto(np.asarray(array), name) for name, array in dict(arrays).items()]
    graph = make.make_graph(nodes, "g", [x], [y], tables)
    opsets = [make.make_opsetid("", version), *(make.make_opsetid(name, 1) for name in model.get("domains", ()))]
    path.write_bytes(make.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
    return path


OPERATORS = {
    "Gemm": ([node("Gemm", "x", "w", "b")], {"w": WEIGHT, "b": BIAS}),
    "Gemm, transposed and scaled": (
        [node("Gemm", "x", "w", "b", transB=1, alpha=0.5, beta=-2.0)],
        {"w": WEIGHT, "b": BIAS[None]},
    ),
    "Gemm without bias": ([node("Gemm", "x", "w")], {"w": WEIGHT}),
    "Gemm, one number as bias": ([node("Gemm", "x", "w", "b")], {"w": WEIGHT, "b": TWO}),
    "MatMul and Add": ([node("MatMul", "x", "w", out="h"), node("Add", "b", "h")], {"w": WEIGHT, "b": BIAS}),
    "MatMul of a transposed array": (
        [node("Transpose", "w", out="t", perm=[1, 0]), node("MatMul", "x", "t")],
        {"w": WEIGHT},
    ),
    "Add": ([node("Add", "x", "b")], {"b": BIAS}),
    "Sub": ([node("Sub", "b", "x")], {"b": BIAS[None]}),
    "Mul": ([node("Mul", "x", "b")], {"b": PARTS}),
    "Div": ([node("Div", "x", "b")], {"b": PARTS}),
    "Neg": ([node("Neg", "x")], {}),
    "Sum": ([node("Sum", "x", "b", "x")], {"b": BIAS}),
    "Relu": ([node("Relu", "x")], {}),
    "LeakyRelu": ([node("LeakyRelu", "x", alpha=0.3)], {}),
    "LeakyRelu by default": ([node("LeakyRelu", "x")], {}),
    "PRelu": ([node("PRelu", "x", "b")], {"b": PARTS}),
    "PRelu, one slope": ([node("PRelu", "x", "b")], {"b": PARTS[:1]}),
    "Clip": ([node("Clip", "x", "l", "h")], {"l": np.float32(-0.5), "h": TWO}),
    "Clip from below": ([node("Clip", "x", "l")], {"l": np.float32(-0.5)}),
    "Clip from above": ([node("Clip", "x", "", "h")], {"h": TWO}),
    "Clip without ends": ([node("Clip", "x")], {}),
    "Clip, the ends crossed": ([node("Clip", "x", "l", "h")], {"l": TWO, "h": np.float32(-0.5)}),
    "HardSigmoid": ([node("HardSigmoid", "x", alpha=1 / 6)], {}),
    "HardSigmoid by default": ([node("HardSigmoid", "x")], {}),
    "Identity": ([node("Identity", "x")], {}),
    "Dropout": ([node("Dropout", "x")], {}),
    "Cast": ([node("Cast", "x", out="d", to=11), node("Cast", "d", to=1)], {}),
    "Abs": ([node("Abs", "x")], {}),
    "Max": ([node("Max", "x", "b", "c")], {"b": BIAS, "c": PARTS}),
    "Min": ([node("Min", "b", "x")], {"b": BIAS}),
    "BatchNormalization": (
        [node("BatchNormalization", "x", "s", "b", "m", "v", epsilon=0.01)],
        {"s": PARTS, "b": BIAS, "m": WEIGHT[0], "v": WEIGHT[1] ** 2},
    ),
    "Where": (
        [node("Greater", "x", "b", out="m"), node("Where", "m", "x", "b")],
        {"b": BIAS},
    ),
    "Where, the other way": (
        [node("Less", "x", "b", out="m"), node("Not", "m", out="n"), node("Where", "n", "x", "b")],
        {"b": BIAS},
    ),
    "Where, between": (
        [
            node("Clip", "x", "l", "h", out="k"),
            node("LessOrEqual", "x", "h", out="m"),
            node("GreaterOrEqual", "x", "l", out="n"),
            node("And", "m", "n", out="o"),
            node("Where", "o", "x", "k"),
        ],
        {"l": np.float32(-0.5), "h": TWO},
    ),
    "Where, outside": (
        [
            node("Greater", "x", "h", out="m"),
            node("Less", "x", "l", out="n"),
            node("Or", "m", "n", out="o"),
            node("Clip", "x", "l", "h", out="k"),
            node("Where", "o", "k", "x"),
        ],
        {"l": np.float32(-0.5), "h": TWO},
    ),
    "GreaterOrEqual, a tie on half of the line": (
        [
            node("Relu", "x", out="r"),
            node("GreaterOrEqual", "x", "r", out="m"),
            node("Mul", "x", "b", out="s"),
            node("Where", "m", "x", "s"),
        ],
        {"b": PARTS},
    ),
    "LessOrEqual, a tie on half of the line": (
        [
            node("Clip", "x", "", "h", out="k"),
            node("LessOrEqual", "x", "k", out="m"),
            node("Where", "m", "x", "k"),
        ],
        {"h": TWO},
    ),
    "a mask": (
        [node("Greater", "x", "zero", out="m"), node("Cast", "m", out="f", to=1), node("Mul", "f", "x")],
        {"zero": np.float32(0)},
    ),
    "Sign": ([node("Sign", "x", out="s"), node("Mul", "s", "x")], {}),
    "two functions of a unit": ([node("Relu", "x", out="a"), node("Abs", "x", out="b"), node("Sub", "a", "b")], {}),
    "many pieces": (
        [node("Abs", "x", out="a"), node("Sub", "a", "c", out="b"), node("Abs", "b", out="d"), node("Min", "d", "c")],
        {"c": TWO},
    ),
    "Constant": ([make.make_node("Constant", [], ["c"], value=to_proto(BIAS)), node("Add", "x", "c")], {}),
    "Flatten": ([node("Flatten", "x", out="f"), node("Relu", "f")], {}),
    "Reshape": ([node("Reshape", "x", "s", out="r"), node("Relu", "r")], {"s": np.array([-1, 3])}),
    "Reshape, the batch kept": ([node("Reshape", "x", "s", out="r"), node("Relu", "r")], {"s": np.array([0, -1])}),
    "Reshape to the shape of another": (
        [node("Relu", "x", out="r"), node("Shape", "x", out="s"), node("Reshape", "r", "s")],
        {},
    ),
    "MatMul, the matrix on the left": (
        [node("Transpose", "x", out="t"), node("MatMul", "w", "t", out="m"), node("Transpose", "m")],
        {"w": WEIGHT},
    ),
    "Conv": (
        [
            node("Unsqueeze", "x", "one", out="p"),
            node("Conv", "p", "k", "b", out="v", pads=[1, 3], dilations=[2], strides=[2]),
            node("Flatten", "v"),
        ],
        {"one": np.array([1]), "k": WEIGHT[:1, None, :2], "b": BIAS[:1]},
    ),
    "Conv in groups": (
        [node("Reshape", "x", "s", out="p"), node("Conv", "p", "k", out="v", group=3), node("Flatten", "v")],
        {"s": np.array([-1, 3, 1, 1]), "k": WEIGHT[:, :1, None, None]},
    ),
    "ReduceSum": ([node("ReduceSum", "x", "one", out="s"), node("Add", "s", "x")], {"one": np.array([1])}),
    "ReduceMean": ([node("ReduceMean", "x", out="s", axes=[-1], keepdims=1), node("Sub", "x", "s")], {}),
    "Slice, Concat": (
        [
            node("Slice", "x", "l", "h", "one", out="s"),
            node("Relu", "x", out="r"),
            node("Concat", "s", "r", "s", out="j", axis=1),
            node("Gather", "j", "i", axis=1),
        ],
        {"l": np.array([1]), "h": np.array([3]), "one": np.array([1]), "i": np.array([4, 0, 6])},
    ),
    "Split": (
        [make.make_node("Split", ["x", "n"], ["s", "t"], axis=1), node("Concat", "t", "s", axis=1)],
        {"n": np.array([1, 2])},
    ),
    "Squeeze, Unsqueeze, Transpose": (
        [
            node("Unsqueeze", "x", "two", out="p"),
            node("Transpose", "p", out="t", perm=[2, 0, 1]),
            node("Squeeze", "t", "zero"),
        ],
        {"two": np.array([2]), "zero": np.array([0])},
    ),
    "Expand": (
        [
            node("ReduceSum", "x", "one", out="s"),
            node("Shape", "x", out="n"),
            node("Expand", "s", "n", out="e"),
            node("Mul", "e", "b"),
        ],
        {"one": np.array([1]), "b": PARTS},
    ),
    "a sum of several layers": (
        [
            node("Gemm", "x", "w", "b", out="g"),
            node("Relu", "g", out="r"),
            node("Sum", "x", "r", "b", "x", out="s"),
            node("Sub", "b", "s", out="d"),
            node("Sub", "d", "r"),
        ],
        {"w": WEIGHT, "b": BIAS},
    ),
    "Max over layers": (
        [node("Gemm", "x", "w", "b", out="g"), node("Max", "x", "b", "g")],
        {"w": WEIGHT, "b": BIAS},
    ),
    "Min over layers": ([node("MatMul", "x", "w", out="g"), node("Min", "g", "x")], {"w": WEIGHT}),
    "a shift, and kinks on both sides of it": (
        [
            node("Add", "x", "b", out="a"),
            node("Relu", "a", out="p"),
            node("Sub", "x", "b", out="c"),
            node("Mul", "c", "two", out="d"),
            node("Relu", "d", out="q"),
            node("Sub", "p", "q"),
        ],
        {"b": BIAS, "two": TWO},
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("behind", [False, True], ids=["alone", "between layers"])
def test_every_operator_is_that_of_onnxruntime(name, behind, tmp_path):
    nodes, arrays = OPERATORS[name]
    if behind:
        nodes = [onnx.NodeProto.FromString(each.SerializeToString()) for each in nodes]
        for each in nodes:
            each.input[:] = ["z" if name == "x" else name for name in each.input]
            each.output[:] = ["u" if name == "y" else name for name in each.output]
        arrays = {**arrays, "w1": WEIGHT, "w2": WEIGHT.T.copy(), "b1": BIAS}
        nodes = [node("Gemm", "x", "w1", "b1", out="z"), *nodes, node("Gemm", "u", "w2", "b1")]
    path = write(tmp_path / "model", nodes, arrays)
    np.testing.assert_allclose(load(path)(POINTS), onnx_values(path), rtol=1e-5, atol=2e-5)


def test_every_operator_has_a_row():
    used = {each.op_type for nodes, _ in OPERATORS.values() for each in nodes}
    assert {*ELEMENTWISE, *LINEAR, *PICKED} <= used


def test_older_models_have_the_ends_of_clip_as_attributes(tmp_path):
    path = write(tmp_path / "model", [node("Clip", "x", min=-0.5, max=1.5)], version=8)
    np.testing.assert_allclose(load(path)(POINTS), np.clip(POINTS, -0.5, 1.5), rtol=1e-6)


def test_axes_behind_the_batch_are_flattened(tmp_path):
    arrays = {"c": np.arange(3, dtype=np.float32).reshape(3, 1), "w": WEIGHT[:, :1]}
    nodes = [node("Add", "x", "c", out="a"), node("Flatten", "a", out="f"), node("MatMul", "f", "w")]
    net = load(write(tmp_path / "model", nodes, arrays, shape=("n", 3, 1)))
    np.testing.assert_allclose(net(POINTS), (POINTS + np.arange(3)) @ WEIGHT[:, :1], rtol=1e-4, atol=1e-5)


def test_arrays_may_lie_in_a_file_beside_the_model(tmp_path):
    path = write(tmp_path / "model", [node("Gemm", "x", "w", "b")], {"w": WEIGHT, "b": BIAS})
    whole = load(path)(POINTS)
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert (tmp_path / "weights.bin").exists()
    np.testing.assert_array_equal(load(path)(POINTS), whole)


@pytest.mark.parametrize("place", ["../secret.bin", "/etc/hostname"])
def test_arrays_elsewhere_are_refused(place, tmp_path):
    (tmp_path / "secret.bin").write_bytes(bytes(100))
    (tmp_path / "folder").mkdir()
    model = onnx.load(write(tmp_path / "folder/model", [node("Add", "x", "b")], {"b": BIAS}))
    (table,) = model.graph.initializer
    table.ClearField("raw_data")
    table.data_location = onnx.TensorProto.EXTERNAL
    table.external_data.add(key="location", value=place)
    (tmp_path / "folder/model").write_bytes(model.SerializeToString())
    with pytest.raises(ValueError, match="is an ONNX model: "):
        load(tmp_path / "folder/model")


def modules():
    pytest.importorskip("torch")
    from plunit.torch import PLU

    return {
        "fixed": PLU(0.25, 2.0),
        "flat": PLU(0.0),
        "learned": PLU(learnable=True),
        "learned slope": PLU(learnable="alpha"),
        "one for each channel": PLU(learnable=True, num_parameters=4),
    }


@pytest.mark.parametrize("dynamo", [True, False], ids=["dynamo", "traced"])
@pytest.mark.parametrize("name", ["fixed", "flat", "learned", "learned slope", "one for each channel"])
def test_plu_as_pytorch_exports_it_is_one_layer(name, dynamo, tmp_path):
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    torch.manual_seed(0)
    unit = modules()[name]
    if name == "one for each channel":
        unit.raw_alpha.data += torch.tensor([0.0, 0.5, -0.5, 1.0])
        unit.raw_c.data += torch.tensor([0.3, 0.0, -0.3, 0.1])
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), unit, torch.nn.Linear(4, 2)).eval()
    export(model, tmp_path / "model.onnx", dynamo)
    net = load(tmp_path / "model.onnx")
    ((_, f),) = net.hidden
    alpha, c = (np.broadcast_to(np.asarray(part), 4) for part in (detached(unit.alpha), detached(unit.c)))
    np.testing.assert_allclose(f.knots, np.stack([-c, c], axis=1), rtol=1e-6)
    np.testing.assert_allclose(f.slopes, np.stack([alpha, np.ones(4), alpha], axis=1), rtol=1e-6)
    assert not f.at_zero.any()
    np.testing.assert_allclose(net(POINTS), onnx_values(tmp_path / "model.onnx"), rtol=1e-5, atol=1e-5)


def detached(value):
    return value if isinstance(value, float) else value.detach().numpy()


@pytest.mark.parametrize("kind", sorted(ELEMENTWISE))
def test_a_reader_that_takes_an_operator_for_another_is_found(kind, tmp_path, monkeypatch):
    """Every operator with pieces that are off by 0.01 z, and every mask inverted: the file is refused."""
    right, slope = ELEMENTWISE[kind], Wave.line(0.01, 0.0)
    masks = ("And", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "Or")
    wrong = (lambda call: Wave.line(0.0, 1.0) - right(call)) if kind in masks else lambda call: right(call) + slope
    monkeypatch.setitem(ELEMENTWISE, kind, wrong)
    kinds = {name: {each.op_type for each in nodes} for name, (nodes, _) in OPERATORS.items()}
    # linear maps join layers, and sums over layers are linear maps
    uses = [name for name, used in kinds.items() if kind in used and not used & {*LINEAR}]
    assert uses
    for name in uses:
        with pytest.raises(ValueError, match="is an ONNX model: "):
            load(write(tmp_path / "model", *OPERATORS[name]))


@pytest.mark.parametrize("kind", sorted(LINEAR))
def test_a_linear_map_that_is_read_wrongly_is_found(kind, tmp_path, monkeypatch):
    right = LINEAR[kind]

    def wrong(call):
        linear, bias = right(call)
        return lambda x: 1.001 * linear(x), bias

    monkeypatch.setitem(LINEAR, kind, wrong)
    name = next(name for name, (nodes, _) in OPERATORS.items() if any(each.op_type == kind for each in nodes))
    with pytest.raises(ValueError, match=f"{kind}: it is not the linear map that was read of it"):
        load(write(tmp_path / "model", *OPERATORS[name]))


def test_layers_that_are_put_together_wrongly_are_found(tmp_path, monkeypatch):
    def wrong(output):
        (weight, bias), *rest = chain(output)
        return [(1.01 * weight, bias), *rest]

    monkeypatch.setattr(follower, "chain", wrong)
    with pytest.raises(ValueError, match="is not the function of its graph"):
        load(write(tmp_path / "model", *OPERATORS["Max over layers"]))


def test_arrays_are_joined_with_signals(tmp_path):
    nodes = [node("Relu", "x", out="r"), node("Concat", "b", "r", "x", axis=1)]
    net = load(write(tmp_path / "model", nodes, {"b": BIAS[None]}, (1, 3)))
    wanted = np.concatenate([np.tile(BIAS, (len(POINTS), 1)), np.maximum(POINTS, 0), POINTS], axis=1)
    np.testing.assert_allclose(net(POINTS), wanted, rtol=1e-6)


REFUSED = {
    "Tanh": ([node("Tanh", "x")], {}, "node 'y', Tanh: it is not piecewise-linear, or not known; known are Abs, "),
    "a square": ([node("Mul", "x", "x")], {}, "two functions of the input are multiplied"),
    "a jump": ([node("Sign", "x")], {}, "jumps by 2 at 0"),
    "a jump at one point": (
        [
            node("Abs", "x", out="a"),
            node("LessOrEqual", "a", "zero", out="m"),
            node("Where", "m", "two", "x"),
        ],
        {"zero": np.float32(0), "two": TWO},
        "a unit at 0 has the value 2 in the graph and 0 on the pieces",
    ),
    "a comparison that rounding decides": (
        [
            node("Mul", "x", "a", out="p"),
            node("Mul", "x", "b", out="q"),
            node("Add", "p", "q", out="s"),
            node("Mul", "x", "c", out="t"),
            node("GreaterOrEqual", "s", "t", out="m"),
            node("Where", "m", "x", "s"),
        ],
        {"a": np.float32(0.1), "b": np.float32(0.2), "c": np.float32(0.3)},
        "GreaterOrEqual: it compares two functions of the input that are equal but for rounding",
    ),
    "a comparison of two layers": (
        [node("Gemm", "x", "w", out="h"), node("Greater", "h", "x", out="m"), node("Where", "m", "h", "x")],
        {"w": WEIGHT},
        "Greater: it joins values of different layers, and only sums, Max, Min and Concat may",
    ),
    "a product of two layers": (
        [node("Gemm", "x", "w", out="h"), node("MatMul", "h", "x")],
        {"w": WEIGHT},
        "MatMul: two functions of the input are multiplied",
    ),
    "a convolution that pads by itself": (
        [node("Unsqueeze", "x", "one", out="u"), node("Conv", "u", "k", auto_pad="SAME_UPPER")],
        {"one": np.array([1]), "k": WEIGHT[:1, None]},
        "pads by numbers alone",
    ),
    "channels that do not fit": (
        [node("Unsqueeze", "x", "one", out="u"), node("Conv", "u", "k")],
        {"one": np.array([1]), "k": WEIGHT[None]},
        "its kernel has shape (1, 3, 3), but 1 channels come in",
    ),
    "features that do not fit": ([node("MatMul", "x", "w")], {"w": WEIGHT[:2]}, "its matrix has shape (2, 3), but 3"),
    "a transposed batch": (
        [node("Gemm", "x", "w", transA=1)],
        {"w": WEIGHT},
        "that is not transposed, got shape [1, 3]",
    ),
    "a constant for each sample": (
        [node("Add", "x", "w")],
        {"w": WEIGHT},
        "its output has shape [3, 3] for one sample",
    ),
    "features in place of the batch": ([node("Reshape", "x", "s")], {"s": np.array([3, -1])}, "shape [3, 1] for one"),
    "an axis of the first versions": (
        [node("Add", "x", "b", broadcast=1, axis=1)],
        {"b": BIAS},
        "it broadcasts along an axis, as versions before 7 did",
    ),
    "integers": ([node("Cast", "x", to=7)], {}, "Cast: it rounds to other numbers than float32"),
    "a division by 0": ([node("Div", "x", "b")], {"b": np.float32(0)}, "Div: it divides by 0"),
    "a division by x": ([node("Div", "b", "x")], {"b": TWO}, "Div: its input 1 must be an array"),
    "training": (
        [make.make_node("Dropout", ["x", "r", "t"], ["y"])],
        {"r": np.float32(0.5), "t": np.array(True)},
        "Dropout: it is in training mode",
    ),
    "texts": ([node("Add", "x", "t")], {"t": np.array(["a"], dtype=object)}, "not of real numbers"),
    "an array that grows": (
        [node("Add", "a", "b", out="c"), node("Add", "x", "c")],
        {"a": np.zeros((20_000, 1), np.float32), "b": np.zeros((1, 20_000), np.float32)},
        "Add: its result has 3,200,000,000 bytes",
    ),
    "an operator on arrays": ([node("RandomNormal", out="r", shape=[3]), node("Add", "x", "r")], {}, "it is not known"),
    "no input": ([node("Identity", "w")], {"w": WEIGHT}, "its output 'y' must depend on its input"),
    "not a number": ([node("Add", "x", "b")], {"b": np.array([1, np.nan, 1], np.float32)}, "must be finite"),
    "a name that is not there": ([node("Add", "x", "b")], {}, "node 'y', Add: 'b'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_pieces_is_one_line(name, tmp_path):
    nodes, arrays, reason = REFUSED[name]
    path = write(tmp_path / "model", nodes, arrays)
    with pytest.raises(ValueError, match="is an ONNX model: ") as error:
        load(path)
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("shape", [(3,), (1, 3), (1, 1, 1, 3), ("n", 3), (3, 1)], ids=str)
def test_the_input_is_a_vector_or_one_sample(shape, tmp_path):
    arrays = {"s": np.array([1, 3]), "w": WEIGHT}
    path = write(tmp_path / "model", [node("Reshape", "x", "s", out="r"), node("MatMul", "r", "w")], arrays, shape)
    np.testing.assert_allclose(load(path)(POINTS), POINTS @ WEIGHT, rtol=1e-5, atol=1e-6)


def test_vectors_are_multiplied_from_both_sides(tmp_path):
    nodes = [node("MatMul", "w", "x", out="a"), node("Relu", "a", out="r"), node("MatMul", "r", "w")]
    net = load(write(tmp_path / "model", nodes, {"w": WEIGHT}, (3,)))
    np.testing.assert_allclose(net(POINTS), np.maximum(POINTS @ WEIGHT.T, 0) @ WEIGHT, rtol=1e-5, atol=1e-6)


def test_broadcasting_of_the_first_versions(tmp_path):
    nodes = [node("Sub", "x", "b", out="d", broadcast=1), node("Gemm", "d", "w", "b", broadcast=1)]
    path = write(tmp_path / "model", nodes, {"b": BIAS, "w": WEIGHT}, version=6)
    np.testing.assert_allclose(load(path)(POINTS), (POINTS - BIAS) @ WEIGHT + BIAS, rtol=1e-5, atol=1e-5)


def residual(count):
    """Return the nodes of x + W relu(V x + b), several times."""
    nodes = []
    for i in range(count):
        h, z, u, s = ("x" if i == 0 else f"h{i - 1}"), f"z{i}", f"u{i}", f"s{i}"
        nodes += [node("Gemm", h, "v", "b", out=z), node("Relu", z, out=u), node("Gemm", u, "w", out=s)]
        nodes += [node("Add", h, s, out="y" if i == count - 1 else f"h{i}")]
    return nodes


WIDE = RNG.normal(scale=0.3, size=(3, 7)).astype(np.float32)
WIDTHS = {
    "affine maps in a row": (
        [node("Gemm", "x", "v", "b", out="a"), node("MatMul", "a", "w", out="c"), node("Relu", "c")],
        (3, 3, 3),
    ),
    "sums over three layers": (residual(3), (3, 10, 10, 10, 3)),
    "what is narrower behind a matrix is carried behind it": (
        [
            node("Gemm", "x", "v", "b", out="z"),
            node("Relu", "z", out="u"),
            node("MatMul", "u", "w", out="c"),
            node("Relu", "c", out="d"),
            node("Add", "d", "c"),
        ],
        (3, 7, 3, 3),
    ),
    "the inputs are carried if they are fewer": (
        [
            node("Relu", "x", out="u"),
            node("Gemm", "u", "v", out="d"),
            node("Gemm", "x", "v", "b", out="k"),
            node("Add", "d", "k"),
        ],
        (3, 6, 7),
    ),
    "what is made of inputs that are carried is not carried itself": (
        [
            node("Gemm", "x", "v", out="z"),
            node("Relu", "z", out="u"),
            node("MatMul", "u", "w", out="c"),
            node("Add", "c", "x", out="p"),
            node("ReduceSum", "x", "one", out="q"),
            node("Concat", "p", "q", axis=1),
        ],
        (3, 10, 4),
    ),
    "units that nobody takes are left out": (
        [
            node("Gemm", "x", "v", "b", out="z"),
            node("Relu", "z", out="u"),
            node("Slice", "u", "two", "four", "one"),
        ],
        (3, 2, 2),
    ),
}


@pytest.mark.parametrize("name", WIDTHS)
def test_a_network_is_no_wider_than_it_has_to_be(name, tmp_path):
    nodes, widths = WIDTHS[name]
    numbers = {word: np.array([i]) for word, i in (("one", 1), ("two", 2), ("four", 4))}
    arrays = {"v": WIDE, "w": WIDE.T.copy(), "b": WIDE[0], **numbers}
    path = write(tmp_path / "model", nodes, arrays)
    net = load(path)
    np.testing.assert_allclose(net(POINTS), onnx_values(path), rtol=1e-5, atol=1e-4)
    assert net.widths == widths


def test_a_bias_is_not_left_to_the_kinks(tmp_path):
    nodes = [node("MatMul", "x", "w", out="z"), node("Add", "z", "b", out="a"), node("Relu", "a")]
    ((_, f),) = load(write(tmp_path / "model", nodes, {"w": WEIGHT, "b": BIAS})).hidden
    assert f.knots.tolist() == [[0.0]] * 3
    assert f.slopes.tolist() == [[0.0, 1.0]] * 3


@pytest.mark.parametrize("shape", [("n", "features"), ("n",), ("n", 0), (), ("n", 10**9)], ids=str)
def test_the_number_of_features_must_be_known(shape, tmp_path):
    path = write(tmp_path / "model", [node("Relu", "x")], shape=shape)
    with pytest.raises(ValueError, match=r"must be a number|and at most"):
        load(path)


def test_operators_of_one_s_own_are_refused(tmp_path):
    own = make.make_node("Relu", ["x"], ["y"], domain="com.example")
    path = write(tmp_path / "model", [own], domains=["com.example"])
    with pytest.raises(ValueError, match="operators of its own"):
        load(path)
