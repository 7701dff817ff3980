"""The experiments, by name. One is added by a package with the parts below and a line in `_PACKAGES`.

- SPECS: name to spec, a frozen dataclass of plain values; TITLES: name to title; ACTIVATIONS: the default ones.
- cells(name, activations, seeds, engine): the cells that cover seeds 0, ..., seeds - 1.
- compute(cell): the arrays of a cell, members on the last axis, with `seed` among them; cost(cell): an estimate of the
  work, for the time left.
- rows(results), claims(results), figures(results): the summary, the verdicts and the drawings of what has been run;
  see `plunit.lab.results`, `.claims` and `.style`.

A package in `_READERS` has no cells of its own: it reads those of the experiments in its SPECS. derive(name,
activation, arrays) adds to their arrays what follows without training; rows, claims and figures are as above.

`spec.py` and `compute.py` of the package, with `plunit.ensemble`, are the program that a stored result belongs to.
"""

from __future__ import annotations

from types import ModuleType

from plunit.lab import depth, fit, pieces, shape
from plunit.lab.cell import Cell
from plunit.lab.store import Arrays

_PACKAGES: tuple[ModuleType, ...] = (fit, shape, depth)
_READERS: tuple[ModuleType, ...] = (pieces,)

MODULES: dict[str, ModuleType] = {name: package for package in _PACKAGES for name in package.SPECS}


def compute(cell: Cell) -> Arrays:
    """Compute the arrays of a cell."""
    arrays: Arrays = MODULES[cell.experiment].compute(cell)
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
