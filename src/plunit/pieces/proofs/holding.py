"""`holds`: whether a property is true of a network for every x: proved, refuted by a witness, or undecided."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.boxes import check_size
from plunit.pieces.exact.limits import Report
from plunit.pieces.networks import Network, check_network
from plunit.pieces.proofs.bounding import Answer, Nodes, Query
from plunit.pieces.proofs.branching import SECONDS, Effort, search
from plunit.pieces.proofs.domain import Domain, Impossible
from plunit.pieces.proofs.linear import NEVER
from plunit.pieces.proofs.properties import Case, Property

TOGETHER = 20_000
"""The most cases of one search."""

INSIDE = (0.0, 1e-12, 1e-9, 1e-6, 1e-3)
"""The parts of the way to the centre of its domain by which a witness is moved off open bounds, one after the other."""


@dataclass(frozen=True, eq=False)
class Verdict:
    """The answer of `holds`.

    status: "proved", "refuted" or "undecided"; x, y: [in] and [out], a counterexample in exact arithmetic and the
    network's output there, None unless refuted; seconds: how long it took; reason: why it is undecided.
    """

    status: str
    x: Floats | None
    y: Floats | None
    seconds: float
    reason: str = ""


def holds(
    net: Network, property: Property, *, time_limit: float | None = SECONDS, progress: Report | None = None
) -> Verdict:
    """Decide whether a property is true of a network, for all x at once.

    "proved" and "refuted" are certain for the network in exact arithmetic with its float64 weights: bounds are rounded
    outward, and a witness is evaluated in exact arithmetic wherever rounding could decide. `load` says where weights
    are those of a file, and where they are rounded from them. "undecided" means that the time limit is reached, or that
    a value cannot be told apart from its limit.

    >>> from plunit.pieces import activation, network
    >>> net = network([([[1.0, -1.0]], [0.5]), activation.plu(), ([[2.0]], [0.0])])
    >>> holds(net, Property.always([(-1, 1)] * 2, rows=[[1.0]], limits=[2.4])).status
    'proved'
    >>> holds(net, Property.always([(-1, 1)] * 2, rows=[[1.0]], limits=[2.2])).x
    array([ 1., -1.])
    """
    check_network(net)
    if not isinstance(property, Property):
        raise TypeError(f"holds takes a Property, got {type(property).__name__}; Property.always(box, rows, limits)")
    property.check_fits(net)
    check_size(net, np.abs([case.box for case in property.cases]).max(axis=(0, 2)))
    effort, start = Effort.of(time_limit, progress), time.monotonic()
    reasons = []
    for cases in _groups(property):
        left = effort.after(start)
        if not left.seconds:
            reasons.append(f"time limit reached after {time.monotonic() - start:.1f} s")
            break
        x, reason = _decide(Margin(net, cases), left)
        if x is not None:
            return Verdict("refuted", x, net(x), time.monotonic() - start)
        if reason:
            reasons.append(reason)
    seconds = time.monotonic() - start
    return Verdict("undecided" if reasons else "proved", None, None, seconds, reasons[0] if reasons else "")


def _groups(property: Property) -> list[list[Case]]:
    """Return cases that differ in their boxes and limits alone, and have no constraints, together."""
    groups: dict[object, list[Case]] = {}
    for i, case in enumerate(property.cases):
        key = tuple((one.rows.tobytes(), one.strict) for one in case.conditions)
        groups.setdefault((key, i if len(case.limits) else None), []).append(case)
    return [cases[i : i + TOGETHER] for cases in groups.values() for i in range(0, len(cases), TOGETHER)]


def _decide(aim: Margin, effort: Effort) -> tuple[Floats | None, str]:
    """Return an x in a case, or None and why it is not sure that there is none."""
    if (np.diff(aim.query.first) == 0).any():  # a condition without rows is met everywhere
        return _any_point(aim.cases)
    least = 0.0 if aim.open else float(np.nextafter(0.0, -1.0))  # a margin of 0 is inside of a closed case
    try:
        found = search(aim, aim.boxes, effort, least=least, accept=aim.witness)
    except Impossible:  # no x meets the constraints
        return None, ""
    if found.found:
        return found.x, ""
    if found.ended and found.bound <= least:
        return None, ""
    known = f"the largest margin found is {found.value:.3g}, and none is above {found.bound:.3g}"
    closed = "; open bounds of inputs count as closed here" if any(case.exact for case in aim.cases) else ""
    return None, f"{'a value is too close to its limit' if found.ended else 'time limit reached'}: {known}{closed}"


def _any_point(cases: list[Case]) -> tuple[Floats | None, str]:
    """Return an x in the domain of a case, or None and why it is not sure that there is none."""
    reason = ""
    for case in cases:
        try:
            x = case.points(1)[0]
        except Impossible:
            continue
        if case.contains(x):
            return x, ""
        reason = "no x was found that meets the constraints exactly"
    return None, reason


@dataclass(frozen=True, eq=False)
class Margin:
    """The aim of `search` that looks for x in cases: max over conditions of min over rows of limit - row y."""

    net: Network
    cases: list[Case]

    @cached_property
    def boxes(self) -> Floats:
        """The box of each case."""
        return np.stack([case.box for case in self.cases])

    @cached_property
    def query(self) -> Query:
        """Goals -row y with the floors -limit; the domain is that of the only case, or holds all boxes."""
        case, outer = self.cases[0], np.stack([self.boxes[..., 0].min(axis=0), self.boxes[..., 1].max(axis=0)], axis=1)
        domain = Domain(outer, case.rows, case.limits)
        return Query.of(self.net, domain, [-condition.rows for condition in case.conditions])

    @cached_property
    def limits(self) -> Floats:
        """What the goals must reach in each case, [cases, g]."""
        return -np.stack([np.concatenate([one.limits for one in case.conditions]) for case in self.cases])

    @property
    def open(self) -> bool:
        """Whether a margin of 0 is outside."""
        return all(condition.strict for condition in self.cases[0].conditions)

    def climb(self, x: Floats, case: Ints) -> tuple[Floats, Floats]:
        """Return the margins, -inf outside of the domain, and the gradients of the rows that decide."""
        y, slopes = self.query.forward(x)
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
        """Return the largest bound of a condition; those below 0 are ruled out."""
        nodes.bounds[nodes.bounds <= least] = NEVER
        return np.asarray(nodes.bounds.max(axis=1))

    def witness(self, x: Floats, case: int) -> Floats | None:
        """Return x if it is in the case, in exact arithmetic; else a point next to it that is off the open bounds."""
        asked, centre = self.cases[case], self.query.centre
        middle = self.boxes[case].mean(axis=1) if centre is None else centre
        for part in INSIDE if asked.exact else INSIDE[:1]:
            near = x + part * (middle - x)
            if self.query.meets(near, asked.conditions) and asked.contains(near):
                return near
        return None
