"""Where x may be: a box, and linear constraints besides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from plunit.pieces.arrays import Bools, Floats
from plunit.pieces.limits import box_array
from plunit.pieces.networks import Network, check_network, check_size
from plunit.pieces.proofs.linear import NEVER, Region

Box = Sequence[Any]
"""A pair (low, high) for each input; low == high fixes an input."""

Constraints = tuple[Any, Any] | None
"""(A, b) for A x <= b."""


class Impossible(ValueError):
    """No x in the box meets the constraints."""


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
        if constraints is None:
            return cls(sides, np.zeros((0, net.inputs)), np.zeros(0))
        try:
            rows, limits = (np.asarray(part, dtype=np.float64) for part in constraints)
        except (TypeError, ValueError):
            raise ValueError(f"constraints are a pair (A, b) for A x <= b, got {constraints!r}") from None
        if rows.shape != (len(limits) if limits.ndim == 1 else -1, net.inputs):
            raise ValueError(
                f"constraints A x <= b on {net.inputs} inputs need A [m, {net.inputs}] and b [m], got {rows.shape} and "
                f"{limits.shape}"
            )
        if not (np.isfinite(rows).all() and np.isfinite(limits).all()):
            raise ValueError("constraints must be finite, got NaN or inf; leave out rows that do not constrain")
        return cls(sides, np.ascontiguousarray(rows), np.ascontiguousarray(limits))

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
        point = [Fraction(number) for number in x.tolist()]
        inside = all(low <= number <= high for number, (low, high) in zip(point, self.box.tolist(), strict=True))
        sums = (sum(Fraction(a) * v for a, v in zip(row, point, strict=True)) for row in self.rows.tolist())
        return inside and all(total <= limit for total, limit in zip(sums, self.limits.tolist(), strict=True))

    def points(self, count: int) -> Floats:
        """Return random points, [n, in], n from 1 to `count`; ValueError if no x meets the constraints."""
        rng, (low, high) = np.random.default_rng(0), self.box.T
        found = rng.uniform(low, high, (count, len(low)))
        found = found[self.holds(found)]
        if len(found):
            return found
        centre, radius = self.centre()
        spread = radius * (high - low) * rng.uniform(-1, 1, (count, len(low)))
        found = self.clip(centre + spread)
        return found[self.holds(found)] if self.holds(found).any() else centre[None]

    def centre(self) -> tuple[Floats, float]:
        """Return x and how far it is from all constraints, in widths of the box; ValueError if there is no x."""
        region = Region(self.box)
        for row, limit in zip(self.rows, self.limits, strict=True):
            region.cut(row, limit)
        radius, x, _ = region.shrunk().maximise(np.append(np.zeros(len(self.box)), 1.0), 0.0)
        if radius == NEVER:
            raise Impossible("no x in the box meets the constraints; take a larger box or fewer constraints")
        # t counts the widths of the box that the cuts have shrunk
        widths = (self.box[:, 1] - self.box[:, 0], region.high - region.low)
        left = np.divide(widths[1], widths[0], out=np.ones(len(self.box)), where=widths[0] > 0)
        return self.clip(x[:-1]), float(x[-1] * left.min())
