"""f(x) = values[i] + slopes[i] (x - knots[i]) on [knots[i], knots[i + 1]]: an exact piecewise-linear curve."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from plunit.pieces.arrays import Bools, Floats, Ints
from plunit.pieces.layer import EPS, SAFETY


@dataclass(frozen=True, eq=False)
class Curve:
    """A continuous piecewise-linear function of one variable with any number of outputs.

    Args:
        knots: [n + 1], increasing; the first and the last are the ends of the domain.
        values: [n + 1, out], f at the knots.
        slopes: [n, out], f' between them.
        patterns: how many activation patterns the network goes through; n if not told.
        tolerance: [out], neighbouring slopes closer than that are equal; 512 eps max|slope| if not told.

    `pieces` counts functionally distinct pieces: neighbours with equal slopes in every output are one. The two numbers
    differ where a kink is dead, and `merged` leaves dead kinks out.

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
        for name in ("knots", "values", "slopes"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        n = len(self.knots) - 1
        if n < 1 or self.values.shape[:1] != (n + 1,) or self.slopes.shape != (n, *self.values.shape[1:]):
            shapes = self.knots.shape, self.values.shape, self.slopes.shape
            raise ValueError(f"a curve needs knots [n + 1], values [n + 1, out] and slopes [n, out], got {shapes}")
        if not (np.diff(self.knots) > 0).all() or not np.isfinite(self.knots).all():
            raise ValueError("knots must be finite and increasing; leave out knots that repeat")
        object.__setattr__(self, "patterns", self.patterns or n)
        if self.tolerance.size == 0:
            object.__setattr__(self, "tolerance", SAFETY * EPS * np.abs(self.slopes).max(axis=0))

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
        return np.asarray((np.abs(np.diff(self.slopes, axis=0)) > self.tolerance).any(axis=1))

    @property
    def pieces(self) -> int:
        """The number of functionally distinct pieces."""
        return 1 + int(self.kinks.sum())

    def merged(self) -> Curve:
        """Return the same function without the knots that bend no output."""
        keep = np.concatenate([[True], self.kinks, [True]])
        return replace(self, knots=self.knots[keep], values=self.values[keep], slopes=self.slopes[keep[:-1]])

    def output(self, index: int) -> Curve:
        """Return one output as a curve."""
        columns = [index]
        values, slopes, tolerance = self.values[:, columns], self.slopes[:, columns], self.tolerance[columns]
        return replace(self, values=values, slopes=slopes, tolerance=tolerance)

    def __call__(self, x: Any) -> Floats:
        """f(x): [...] -> [..., out], for x in the domain."""
        x, i = self._find(x)
        return np.asarray(self.values[i] + self.slopes[i] * (x - self.knots[i])[..., None])

    def derivative(self, x: Any) -> Floats:
        """f'(x): [...] -> [..., out]; at a knot that of the piece to its right, at the last knot to its left."""
        return self.slopes[self._find(x)[1]]

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
        step = at - self.knots[i]
        return np.asarray(whole + step * (self.values[i] + 0.5 * step * self.slopes[i]))

    def _find(self, x: Any) -> tuple[Floats, Ints]:
        """Return x as an array and the piece that holds it."""
        x = np.asarray(x, dtype=np.float64)
        if ((x < self.low) | (x > self.high)).any():
            worst = x[(x < self.low) | (x > self.high)].flat[0]
            raise ValueError(f"x = {worst} is outside [{self.low}, {self.high}]; build the curve on a larger interval")
        return x, np.searchsorted(self.knots[1:-1], x, side="right")
