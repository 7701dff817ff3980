"""What an unfinished cell leaves in the folder of results: checkpoints of its own kind, and how far it has come."""

from __future__ import annotations

import contextlib
from pathlib import Path

from plunit.lab import store
from plunit.lab.cell import Cell


def path_of(folder: Path, cell: Cell) -> Path:
    """Return the path, without suffix, that all files of an unfinished cell start with."""
    return folder.resolve() / "unfinished" / store.path_of(folder, cell).stem


def report(scratch: Path, done: float) -> None:
    """Say what part of a cell is done, from 0 to 1, to the process that shows the progress."""
    scratch.parent.mkdir(parents=True, exist_ok=True)
    _progress(scratch).write_text(f"{done:.6f}")


def done(scratch: Path) -> float:
    """Return what part of a cell is done; 0 if nothing is known."""
    with contextlib.suppress(OSError, ValueError):
        return float(_progress(scratch).read_text())
    return 0.0


def clear(folder: Path, cell: Cell) -> None:
    """Remove all files of an unfinished cell."""
    scratch = path_of(folder, cell)
    for file in scratch.parent.glob(f"{scratch.name}*"):
        file.unlink(missing_ok=True)


def _progress(scratch: Path) -> Path:
    return scratch.with_name(f"{scratch.name}.progress")
