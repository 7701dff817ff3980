"""Where x may be: a box, and linear constraints besides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from plunit.pieces.arrays import Bools, Floats
from plunit.pieces.boxes import box_array, check_size
from plunit.pieces.networks import Network, check_network
from plunit.pieces.proofs.linear import NEVER, Region
from plunit.pieces.rounding import exact_affine, fractions

Box = Sequence[Any]
"""A pair (low, high) for each input; low == high fixes an input."""

Constraints = tuple[Any, Any] | None
"""(A, b) for A x <= b."""


HUGE = 1e150
"""The largest size of a constraint's coefficients: products of two do not overflow."""


class Impossible(ValueError):
    """No x in the box meets the constraints."""


@dataclass(frozen=True)
class Comparison:
    """sum of factors times variables <= limit, or < if strict, in exact numbers; factors: pairs (variable, factor)."""

    factors: tuple[tuple[int, Fraction], ...]
    limit: Fraction
    strict: bool

    def holds(self, values: Sequence[Fraction]) -> bool:
        """Whether the variables may have these values."""
        total = sum((factor * values[i] for i, factor in self.factors), Fraction(0))
        return total < self.limit if self.strict else total <= self.limit


@dataclass(frozen=True, eq=False)
class Domain:
    """x in box [in, 2] with rows x <= limits; rows [m, in], limits [m]."""

    box: Floats
    rows: Floats
    limits: Floats

    @classmethod
    def of(cls, net: Network, box: Box, constraints: Constraints = None) -> Domain:
        """Check the box, a pair (low, high) for each input, and constraints (A, b) that stand for A x <= b."""
        check_network(net)
        sides = box_array(net, box, fixed=True)
        check_size(net, np.abs(sides).max(axis=1))
        return cls(sides, *constraint_rows(constraints, net.inputs))

    def clip(self, x: Floats) -> Floats:
        """Return the points of the box that are nearest to x."""
        return np.clip(x, self.box[:, 0], self.box[:, 1])

    def holds(self, x: Floats, slack: float = 1e-12) -> Bools:
        """Return which of x [n, in] are in the domain; the constraints may be broken by this part of their terms."""
        size = np.abs(x) @ np.abs(self.rows).T + np.abs(self.limits)
        within = (x >= self.box[:, 0]) & (x <= self.box[:, 1])
        return np.asarray(within.all(axis=1) & (x @ self.rows.T <= self.limits + slack * size).all(axis=1))

    def contains(self, x: Floats) -> bool:
        """Whether x [in] is in the domain, in exact arithmetic."""
        inside = bool((self.box[:, 0] <= x).all() and (x <= self.box[:, 1]).all())
        return inside and at_most(self.rows, fractions(x), self.limits)

    def points(self, count: int) -> Floats:
        """Return random points, [n, in], n from 1 to `count`; ValueError if no x meets the constraints."""
        rng, (low, high) = np.random.default_rng(0), self.box.T
        found = rng.uniform(low, high, (count, len(low)))
        found = found[self.holds(found)]
        if len(found):
            return found
        centre, radius = self.centre
        spread = radius * (high - low) * rng.uniform(-1, 1, (count, len(low)))
        found = self.clip(centre + spread)
        return found[self.holds(found)] if self.holds(found).any() else centre[None]

    @cached_property
    def centre(self) -> tuple[Floats, float]:
        """A point x and how far it is from all constraints, in widths of the box; `Impossible` if there is no x."""
        region = Region(self.box)
        for row, limit in zip(self.rows, self.limits, strict=True):
            region.add_cut(row, limit)
        radius, x, _ = region.with_margin().maximise(np.append(np.zeros(len(self.box)), 1.0), 0.0)
        if radius == NEVER:
            raise Impossible("no x in the box meets the constraints; take a larger box or fewer constraints")
        # t counts the widths of the box that the cuts have shrunk
        widths = (self.box[:, 1] - self.box[:, 0], region.high - region.low)
        left = np.divide(widths[1], widths[0], out=np.ones(len(self.box)), where=widths[0] > 0)
        return self.clip(x[:-1]), float(x[-1] * left.min())


def constraint_rows(constraints: Constraints, inputs: int) -> tuple[Floats, Floats]:
    """Check constraints (A, b) on so many inputs and return A [m, in] and b [m]."""
    if constraints is None:
        return np.zeros((0, inputs)), np.zeros(0)
    try:
        rows, limits = constraints
    except (TypeError, ValueError):
        raise ValueError(f"constraints are a pair (A, b) for A x <= b, got {constraints!r}") from None
    rows, limits = inequalities("constraints", rows, limits, "input")
    if rows.shape[1] != inputs:
        raise ValueError(f"constraints A x <= b on {inputs} inputs need A [m, {inputs}], got {rows.shape}")
    sizes = np.abs(rows).max(axis=1, initial=0.0)
    if (wrong := np.flatnonzero((np.maximum(sizes, np.abs(limits)) > HUGE) | ((sizes > 0) & (sizes < 1 / HUGE)))).size:
        raise ValueError(
            f"the coefficients of a constraint must be between {1 / HUGE:g} and {HUGE:g} in size, got row {wrong[0]}: "
            f"{rows[wrong[0]].tolist()} <= {limits[wrong[0]]}; multiply the row by a power of 10"
        )
    return rows, limits


def inequalities(what: str, rows: Any, limits: Any, of: str = "output") -> tuple[Floats, Floats]:
    """Return rows [m, n] and limits [m] as arrays; ValueError if they are not finite or do not fit."""
    rows, limits = numbers(what, rows), numbers(what, limits)
    if rows.ndim != 2 or limits.shape != rows.shape[:1]:
        raise ValueError(
            f"{what}: rows must have a row for each limit and a column for each {of}, as in rows=[[1.0]], "
            f"limits=[3.8]; got shapes {rows.shape} and {limits.shape}"
        )
    if not (np.isfinite(rows).all() and np.isfinite(limits).all()):
        raise ValueError(f"{what} must be finite, got NaN or inf; leave out rows without a limit")
    return rows, limits


def numbers(what: str, values: Any) -> Floats:
    """Return values as a new array; ValueError if they are no numbers."""
    try:
        if np.iscomplexobj(values):
            raise ValueError
        return np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{what} must be an array of numbers, got {values!r:.200}") from None


def at_most(rows: Floats, values: list[Fraction], limits: Floats, *, strict: bool = False) -> bool:
    """Whether rows @ values <= limits (or < if strict), in exact arithmetic."""
    return all(excess < 0 or (excess == 0 and not strict) for excess in exact_affine(rows, -limits, values))
