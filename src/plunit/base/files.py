"""Files that are written completely or not at all, even if the process is killed; their extensions and names."""

from __future__ import annotations

import contextlib
import csv
import errno
import hashlib
import io
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

PART = ".part-"
"""The prefix of the names of unfinished files and folders."""

_OLD = 3600.0  # seconds after which an unfinished file counts as abandoned


def write_atomically(path: Path, content: bytes, mode: int | None = None) -> None:
    """Replace the file in one step: a reader, or the next run after a crash, sees either the old content or the new.

    Without `mode`, the permissions of the file are kept; those of a new file follow the umask. A path that is not a
    regular file, such as a device, is an error.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "is a folder, a device or a pipe; give a file name", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{PART}{secrets.token_hex(8)}")
    kept = path.stat().st_mode & 0o777 if mode is None and path.exists() else None
    allowed = mode if mode is not None else 0o666 if kept is None else kept
    try:
        with open(part, "xb", opener=lambda name, flags: os.open(name, flags, allowed)) as file:
            if kept is not None:
                os.chmod(part, kept)  # the umask has restricted it
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def resolve(path: str | Path) -> Path:
    """Return the absolute path with links resolved; raise OSError if they form a loop."""
    found = Path(os.path.realpath(path))
    if found.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return found


def save_whole(path: str | Path, content: bytes | str) -> None:
    """Write a file that a user named, atomically. A link stays a link, and no folder is created."""
    target = resolve(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"the folder {target.parent} does not exist; create it first", str(path))
    try:
        write_atomically(target, content.encode() if isinstance(content, str) else content)
    except OSError as error:
        if PART not in str(error.filename):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    """Write a CSV table; a column that a row lacks is left blank."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(path, text.getvalue().encode())


def shorten_name(name: str, most: int = 100) -> str:
    """Return a name that every file system accepts: a long name is cut, and ends in a hash of the full name.

    >>> shorten_name("sine-loss"), len(shorten_name("x" * 1000))
    ('sine-loss', 100)
    """
    if len(name.encode()) <= most:
        return name
    return name.encode()[: most - 9].decode(errors="ignore") + "-" + hashlib.sha256(name.encode()).hexdigest()[:8]


def ending(path: str | Path) -> str:
    """Return the extension of a file's name, with the dot, in lower case.

    >>> ending("model.ONNX"), ending("rows.tar.GZ"), ending("README")
    ('.onnx', '.gz', '')
    """
    return Path(path).suffix.lower()


def remove_old_parts(folder: Path) -> None:
    """Remove unfinished files and folders that interrupted writes left in a folder at least an hour ago."""
    for part in folder.glob(f"{PART}*"):
        with contextlib.suppress(OSError):
            if time.time() - part.lstat().st_mtime < _OLD:
                continue
            if part.is_dir() and not part.is_symlink():
                shutil.rmtree(part)
            else:
                part.unlink()


def sync_folder(folder: Path) -> None:
    """Flush a folder's file names to the disk, except on Windows, which cannot open folders."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
