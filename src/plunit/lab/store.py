"""Results on disk: one .npz file for each cell, written whole or not at all, and checked when read."""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from plunit.lab.cell import Cell

Arrays = dict[str, np.ndarray[Any, Any]]

_DAMAGE = (OSError, EOFError, KeyError, ValueError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)


class Damaged(Exception):
    """A cell's file is truncated, edited, or another cell's."""


def write_atomically(path: Path, content: bytes) -> None:
    """Replace the file at once: a reader, or the next run after a crash, sees the old content or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".part-{secrets.token_hex(8)}")
    try:
        with part.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write(folder: Path, cell: Cell, arrays: Arrays) -> None:
    """Store the arrays of a cell, with its description and a checksum over both."""
    content: dict[str, Any] = {**arrays, "about": np.array(json.dumps(cell.describe(), sort_keys=True))}
    buffer = io.BytesIO()
    np.savez(buffer, **content, checksum=np.array(_checksum(content)))
    write_atomically(path_of(folder, cell), buffer.getvalue())


def read(folder: Path, cell: Cell) -> Arrays | None:
    """Return the arrays of a cell, None if they are not there; raise Damaged if the file is not what was written."""
    path = path_of(folder, cell)
    if not path.exists():
        return None
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        checksum = str(arrays.pop("checksum"))
        about = json.loads(str(arrays["about"]))
    except _DAMAGE as error:
        raise Damaged(f"{path} cannot be read ({error})") from error
    if checksum != _checksum(arrays):
        raise Damaged(f"{path} does not match its checksum")
    if about != json.loads(json.dumps(cell.describe())):
        raise Damaged(f"{path} holds another cell's results")
    del arrays["about"]
    return arrays


def path_of(folder: Path, cell: Cell) -> Path:
    """Return where a cell's file is."""
    return folder / "cells" / f"{cell.experiment}-{cell.activation}-{cell.first}-{cell.key}.npz"


def sweep(folder: Path) -> None:
    """Remove what an interrupted write left behind."""
    for place in (folder, folder / "cells", folder / "unfinished"):
        for part in place.glob(".part-*"):
            part.unlink(missing_ok=True)


def _checksum(arrays: Arrays) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":  # elsewhere a folder cannot be opened
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
