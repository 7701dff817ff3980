"""f(x) = values[i] + slopes[i] (x - knots[i]) on [knots[i], knots[i + 1]]: an exact piecewise-linear curve."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plunit.pieces.arrays import Bools, Floats, Ints
from plunit.pieces.checking import agreeing, check_agreement
from plunit.pieces.layer import EPS
from plunit.pieces.merging import group_starts

NEAR = 512 * EPS
"""The default tolerance: numbers closer than that, relative to the largest, are equal."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A continuous piecewise-linear function of one variable with any number of outputs.

    Args:
        knots: [n + 1], increasing; the first and the last are the ends of the domain.
        values: [n + 1, out], f at the knots.
        slopes: [n, out], f' between them; they must agree with the values.
        patterns: how many activation patterns the network goes through; n by default.
        tolerance: [n, out], two slopes are equal if they differ by at most the sum of their tolerances; by default
            512 eps max|slope|.

    `pieces` counts functionally distinct pieces: neighbours with equal slopes in every output are one. There are more
    patterns than pieces if a kink is dead, which means that it bends no output. `merged` leaves dead kinks out.

    >>> tent = Curve([0, 1, 2], [[0], [1], [0]], [[1], [-1]])
    >>> tent([0.5, 1.5]).ravel().tolist(), tent.integral(0, 2).tolist(), tent.maximum()
    ([0.5, 0.5], [1.0], (1.0, 1.0))
    """

    knots: Floats
    values: Floats
    slopes: Floats
    patterns: int = 0
    tolerance: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        for name in ("knots", "values", "slopes", "tolerance"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        _check_shapes(self.knots, self.values, self.slopes)
        if self.tolerance.size == 0:
            object.__setattr__(self, "tolerance", NEAR * np.abs(self.slopes).max(axis=0, keepdims=True))
        _check_numbers(self)
        object.__setattr__(self, "tolerance", _spread(self.tolerance, self.slopes.shape))
        object.__setattr__(self, "patterns", self.patterns or len(self.slopes))
        check_agreement(self.knots, self.values, self.slopes, self.tolerance)

    @classmethod
    def traced(cls, knots: Floats, values: Floats, slopes: Floats, patterns: int, tolerance: Floats) -> Curve:
        """Return a curve that has been checked already, together with others (see `line`)."""
        curve = object.__new__(cls)
        vars(curve).update(knots=knots, values=values, slopes=slopes, patterns=patterns, tolerance=tolerance)
        return curve

    @property
    def low(self) -> float:
        """The left end of the domain."""
        return float(self.knots[0])

    @property
    def high(self) -> float:
        """The right end of the domain."""
        return float(self.knots[-1])

    @property
    def intercepts(self) -> Floats:
        """The b of each piece f(x) = slope x + b, [n, out]."""
        return self.values[:-1] - self.slopes * self.knots[:-1, None]

    @property
    def kinks(self) -> Bools:
        """Which of knots[1:-1] bend some output, [n - 1]."""
        return group_starts(self.slopes, self.tolerance, np.arange(len(self.slopes)) == 0)[1:]

    @property
    def pieces(self) -> int:
        """The number of functionally distinct pieces."""
        return 1 + int(self.kinks.sum())

    def merged(self) -> Curve:
        """Return the same function without the knots that bend no output."""
        keep = np.concatenate([[True], self.kinks, [True]])
        first = keep[:-1]
        knots, values, slopes = self.knots[keep], self.values[keep], self.slopes[first]
        tolerance = agreeing(knots, values, slopes, self.tolerance[first])
        return self.traced(knots, values, slopes, self.patterns, tolerance)

    def output(self, index: int) -> Curve:
        """Return one output as a curve."""
        columns = [index]
        values, slopes, tolerance = self.values[:, columns], self.slopes[:, columns], self.tolerance[:, columns]
        return self.traced(self.knots, values, slopes, self.patterns, tolerance)

    def __call__(self, x: Any) -> Floats:
        """f(x): [...] -> [..., out], for x in the domain."""
        x, i = self._find(x)
        s = ((x - self.knots[i]) / (self.knots[i + 1] - self.knots[i]))[..., None]
        return np.asarray((1 - s) * self.values[i] + s * self.values[i + 1])

    def derivative(self, x: Any) -> Floats:
        """f'(x): [...] -> [..., out]; at a knot the slope on its right, at the last knot the slope on its left."""
        return self.slopes[self.piece(x)]

    def piece(self, x: Any) -> Ints:
        """Return the index of the piece that holds x, [...]; at a knot the piece on its right, at the last the last."""
        x, i = self._find(x)
        if np.isnan(x).any():
            raise ValueError(f"x must be numbers in [{self.low}, {self.high}], got NaN, which lies on no piece")
        return i

    def integral(self, a: float, b: float) -> Floats:
        """Integrate f from a to b, [out]; negative of the integral from b to a."""
        return np.asarray(self._primitive(b) - self._primitive(a))

    def maximum(self, output: int = 0) -> tuple[float, float]:
        """(x, f(x)) where an output is largest; the first such knot."""
        top = int(np.argmax(self.values[:, output]))
        return float(self.knots[top]), float(self.values[top, output])

    def minimum(self, output: int = 0) -> tuple[float, float]:
        """(x, f(x)) where an output is smallest; the first such knot."""
        bottom = int(np.argmin(self.values[:, output]))
        return float(self.knots[bottom]), float(self.values[bottom, output])

    def _primitive(self, x: float) -> Floats:
        at, i = self._find(x)
        widths = np.diff(self.knots[: int(i) + 1])[:, None]
        whole = (0.5 * (self.values[: int(i)] + self.values[1 : int(i) + 1]) * widths).sum(axis=0)
        return np.asarray(whole + 0.5 * (at - self.knots[i]) * (self.values[i] + self(at)))

    def _find(self, x: Any) -> tuple[Floats, Ints]:
        """Return x as an array and the piece that holds it."""
        x = np.asarray(x, dtype=np.float64)
        if ((x < self.low) | (x > self.high)).any():
            worst = x[(x < self.low) | (x > self.high)].flat[0]
            raise ValueError(f"x = {worst} is outside [{self.low}, {self.high}]; build the curve on a larger interval")
        return x, np.searchsorted(self.knots[1:-1], x, side="right")


