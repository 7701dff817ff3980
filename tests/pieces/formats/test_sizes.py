"""Small files that name large arrays, or one array many times: refused before the memory is reserved.

The limits are lowered, so that nothing here is large: what is over the limit has some megabytes.
"""

import io
import itertools
import json
import tracemalloc
import zipfile

import numpy as np
import pytest

from plunit.pieces import load
from plunit.pieces.formats import importer

SMALL = 2**20
ROW = np.zeros((1, 256), np.float32)


@pytest.fixture(autouse=True)
def limits(monkeypatch):
    monkeypatch.setattr(importer, "LIMIT", SMALL)


def onnx_model(path, nodes, arrays, change=None):
    onnx = pytest.importorskip("onnx")
    make = onnx.helper
    x, y = (make.make_tensor_value_info(name, 1, ["n", 256] if name == "x" else None) for name in "xy")
    tables = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    parts = [make.make_node(kind, inputs, [out], **options) for kind, inputs, out, options in nodes]
    model = make.make_model(make.make_graph(parts, "g", [x], [y], tables), opset_imports=[make.make_opsetid("", 17)])
    if change:
        change(model)
    path.write_bytes(model.SerializeToString())


def concat(count, name, out):
    return "Concat", [name] * count, out, {"axis": 0}


def chained(path):
    """Each array is below the limit, all of them are not."""
    steps = [concat(8, "r", "a0"), *(concat(1, f"a{i}", f"a{i + 1}") for i in range(300))]
    onnx_model(path, [*steps, ("Add", ["x", "r"], "y", {})], {"r": ROW})


def at_once(path):
    """An array of some hundred others."""
    onnx_model(path, [concat(5000, "r", "a"), ("Add", ["x", "r"], "y", {})], {"r": ROW})


def one_matrix(path):
    """One matrix in many layers."""
    names = ["x", *(f"h{i}" for i in range(20)), "y"]
    steps = []
    for before, after in itertools.pairwise(names):
        steps += [("MatMul", [before, "w"], f"{after}z", {}), ("Relu", [f"{after}z"], after, {})]
    onnx_model(path, steps, {"w": np.eye(256, dtype=np.float32)})


def doubled(path):
    """A unit with 2^n pieces."""
    steps = [("Abs", ["x"], "h0", {})]
    for i in range(40):
        steps += [("Mul", [f"h{i}", "two"], f"p{i}", {}), ("Sub", [f"p{i}", "one"], f"q{i}", {})]
        steps += [("Abs", [f"q{i}"], f"h{i + 1}", {})]
    onnx_model(path, [*steps, ("Identity", ["h40"], "y", {})], {"one": np.float32([1]), "two": np.float32([2])})


def bottlenecks(path):
    """Products of thin matrices."""
    names = ["x", *(f"h{i}" for i in range(20)), "y"]
    steps = []
    for before, after in itertools.pairwise(names):
        steps += [("MatMul", [before, "v"], f"{after}t", {}), ("MatMul", [f"{after}t", "w"], f"{after}z", {})]
        steps += [("Relu", [f"{after}z"], after, {})]
    onnx_model(path, steps, {"v": ROW.T.copy(), "w": ROW})


def expanded_input(path):
    """The input many times."""
    onnx_model(path, [("Expand", ["x", "n"], "y", {})], {"n": np.array([10_000, 256])})


def gathered_input(path):
    """A row of the input many times."""
    onnx_model(path, [("Gather", ["x", "i"], "y", {"axis": 0})], {"i": np.zeros(50_000, np.int64)})


def joined_input(path):
    """The input after itself, again and again."""
    names = ["x", *(f"h{i}" for i in range(20)), "y"]
    steps = [("Concat", [a, a], b, {"axis": 1}) for a, b in itertools.pairwise(names)]
    onnx_model(path, steps, {})


def outer(path):
    """Each input times each number of a row."""
    steps = [("Transpose", ["x"], "t", {}), ("MatMul", ["t", "r"], "y", {})]
    onnx_model(path, steps, {"r": np.ones((1, 300), np.float32)} | {"unused": ROW})


def padded(path):
    """A small picture with a large frame."""
    steps = [("Reshape", ["x", "s"], "p", {}), ("Conv", ["p", "k"], "y", {"pads": [10**4] * 4})]
    onnx_model(path, steps, {"s": np.array([1, 1, 16, 16]), "k": np.ones((1, 1, 1, 1), np.float32)})


def beside(path):
    """An array without a length, in a large file."""
    with (path.parent / "data.bin").open("wb") as file:
        file.truncate(64 * SMALL)

    def change(model):
        (table,) = model.graph.initializer
        table.ClearField("raw_data")
        table.data_location = 1
        table.external_data.add(key="location", value="data.bin")

    onnx_model(path, [("Add", ["x", "r"], "y", {})], {"r": ROW}, change)


def longer(path):
    """An array whose length is not that of its numbers."""
    beside(path)
    import onnx

    model = onnx.load(path, load_external_data=False)
    model.graph.initializer[0].external_data.add(key="length", value=str(64 * SMALL))
    path.write_bytes(model.SerializeToString())


def expanded(path):
    """A weight of stride 0."""
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(1, 1)
    layer.weight = torch.nn.Parameter(torch.zeros(1).expand(2000, 2000), requires_grad=False)
    layer.bias = torch.nn.Parameter(torch.zeros(1).expand(2000), requires_grad=False)
    torch.save(torch.nn.Sequential(layer), path)


def in_many_places(path):
    """One layer many times, in containers that stand twice in each other."""
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    for _ in range(40):
        model = torch.nn.Sequential(model, model)
    torch.save(model, path)


def recompressed(path):
    """The records of an archive of PyTorch, deflated."""
    torch = pytest.importorskip("torch")
    content = io.BytesIO()
    layer = torch.nn.Linear(600, 600)
    torch.nn.init.zeros_(layer.weight)
    torch.save(torch.nn.Sequential(layer), content)
    with zipfile.ZipFile(content) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))


def activations(path):
    """Activations in a row, with a square matrix between each two."""
    affine = {"weight": [[0.0]] * 300, "bias": [0.0] * 300}
    relu = {"knots": [[0.0]] * 300, "slopes": [[0, 1]] * 300, "at_zero": [0.0] * 300}
    path.write_text(json.dumps({"layers": [affine, *[relu] * 20]}))


FILES = [chained, at_once, one_matrix, doubled, bottlenecks, expanded, in_many_places, recompressed]
FILES += [activations, longer, expanded_input, gathered_input, joined_input, outer, padded]


@pytest.mark.parametrize("write", FILES, ids=lambda write: write.__name__)
def test_a_small_file_with_large_arrays_is_refused_first(write, tmp_path):
    path = tmp_path / "model"
    write(path)
    assert path.stat().st_size < SMALL // 2
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"and at most .* are (read|made)|GB allowed|lie beside the model"):
            load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 * SMALL


def test_no_more_than_the_array_is_read_of_a_file_beside_the_model(tmp_path):
    beside(tmp_path / "model")
    load(tmp_path / "model")  # imports
    tracemalloc.start()
    try:
        net = load(tmp_path / "model")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(net(np.ones((1, 256))), np.ones((1, 256)))
    assert peak < 16 * SMALL
