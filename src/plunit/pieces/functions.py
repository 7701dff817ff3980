"""The distinct activations of a layer, with finite knots and exact intercepts, for programs and for bounds of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from plunit.pieces.activation import Activation, exact_intercepts
from plunit.pieces.arrays import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Functions:
    """f_i(z) = slopes[i, j] z + intercepts[i, j] beyond j of the knots[i]; unit u has the function f of index kinds[u].

    knots: [functions, k], finite and in order, k >= 1; slopes and intercepts: [functions, k + 1]. A missing knot is put
    at another knot of its function, or at 0, with the same slope on both sides.
    """

    knots: Floats
    slopes: Floats
    intercepts: Any
    kinds: Ints

    @classmethod
    def of(cls, f: Activation) -> Functions:
        """Take the activation of a layer; intercepts are Fractions, in an array of objects."""
        table = np.concatenate([f.knots, f.slopes, f.at_zero[:, None]], axis=1) + 0.0
        rows, kinds = np.unique(table, axis=0, return_inverse=True)
        k = f.knots.shape[-1]
        knots, slopes = _finite(rows[:, :k], rows[:, k:-1])
        exact = [
            exact_intercepts(*row) for row in zip(knots.tolist(), slopes.tolist(), rows[:, -1].tolist(), strict=True)
        ]
        return cls(knots, slopes, np.array(exact, dtype=object), kinds.reshape(-1))

    def __call__(self, z: Floats) -> Floats:
        """f(z) for z [..., units], in double precision."""
        knots, slopes, intercepts = self.of_units()
        value = slopes[:, 0] * z + intercepts[:, 0]
        for knot, slope, intercept in zip(knots.T, slopes.T[1:], intercepts.T[1:], strict=True):
            value = np.where(z > knot, slope * z + intercept, value)
        return np.asarray(value)

    def met(self, low: Floats, high: Floats, margin: Floats | float = 0.0) -> Bools:
        """Return the pieces [..., units, k + 1] that [low, high] meets, if knots may be off by the margin."""
        knots = self.of_units()[0]
        ends = np.full((len(knots), 1), np.inf)
        starts, stops = np.concatenate([-ends, knots - margin], axis=1), np.concatenate([knots + margin, ends], axis=1)
        return np.asarray((starts <= high[..., None]) & (stops >= low[..., None]))

    def turns(self, low: Floats, high: Floats) -> Floats:
        """Return the ends and the knots between, [k + 2, ..., units]: f has its extremes over [low, high] there."""
        return np.stack([low, high, *(np.clip(knot, low, high) for knot in self.of_units()[0].T)])

    def of_units(self) -> tuple[Floats, Floats, Floats]:
        """Return knots, slopes and intercepts of each unit, [units, ...], in double precision."""
        return self._of_units

    @cached_property
    def _of_units(self) -> tuple[Floats, Floats, Floats]:
        return self.knots[self.kinds], self.slopes[self.kinds], self.intercepts.astype(np.float64)[self.kinds]


def _finite(knots: Floats, slopes: Floats) -> tuple[Floats, Floats]:
    """Put missing knots where they change nothing."""
    if knots.shape[1] == 0:
        return np.zeros((len(knots), 1)), np.repeat(slopes, 2, axis=1)
    count = np.isfinite(knots).sum(axis=1, keepdims=True)
    ranks = np.minimum(np.arange(knots.shape[1]), np.maximum(count - 1, 0))
    placed = np.take_along_axis(knots, ranks, axis=1)
    pieces = np.minimum(np.arange(slopes.shape[1]), count)
    return np.where(np.isfinite(placed), placed, 0.0), np.take_along_axis(slopes, pieces, axis=1)
