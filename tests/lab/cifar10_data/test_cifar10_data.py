"""The record format, written out by hand, the published table, and a folder that is loaded or refused."""

import os
from pathlib import Path

import numpy as np
import pytest

from plunit.base.errors import UserError
from plunit.lab import cifar10_data as cifar10


def test_a_record_is_a_label_and_the_channels_one_after_another():
    image = np.arange(3072).astype(np.uint8).reshape(1, 3, 32, 32)
    content = cifar10.pack([7], image)
    assert content == bytes([7]) + bytes(range(256)) * 12
    assert content[1 + 1024 * 2 + 32 * 3 + 5] == image[0, 2, 3, 5]


def test_the_published_table_has_six_files_of_ten_thousand():
    assert [*cifar10.FILES] == [*(f"data_batch_{i}.bin" for i in range(1, 6)), cifar10.TEST]
    assert {file.size for file in cifar10.FILES.values()} == {30_730_000}
    assert len({file.sha1 for file in cifar10.FILES.values()}) == 6


@pytest.fixture
def complete(tiny, place):
    """Put the three files of the tiny data set there."""
    place.mkdir(parents=True)
    for name, content in tiny.contents.items():
        (place / name).write_bytes(content)
    return place


def test_a_table_put_in_the_place_of_the_published_one_is_used(tiny, complete, monkeypatch):
    monkeypatch.setattr(cifar10, "FILES", tiny.files)
    tiny.check(cifar10.load())
    monkeypatch.undo()
    with pytest.raises(UserError, match=", ".join(cifar10.FILES)):
        cifar10.load(complete)


@pytest.mark.parametrize("name", ["data_batch_1.bin", "test_batch.bin"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(path.read_bytes()[:-1] + b"?"),
        lambda path: (path.unlink(), path.mkdir()),
    ],
    ids=["missing", "truncated", "changed", "folder"],
)
def test_loading_names_what_is_missing_and_fetches_nothing(tiny, complete, put_official, name, damage):
    put_official(tiny.archive())
    damage(complete / name)
    with pytest.raises(UserError, match=f"^{name} of CIFAR-10 is missing or damaged in {complete}; run `plunit data"):
        cifar10.load(complete, tiny.files)
    assert sorted(cifar10.read_verified(complete, tiny.files)) == sorted({*tiny.files} - {name})


def test_the_folder_is_the_environment_s_or_the_cache_s(monkeypatch):
    assert cifar10.folder() == Path(os.environ["PLUNIT_DATA"], "cifar10")
    monkeypatch.setenv("PLUNIT_DATA", "~/here")
    assert cifar10.folder() == Path.home() / "here" / "cifar10"
    monkeypatch.setenv("PLUNIT_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert cifar10.folder() == Path("/cache/plunit/cifar10")
    assert cifar10.folder(Path("there")) == Path("there/cifar10")


def test_a_process_compares_checksums_once_unless_a_file_changes(tiny, complete, monkeypatch):
    compared, matches = [], cifar10.File.matches
    monkeypatch.setattr(cifar10.File, "matches", lambda file, content: compared.append(file) or matches(file, content))
    for _ in range(3):
        assert cifar10.read_verified(complete, tiny.files) == tiny.contents
        tiny.check(cifar10.load(complete, tiny.files))
    assert len(compared) == len(tiny.files)
    name, content = next(iter(tiny.contents.items()))
    (complete / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    os.utime(complete / name, ns=(1, 1))
    with pytest.raises(UserError, match=name):
        cifar10.load(complete, tiny.files)
