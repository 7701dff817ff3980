"""The smallest network within an error: which shapes are tried, in which order, and when the search gives up.

Quick fits of n x n units with increasing n show how the error falls with n. Once one is within the error, thorough fits
bisect the widths below it. Then (n, m) with m < n is tried, and one layer with fewer weights.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from plunit.ensemble.mlp import MLP

WIDTHS = (2, 3, 4, 6, 8, 12, 16, 24, 32)
"""The widths n of the quick fits of n x n units."""

GAIN, MOST_GAIN = 0.75, 0.5
"""The error of a thorough fit as a fraction of that of a quick fit: typically, and at best."""

_SEEN = 4  # the number of quick fits, the widest ones, from which the error is extrapolated

Shape = tuple[int, ...]

Attempt = Callable[[Shape, bool], float]
"""Fits a shape, thoroughly or quickly, and returns the proved error: infinite without a bound, NaN to stop."""


class _Stopped(Exception):
    pass


@dataclass
class SizeSearch:
    """A search for the smallest shape, and its results.

    Attributes:
        attempt: the function that fits a shape.
        inputs: the number of inputs.
        error: the error allowed.
        known: the smallest proved error of each shape that was tried.
        needed: if no shape is within the error, the width n at which n x n units probably are; infinite if none is.
    """

    attempt: Attempt
    inputs: int
    error: float
    known: dict[Shape, float] = field(default_factory=dict)
    needed: float = math.nan

    def run(self) -> SizeSearch:
        """Run the search and return it."""
        with contextlib.suppress(_Stopped):
            self._search()
        return self

    def weights(self, shape: Shape) -> int:
        """Return the number of weights and biases of a shape."""
        return MLP((self.inputs, *shape, 1)).parameters

    @property
    def smallest(self) -> Shape | None:
        """The shape with the fewest weights that is proved to be within the error."""
        return min(
            (shape for shape, error in self.known.items() if error <= self.error), key=self.weights, default=None
        )

    def _search(self) -> None:
        if (high := self._climb()) is None:
            return
        low = max((n for n in WIDTHS if n < high and MOST_GAIN * self.known[n, n] > self.error), default=0)
        self._bisect(low, high, lambda n: (n, n))
        first, second = self.smallest or (high, high)
        while second > 1 and self._fit((first, second - 1)) <= self.error:
            second -= 1
        most = (self.weights((first, second)) - 2) // (self.inputs + 2)  # one layer of n has (inputs + 2) n + 1 weights
        if most and GAIN * self._fit((most,), thorough=False) <= self.error and self._fit((most,)) <= self.error:
            self._bisect(0, most, lambda n: (n,))

    def _climb(self) -> int | None:
        """Return the first width with a fit within the error, a quick one below the largest; None if none is likely."""
        for n in WIDTHS:
            if self._fit((n, n), thorough=False) <= self.error:
                return n
            self._extrapolate()
            if n >= WIDTHS[_SEEN - 1] and self.needed > 2 * WIDTHS[-1]:
                return None
        if self._fit((WIDTHS[-1], WIDTHS[-1])) <= self.error:
            return WIDTHS[-1]
        self.needed = max(self.needed, WIDTHS[-1] + 1)
        return None

    def _extrapolate(self) -> None:
        """Set `needed` by extrapolating the last errors: log(error) is about linear in log(n)."""
        pairs = [(n, self.known[n, n]) for n in WIDTHS if (n, n) in self.known][-_SEEN:]
        logs = np.log([(n, max(error, 1e-300)) for n, error in pairs if error < math.inf])
        self.needed = math.inf
        if len(logs) > 1:
            slope, at_one = np.polyfit(logs[:, 0], logs[:, 1], 1)
            if slope < 0:
                self.needed = math.exp(min((math.log(self.error / GAIN) - at_one) / slope, 50.0))

    def _bisect(self, low: int, high: int, shape: Callable[[int], Shape]) -> None:
        """Fit shapes thoroughly between a width that is too small and one that is within the error."""
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._fit(shape(middle)) <= self.error else (middle, high)

    def _fit(self, shape: Shape, *, thorough: bool = True) -> float:
        found = self.attempt(shape, thorough)
        if math.isnan(found):
            raise _Stopped
        self.known[shape] = min(found, self.known.get(shape, math.inf))
        return self.known[shape]
