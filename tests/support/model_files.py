"""Model files of every format that can be read, each with the function that its own framework computes."""

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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


def torch_file(path):
    model = torch_model()
    import torch

    torch.save(model, path)
    return Written(path, torch_values(model), 2)


NNET = {"least": [-0.5] * 3, "largest": [0.75] * 3, "mean": [0.5, -1.0, 2.0, 3.0], "range": [2.0, 0.25, 1.0, 4.0]}


def nnet_file(path):
    """Lines as the README of the format says; its function: clip to the range, normalise, ReLU between layers."""
    rng = np.random.default_rng(5)
    layers = [(rng.normal(size=(units, inputs)), rng.normal(size=units)) for inputs, units in ((3, 5), (5, 2))]
    rows = [[2, 3, 2, 5], [3, 5, 2], [0], *NNET.values()]
    for weight, bias in layers:
        rows += [*weight.tolist(), *bias[:, None].tolist()]
    path.write_text("// a comment\n" + "".join(",".join(map(repr, row)) + ",\n" for row in rows))
    mean, spread = np.array(NNET["mean"]), np.array(NNET["range"])
    (w, b), (v, d) = layers
    x = (np.clip(POINTS.astype(float), -0.5, 0.75) - mean[:-1]) / spread[:-1]
    return Written(path, (np.maximum(x @ w.T + b, 0) @ v.T + d) * spread[-1] + mean[-1], 2, 1e-12)


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
    "a model saved by torch.save": torch_file,
    "a .nnet file": nnet_file,
}
"""For every importer, by its name, what writes a file of its format."""
