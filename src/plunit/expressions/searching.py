"""The branch and bound behind `sup_error`: |f - g| over a box, for an expression f and a piecewise-linear g.

In a box with middle m, f is c + s t +- e (`forms`), and g lies between two linear functions of x - m. So f - g and
g - f are below linear functions, which are largest at a corner. Boxes whose bound exceeds the largest error found by
more than the closeness are cut in two, those with the largest bounds first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from plunit.expressions.expression import Expression, finite_values
from plunit.expressions.forms import halves, linear_enclosure
from plunit.pieces.arrays import Floats, blocks

SAMPLES = 2**14
PEAKS, STEPS, TRIES = 64, 36, 8
"""So many of the highest samples climb, in so many steps, each the best of so many random ones."""

BATCH = 4096
"""The number of boxes that are cut together."""

MOST = 2**22
"""Numbers of all boxes that are kept, at most."""

DEEPEST = 2.0**-64
"""Sides are not cut below this part of the first box."""

UNBOUNDED = 2**15
"""The search for a bound ends when this many boxes have none."""

NEAR = 1e-9
"""A function that moves by much of the error within this part of the box counts as one that jumps."""

_EPS = float(np.finfo(np.float64).eps)
_ROUNDING = 256 * _EPS
_TINY = float(np.finfo(np.float64).tiny)

Lines = Callable[[Floats, Floats], tuple[Floats, Floats]]
"""y [n, 2] and a [n, 2, in] of boxes low, high [n, in]: y + a (x - m) above g and below, m = low / 2 + high / 2."""

Progress = Callable[[float, str], object]
"""Called with the part that is done, from 0 to 1, and with what is known; if it returns true, the search ends."""


class Compared(NamedTuple):
    """f, the values of g at x [n, in], linear bounds of g, the box [in, 2], and how close the bound shall be."""

    expression: Expression
    values: Callable[[Floats], Floats]
    lines: Lines
    box: Floats
    closeness: float

    def errors(self, x: Floats) -> Floats:
        """Return |f(x) - g(x)| at x [n, in]; ValueError where f is not finite."""
        return np.abs(finite_values(self.expression, *x.T[: len(self.expression.names) or 1]) - self.values(x))

    def bounds(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return upper bounds of |f - g| on boxes [n, in], and the corners at which they are largest."""
        with np.errstate(all="ignore"):
            middle, half = halves(low, high)
            f = linear_enclosure(self.expression.steps, low.T, high.T)
            y, a = self.lines(low, high)
            slopes = a * half[:, None] - f.slopes.T[:, None]
            away = np.stack([y[:, 0] - f.centre, f.centre - y[:, 1]], axis=1)
            size = np.abs(f.centre)[:, None] + np.abs(y) + np.abs(a * half[:, None]).sum(axis=2)
            size += (np.abs(f.slopes).sum(axis=0) + f.error)[:, None]
            tops = away + np.abs(slopes).sum(axis=2) + f.error[:, None] + 16 * _EPS * size + _TINY
            rows, side = np.arange(len(tops)), np.argmax(tops, axis=1)
        top, slope = tops[rows, side], slopes[rows, side] * np.where(side == 0, 1.0, -1.0)[:, None]
        # where f has no value, there is no error either
        nothing = np.isnan(f.values.low) & np.isnan(f.values.high)
        top = np.where(nothing, 0.0, np.where(np.isnan(top), np.inf, top))
        return top, np.where(slope > 0, high, np.where(slope < 0, low, middle))


