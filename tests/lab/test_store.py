"""Cells on disk: whole or absent, and never trusted unchecked."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from plunit.lab import fit, store
from plunit.lab.cell import Cell

CELL = Cell("sine", fit.SPECS["sine"], "plu", 0, 4, "eager")
OTHER = Cell("sine", fit.SPECS["sine"], "plu", 4, 8, "eager")
ARRAYS = {
    "seed": np.arange(4),
    "theta": np.linspace(0, 1, 40, dtype=np.float32).reshape(10, 4),
    "none": np.empty((0, 4)),
}


def edit(path, name, value):
    """Change one array and keep the rest, checksum included."""
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays[name] = value
    np.savez(path, **arrays)


def flip(path, position):
    content = bytearray(path.read_bytes())
    content[position] ^= 0x40
    path.write_bytes(bytes(content))


DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "last byte": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "text": lambda path: path.write_text("not an archive"),
    "flipped bit": lambda path: flip(path, 400),
    "edited array": lambda path: edit(path, "theta", ARRAYS["theta"] + 1e-6),
    "other shape": lambda path: edit(path, "theta", ARRAYS["theta"].reshape(4, 10)),
    "other dtype": lambda path: edit(path, "seed", ARRAYS["seed"].view(np.uint64)),
    "edited description": lambda path: edit(path, "about", np.array(json.dumps({"lr": 1}))),
    "no checksum": lambda path: np.savez(path, **ARRAYS),
    "folder": lambda path: (path.unlink(), path.mkdir()),
}


def test_what_is_written_is_read(tmp_path):
    assert store.read(tmp_path, CELL) is None
    store.write(tmp_path, CELL, ARRAYS)
    found = store.read(tmp_path, CELL)
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array, strict=True)


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_found(tmp_path, kind):
    store.write(tmp_path, CELL, ARRAYS)
    DAMAGE[kind](store.path_of(tmp_path, CELL))
    with pytest.raises(store.Damaged, match=str(store.path_of(tmp_path, CELL))):
        store.read(tmp_path, CELL)


def test_a_file_in_another_cell_s_place_is_found(tmp_path):
    store.write(tmp_path, CELL, ARRAYS)
    store.path_of(tmp_path, CELL).rename(store.path_of(tmp_path, OTHER))
    with pytest.raises(store.Damaged, match="holds another cell's results"):
        store.read(tmp_path, OTHER)


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, moment):
    path = tmp_path / "file"
    store.write_atomically(path, b"old")

    def fail(*arguments):
        raise OSError("disk full")

    monkeypatch.setattr(*((os, "fsync") if moment == "fsync" else (Path, "replace")), fail)
    with pytest.raises(OSError, match="disk full"):
        store.write_atomically(path, b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"old"


def test_sweep_removes_what_a_killed_write_left(tmp_path):
    store.write(tmp_path, CELL, ARRAYS)
    (tmp_path / "cells" / ".part-0123").write_bytes(b"half")
    store.sweep(tmp_path)
    assert [p.name for p in (tmp_path / "cells").iterdir()] == [store.path_of(tmp_path, CELL).name]


def test_cells_can_be_loaded_with_numpy_alone(tmp_path):
    store.write(tmp_path, CELL, ARRAYS)
    with np.load(store.path_of(tmp_path, CELL), allow_pickle=False) as archive:
        assert json.loads(str(archive["about"]))["activation"] == "plu"
