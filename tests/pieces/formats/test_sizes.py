"""Small files that declare large arrays, or use one array many times: refused before the memory is reserved.

The limits are lowered, so that nothing here is large: what is over the limit has some megabytes.
"""

import io
import itertools
import json
import tracemalloc
import zipfile

import numpy as np
import pytest
from onnx_texts import graph, onnx, write

from plunit.pieces import graphs, load

SMALL = 2**20
ROW, WIDE = np.zeros((1, 256), np.float32), np.ones((1, 300), np.float32)


@pytest.fixture(autouse=True)
def limits(monkeypatch):
    monkeypatch.setattr(graphs, "LIMIT", SMALL)


def again(template, count, last="y"):
    """Return a text of nodes, each of which reads the result of the one before, and the first x."""
    names = ["x", *(f"h{i}" for i in range(count)), last]
    return "; ".join(template.format(before, after) for before, after in itertools.pairwise(names))


TOGETHER = "Concat<axis=0>"
ROWS = {"r": ROW}
TWICE = "{1}p = Mul({0}, two); {1}q = Sub({1}p, one); {1} = Abs({1}q)"
GRAPHS = {
    "each array is below the limit, all of them are not": (
        f"a0 = {TOGETHER}({', '.join(['r'] * 8)}); "
        + "; ".join(f"a{i + 1} = {TOGETHER}(a{i})" for i in range(300))
        + "; y = Add(x, r)",
        ROWS,
    ),
    "each step is below the limit, all of them are not": (
        "z = MatMul(x, w); y = Relu(z)",
        {"w": np.eye(256, dtype=np.float32)},
    ),
    "an array of thousands": (f"a = {TOGETHER}({', '.join(['r'] * 5000)}); y = Add(x, r)", ROWS),
    "one matrix in many layers": (
        again("{1}z = MatMul({0}, w); {1} = Relu({1}z)", 20),
        {"w": np.eye(256, dtype=np.float32)},
    ),
    "a unit with 2^n pieces": (again(TWICE, 40), {"one": np.float32([1]), "two": np.float32([2])}),
    "products of thin matrices": (
        again("{1}t = MatMul({0}, v); {1}z = MatMul({1}t, w); {1} = Relu({1}z)", 20),
        {"v": ROW.T.copy(), "w": ROW},
    ),
    "the input many times": ("y = Expand(x, n)", {"n": np.array([10_000, 256])}),
    "a row of the input many times": ("y = Gather<axis=0>(x, i)", {"i": np.zeros(50_000, np.int64)}),
    "the input after itself, again and again": (again("{1} = Concat<axis=1>({0}, {0})", 20), {}),
    "each input times each number of a row": (
        "t = Transpose(x); y = MatMul(t, r)",
        {"r": np.ones((1, 300), np.float32)},
    ),
    "a small picture with a large frame": (
        "p = Reshape(x, s); y = Conv<pads=[10**4] * 4>(p, k)",
        {"s": np.array([1, 1, 16, 16]), "k": np.ones((1, 1, 1, 1), np.float32)},
    ),
    "a small kernel with large gaps": (
        "p = Reshape(x, s); y = Conv<dilations=[200] * 2, pads=[100] * 4>(p, k)",
        {"s": np.array([1, 1, 16, 16]), "k": np.ones((1, 1, 2, 2), np.float32)},
    ),
    **{
        f"{kind} of {size:,}": (
            f"p = Reshape(x, s); y = {kind}<kernel_shape=[{size}] * 2, pads=[{size - 1}] * 4>(p)",
            {"s": np.array([1, 1, 16, 16])},
        )
        for kind in ("MaxPool", "AveragePool")
        for size in (60, 10**9)
    },
    "windows of padding": (
        "p = Reshape(x, s); y = AveragePool<kernel_shape=[1, 1], pads=[10**4] * 4>(p)",
        {"s": np.array([1, 1, 16, 16])},
    ),
}


def of_graph(name):
    def made(path):
        text, arrays = GRAPHS[name]
        write(path, graph(text), arrays, shape=("n", 256))

    return made


def beside(path):
    """An array without a length, in a large file."""
    with (path.parent / "data.bin").open("wb") as file:
        file.truncate(64 * SMALL)

    model = onnx.load(write(path, graph("y = Add(x, r)"), ROWS, shape=("n", 256)))
    (table,) = model.graph.initializer
    table.ClearField("raw_data")
    table.data_location = 1
    table.external_data.add(key="location", value="data.bin")
    path.write_bytes(model.SerializeToString())


def longer(path):
    """An array whose length is not that of its numbers."""
    beside(path)
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
    """One layer without numbers many times, in containers that hold each other twice."""
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.ReLU())
    for _ in range(14):
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
    """Consecutive activations, with a square matrix between each two."""
    affine = {"weight": [[0.0]] * 300, "bias": [0.0] * 300}
    relu = {"knots": [[0.0]] * 300, "slopes": [[0, 1]] * 300, "at_zero": [0.0] * 300}
    path.write_text(json.dumps({"layers": [affine, *[relu] * 20]}))


FILES = {name: of_graph(name) for name in GRAPHS}
FILES |= {made.__doc__: made for made in (expanded, in_many_places, recompressed, activations, longer)}


@pytest.mark.parametrize("name", FILES)
def test_a_small_file_with_large_arrays_is_refused_first(name, tmp_path):
    path = tmp_path / "model"
    FILES[name](path)
    assert path.stat().st_size < SMALL // 2
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"; the limit is|GB allowed|declared for its file"):
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
