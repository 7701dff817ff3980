"""max c x + c0 over a box and cuts a x <= b, as a bound that rounding cannot make wrong; csrc/linear.h does the same.

The dual simplex method with long steps starts at the best corner of the box, where the dual is feasible. Its
multipliers y >= 0 are only a proposal: any y >= 0 gives the bound

    max over the box of (c - y A) x + y b + c0        (Neumaier and Shcherbina, 2004; docs/glossary.md),

and that is evaluated with its rounding error. So the bound is valid even if the method fails.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plunit.pieces.arrays import Bools, Floats, Ints
from plunit.pieces.rounding import FLOOR, UNIT, roundings

NEVER = -np.inf


def over(constant: float, floor: float) -> float:
    """Return constant - floor, rounded up."""
    return float((constant - floor) + 2 * UNIT * (abs(constant) + abs(floor)))


def _number(found: Any) -> float:
    """Return a bound, inf for NaN, which comes from numbers that are too large."""
    return np.inf if np.isnan(found) else float(found)


class Region:
    """x in a box [in, 2] with cuts a x <= b; `empty` says that no such x exists."""

    def __init__(self, box: Floats) -> None:
        self.low, self.high = box[:, 0].copy(), box[:, 1].copy()
        self.rows, self.limits = np.zeros((0, len(box))), np.zeros(0)
        self.empty = False

    @property
    def cuts(self) -> int:
        """The number of cuts."""
        return len(self.limits)

    def add_cut(self, row: Floats, limit: float) -> None:
        """Add a cut, and shrink the box by it."""
        self.rows, self.limits = np.append(self.rows, row[None], axis=0), np.append(self.limits, limit)
        self._shrink(row, limit)

    def shrink_all(self) -> None:
        """Shrink the box by all cuts once more."""
        for row, limit in zip(self.rows, self.limits, strict=True):
            self._shrink(row, limit)

    def with_input(self, low: float, high: float, column: Floats | None = None) -> Region:
        """Return this region with one more input, whose coefficients in the cuts are the column, by default 0."""
        wider = Region(np.stack([np.append(self.low, low), np.append(self.high, high)], axis=1))
        column = np.zeros(self.cuts) if column is None else column
        wider.rows, wider.limits, wider.empty = np.append(self.rows, column[:, None], axis=1), self.limits, self.empty
        return wider

    def with_margin(self) -> Region:
        """Return this region with one more input t in [0, 1], a distance from all cuts in widths of the box."""
        return self.with_input(0.0, 1.0, np.abs(self.rows) @ (self.high - self.low))

    def over_box(self, c: Floats, constant: float) -> float:
        """Bound c x + constant over only the box."""
        best = np.maximum(c * self.low, c * self.high)
        size = abs(constant) + np.abs(best).sum() + FLOOR * len(c)
        return _number(constant + best.sum() + roundings(len(c) + 4) * size)

    def maximise(self, c: Floats, constant: float) -> tuple[float, Floats, Floats]:
        """Return a bound on c x + constant, -inf if no x exists; the best x; and the multipliers of the cuts."""
        corner = np.where(c > 0, self.high, self.low)
        if self.empty or not self.cuts:
            return (NEVER if self.empty else self.over_box(c, constant)), corner, np.zeros(self.cuts)
        dual, ray, x = _Simplex(self, c).solve()
        if ray is not None and self._evaluate(np.zeros(len(c)), 0.0, ray) < 0:
            return NEVER, x, dual
        return min(self._evaluate(c, constant, dual), self.over_box(c, constant)), x, dual

    def _evaluate(self, c: Floats, constant: float, y: Floats) -> float:
        parts, reach = y[:, None] * self.rows, np.maximum(np.abs(self.low), np.abs(self.high)) + FLOOR
        rest = c - parts.sum(axis=0)
        terms = np.abs(c) + np.abs(parts).sum(axis=0) + FLOOR * (self.cuts + 1)
        size = abs(constant) + (np.abs(y * self.limits) + FLOOR).sum() + terms @ reach
        found = constant + y @ self.limits + np.maximum(rest * self.low, rest * self.high).sum()
        return _number(found + roundings(self.cuts + len(c) + 8) * 1.0001 * size)

    def _shrink(self, a: Floats, limit: float) -> None:
        least = np.minimum(a * self.low, a * self.high)
        size = abs(limit) + np.abs(least).sum() + FLOOR * len(a)
        room = limit - least.sum() + 2 * roundings(len(a) + 6) * size
        self.empty |= bool(room < 0)
        if not room >= 0:
            return
        with np.errstate(divide="ignore", over="ignore"):
            step = np.where(np.abs(a) > 1e-200, room / np.abs(a) * (1 + 8 * UNIT) + FLOOR, np.inf)
        for j in np.flatnonzero(step < self.high - self.low):
            if a[j] > 0:
                end = self.low[j] + step[j]
                outward = 2 * UNIT * (abs(end) + abs(self.low[j]) + step[j]) + FLOOR
                self.high[j] = min(self.high[j], end + outward)
            else:
                end = self.high[j] - step[j]
                outward = 2 * UNIT * (abs(end) + abs(self.high[j]) + step[j]) + FLOOR
                self.low[j] = max(self.low[j], end - outward)


class _Simplex:
    """The basic variables are right - table v, and v >= 0 are the others: distances of inputs from an end, or slacks.

    The variables are the inputs, then the slack of each cut; `top` says whether an input is measured from its upper
    end.
    """

    def __init__(self, region: Region, c: Floats) -> None:
        self.region, self.inputs = region, len(c)
        self.width = np.append(region.high - region.low, np.full(region.cuts, np.inf))
        self.table, self.cost = region.rows.copy(), c.astype(np.float64)
        self.right = region.limits - region.rows @ region.low
        self.basic: Ints = self.inputs + np.arange(region.cuts)
        self.other: Ints = np.arange(self.inputs)
        self.top: Bools = np.zeros(self.inputs, dtype=np.bool_)
        for j in np.flatnonzero(c > 0):
            self._flip(int(j))

    def solve(self) -> tuple[Floats, Floats | None, Floats]:
        """Return multipliers, a proof that no x exists if there seems to be none, and x."""
        ray = None
        reach = np.maximum(np.abs(self.region.low), np.abs(self.region.high))
        slack = 1e-11 * (np.abs(self.region.rows) @ reach + np.abs(self.region.limits))
        allowed = np.append(1e-9 * self.width[: self.inputs], slack)
        for _ in range(20 * (self.inputs + self.region.cuts)):
            above = self.right - self.width[self.basic]
            lack = np.maximum(-self.right, above) - allowed[self.basic]
            leaving = int(lack.argmax())
            if lack[leaving] <= 0:
                break
            if above[leaving] > -self.right[leaving]:
                self.right[leaving] = -above[leaving]
                self.table[leaving] *= -1
                self.top[self.basic[leaving]] ^= True
            ray = self._pivot(leaving)
            if ray is not None:
                break
        dual = np.zeros(self.region.cuts)
        slacks = self.other >= self.inputs
        dual[self.other[slacks] - self.inputs] = np.maximum(0.0, -self.cost[slacks])
        return dual, ray, self._x()

    def _x(self) -> Floats:
        distance = np.zeros(self.inputs)
        inside = self.basic < self.inputs
        distance[self.basic[inside]] = self.right[inside]
        low, high = self.region.low, self.region.high
        return np.clip(np.where(self.top, high - distance, low + distance), low, high)

    def _flip(self, j: int) -> None:
        self.right -= self.table[:, j] * self.width[self.other[j]]
        self.table[:, j] *= -1
        self.cost[j] *= -1
        self.top[self.other[j]] ^= True

    def _pivot(self, leaving: int) -> Floats | None:
        """Let a basic variable leave; return a proof that no x exists if none can enter."""
        row = self.table[leaving]
        able = np.flatnonzero(row < -1e-11 * np.abs(row).max(initial=0.0))
        able = able[np.argsort(self.cost[able] / row[able], kind="stable")]
        lack = -self.right[leaving] + np.cumsum(row[able] * self.width[self.other[able]])
        enough = np.flatnonzero(lack <= 0)
        if not len(enough):
            ray = np.zeros(self.region.cuts)
            slacks = self.other >= self.inputs
            ray[self.other[slacks] - self.inputs] = np.maximum(0.0, row[slacks])
            if self.basic[leaving] >= self.inputs:
                ray[self.basic[leaving] - self.inputs] = 1.0
            return ray
        entering = able[enough[0]]
        for j in able[: enough[0]]:
            self._flip(j)
        inverse, row, factor = 1 / row[entering], row / row[entering], self.table[:, entering].copy()
        row[entering], right = inverse, self.right[leaving] * inverse
        factor[leaving], self.table[:, entering] = 0.0, 0.0
        self.table -= factor[:, None] * row
        self.right -= factor * right
        self.table[leaving], self.right[leaving] = row, right
        cost, self.cost[entering] = self.cost[entering], 0.0
        self.cost -= cost * row
        self.basic[leaving], self.other[entering] = self.other[entering], self.basic[leaving]
        return None
