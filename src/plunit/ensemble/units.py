"""Columns scaled for training, and the parameters of a network in the units of the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plunit.ensemble.arrays import Array
from plunit.ensemble.network import MLP


@dataclass(frozen=True)
class Scale:
    """x -> (x - mean) / spread for each column; a constant column has a spread of its own."""

    mean: Array
    spread: Array

    @classmethod
    def of(cls, values: Array, weight: Array, constant: float = 1.0) -> Scale:
        """Return the scale that gives columns with mean 0 and variance 1.

        A column whose spread is below 1e-14 of its largest value is constant, and has the spread `constant` of it.
        """
        largest = np.abs(values).max(0, initial=0)
        unit = np.where(largest > 0, largest, 1.0)  # squares of large numbers overflow
        mean = np.average(values / unit, axis=0, weights=weight)
        spread = np.sqrt(np.average((values / unit - mean) ** 2, axis=0, weights=weight))
        return cls(mean * unit, np.where(spread > 1e-14, spread, constant) * unit)

    def __call__(self, values: Array) -> Array:
        """Return scaled columns."""
        scaled: Array = (values - self.mean) / self.spread
        return scaled


def in_units(network: MLP, theta: Array, x: Scale, y: Scale) -> Array:
    """Return the parameters [rows, S] of x -> y.spread f((x - x.mean) / x.spread) + y.mean, in float64."""
    theta = theta.astype(np.float64)
    layers = list(network.layers(theta))
    weight, bias = layers[0]
    weight /= x.spread[:, None]
    bias -= (weight * x.mean[:, None]).sum(1)
    weight, bias = layers[-1]
    weight *= y.spread[:, None, None]
    bias *= y.spread[:, None]
    bias += y.mean[:, None]
    return theta


def out_of_units(network: MLP, theta: Array, x: Scale, y: Scale) -> Array:
    """Undo `in_units`."""
    return in_units(network, theta, *(Scale(-one.mean / one.spread, 1 / one.spread) for one in (x, y)))
