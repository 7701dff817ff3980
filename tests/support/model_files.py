"""Model files of every format that can be read, each with the function that its own framework computes."""

import json
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plunit.pieces import activation, network, save_nnet

RNG = np.random.default_rng(0)
POINTS = np.concatenate([RNG.normal(scale=3.0, size=(300, 3)), RNG.integers(-2, 3, size=(100, 3))]).astype(np.float32)


@dataclass
class Written:
    """A file, and f(POINTS) from whoever wrote it; the number of hidden layers; how far float32 may be off."""

    path: Path
    values: Any
    hidden: int
    atol: float = 2e-5


def torch_model():
    torch = pytest.importorskip("torch")
    from plunit.torch import PLU

    torch.manual_seed(1)
    layers = [torch.nn.Linear(3, 5), PLU(), torch.nn.Linear(5, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)]
    return torch.nn.Sequential(*layers).eval()


def torch_values(model):
    import torch

    with torch.no_grad():
        return model(torch.tensor(POINTS)).numpy()


def onnx_values(path):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (x,) = session.get_inputs()
    kind = {"tensor(float)": np.float32, "tensor(double)": np.float64}[x.type]
    return session.run(None, {x.name: POINTS.astype(kind)})[0]


def export(model, path, dynamo=True):
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own deprecations
        batch = {"dynamic_shapes": ({0: torch.export.Dim("n")},)} if dynamo else {"dynamic_axes": {"x": {0: "n"}}}
        names = {} if dynamo else {"input_names": ["x"]}
        torch.onnx.export(model, (torch.tensor(POINTS),), path, dynamo=dynamo, verbose=False, **batch, **names)


def onnx_file(path):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxscript")
    export(torch_model(), path)
    return Written(path, onnx_values(path), 2)


def keras_file(path):
    pytest.importorskip("h5py")
    os.environ.setdefault("KERAS_BACKEND", "torch")
    keras = pytest.importorskip("keras")
    from plunit.keras import PLU

    keras.utils.set_random_seed(3)
    layers = keras.layers
    model = keras.Sequential(
        [keras.Input((3,)), layers.Dense(5), PLU(), layers.Dense(4, activation="relu"), layers.Dense(2)]
    )
    save_keras(model, path)
    return Written(path, keras_values(model, POINTS), 2)


def save_keras(model, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Keras' own use of what NumPy deprecates
        # Keras insists on its ending
        model.save(path.with_suffix(".keras"))
    path.with_suffix(".keras").rename(path)


def keras_values(model, points):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.array(model.predict(points, verbose=0))


def safetensors_file(path):
    """A state dict of PyTorch with a list of layers beside it."""
    pytest.importorskip("safetensors")
    model = torch_model()
    from safetensors.torch import save_file

    layers = [
        {"linear": {"weight": "0.weight", "bias": "0.bias"}},
        {"plu": {"alpha": 0.1, "c": 1.0}},
        {"linear": {"weight": "2.weight", "bias": "2.bias"}},
        {"relu": {}},
        {"linear": {"weight": "4.weight", "bias": "4.bias"}},
    ]
    save_file(model.state_dict(), path, metadata={"layers": json.dumps(layers)})
    return Written(path, torch_values(model), 2)


def torch_file(path):
    model = torch_model()
    import torch

    torch.save(model, path)
    return Written(path, torch_values(model), 2)


def nnet_values(path):
    """Evaluate a .nnet file as the README of the format says: clip to the range, normalise, ReLU between layers."""
    rows = [line for line in path.read_text().splitlines() if not line.startswith("//")]
    rows = [[float(word) for word in line.rstrip(",").split(",")] for line in rows]
    sizes, low, high, mean, spread = (np.array(rows[i]) for i in (1, 3, 4, 5, 6))
    y, at = (np.clip(POINTS.astype(float), low, high) - mean[:-1]) / spread[:-1], 7
    for layer, units in enumerate(sizes[1:].astype(int)):
        weight, bias = np.array(rows[at : at + units]), np.array(rows[at + units : at + 2 * units]).ravel()
        y, at = y @ weight.T + bias, at + 2 * units
        y = np.maximum(y, 0) if layer < len(sizes) - 2 else y
    assert at == len(rows)
    return y * spread[-1] + mean[-1]


def nnet_file(path):
    rng = np.random.default_rng(5)
    first, second = (rng.normal(size=(5, 3)), rng.normal(size=5)), (rng.normal(size=(2, 5)), rng.normal(size=2))
    save_nnet(network([first, activation.plu(), second]), path, [(-20, 20)] * 3)
    lines = path.read_text().splitlines()
    # a mean and a range of its own, which save_nnet never writes
    lines[6:8] = ["0.5,-1.0,2.0,3.0,", "2.0,0.25,1.0,4.0,"]
    path.write_text("\n".join(lines) + "\n")
    return Written(path, nnet_values(path), 1, 1e-12)


def json_file(path):
    rng = np.random.default_rng(6)
    (w, b), (v, d) = (rng.normal(size=(5, 3)), rng.normal(size=5)), (rng.normal(size=(2, 5)), rng.normal(size=2))
    plu = {"knots": [[-1.0, 1.0]] * 5, "slopes": [[0.1, 1.0, 0.1]] * 5, "at_zero": [0.0] * 5}
    layers = [{"weight": w.tolist(), "bias": b.tolist()}, plu, {"weight": v.tolist(), "bias": d.tolist()}]
    path.write_text(json.dumps({"layers": layers}))
    z = POINTS.astype(float) @ w.T + b
    return Written(path, np.interp(z, [-101, -1, 1, 101], [-11, -1, 1, 11]) @ v.T + d, 1, 1e-12)


WRITERS = {
    "a network or a curve in JSON": json_file,
    "an ONNX model": onnx_file,
    "a Keras model": keras_file,
    "a safetensors file": safetensors_file,
    "a model saved by torch.save": torch_file,
    "a .nnet file": nnet_file,
}
"""For every importer, by its name, what writes a file of its format."""
