"""Where x may be: a box, and linear constraints besides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit.pieces.arrays import Bools, Floats
from plunit.pieces.limits import box_array
from plunit.pieces.networks import Network, check_network, check_size

LARGEST = 1e9
"""The largest values that a network may have: HiGHS works with numbers near 1."""


@dataclass(frozen=True, eq=False)
class Domain:
    """x in box [in, 2] with rows x <= limits; rows [m, in], limits [m]."""

    box: Floats
    rows: Floats
    limits: Floats

    @classmethod
    def of(cls, net: Network, box: Sequence[Any], constraints: tuple[Any, Any] | None = None) -> Domain:
        """Check the box, a pair (low, high) for each input, and constraints (A, b) that stand for A x <= b."""
        check_network(net)
        sides = box_array(net, box)
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
        if max(np.abs(rows).max(initial=0.0), np.abs(limits).max(initial=0.0)) > LARGEST:
            raise ValueError(f"numbers of the constraints must be at most {LARGEST:.0e} in size; scale the rows")
        return cls(sides, rows, limits)

    @property
    def free(self) -> bool:
        """True if there is only the box."""
        return len(self.rows) == 0

    def clip(self, x: Floats) -> Floats:
        """Return the points of the box that are nearest to x."""
        return np.clip(x, self.box[:, 0], self.box[:, 1])

    def holds(self, x: Floats) -> Bools:
        """Return which of x [n, in] are in the domain. The constraints may be broken by 1e-9 of their size."""
        size = np.abs(self.rows) @ np.abs(self.box).max(axis=1) + np.abs(self.limits)
        within = (x >= self.box[:, 0]) & (x <= self.box[:, 1])
        return np.asarray(within.all(axis=1) & (x @ self.rows.T <= self.limits + 1e-9 * size).all(axis=1))
