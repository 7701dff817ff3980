"""Section 5: the paper's convolutional network on CIFAR-10, with four activations and more."""

import dataclasses
from collections.abc import Callable

from plunit.lab.cell import Cell, chunks
from plunit.lab.cifar10.claims import claims
from plunit.lab.cifar10.compute import compute
from plunit.lab.cifar10.figures import figures
from plunit.lab.cifar10.network import CHOICES
from plunit.lab.cifar10.spec import ACTIVATIONS, SEEDS, SHORT, SPECS, TITLES, Cifar10
from plunit.lab.cifar10.summary import rows
from plunit.lab.data import cifar10

__all__ = [
    "ACTIVATIONS",
    "CHOICES",
    "SEEDS",
    "SHORT",
    "SPECS",
    "TITLES",
    "Cifar10",
    "cells",
    "claims",
    "compute",
    "cost",
    "figures",
    "prepare",
    "rows",
]


def prepare(report: Callable[[str], object]) -> None:
    """Fetch the data set unless it is there."""
    cifar10.fetch(cifar10.folder(), report)


def cells(name: str, activations: tuple[str, ...], seeds: int, steps: int) -> list[Cell]:
    """Return one cell for each seed and activation."""
    spec = dataclasses.replace(SPECS[name], steps=steps)
    return chunks(name, spec, activations, seeds, 1, "torch")


def cost(cell: Cell) -> float:
    """Estimate the work, in units of an ensemble's update of a parameter."""
    spec: Cifar10 = cell.spec
    return 1e6 * spec.steps
