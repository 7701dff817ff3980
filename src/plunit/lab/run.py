"""Compute the missing cells of a plan through any `concurrent.futures.Executor`, storing each as it is done."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, as_completed
from pathlib import Path

from plunit.lab import experiments, store
from plunit.lab.cell import Cell


def missing(folder: Path, cells: list[Cell], report: Callable[[str], None]) -> list[Cell]:
    """Return the cells without a sound file; report the damaged ones, which will be computed anew."""
    absent = []
    for cell in cells:
        try:
            if store.read(folder, cell) is None:
                absent.append(cell)
        except store.Damaged as damage:
            report(f"{damage}; it is computed again")
            absent.append(cell)
    return absent


def run(folder: Path, cells: list[Cell], executor: Executor, done: Callable[[Cell], None]) -> None:
    """Compute the cells and store each; a run that stops at any moment leaves whole files only.

    Cells that are not started when an exception arrives (Ctrl-C among them) are cancelled.
    """
    futures = {executor.submit(experiments.compute, cell): cell for cell in cells}
    try:
        for future in as_completed(futures):
            cell = futures.pop(future)
            store.write(folder, cell, future.result())
            done(cell)
    finally:
        for future in futures:
            future.cancel()