def _check_shapes(knots: Floats, values: Floats, slopes: Floats) -> None:
    n = len(knots) - 1 if knots.ndim == 1 else 0
    if n < 1 or values.ndim != 2 or len(values) != n + 1 or slopes.shape != (n, *values.shape[1:]) or not slopes.size:
        shapes = knots.shape, values.shape, slopes.shape
        raise ValueError(f"a curve needs knots [n + 1], values [n + 1, out] and slopes [n, out], got shapes {shapes}")


def _check_numbers(curve: Curve) -> None:
    for name in ("knots", "values", "slopes", "tolerance"):
        wrong = ~np.isfinite(getattr(curve, name))
        if wrong.any():
            raise ValueError(f"{name} must be finite, got {getattr(curve, name)[wrong][0]}")
    if not (np.diff(curve.knots) > 0).all():
        at = int(np.argmin(np.diff(curve.knots) > 0))
        raise ValueError(f"knots must be increasing, got {curve.knots[at]} before {curve.knots[at + 1]}; sort them")
    if (curve.tolerance < 0).any():
        raise ValueError(f"tolerance must be >= 0, got {curve.tolerance.min()}")
    if isinstance(curve.patterns, bool) or not isinstance(curve.patterns, int) or curve.patterns < 0:
        raise ValueError(f"patterns must be a positive integer, or 0 if it is not known, got {curve.patterns!r}")


def _spread(tolerance: Floats, shape: tuple[int, ...]) -> Floats:
    try:
        return np.broadcast_to(tolerance, shape)
    except ValueError:
        raise ValueError(
            f"tolerance must have a number for each slope {shape}, or for each output, got {tolerance.shape}"
        ) from None
