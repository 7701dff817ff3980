"""A folder of results: a file for each cell, written whole or not at all and checked when read; and its lock."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import filelock
import numpy as np

from plunit.base import files
from plunit.lab.cell import Arrays, Cell
from plunit.lab.experiment import Results
from plunit.lab.plan import Plan
from plunit.pieces.boxes import many

_CELL = re.compile(r".+-\d+-[0-9a-f]{32}(?=\.)")
"""The names of files of cells, without their suffixes."""


class Damaged(Exception):
    """A cell's file is truncated, edited, or another cell's."""


def write(folder: Path, cell: Cell, arrays: Arrays) -> None:
    """Store the arrays of a cell, with its description and a checksum over both."""
    content: dict[str, Any] = {**arrays, "about": np.array(json.dumps(cell.describe(), sort_keys=True))}
    buffer = io.BytesIO()
    np.savez(buffer, **content, checksum=np.array(_checksum(content)))
    files.write_atomically(path_of(folder, cell), buffer.getvalue())


def read(folder: Path, cell: Cell) -> Arrays | None:
    """Return the arrays of a cell, None if it has no file; raise Damaged if the file was changed later."""
    path = path_of(folder, cell)
    if not path.exists():
        return None
    about, arrays = read_file(path)
    if about != json.loads(json.dumps(cell.describe())):
        raise Damaged(f"{path} holds another cell's results")
    return arrays


def read_file(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Return the description of the cell that a file holds, see `Cell.describe`, and its arrays; or raise Damaged."""
    try:
        arrays = _arrays(path)
        checksum = str(arrays.pop("checksum"))
        about = json.loads(str(arrays["about"]))
    except Exception as error:  # a file of any content can fail in any way
        raise Damaged(f"{path} cannot be read ({error})") from error
    if checksum != _checksum(arrays):
        raise Damaged(f"{path} does not match its checksum")
    del arrays["about"]
    return about, arrays


def read_all(folder: Path, cells: Iterable[Cell], say: Callable[[str], object]) -> dict[Cell, Arrays]:
    """Return the arrays of the cells that have a sound file; `say` prints a line for each damaged one."""
    found = {}
    for cell in cells:
        try:
            if (arrays := read(folder, cell)) is not None:
                found[cell] = arrays
        except Damaged as damage:
            say(f"{damage}; the cell has to be computed again")
    return found


def collect(folder: Path, plan: Plan, have: dict[Cell, Arrays], say: Callable[[str], object]) -> Results:
    """Return the finished runs of a plan; cells that `have` lacks are read. `say` prints a line for unfinished runs."""
    results: Results = {}
    for name, part in plan.items():
        cells = part.cells()
        found = have | read_all(folder, (cell for cell in cells if cell not in have), say)
        unfinished = dict.fromkeys(cell.activation for cell in cells if cell not in found)
        for activation in part.activations:
            if activation not in unfinished:
                chunks = [found[cell] for cell in cells if cell.activation == activation]
                results.setdefault(name, {})[activation] = join(chunks)
        if unfinished:
            command = f"{part.command()} --out {shlex.quote(str(folder))}"
            what = f"{name} with {', '.join(unfinished)}"
            say(f"{what} is left out: it is unfinished, or its source has changed since; run `{command}`")
    return results


def join(chunks: list[Arrays]) -> Arrays:
    """Put chunks of seeds together."""
    return {name: np.concatenate([chunk[name] for chunk in chunks], axis=-1) for name in chunks[0]}


def path_of(folder: Path, cell: Cell) -> Path:
    """Return where a cell's file is."""
    return folder / "cells" / f"{files.shorten_name(cell.experiment)}-{cell.activation}-{cell.first}-{cell.key}.npz"


def scratch_of(folder: Path, cell: Cell) -> Path:
    """Return the path, without suffix, that all files of an unfinished cell start with."""
    return folder.resolve() / "unfinished" / path_of(folder, cell).stem


def find_unused(folder: Path, plan: Plan) -> list[Path]:
    """Return the files of cells, finished or not, that a plan does not have: of other settings, or of earlier sources.

    Files that have no name of a cell are not among them.
    """
    cells = {path_of(folder, cell).stem for part in plan.values() for cell in part.cells()}
    found = sorted((*folder.glob("cells/*.npz"), *folder.glob("unfinished/*")))
    return [path for path in found if (name := _CELL.match(path.name)) and name[0] not in cells and path.is_file()]


def size_text(paths: Sequence[Path]) -> str:
    """Return how many files these are, and their size."""
    return f"{many(len(paths), 'file')}, {sum(path.stat().st_size for path in paths) / 1e6:,.1f} MB"


@contextlib.contextmanager
def lock(folder: Path, work: str, say: Callable[[str], object]) -> Iterator[None]:
    """Hold the folder's lock for one kind of work; if another process has it, say so and wait for it.

    The lock ends with the process, however that ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = filelock.FileLock(folder / f".{work}.lock")
    try:
        file.acquire(timeout=0)
    except filelock.Timeout:
        say(f"another `plunit` is running in {folder}; waiting for it (press Ctrl-C to stop)")
        file.acquire()
    try:
        yield
    finally:
        file.release()


def sweep(folder: Path) -> None:
    """Remove files that interrupted writes left."""
    for place in (folder, folder / "cells", folder / "unfinished", folder / "figures"):
        files.remove_old_parts(place)


def _arrays(path: Path) -> Arrays:
    """Read an archive of plain arrays; one whose parts unpack to more than the file itself is not read."""
    content = path.read_bytes()
    with np.load(io.BytesIO(content)) as archive:
        if sum(member.file_size for member in archive.zip.infolist()) > len(content):
            raise ValueError("it is not stored as plunit stores it")
        return dict(archive)


def _checksum(arrays: Arrays) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