class Search:
    """What is known of sup |f - g| so far: `value` at `x`, and the bound of all boxes that are left.

    cells: the boxes at the start, low and high, [n, in].
    """

    def __init__(self, compared: Compared, cells: tuple[Floats, Floats]) -> None:
        self.compared, self.parts, self.note = compared, len(cells[0]), ""
        self.low, self.high = cells
        self.x, self.value = _first_peak(compared, np.concatenate([*cells, (cells[0] + cells[1]) / 2]))
        self.top = np.concatenate(
            [compared.bounds(*(end[part] for end in cells))[0] for part in blocks(self.parts, BATCH)]
        )
        self.closed = 0.0
        finite = self.top[np.isfinite(self.top)].max(initial=0.0)
        self.size = float(np.abs(compared.values(np.concatenate(cells))).max() + max(self.value, finite))
        self.rounding = max(_rounding(compared), _ROUNDING * self.size, 1e-9 * compared.closeness * self.size, _TINY)

    @property
    def bound(self) -> float:
        """No |f - g| exceeds it; infinite if nothing is known."""
        return float(max(self.closed, self.top.max(initial=0.0), self.value))

    def run(self, time_limit: float | None, progress: Progress | None) -> None:
        """Cut boxes until the bound is close, or the time is over; `note` says why it is not close."""
        start = time.monotonic()
        while not self.note and self._drop():
            passed = time.monotonic() - start
            if time_limit is not None and passed > time_limit:
                self.note = f"the search for a closer bound ended after {time_limit:g} s"
            elif progress is not None and progress(min(1.0, passed / (time_limit or np.inf)), self._told()):
                self.note = "the search for a closer bound was stopped"
            elif 2 * self.low.size > MOST:
                self.note = f"the search for a closer bound ended with {len(self.low):,} boxes left"
            else:
                self._cut()

    def _told(self) -> str:
        return f"error {self.value:.3g}, at most {self.bound:.3g}, {len(self.low):,} boxes left"

    def _drop(self) -> bool:
        """Close the boxes whose bound is low enough, or which are too small; return whether any are left."""
        closeness = self.compared.closeness
        # an error that cannot be told apart from 0 has no size of its own
        nothing = 1e-3 * closeness * self.size if self.value <= _ROUNDING * self.size else 0.0
        enough = self.value * (1 + closeness) + max(self.rounding, nothing)
        left = self.top > enough
        small = left & (self._sides(self.low, self.high).max(axis=1) <= DEEPEST)
        if small.any() or (left & ~np.isfinite(self.top)).sum() > UNBOUNDED:
            worst = int(np.argmax(np.where(left, self.top, -np.inf)))
            self._say(self.low[worst], self.top[worst])
        left &= ~small
        self.closed = max(self.closed, float(self.top[~left].max(initial=0.0)))
        self.low, self.high, self.top = self.low[left], self.high[left], self.top[left]
        return bool(len(self.low)) and not np.isinf(self.closed)

    def _say(self, x: Floats, top: float) -> None:
        kind = "it has a pole, or intervals show no bound there" if np.isinf(top) else "it jumps there"
        self.note = f"the function has no closer bound near {place(self.compared.expression, x)}: {kind}"

    def _sides(self, low: Floats, high: Floats) -> Floats:
        """Return the sides of boxes as parts of those of the first one; 0 for a side that cannot be cut."""
        ends, middle = self.compared.box, low / 2 + high / 2
        return np.where((low < middle) & (middle < high), (high - low) / (ends[:, 1] - ends[:, 0]), 0.0)

    def _cut(self) -> None:
        """Cut the boxes with the largest bounds in two, across their longest sides."""
        order = np.argpartition(-self.top, BATCH) if len(self.top) > BATCH else np.arange(len(self.top))
        chosen, rest = order[:BATCH], order[BATCH:]
        low, high, rows = self.low[chosen], self.high[chosen], np.arange(len(chosen))
        axis = self._sides(low, high).argmax(axis=1)
        cut = low[rows, axis] / 2 + high[rows, axis] / 2
        left_high, right_low = high.copy(), low.copy()
        left_high[rows, axis], right_low[rows, axis] = cut, cut
        low, high = np.concatenate([low, right_low]), np.concatenate([left_high, high])
        top, corner = self.compared.bounds(low, high)
        top = np.minimum(top, np.tile(self.top[chosen], 2))
        some = np.argsort(-top, kind="stable")[: BATCH // 16]
        self._look(np.concatenate([corner[some], low[some] / 2 + high[some] / 2]))
        self.parts += len(low)
        kept = ((self.low, low), (self.high, high), (self.top, top))
        self.low, self.high, self.top = (np.concatenate([old[rest], new]) for old, new in kept)

    def _look(self, x: Floats) -> None:
        found = self.compared.errors(x)
        best = int(found.argmax())
        if found[best] > self.value:
            self.x, self.value = x[best], float(found[best])


def place(expression: Expression, x: Floats) -> str:
    """Return where: x = 1, y = 2."""
    return ", ".join(f"{name} = {number:.6g}" for name, number in zip(expression.names, x.tolist(), strict=False))


def _rounding(compared: Compared) -> float:
    """Return by how much bounds on tiny boxes exceed the errors there: closer than that no bound can be."""
    low, high = compared.box.T
    x = np.random.default_rng(1).uniform(low, high, (PEAKS, len(low)))
    over = compared.bounds(x, np.minimum(x + 2.0**-44 * (high - low), high))[0] - compared.errors(x)
    return 2 * float(over[np.isfinite(over)].max(initial=0.0))


def _first_peak(compared: Compared, x: Floats) -> tuple[Floats, float]:
    """Return x and the error there: the best of these points and of random ones, which climb by ever smaller steps."""
    rng, (low, high) = np.random.default_rng(0), compared.box.T
    x = np.concatenate([x, rng.uniform(low, high, (SAMPLES, len(low)))])
    found = compared.errors(x)
    top = np.argsort(-found, kind="stable")[:PEAKS]
    x, found, rows = x[top], found[top], np.arange(len(top))
    for step in np.geomspace(1e-2, 1e-9, STEPS):
        tried = np.clip(x[:, None] + step * (high - low) * rng.standard_normal((len(x), TRIES, len(low))), low, high)
        values = compared.errors(tried.reshape(-1, len(low))).reshape(len(x), TRIES)
        best = values.argmax(axis=1)
        better = values[rows, best] > found
        x = np.where(better[:, None], tried[rows, best], x)
        found = np.where(better, values[rows, best], found)
    best_of_all = int(found.argmax())
    return x[best_of_all], float(found[best_of_all])
