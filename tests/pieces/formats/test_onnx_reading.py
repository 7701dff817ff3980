"""Reading ONNX: every operator against onnxruntime, all forms of PLU, and what is no chain of pieces."""

import numpy as np
import pytest
from model_files import POINTS, export, onnx_values

from plunit.pieces import load
from plunit.pieces.formats.onnx_checking import NUMBERS
from plunit.pieces.formats.onnx_ops import AFFINE, ELEMENTWISE, SHAPES
from plunit.pieces.formats.waves import Wave

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


def test_every_operator_is_stated_twice():
    assert set(NUMBERS) == {*AFFINE, *ELEMENTWISE, *SHAPES}


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


@pytest.mark.parametrize("dynamo", [True, False], ids=["dynamo", "traced"])
def test_a_leaky_relu_by_a_comparison_that_ties_is_that_of_pytorch(dynamo, tmp_path):
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")

    class Leaky(torch.nn.Module):
        def forward(self, z):
            return torch.where(z >= torch.relu(z), z, 0.1 * z)

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), Leaky(), torch.nn.Linear(4, 1)).eval()
    export(model, tmp_path / "model.onnx", dynamo)
    net = load(tmp_path / "model.onnx")
    np.testing.assert_allclose(net(POINTS), onnx_values(tmp_path / "model.onnx"), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(net.layers[0].activation.slopes, np.tile([0.1, 1.0], (4, 1)), rtol=1e-6)


@pytest.mark.parametrize("kind", sorted(ELEMENTWISE))
def test_a_reader_that_takes_an_operator_for_another_is_found(kind, tmp_path, monkeypatch):
    """Every operator with pieces that are off by 0.01 z, and every mask inverted: the file is refused."""
    right, slope = ELEMENTWISE[kind], Wave.line(0.01, 0.0)
    masks = ("And", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "Or")
    wrong = (lambda call: Wave.line(0.0, 1.0) - right(call)) if kind in masks else lambda call: right(call) + slope
    monkeypatch.setitem(ELEMENTWISE, kind, wrong)
    uses = [name for name, (nodes, _) in OPERATORS.items() if any(each.op_type == kind for each in nodes)]
    assert uses
    for name in uses:
        with pytest.raises(ValueError, match="is an ONNX model: "):
            load(write(tmp_path / "model", *OPERATORS[name]))


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
    "a sum over two layers": (
        [node("Gemm", "x", "w", out="h"), node("Add", "h", "x")],
        {"w": WEIGHT},
        "Add: it joins values of different layers",
    ),
    "a branch": (
        [node("Gemm", "x", "w", out="h"), node("Gemm", "x", "w")],
        {"w": WEIGHT},
        "Gemm: it takes a value of an earlier layer",
    ),
    "a matrix from the left": ([node("MatMul", "w", "x")], {"w": WEIGHT}, "MatMul: its input 1 must be an array"),
    "features that do not fit": ([node("MatMul", "x", "w")], {"w": WEIGHT[:2]}, "its matrix has shape (2, 3), but 3"),
    "a transposed batch": ([node("Gemm", "x", "w", transA=1)], {"w": WEIGHT}, "mixes the samples of a batch"),
    "a constant for each sample": ([node("Add", "x", "w")], {"w": WEIGHT}, "does not fit features of shape (3,)"),
    "another shape": ([node("Reshape", "x", "s")], {"s": np.array([3, -1, 1])}, "it reshapes to [3, -1, 1]"),
    "features of one axis less": ([node("Flatten", "x", axis=0)], {}, "it flattens from axis 0"),
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
    "no input": ([node("Identity", "w")], {"w": WEIGHT}, "its output 'y' must have shape [batch, features]"),
    "not a number": ([node("Add", "x", "b")], {"b": np.array([1, np.nan, 1], np.float32)}, "must be finite"),
    "a name that is not there": ([node("Add", "x", "b")], {}, "node 'y', Add: 'b'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_chain_of_pieces_is_one_line(name, tmp_path):
    nodes, arrays, reason = REFUSED[name]
    path = write(tmp_path / "model", nodes, arrays)
    with pytest.raises(ValueError, match="is an ONNX model: ") as error:
        load(path)
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("shape", [("n", "features"), ("n",), ("n", 0), (), ("n", 10**9)], ids=str)
def test_the_number_of_features_must_be_known(shape, tmp_path):
    path = write(tmp_path / "model", [node("Relu", "x")], shape=shape)
    with pytest.raises(ValueError, match=r"must be \[batch, features\] with a number|and at most"):
        load(path)


def test_operators_of_one_s_own_are_refused(tmp_path):
    own = make.make_node("Relu", ["x"], ["y"], domain="com.example")
    path = write(tmp_path / "model", [own], domains=["com.example"])
    with pytest.raises(ValueError, match="operators of its own"):
        load(path)
