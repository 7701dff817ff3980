"""A tiny data set in the format of CIFAR-10, in the place of the real one, and runs that no network made."""

import dataclasses
import json
import runpy
from pathlib import Path

import numpy as np
import pytest

from plunit.lab import cifar10_data as cifar10
from plunit.lab.read import cifar10 as read

write = runpy.run_path(str(Path(__file__).parents[3] / "tools" / "record.py"))["write"]
FINAL = {"tanh": 0.9, "relu": 1.0, "plu": 0.8, "identity": 1.4}


@pytest.fixture(scope="session")
def made():
    """Return a function that makes the arrays of a run: losses that fall, and accuracies that rise, seed by seed."""

    def make(activation, steps=1000, seeds=2):
        rng = np.random.default_rng(([*FINAL].index(activation), steps))
        rise = rng.uniform(0.9, 1.1, (2, seeds))
        fall = FINAL[activation] * (np.arange(1, steps + 1) / steps) ** -0.2
        return {
            "seed": np.arange(seeds),
            "loss": fall[:, None] * rng.uniform(0.8, 1.2, (steps, seeds)) * rng.uniform(0.9, 1.1, seeds),
            "test_step": np.array([[100], [steps]]) * np.ones((1, seeds), dtype=int),
            "test_loss": np.array([[2.0], [FINAL[activation] + 0.1]]) * rise,
            "test_accuracy": np.array([[0.3], [0.5]]) * rise,
            "seconds": np.arange(1.0, seeds + 1),
        }

    return make


@pytest.fixture
def put_record(tmp_path, monkeypatch):
    """Let records be looked for in an empty folder; return a function that puts one there."""
    stored = read.read
    monkeypatch.setattr(read, "read", lambda name: stored(name, tmp_path / "records"))

    def put(name, runs, **changes):
        curves = {activation: read.curve(arrays) for activation, arrays in runs.items()}
        spec = json.loads(json.dumps({**dataclasses.asdict(read.Cifar10Spec()), **changes}))
        write(tmp_path / "records" / name, curves, {"spec": spec})

    return put


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """Put 120 training and 40 test images where the data set is looked for; the brighter, the higher the label."""
    monkeypatch.setenv("PLUNIT_DATA", str(tmp_path / "data"))
    rng = np.random.default_rng(0)
    files = {}
    for name, n in {"data_batch_1.bin": 70, "data_batch_2.bin": 50, "test_batch.bin": 40}.items():
        labels = rng.integers(0, 10, n)
        images = (25 * labels[:, None, None, None] + rng.integers(0, 30, (n, 3, 32, 32))).astype(np.uint8)
        content = cifar10.pack(labels, images)
        files[name] = cifar10.describe(content)
        path = cifar10.folder() / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    monkeypatch.setattr(cifar10, "FILES", files)
    return cifar10.load()
