"""Reading ONNX: every operator against onnxruntime, all forms of PLU, and what is refused."""

from itertools import pairwise

import numpy as np
import pytest
from model_files import POINTS, export, onnx_values
from onnx_texts import graph, write

from plunit.pieces import load
from plunit.pieces.formats.onnx_graphs import follower
from plunit.pieces.formats.onnx_graphs.lowering import LOWERED
from plunit.pieces.formats.onnx_graphs.operators import AFFINE, ELEMENTWISE, PICKED, full_name
from plunit.pieces.formats.onnx_graphs.waves import Wave
from plunit.pieces.graphs import make_layers

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
make, to_proto = onnx.helper, onnx.numpy_helper.from_array

RNG = np.random.default_rng(1)
WEIGHT, BIAS = RNG.normal(size=(3, 3)).astype(np.float32), RNG.normal(size=3).astype(np.float32)
PARTS = np.array([-0.5, 0.25, 2.0], dtype=np.float32)
TWO = np.float32(2)
FACTORS = [i / 4 - 1 for i in range(9)]


OPERATORS = {
    "Gemm": (graph("y = Gemm(x, w, b)"), {"w": WEIGHT, "b": BIAS}),
    "Gemm, transposed and scaled": (
        graph("y = Gemm<transB=1, alpha=0.5, beta=-2.0>(x, w, b)"),
        {"w": WEIGHT, "b": BIAS[None]},
    ),
    "Gemm without bias": (graph("y = Gemm(x, w)"), {"w": WEIGHT}),
    "Gemm, one number as bias": (graph("y = Gemm(x, w, b)"), {"w": WEIGHT, "b": TWO}),
    "MatMul and Add": (graph("h = MatMul(x, w); y = Add(b, h)"), {"w": WEIGHT, "b": BIAS}),
    "MatMul of a transposed array": (graph("t = Transpose<perm=[1, 0]>(w); y = MatMul(x, t)"), {"w": WEIGHT}),
    "Add": (graph("y = Add(x, b)"), {"b": BIAS}),
    "Sub": (graph("y = Sub(b, x)"), {"b": BIAS[None]}),
    "Mul": (graph("y = Mul(x, b)"), {"b": PARTS}),
    "Div": (graph("y = Div(x, b)"), {"b": PARTS}),
    "Neg": (graph("y = Neg(x)"), {}),
    "Sum": (graph("y = Sum(x, b, x)"), {"b": BIAS}),
    "Relu": (graph("y = Relu(x)"), {}),
    "LeakyRelu": (graph("y = LeakyRelu<alpha=0.3>(x)"), {}),
    "LeakyRelu by default": (graph("y = LeakyRelu(x)"), {}),
    "PRelu": (graph("y = PRelu(x, b)"), {"b": PARTS}),
    "PRelu, one slope": (graph("y = PRelu(x, b)"), {"b": PARTS[:1]}),
    "Clip": (graph("y = Clip(x, l, h)"), {"l": np.float32(-0.5), "h": TWO}),
    "Clip from below": (graph("y = Clip(x, l)"), {"l": np.float32(-0.5)}),
    "Clip from above": (graph("y = Clip(x, , h)"), {"h": TWO}),
    "Clip, an end far away": (graph("y = Clip(x, l, h)"), {"l": np.float32(-1e12), "h": np.float32(0.1)}),
    "Clip without ends": (graph("y = Clip(x)"), {}),
    "Clip, the ends crossed": (graph("y = Clip(x, l, h)"), {"l": TWO, "h": np.float32(-0.5)}),
    "HardSigmoid": (graph("y = HardSigmoid<alpha=1 / 6>(x)"), {}),
    "HardSigmoid by default": (graph("y = HardSigmoid(x)"), {}),
    "Identity": (graph("y = Identity(x)"), {}),
    "Dropout": (graph("y = Dropout(x)"), {}),
    "Cast": (graph("d = Cast<to=11>(x); y = Cast<to=1>(d)"), {}),
    "Abs": (graph("y = Abs(x)"), {}),
    "Max": (graph("y = Max(x, b, c)"), {"b": BIAS, "c": PARTS}),
    "Min": (graph("y = Min(b, x)"), {"b": BIAS}),
    "BatchNormalization": (
        graph("y = BatchNormalization<epsilon=0.01>(x, s, b, m, v)"),
        {"s": PARTS, "b": BIAS, "m": WEIGHT[0], "v": WEIGHT[1] ** 2},
    ),
    "Where": (graph("m = Greater(x, b); y = Where(m, x, b)"), {"b": BIAS}),
    "Where, the other way": (graph("m = Less(x, b); n = Not(m); y = Where(n, x, b)"), {"b": BIAS}),
    "Where, between": (
        graph("k = Clip(x, l, h); m = LessOrEqual(x, h); n = GreaterOrEqual(x, l); o = And(m, n); y = Where(o, x, k)"),
        {"l": np.float32(-0.5), "h": TWO},
    ),
    "Where, outside": (
        graph("m = Greater(x, h); n = Less(x, l); o = Or(m, n); k = Clip(x, l, h); y = Where(o, k, x)"),
        {"l": np.float32(-0.5), "h": TWO},
    ),
    "GreaterOrEqual, a tie on half of the line": (
        graph("r = Relu(x); m = GreaterOrEqual(x, r); s = Mul(x, b); y = Where(m, x, s)"),
        {"b": PARTS},
    ),
    "LessOrEqual, a tie on half of the line": (
        graph("k = Clip(x, , h); m = LessOrEqual(x, k); y = Where(m, x, k)"),
        {"h": TWO},
    ),
    "a mask": (graph("m = Greater(x, zero); f = Cast<to=1>(m); y = Mul(f, x)"), {"zero": np.float32(0)}),
    "a mask as a mask": (
        graph("m = Greater(x, zero); c = Cast<to=9>(m); f = Cast<to=1>(c); y = Mul(f, x)"),
        {"zero": np.float32(0)},
    ),
    "Sign": (graph("s = Sign(x); y = Mul(s, x)"), {}),
    "two functions of a unit": (graph("a = Relu(x); b = Abs(x); y = Sub(a, b)"), {}),
    "many pieces": (graph("a = Abs(x); b = Sub(a, c); d = Abs(b); y = Min(d, c)"), {"c": TWO}),
    "Constant": ([make.make_node("Constant", [], ["c"], value=to_proto(BIAS)), *graph("y = Add(x, c)")], {}),
    "Flatten": (graph("f = Flatten(x); y = Relu(f)"), {}),
    "Reshape": (graph("r = Reshape(x, s); y = Relu(r)"), {"s": np.array([-1, 3])}),
    "Reshape, the batch kept": (graph("r = Reshape(x, s); y = Relu(r)"), {"s": np.array([0, -1])}),
    "Reshape to the shape of another": (graph("r = Relu(x); s = Shape(x); y = Reshape(r, s)"), {}),
    "MatMul, the matrix on the left": (graph("t = Transpose(x); m = MatMul(w, t); y = Transpose(m)"), {"w": WEIGHT}),
    "Conv": (
        graph("p = Unsqueeze(x, one); v = Conv<pads=[1, 3], dilations=[2], strides=[2]>(p, k, b); y = Flatten(v)"),
        {"one": np.array([1]), "k": WEIGHT[:1, None, :2], "b": BIAS[:1]},
    ),
    "Conv in groups": (
        graph("p = Reshape(x, s); v = Conv<group=3>(p, k); y = Flatten(v)"),
        {"s": np.array([-1, 3, 1, 1]), "k": WEIGHT[:, :1, None, None]},
    ),
    "Conv, padded by itself": (
        graph("p = Unsqueeze(x, one); v = Conv<auto_pad='SAME_UPPER'>(p, k); y = Flatten(v)"),
        {"one": np.array([1]), "k": WEIGHT[:1, None, :2]},
    ),
    "MaxPool": (
        graph("p = Unsqueeze(x, one); v = MaxPool<kernel_shape=[2], pads=[1, 0]>(p); y = Flatten(v)"),
        {"one": np.array([1])},
    ),
    "AveragePool": (
        graph("p = Unsqueeze(x, one); v = AveragePool<kernel_shape=[2], pads=[0, 1]>(p); y = Flatten(v)"),
        {"one": np.array([1])},
    ),
    "GlobalMaxPool": (
        graph("p = Unsqueeze(x, one); v = GlobalMaxPool(p); f = Flatten(v); y = Sub(x, f)"),
        {"one": np.array([1])},
    ),
    "GlobalAveragePool": (
        graph("p = Unsqueeze(x, one); v = GlobalAveragePool(p); f = Flatten(v); y = Sub(x, f)"),
        {"one": np.array([1])},
    ),
    "Scaler": (graph("y = ai.onnx.ml.Scaler<offset=[0.5, -1.0, 2.0], scale=[-0.5, 2.0, 0.25]>(x)"), {}),
    "Scaler, one number": (graph("y = ai.onnx.ml.Scaler<offset=[0.5], scale=[3.0]>(x)"), {}),
    "LinearRegressor": (
        graph(f"y = ai.onnx.ml.LinearRegressor<coefficients={FACTORS}, intercepts=[1.0, 2.0, -3.0], targets=3>(x)"),
        {},
    ),
    "LinearRegressor without intercepts": (
        graph(f"y = ai.onnx.ml.LinearRegressor<coefficients={FACTORS}, targets=3>(x)"),
        {},
    ),
    "LinearClassifier": (
        graph(
            "l, y = ai.onnx.ml.LinearClassifier<classlabels_ints=[0, 1, 2], intercepts=[1.0, 2.0, -3.0], "
            f"coefficients={FACTORS}, post_transform='NONE'>(x)"
        ),
        {},
    ),
    "ReduceSum": (graph("s = ReduceSum(x, one); y = Add(s, x)"), {"one": np.array([1])}),
    "ReduceMean": (graph("s = ReduceMean<axes=[-1], keepdims=1>(x); y = Sub(x, s)"), {}),
    "Slice, Concat": (
        graph("s = Slice(x, l, h, one); r = Relu(x); j = Concat<axis=1>(s, r, s); y = Gather<axis=1>(j, i)"),
        {"l": np.array([1]), "h": np.array([3]), "one": np.array([1]), "i": np.array([4, 0, 6])},
    ),
    "Split": (graph("s, t = Split<axis=1>(x, n); y = Concat<axis=1>(t, s)"), {"n": np.array([1, 2])}),
    "Squeeze, Unsqueeze, Transpose": (
        graph("p = Unsqueeze(x, two); t = Transpose<perm=[2, 0, 1]>(p); y = Squeeze(t, zero)"),
        {"two": np.array([2]), "zero": np.array([0])},
    ),
    "Expand": (
        graph("s = ReduceSum(x, one); n = Shape(x); e = Expand(s, n); y = Mul(e, b)"),
        {"one": np.array([1]), "b": PARTS},
    ),
    "a sum of several layers": (
        graph("g = Gemm(x, w, b); r = Relu(g); s = Sum(x, r, b, x); d = Sub(b, s); y = Sub(d, r)"),
        {"w": WEIGHT, "b": BIAS},
    ),
    "Max over layers": (graph("g = Gemm(x, w, b); y = Max(x, b, g)"), {"w": WEIGHT, "b": BIAS}),
    "Min over layers": (graph("g = MatMul(x, w); y = Min(g, x)"), {"w": WEIGHT}),
    "a shift, and kinks on both sides of it": (
        graph("a = Add(x, b); p = Relu(a); c = Sub(x, b); d = Mul(c, two); q = Relu(d); y = Sub(p, q)"),
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
        nodes = [*graph("z = Gemm(x, w1, b1)"), *nodes, *graph("y = Gemm(u, w2, b1)")]
    path = write(tmp_path / "model", nodes, arrays)
    np.testing.assert_allclose(load(path)(POINTS), onnx_values(path), rtol=1e-5, atol=2e-5)


def test_every_operator_has_a_row():
    used = {full_name(each) for nodes, _ in OPERATORS.values() for each in nodes}
    assert {*ELEMENTWISE, *AFFINE, *LOWERED, *PICKED} <= used


def test_older_models_have_the_ends_of_clip_as_attributes(tmp_path):
    path = write(tmp_path / "model", graph("y = Clip<min=-0.5, max=1.5>(x)"), version=8)
    np.testing.assert_allclose(load(path)(POINTS), np.clip(POINTS, -0.5, 1.5), rtol=1e-6)


OLDER = {
    "Dropout": (graph("y = Dropout<ratio=0.5>(x)"), 11),
    "Dropout between layers": (
        graph("z = Gemm(x, w, b); d, m = Dropout<ratio=0.5>(z); r = Relu(d); y = Gemm(r, w, b)"),
        11,
    ),
    "BatchNormalization": (graph("y = BatchNormalization(x, b, b, b, v)"), 13),
    "Squeeze, Unsqueeze": (graph("u = Unsqueeze<axes=[1]>(x); r = Relu(u); y = Squeeze<axes=[1]>(r)"), 12),
    "ReduceSum": (graph("s = ReduceSum<axes=[1], keepdims=1>(x); y = Sub(x, s)"), 12),
    "Slice": (graph("y = Slice<starts=[1], ends=[3], axes=[1]>(x)"), 9),
    "Split": (graph("s, t = Split<axis=1, split=[1, 2]>(x); y = Concat<axis=1>(t, s)"), 12),
}
"""Nodes in the form before a version, mostly with attributes instead of inputs, and the last version with this form."""


@pytest.mark.parametrize("name", OLDER)
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
def test_older_models_are_those_of_onnxruntime(name, first, tmp_path):
    nodes, last = OLDER[name]
    arrays = {"w": WEIGHT, "b": BIAS, "v": BIAS**2}
    path = write(tmp_path / "model", nodes, arrays, version=7 if first else last)
    np.testing.assert_allclose(load(path)(POINTS), onnx_values(path), rtol=1e-5, atol=2e-5)


FIRST = {
    "Dropout": ("y = Dropout<ratio=0.5, is_test=1>(x)", "y = Dropout<ratio=0.5>(x)"),
    "BatchNormalization": (
        "y = BatchNormalization<is_test=1, spatial=1, epsilon=0.0>(x, one, zero, zero, one)",
        "y = BatchNormalization<epsilon=0.0>(x, one, zero, zero, one)",
    ),
    "BatchNormalization, spatial": (
        "y = BatchNormalization<is_test=1, epsilon=0.0>(x, one, zero, zero, one)",
        "y = BatchNormalization<is_test=1, spatial=0>(x, one, zero, zero, one)",
    ),
}


@pytest.mark.parametrize("name", FIRST)
def test_the_first_versions_say_that_they_are_in_eval_mode(name, tmp_path):
    arrays = {"one": np.ones(3, np.float32), "zero": np.zeros(3, np.float32)}
    right, wrong = (graph(text) for text in FIRST[name])
    np.testing.assert_array_equal(load(write(tmp_path / "model", right, arrays, version=6))(POINTS), POINTS)
    with pytest.raises(ValueError, match=f"node 'y', {right[0].op_type}: "):
        load(write(tmp_path / "model", wrong, arrays, version=6))


def test_the_domain_of_onnx_may_be_named(tmp_path):
    path = write(tmp_path / "model", graph("y = ai.onnx.Abs(x)"), domains=())
    np.testing.assert_array_equal(load(path)(POINTS), np.abs(POINTS))


def test_axes_behind_the_batch_are_flattened(tmp_path):
    arrays = {"c": np.arange(3, dtype=np.float32).reshape(3, 1), "w": WEIGHT[:, :1]}
    nodes = graph("a = Add(x, c); f = Flatten(a); y = MatMul(f, w)")
    net = load(write(tmp_path / "model", nodes, arrays, shape=("n", 3, 1)))
    np.testing.assert_allclose(net(POINTS), (POINTS + np.arange(3)) @ WEIGHT[:, :1], rtol=1e-4, atol=1e-5)


def test_arrays_may_lie_in_a_file_beside_the_model(tmp_path):
    path = write(tmp_path / "model", graph("y = Gemm(x, w, b)"), {"w": WEIGHT, "b": BIAS})
    whole = load(path)(POINTS)
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert (tmp_path / "weights.bin").exists()
    np.testing.assert_array_equal(load(path)(POINTS), whole)


@pytest.mark.parametrize("place", ["../secret.bin", "/etc/hostname"])
def test_arrays_elsewhere_are_refused(place, tmp_path):
    (tmp_path / "secret.bin").write_bytes(bytes(100))
    (tmp_path / "folder").mkdir()
    model = onnx.load(write(tmp_path / "folder/model", graph("y = Add(x, b)"), {"b": BIAS}))
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
    kinds = {name: {full_name(each) for each in nodes} for name, (nodes, _) in OPERATORS.items()}
    # linear maps join layers, and sums over layers are linear maps
    uses = [name for name, used in kinds.items() if kind in used and not used & {*AFFINE, *LOWERED}]
    assert uses
    for name in uses:
        with pytest.raises(ValueError, match="is an ONNX model: "):
            load(write(tmp_path / "model", *OPERATORS[name]))


def test_layers_that_are_put_together_wrongly_are_found(tmp_path, monkeypatch):
    def wrong(output, room):
        ((weight, bias), *rest), *more = make_layers(output, room)
        return [(1.01 * weight, bias), *rest], *more

    monkeypatch.setattr(follower, "make_layers", wrong)
    with pytest.raises(ValueError, match="the network differs from its graph"):
        load(write(tmp_path / "model", *OPERATORS["Max over layers"]))


def test_arrays_are_joined_with_signals(tmp_path):
    nodes = graph("r = Relu(x); y = Concat<axis=1>(b, r, x)")
    net = load(write(tmp_path / "model", nodes, {"b": BIAS[None]}, (1, 3)))
    wanted = np.concatenate([np.tile(BIAS, (len(POINTS), 1)), np.maximum(POINTS, 0), POINTS], axis=1)
    np.testing.assert_allclose(net(POINTS), wanted, rtol=1e-6)


REFUSED = {
    "Tanh": (
        graph("y = Tanh(x)"),
        {},
        "node 'y', Tanh: this operator is not piecewise-linear or not supported; ",
    ),
    "a square": (graph("y = Mul(x, x)"), {}, "two functions of the input are multiplied"),
    "a jump": (graph("y = Sign(x)"), {}, "jumps by 2 at 0"),
    "a small jump": (
        graph("m = Greater(x, one); h = Mul(x, half); b = Add(h, c); y = Where(m, b, x)"),
        {"one": np.float32(1), "half": np.float32(0.5), "c": np.float32(0.5000004)},
        "jumps by 4.17233e-07 at 1",
    ),
    "a jump at one point": (
        graph("a = Abs(x); m = LessOrEqual(a, zero); y = Where(m, two, x)"),
        {"zero": np.float32(0), "two": TWO},
        "a unit has the value 2 at 0 in the graph, but 0 on the pieces",
    ),
    "a comparison that rounding decides": (
        graph(
            "p = Mul(x, a); q = Mul(x, b); s = Add(p, q); t = Mul(x, c); m = GreaterOrEqual(s, t); y = Where(m, x, s)"
        ),
        {"a": np.float32(0.1), "b": np.float32(0.2), "c": np.float32(0.3)},
        "GreaterOrEqual: the two functions compared are equal up to rounding",
    ),
    "a comparison of two layers": (
        graph("h = Gemm(x, w); m = Greater(h, x); y = Where(m, h, x)"),
        {"w": WEIGHT},
        "Greater: only sums, Max, Min and Concat may combine values of different layers",
    ),
    "a product of two layers": (
        graph("h = Gemm(x, w); y = MatMul(h, x)"),
        {"w": WEIGHT},
        "MatMul: two functions of the input are multiplied",
    ),
    "a padding of another name": (
        graph("u = Unsqueeze(x, one); y = Conv<auto_pad='SAME'>(u, k)"),
        {"one": np.array([1]), "k": WEIGHT[:1, None]},
        "Conv: auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, got 'SAME'",
    ),
    "a kernel that is too large": (
        graph("u = Unsqueeze(x, one); y = Conv<dilations=[2]>(u, k)"),
        {"one": np.array([1]), "k": WEIGHT[:1, None]},
        "Conv: a kernel of shape (1, 1, 3) does not fit an input of shape (1, 1, 3)",
    ),
    "a window that is too large": (
        graph("u = Unsqueeze(x, one); y = MaxPool<kernel_shape=[5], pads=[1, 0]>(u)"),
        {"one": np.array([1])},
        "MaxPool: a window of [5] does not fit an input of shape [1, 1, 3]",
    ),
    "a window of padding": (
        graph("u = Unsqueeze(x, one); y = MaxPool<kernel_shape=[2], dilations=[4], pads=[1, 1]>(u)"),
        {"one": np.array([1])},
        "MaxPool: a window holds only padding",
    ),
    "an average of padding": (
        graph("u = Unsqueeze(x, one); y = AveragePool<kernel_shape=[2], dilations=[4], pads=[1, 1]>(u)"),
        {"one": np.array([1])},
        "AveragePool: a window holds only padding",
    ),
    "a window of other axes": (
        graph("y = MaxPool<kernel_shape=[2]>(x)"),
        {},
        "MaxPool: a kernel of shape [2] does not fit an input of shape [1, 3]",
    ),
    "a padding that runtimes disagree on": (
        graph("u = Unsqueeze(x, one); y = MaxPool<kernel_shape=[2], dilations=[2], auto_pad='SAME_UPPER'>(u)"),
        {"one": np.array([1])},
        "MaxPool: runtimes disagree on auto_pad with dilations",
    ),
    "places of maxima": (
        graph("u = Unsqueeze(x, one); m, i = MaxPool<kernel_shape=[2]>(u); y = Cast<to=1>(i)"),
        {"one": np.array([1])},
        "Cast: input 'i' is an output of MaxPool that is not supported",
    ),
    "the mask of Dropout": (
        graph("d, m = Dropout(x); y = Where(m, d, x)"),
        {},
        "Where: input 'm' is an output of Dropout that is not supported",
    ),
    "a number as a mask": (
        graph("m = Cast<to=9>(x); y = Where(m, x, x)"),
        {},
        "Cast: only casts to FLOAT",
    ),
    "probabilities": (
        graph("z = Gemm(x, w); y = Softmax(z)"),
        {"w": WEIGHT},
        "Softmax: turning scores into probabilities is not piecewise-linear; extract the part up to the ",
    ),
    "probabilities of a linear model": (
        graph(
            "l, y = ai.onnx.ml.LinearClassifier<classlabels_ints=[0, 1], coefficients=[1.0, 2.0, 3.0], "
            "post_transform='LOGISTIC'>(x)"
        ),
        {},
        "ai.onnx.ml.LinearClassifier: post_transform LOGISTIC turns scores into probabilities",
    ),
    "coefficients that do not fit": (
        graph("y = ai.onnx.ml.LinearRegressor<coefficients=[1.0, 2.0]>(x)"),
        {},
        "ai.onnx.ml.LinearRegressor: 3 features and 1 outputs need 3 coefficients and 1 intercepts, got 2 and 0",
    ),
    "one score of two classes": (
        graph(
            "l, y = ai.onnx.ml.LinearClassifier<classlabels_ints=[0, 1], coefficients=[1.0, 2.0, 3.0], "
            "intercepts=[0.5]>(x)"
        ),
        {},
        "ai.onnx.ml.LinearClassifier: 3 features and 2 outputs need 6 coefficients and 2 intercepts, got 3 and 1",
    ),
    "scales that do not fit": (
        graph("y = ai.onnx.ml.Scaler<offset=[1.0, 2.0], scale=[1.0]>(x)"),
        {},
        "ai.onnx.ml.Scaler: 2 numbers do not fit 3 features",
    ),
    "another operator of scikit-learn": (
        graph("y = ai.onnx.ml.ZipMap<classlabels_int64s=[0, 1, 2]>(x)"),
        {},
        "node 'y', ai.onnx.ml.ZipMap: this operator is not piecewise-linear or not supported; ",
    ),
    "a known name in the domain of scikit-learn": (
        graph("y = ai.onnx.ml.Relu(x)"),
        {},
        "ai.onnx.ml.Relu: this operator is not",
    ),
    "an operator of one's own": (
        graph("y = com.example.Relu(x)"),
        {},
        "node 'y', com.example.Relu: this operator is not",
    ),
    "an array by an operator of one's own": (
        graph("c = com.example.Neg(b); y = Add(x, c)"),
        {"b": BIAS},
        "node 'c', com.example.Neg: this operator is not supported on arrays",
    ),
    "channels that do not fit": (
        graph("u = Unsqueeze(x, one); y = Conv(u, k)"),
        {"one": np.array([1]), "k": WEIGHT[None]},
        "Conv: Shape inconsistencies, X.shape=(1, 1, 3), W.shape=(1, 3, 3)",
    ),
    "a kernel of other axes": (
        graph("u = Unsqueeze(x, one); y = Conv(u, k)"),
        {"one": np.array([1]), "k": WEIGHT[:1, None, :, None]},
        "Conv: a kernel of shape (1, 1, 3, 1) does not fit an input of shape (1, 1, 3)",
    ),
    "a bias that varies": (graph("y = Gemm(w, w, x)"), {"w": WEIGHT}, "the weights and the bias must be arrays"),
    "a scale that varies": (
        graph("y = BatchNormalization(b, x, b, b, b)"),
        {"b": BIAS},
        "the weights and the bias must be arrays",
    ),
    "features that do not fit": (graph("y = MatMul(x, w)"), {"w": WEIGHT[:2]}, "MatMul: "),
    "a transposed batch": (
        graph("y = Gemm<transA=1>(x, w)"),
        {"w": WEIGHT},
        "Gemm: ",
    ),
    "a constant for each sample": (graph("y = Add(x, w)"), {"w": WEIGHT}, "the output has shape [3, 3] for one sample"),
    "features in place of the batch": (graph("y = Reshape(x, s)"), {"s": np.array([3, -1])}, "shape [3, 1] for one"),
    "an axis of the first versions": (
        graph("y = Add<broadcast=1, axis=1>(x, b)"),
        {"b": BIAS},
        "broadcasting along an axis, as in opset versions before 7, is not supported",
    ),
    "integers": (graph("y = Cast<to=7>(x)"), {}, "Cast: only casts to FLOAT"),
    "a division by 0": (graph("y = Div(x, b)"), {"b": np.float32(0)}, "Div: the divisor must not be 0"),
    "a division by x": (graph("y = Div(b, x)"), {"b": TWO}, "Div: input 1 must be an array"),
    "statistics of a batch": (
        graph("y = BatchNormalization<training_mode=1>(x, b, b, b, b)"),
        {"b": PARTS},
        "BatchNormalization: the node is in training mode",
    ),
    "training": (
        graph("y = Dropout(x, r, t)"),
        {"r": np.float32(0.5), "t": np.array(True)},
        "Dropout: the node is in training mode",
    ),
    "texts": (graph("y = Add(x, t)"), {"t": np.array(["a"], dtype=object)}, "must hold real numbers"),
    "an array that grows": (
        graph("c = Add(a, b); y = Add(x, c)"),
        {"a": np.zeros((20_000, 1), np.float32), "b": np.zeros((1, 20_000), np.float32)},
        "Add: the result has 3,200,000,000 bytes",
    ),
    "an operator on arrays": (
        graph("r = RandomNormal<shape=[3]>(); y = Add(x, r)"),
        {},
        "this operator is not supported on arrays",
    ),
    "no input": (graph("y = Identity(w)"), {"w": WEIGHT}, "the output 'y' must depend on the input"),
    "not a number": (graph("y = Add(x, b)"), {"b": np.array([1, np.nan, 1], np.float32)}, "must be finite"),
    "a name that is not there": (graph("y = Add(x, b)"), {}, "node 'y', Add: 'b'"),
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
    path = write(tmp_path / "model", graph("r = Reshape(x, s); y = MatMul(r, w)"), arrays, shape)
    np.testing.assert_allclose(load(path)(POINTS), POINTS @ WEIGHT, rtol=1e-5, atol=1e-6)


def test_vectors_are_multiplied_from_both_sides(tmp_path):
    nodes = graph("a = MatMul(w, x); r = Relu(a); y = MatMul(r, w)")
    net = load(write(tmp_path / "model", nodes, {"w": WEIGHT}, (3,)))
    np.testing.assert_allclose(net(POINTS), np.maximum(POINTS @ WEIGHT.T, 0) @ WEIGHT, rtol=1e-5, atol=1e-6)


def test_broadcasting_of_the_first_versions(tmp_path):
    nodes = graph("d = Sub<broadcast=1>(x, b); y = Gemm<broadcast=1>(d, w, b)")
    path = write(tmp_path / "model", nodes, {"b": BIAS, "w": WEIGHT}, version=6)
    np.testing.assert_allclose(load(path)(POINTS), (POINTS - BIAS) @ WEIGHT + BIAS, rtol=1e-5, atol=1e-5)


def residual(count):
    """Return the nodes of x + W relu(V x + b), repeated."""
    names = ["x", *(f"h{i}" for i in range(count - 1)), "y"]
    blocks = ("{1}z = Gemm({0}, v, b); {1}u = Relu({1}z); {1}s = Gemm({1}u, w); {1} = Add({0}, {1}s)",) * count
    return graph("; ".join(block.format(*ends) for block, ends in zip(blocks, pairwise(names), strict=True)))


WIDE = RNG.normal(scale=0.3, size=(3, 7)).astype(np.float32)
WIDTHS = {
    "affine maps in a row": (graph("a = Gemm(x, v, b); c = MatMul(a, w); y = Relu(c)"), (3, 7, 3, 3)),
    "sums over three layers": (residual(3), (3, 10, 3, 10, 3, 10, 3)),
    "a value is carried after a matrix that makes it narrower": (
        graph("z = Gemm(x, v, b); u = Relu(z); c = MatMul(u, w); d = Relu(c); y = Add(d, c)"),
        (3, 7, 3, 3),
    ),
    "the inputs are carried if they are fewer": (
        graph("u = Relu(x); d = Gemm(u, v); k = Gemm(x, v, b); y = Add(d, k)"),
        (3, 6, 7),
    ),
    "a value is not carried if its inputs are carried anyway": (
        graph(
            "z = Gemm(x, v); u = Relu(z); c = MatMul(u, w); p = Add(c, x); "
            "q = ReduceSum(x, one); y = Concat<axis=1>(p, q)"
        ),
        (3, 10, 4),
    ),
    "units that no layer uses are left out": (
        graph("z = Gemm(x, v, b); u = Relu(z); y = Slice(u, two, four, one)"),
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
    nodes = graph("z = MatMul(x, w); a = Add(z, b); y = Relu(a)")
    ((_, f),) = load(write(tmp_path / "model", nodes, {"w": WEIGHT, "b": BIAS})).hidden
    assert f.knots.tolist() == [[0.0]] * 3
    assert f.slopes.tolist() == [[0.0, 1.0]] * 3


@pytest.mark.parametrize("shape", [("n", "features"), ("n",), ("n", 0), (), ("n", 10**9)], ids=str)
def test_the_number_of_features_must_be_known(shape, tmp_path):
    path = write(tmp_path / "model", graph("y = Relu(x)"), shape=shape)
    with pytest.raises(ValueError, match=r"must be a number|the limit is"):
        load(path)


def test_several_outputs_are_named(tmp_path):
    model = onnx.load(write(tmp_path / "model", graph("h = Relu(x); y = Abs(h)")))
    model.graph.output.append(make.make_tensor_value_info("h", onnx.TensorProto.FLOAT, None))
    (tmp_path / "model").write_bytes(model.SerializeToString())
    with pytest.raises(ValueError, match="the outputs of this model are 'y', 'h'"):
        load(tmp_path / "model")


@pytest.mark.parametrize("domains", [(), ("com.example",)], ids=["undeclared", "declared"])
@pytest.mark.parametrize("kind", ["Relu", "Cast", "Dropout"])
def test_operators_of_another_domain_are_refused(kind, domains, tmp_path):
    own = make.make_node(kind, ["x"], ["y"], domain="com.example", **({"to": 1} if kind == "Cast" else {}))
    path = write(tmp_path / "model", [own], domains=domains)
    with pytest.raises(ValueError, match=rf"com\.example\.{kind}"):
        load(path)


def test_operators_that_the_file_defines_are_refused(tmp_path):
    model = onnx.load(write(tmp_path / "model", graph("y = Relu(x)")))
    opsets = [make.make_opsetid("", 17)]
    model.functions.append(make.make_function("", "Relu", ["a"], ["b"], graph("b = Neg(a)"), opsets))
    (tmp_path / "model").write_bytes(model.SerializeToString())
    with pytest.raises(ValueError, match="Relu"):
        load(tmp_path / "model")


def test_a_model_declares_the_standard_operators(tmp_path):
    model = onnx.load(write(tmp_path / "model", graph("y = Relu(x)")))
    model.opset_import[0].domain = "com.example"
    (tmp_path / "model").write_bytes(model.SerializeToString())
    with pytest.raises(ValueError, match=r"com\.example"):
        load(tmp_path / "model")


INTEGERS = {"uint8": onnx.TensorProto.UINT8, "int64": onnx.TensorProto.INT64, "bool": onnx.TensorProto.BOOL}
BEFORE_CAST = {
    "a sum": "s = Add(x, x); y = Cast<to=1>(s)",
    "a sum of what was moved": "r = Reshape(x, n); s = Sub(r, r); y = Cast<to=1>(s)",
    "a copy": "c = Identity(x); s = Relu(c); y = Cast<to=1>(s)",
    "a maximum": "y = Max(x, x)",
    "a mask": "y = Where(x, two, w)",
    "a matrix": "y = MatMul(x, w)",
}


@pytest.mark.parametrize("text", BEFORE_CAST.values(), ids=BEFORE_CAST)
@pytest.mark.parametrize("kind", INTEGERS)
def test_arithmetic_of_integers_is_refused(kind, text, tmp_path):
    arrays = {"n": np.array([-1, 3]), "w": WEIGHT[:1], "two": TWO}
    path = write(tmp_path / "model", graph(text), arrays, kind=INTEGERS[kind])
    with pytest.raises(ValueError, match=kind.upper()):
        load(path)


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_may_be_moved_and_cast(kind, tmp_path):
    nodes = graph("r = Reshape(x, n); c = Identity(r); f = Cast<to=1>(c); s = Add(f, f); y = Sub(s, b)")
    net = load(write(tmp_path / "model", nodes, {"n": np.array([-1, 3]), "b": BIAS}, kind=INTEGERS[kind]))
    x = np.array([0.0, 1.0, 1.0])
    np.testing.assert_allclose(net(x), 2 * x - BIAS.astype(float), rtol=1e-12)
