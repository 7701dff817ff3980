"""Columns scaled for training, and the parameters of a network in the units of the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plunit.ensemble.arrays import Array
from plunit.ensemble.mlp import MLP

ROUNDING = 8  # columns whose values differ by at most so many units in the last place are constant


@dataclass(frozen=True)
class Scale:
    """x -> (x - mean) / spread for each column; a constant column has a spread of its own."""

    mean: Array
    spread: Array

    @classmethod
    def of(cls, values: Array, weight: Array, constant: float = 1.0) -> Scale:
        """Return the scale that gives columns with mean 0 and variance 1.

        A column whose values are equal except for `ROUNDING` has the spread `constant` of its largest value.
        """
        largest = np.abs(values).max(0, initial=0)
        largest = np.where(largest > 0, largest, 1.0)
        unit = np.ldexp(1.0, np.frexp(largest)[1] - 1)  # squares of large numbers overflow; a power of 2 is exact
        units = values / unit
        mean = np.average(units, axis=0, weights=weight)
        mean += np.average(units - mean, axis=0, weights=weight)  # what rounding lost
        spread = np.sqrt(np.average((units - mean) ** 2, axis=0, weights=weight))
        return cls(mean * unit, np.where(is_constant(values) | (spread == 0), constant * largest, spread * unit))

    def __call__(self, values: Array) -> Array:
        """Return scaled columns."""
        scaled: Array = (values - self.mean) / self.spread
        return scaled


def is_constant(values: Array) -> Array:
    """Return whether the values of each column are equal except for `ROUNDING`.

    >>> is_constant(np.array([[0.3, 1e15], [0.1 + 0.2, 1e15 + 30]]))
    array([ True, False])
    """
    units = np.spacing(np.abs(values).max(0, initial=0))
    half = values.max(0) / 2 - values.min(0) / 2  # the whole may overflow
    return np.asarray(half <= ROUNDING / 2 * units)


def in_units(network: MLP, theta: Array, x: Scale, y: Scale) -> Array:
    """Return the parameters [parameters, S] of x -> y.spread f((x - x.mean) / x.spread) + y.mean, in float64."""
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
