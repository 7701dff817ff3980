"""Cells on disk: whole or absent, and never trusted unchecked."""

import io
import json
import os
import zipfile

import numpy as np
import pytest

from plunit.lab import scratch, store
from plunit.lab.experiment import catalogue
from plunit.lab.plan import Part

CELL, OTHER = catalogue()["sine"].cells(["plu", "tanh"], 4, "numpy")
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


def declare(path, shape):
    """Let an array claim another shape."""
    with np.load(path) as archive:
        arrays = dict(archive)
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            buffer = io.BytesIO()
            about = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}
            about |= {"shape": shape} if name == "theta" else {}
            np.lib.format.write_array_header_1_0(buffer, about)
            archive.writestr(f"{name}.npy", buffer.getvalue() + array.tobytes())


def headed(path, header):
    """Let the description have a header of one's choice."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("about.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())


def replace(path, cell):
    """Put the file of another cell in its place."""
    store.path_of(path.parents[1], cell).replace(path)


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
    "745 GiB": lambda path: declare(path, (100_000_000_000,)),
    "another shape of the same size": lambda path: declare(path, (5, 8)),
    "odd header": lambda path: headed(path, "{'descr': ("),
    "odd type": lambda path: headed(path, "{'descr': (), 'fortran_order': False, 'shape': ()}"),
    "odd indent": lambda path: headed(path, "  x\n y"),
    "no checksum": lambda path: np.savez(path, **ARRAYS),
    "folder": lambda path: (path.unlink(), path.mkdir()),
    "compressed": lambda path: np.savez_compressed(path, zeros=np.zeros(1_000_000)),
    "another cell": lambda path: (store.write(path.parents[1], OTHER, ARRAYS), replace(path, OTHER)),
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
def test_damage_is_found_and_what_is_compressed_is_not_unpacked(tmp_path, kind):
    store.write(tmp_path, CELL, ARRAYS)
    DAMAGE[kind](store.path_of(tmp_path, CELL))
    with pytest.raises(store.Damaged, match=str(store.path_of(tmp_path, CELL))) as error:
        store.read(tmp_path, CELL)
    assert ("not stored as plunit stores it" in str(error.value)) == (kind == "compressed")


def test_sweep_removes_what_a_killed_write_left_an_hour_ago(tmp_path):
    store.write(tmp_path, CELL, ARRAYS)
    for place, age in ((tmp_path / "cells", 4000), (tmp_path, 4000), (tmp_path / "cells", 10)):
        part = place / f".part-{age}"
        part.write_bytes(b"half")
        then = part.stat().st_mtime - age
        os.utime(part, (then, then))
    store.sweep(tmp_path)
    left = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert left == [".part-10", store.path_of(tmp_path, CELL).name]


def test_cells_can_be_loaded_with_numpy_alone(tmp_path):
    store.write(tmp_path, CELL, ARRAYS)
    with np.load(store.path_of(tmp_path, CELL), allow_pickle=False) as archive:
        assert json.loads(str(archive["about"]))["activation"] == "plu"


def test_collected_results_have_all_seeds_and_unfinished_activations_are_left_out(tmp_path):
    part = Part("inverse", 3, ("plu", "tanh"))
    cells, lines = part.cells(), []
    have = {cell: {"seed": np.array(cell.seeds), "x": np.full((2, 1), cell.first)} for cell in cells}
    whole = store.collect(tmp_path, {"inverse": part}, have, pytest.fail)
    assert list(whole["inverse"]) == ["plu", "tanh"]
    assert whole["inverse"]["plu"]["seed"].tolist() == [0, 1, 2]
    assert whole["inverse"]["plu"]["x"].tolist() == [[0, 1, 2], [0, 1, 2]]
    store.write(tmp_path, cells[1], have.pop(cells[1]))  # read from the disk
    del have[cells[5]]
    assert list(store.collect(tmp_path, {"inverse": part}, have, lines.append)["inverse"]) == ["plu"]
    (line,) = lines
    assert f"`plunit run inverse --seeds 3 --activations plu,tanh --out {tmp_path}`" in line


def test_only_files_of_cells_that_the_plan_lacks_are_unused(tmp_path):
    plan = {"sine": Part("sine", 4, ("plu",), "numpy")}
    for cell in (CELL, OTHER):  # the plan has the first
        store.write(tmp_path, cell, ARRAYS)
        scratch.write_progress(store.scratch_of(tmp_path, cell), 0.5)
        scratch.write_checkpoint(store.scratch_of(tmp_path, cell), {"step": 3})
    for name in ("cells/my notes.npz", "unfinished/notes.txt", "cells/sine-plu-0-abc.npz", "summary.csv"):
        (tmp_path / name).write_text("mine")
    (tmp_path / "cells" / f"folder-0-{'0' * 32}.npz").mkdir()
    own = store.path_of(tmp_path, OTHER)
    found = store.find_unused(tmp_path, plan)
    assert {path.name for path in found} == {own.name, f"{own.stem}.progress", f"{own.stem}.checkpoint"}
    size = sum(path.stat().st_size for path in found)
    assert store.size_text(found) == f"3 files, {size / 1e6:.1f} MB"
    assert store.find_unused(tmp_path / "nowhere", plan) == []
