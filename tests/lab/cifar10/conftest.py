"""A tiny data set in the format of CIFAR-10, in the place of the real one."""

import numpy as np
import pytest

from plunit.data import cifar10


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
        files[name] = cifar10.described(content)
        path = cifar10.folder() / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    monkeypatch.setattr(cifar10, "FILES", files)
    return cifar10.load()
