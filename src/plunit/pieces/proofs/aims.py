"""What the search maximises: `LargestGoal` for values, and `Margin` for properties."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.boxes import sizes
from plunit.pieces.networks import Network
from plunit.pieces.proofs.bounding import Answer, Nodes, Query, ReducedNetwork
from plunit.pieces.proofs.branching import Aim
from plunit.pieces.proofs.linear import NEVER
from plunit.pieces.proofs.properties import Case, Domain
from plunit.pieces.rounding import FLOOR, UNIT

INSIDE = (0.0, 1e-12, 1e-9, 1e-6, 1e-3)
"""How far a witness is moved off open bounds: fractions of the way to the centre of its domain, in this order."""


@dataclass(frozen=True, eq=False)
class LargestGoal(Aim):
    """The aim of maximising goal y, with goal [out]."""

    net: Network | ReducedNetwork
    domain: Domain
    goal: Floats

    @cached_property
    def query(self) -> Query:
        """One condition of one goal."""
        return Query.of(self.net, self.domain, [self.goal[None]])

    def values_and_gradients(self, x: Floats, case: Ints) -> tuple[Floats, Floats]:
        """Return goal f(x), -inf outside the domain, and its gradient."""
        y, slopes = self.query.forward(x)
        rows = np.broadcast_to(self.goal, y.shape)
        return np.where(self.domain.holds(x), y @ self.goal, NEVER), self.query.gradients(slopes, rows)

    def floors(self, case: Ints, least: float) -> Floats:
        """Return the value to exceed."""
        return np.full((len(case), 1), max(least, self._lowest))

    def bounds(self, nodes: Nodes, answer: Answer, least: float) -> Floats:
        """Return the bounds; those of the nodes are relative to the floor."""
        excess, least = nodes.bounds[:, 0], max(least, self._lowest)
        found = (least + excess) + 2 * UNIT * (abs(least) + np.abs(np.where(excess > NEVER, excess, 0.0)))
        return np.where(excess > NEVER, found, NEVER)

    @cached_property
    def _lowest(self) -> float:
        """A lower bound on all values, which is the floor until a point of the domain is found."""
        *_, size = sizes(self.query.net, np.abs(self.domain.box).max(axis=1))
        return -1.001 * float(np.abs(self.goal) @ size) - FLOOR


@dataclass(frozen=True, eq=False)
class Margin(Aim):
    """The aim of finding x in one of some cases: max over conditions of min over rows of limit - row y."""

    net: Network
    cases: list[Case]

    @cached_property
    def boxes(self) -> Floats:
        """The boxes of the cases, [cases, in, 2]."""
        return np.stack([case.box for case in self.cases])

    @cached_property
    def query(self) -> Query:
        """Goals -row y with floors -limit; the domain is that of the only case, or contains all boxes."""
        case, outer = self.cases[0], np.stack([self.boxes[..., 0].min(axis=0), self.boxes[..., 1].max(axis=0)], axis=1)
        domain = Domain(outer, case.rows, case.limits)
        return Query.of(self.net, domain, [-condition.rows for condition in case.conditions])

    @cached_property
    def limits(self) -> Floats:
        """The values that the goals must reach in each case, [cases, g]."""
        return -np.stack([np.concatenate([one.limits for one in case.conditions]) for case in self.cases])

    @property
    def open(self) -> bool:
        """Whether x with a margin of 0 is outside the cases."""
        return all(condition.strict for condition in self.cases[0].conditions)

    def values_and_gradients(self, x: Floats, case: Ints) -> tuple[Floats, Floats]:
        """Return the margins, -inf outside the domain, and the gradients of the rows that determine them."""
        y, slopes = self.query.forward(x)
        with np.errstate(over="ignore"):
            excess, first, boxes = y @ self.query.goals.T - self.limits[case], self.query.first, self.boxes[case]
        rows = np.stack([a + excess[:, a:b].argmin(axis=1) for a, b in pairwise(first)], axis=1)
        least = np.take_along_axis(excess, rows, axis=1)
        best = least.argmax(axis=1)[:, None]
        margin, row = (np.take_along_axis(part, best, axis=1)[:, 0] for part in (least, rows))
        within = ((x >= boxes[..., 0]) & (x <= boxes[..., 1])).all(axis=1) & self.query.domain.holds(x)
        return np.where(within, margin, NEVER), self.query.gradients(slopes, self.query.goals[row])

    def floors(self, case: Ints, least: float) -> Floats:
        """Return the limits."""
        return self.limits[case]

    def bounds(self, nodes: Nodes, answer: Answer, least: float) -> Floats:
        """Return the largest bound of a condition; conditions that cannot reach `least` are ruled out."""
        nodes.bounds[nodes.bounds <= least] = NEVER
        return np.asarray(nodes.bounds.max(axis=1))

    def witness(self, x: Floats, case: int) -> Floats | None:
        """Return x, or a nearby point off the open bounds, that is in the case in exact arithmetic; else None."""
        asked, centre = self.cases[case], self.query.centre
        middle = self.boxes[case].mean(axis=1) if centre is None else centre
        for part in INSIDE if asked.exact else INSIDE[:1]:
            near = x + part * (middle - x)
            if self.query.meets(near, asked.conditions) and asked.contains(near):
                return near
        return None
