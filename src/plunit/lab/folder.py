"""A folder of results, which one run at a time may change."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import filelock

from plunit import files


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    """Write a table, blank where a row lacks a column."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    files.write_atomically(path, text.getvalue().encode())


@contextlib.contextmanager
def locked(folder: Path, work: str, report: Callable[[str], object]) -> Iterator[None]:
    """Hold the folder's lock for one kind of work; if another process has it, say so and wait for it.

    The lock ends with the process, however that ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / f".{work}.lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        report(f"another `plunit` works in {folder}; waiting until it is done (Ctrl-C stops)")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def sweep(folder: Path) -> None:
    """Remove what interrupted writes left behind."""
    for place in (folder, folder / "cells", folder / "unfinished", folder / "figures"):
        files.sweep(place)
