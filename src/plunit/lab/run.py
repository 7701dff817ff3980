"""Compute the missing cells of a plan through any `concurrent.futures.Executor`, storing each as it is done."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from pathlib import Path

from plunit.lab import experiments, scratch, store
from plunit.lab.cell import Cell
from plunit.lab.store import Arrays


def missing(folder: Path, cells: list[Cell], report: Callable[[str], None] = lambda text: None) -> list[Cell]:
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


def run(
    folder: Path,
    cells: list[Cell],
    executor: Executor,
    done: Callable[[Cell], None],
    watch: Callable[[list[Cell]], None] = lambda cells: None,
) -> None:
    """Compute the cells and store each; a run that stops at any moment leaves whole files only.

    `watch` is called every second with the cells that are not done. Cells that are not started when an exception
    arrives (Ctrl-C among them) are cancelled.
    """
    futures = {executor.submit(experiments.compute, cell, scratch.path_of(folder, cell)): cell for cell in cells}
    try:
        while futures:
            finished, _ = wait(futures, timeout=1, return_when=FIRST_COMPLETED)
            for future in sorted(finished, key=_failed):  # what is good is stored before an exception is raised
                cell = futures.pop(future)
                store.write(folder, cell, future.result())
                scratch.clear(folder, cell)
                done(cell)
            watch(list(futures.values()))
    finally:
        for future in futures:
            future.cancel()


def _failed(future: Future[Arrays]) -> bool:
    return future.cancelled() or future.exception() is not None
