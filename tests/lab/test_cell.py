import dataclasses

import pytest

from plunit.lab import fit
from plunit.lab.cell import Cell, chunks

CELL = Cell("sine", fit.SPECS["sine"], "plu", 0, 8, "eager")


def test_equal_cells_have_equal_keys():
    again = Cell("sine", dataclasses.replace(fit.SPECS["sine"]), "plu", 0, 8, "eager")
    assert again.key == CELL.key


@pytest.mark.parametrize(
    "change",
    [
        {"activation": "tanh"},
        {"first": 1},
        {"last": 9},
        {"engine": "native"},
        {"spec": dataclasses.replace(fit.SPECS["sine"], lr=0.02)},
        {"spec": dataclasses.replace(fit.SPECS["sine"], widths=(1, 4, 3, 1))},
        {"spec": dataclasses.replace(fit.SPECS["sine"], checkpoints=())},
    ],
    ids=str,
)
def test_all_that_determines_the_result_is_in_the_key(change):
    assert dataclasses.replace(CELL, **change).key != CELL.key


def test_the_version_and_the_program_are_in_the_key(monkeypatch):
    before = CELL.key
    monkeypatch.setattr("plunit.__version__", "9.9.9")
    other_version = CELL.key
    monkeypatch.undo()
    monkeypatch.setattr("plunit.lab.cell._program", lambda module: "another")
    assert len({before, other_version, CELL.key}) == 3


@pytest.mark.parametrize(("seeds", "width"), [(1, 4), (4, 4), (10, 4), (1024, 256)])
def test_chunks_cover_every_seed_once(seeds, width):
    cells = chunks("sine", None, ("plu", "tanh"), seeds, width, "eager")
    for activation in ("plu", "tanh"):
        covered = [s for cell in cells if cell.activation == activation for s in range(cell.first, cell.last)]
        assert covered == list(range(seeds))
    assert all(cell.last - cell.first <= width for cell in cells)
