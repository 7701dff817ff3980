"""Fit series: networks of several sizes, and functions of several frequencies."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import numpy as np

from plunit.base.ranges import Range
from plunit.ensemble import MLP
from plunit.lab.cell import Arrays, Cell
from plunit.lab.train.sine_parametric_surface import FitSpec, final_loss, train_seeds


@dataclass(frozen=True)
class CapacitySpec(FitSpec):
    """The fields of `FitSpec`, and other sizes of the hidden layers; those of `widths` are in both series.

    Attributes:
        units: units of every hidden layer, for networks of the depth of `widths`.
        layers: numbers of hidden layers, for networks of the width of `widths`.
    """

    units: Annotated[tuple[int, ...], Range(1, 256)] = (2, 3, 4, 6, 8, 12, 16)
    layers: Annotated[tuple[int, ...], Range(1, 64)] = (1, 2, 3, 4, 6, 8)

    def __post_init__(self) -> None:
        super().__post_init__()
        width, depth = self.size
        if self.widths[1:-1] != (width,) * depth or width not in self.units or depth not in self.layers:
            raise ValueError(
                f"hidden layers must be equally wide, their width one of units and their number one of layers, got "
                f"widths {self.widths}, units {self.units} and layers {self.layers}"
            )

    @property
    def size(self) -> tuple[int, int]:
        """Units of a hidden layer of the network where the series meet, and its number of hidden layers."""
        return self.widths[1], len(self.widths) - 2

    def fits(self) -> dict[str, FitSpec]:
        """Return every network once, by its hidden layers, such as 3x3."""
        width, depth = self.size
        sizes = [(units,) * depth for units in self.units] + [(width,) * layers for layers in self.layers]
        widths = {name_of(hidden): (self.widths[0], *hidden, self.widths[-1]) for hidden in sizes}
        return {name: _with(self, widths=one) for name, one in widths.items()}


@dataclass(frozen=True)
class FrequencySpec(FitSpec):
    """The fields of `FitSpec`, and other frequencies of the function.

    Attributes:
        frequencies: values of k, increasing.
    """

    frequencies: Annotated[tuple[float, ...], Range(1e-3, 1e3)] = (0.25, 0.5, 1.0, 2.0, 4.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if list(self.frequencies) != sorted(set(self.frequencies)):
            raise ValueError(f"frequencies must increase, got {self.frequencies}")

    def fits(self) -> dict[str, FitSpec]:
        """Return the fit of each frequency, by its name, such as 1/4."""
        return {fraction(k): _with(self, frequency=k) for k in self.frequencies}


def name_of(hidden: tuple[int, ...]) -> str:
    """Return the name of a network by the units of its hidden layers.

    >>> name_of((6, 6))
    '6x6'
    """
    return "x".join(map(str, hidden))


def fraction(k: float) -> str:
    """Return a number as a fraction, if it is a simple one.

    >>> fraction(0.25), fraction(4.0), fraction(0.3)
    ('1/4', '4', '0.3')
    """
    exact = Fraction(k)
    return str(exact) if exact.denominator <= 64 else f"{k:g}"


def _with(spec: FitSpec, **changes: object) -> FitSpec:
    """Return the fields of a single fit, changed."""
    own = {field.name: getattr(spec, field.name) for field in dataclasses.fields(FitSpec)}
    return FitSpec(**{**own, **changes})


def compute(cell: Cell, scratch: Path) -> Arrays:
    """Return seed [S] and final_loss [fits, S], for the fits of the spec in their order.

    As in `lab.train.sine_parametric_surface`, a seed gives every activation the same start and the same batches.
    """
    losses = []
    for spec in cell.spec.fits().values():
        network = MLP(spec.widths, cell.activation)
        losses.append(final_loss(spec, network, train_seeds(spec, network, cell).theta))
    return {"seed": np.array(cell.seeds), "final_loss": np.stack(losses)}
