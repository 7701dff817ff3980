"""The experiments, by name. One is added by a package with the parts below and a line in `_PACKAGES`.

- SPECS: name to spec, a frozen dataclass of plain values; TITLES: name to title; ACTIVATIONS: the default ones;
  CHOICES: all it can be run with. SOURCES, beside the specs: the files and folders of the program that a stored result
  belongs to.
- cells(name, activations, seeds, engine): the cells that cover seeds 0, ..., seeds - 1.
- compute(cell): the arrays of a cell, members on the last axis, with `seed` among them; cost(cell): an estimate of the
  work, for the time left.
- rows(results), claims(results), figures(results): the summary, the verdicts and the drawings of what has been run;
  see `plunit.lab.results`, `.claims` and `.style`.

Cells of engine "torch" run on one thread, several side by side.

A package in `_LONG` trains for minutes or hours. Its specs have `steps`, which a run may change. It also has SHORT, the
steps of `plunit reproduce` without --full, SEEDS, its default number of seeds, CHUNK, the seeds of a cell, in place of
cells, and prepare(report), which fetches data once before the cells need it. Its compute(cell, scratch) takes a path
for checkpoints (see `plunit.lab.scratch`).

A package in `_READERS` has no cells of its own: it reads those of the experiments in its SPECS. derive(name,
activation, arrays) adds to their arrays what follows without training; rows, claims and figures are as above.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import ModuleType
from typing import Any

from plunit.lab import cifar10, density, depth, fit, inverse, pieces, shape, warp
from plunit.lab.cell import Cell, chunks
from plunit.lab.store import Arrays

_LONG: tuple[ModuleType, ...] = (cifar10, warp, density)
_PACKAGES: tuple[ModuleType, ...] = (fit, shape, depth, inverse, *_LONG)
_READERS: tuple[ModuleType, ...] = (pieces,)

MODULES: dict[str, ModuleType] = {name: package for package in _PACKAGES for name in package.SPECS}


def is_long(name: str) -> bool:
    """Tell whether an experiment trains for minutes or hours."""
    return MODULES[name] in _LONG


def spec(name: str, steps: int) -> Any:
    """Return the spec of an experiment, with another number of steps unless it is 0."""
    usual = MODULES[name].SPECS[name]
    return dataclasses.replace(usual, steps=steps) if steps else usual


def cells(name: str, activations: tuple[str, ...], seeds: int, engine: str, steps: int) -> list[Cell]:
    """Return the cells that cover seeds 0, ..., seeds - 1 of an experiment."""
    package = MODULES[name]
    if is_long(name):
        return chunks(name, spec(name, steps), activations, seeds, package.CHUNK, "torch")
    found: list[Cell] = package.cells(name, activations, seeds, engine)
    return found


def compute(cell: Cell, scratch: Path) -> Arrays:
    """Compute the arrays of a cell; a long one keeps checkpoints at the path `scratch` and goes on from them."""
    rest = (scratch,) if is_long(cell.experiment) else ()
    arrays: Arrays = MODULES[cell.experiment].compute(cell, *rest)
    return arrays


def cost(cell: Cell) -> float:
    """Estimate the work in a cell."""
    work: float = MODULES[cell.experiment].cost(cell)
    return work


def derive(name: str, activation: str, arrays: Arrays) -> Arrays:
    """Return the stored arrays of an experiment with those that follow from them without training."""
    for reader in _READERS:
        if name in reader.SPECS:
            arrays = reader.derive(name, activation, arrays)
    return arrays


def packages(names: list[str]) -> list[ModuleType]:
    """Return the packages that the named experiments belong to, in order, each once."""
    return [package for package in (*_PACKAGES, *_READERS) if any(name in package.SPECS for name in names)]
