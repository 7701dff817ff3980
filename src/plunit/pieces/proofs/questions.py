"""Questions about values: how large, how small, and how far apart."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from operator import index
from typing import overload

import numpy as np

from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.boxes import sizes
from plunit.pieces.exact import line_curves
from plunit.pieces.exact.limits import Report
from plunit.pieces.exact.line_curves import Curve
from plunit.pieces.merging import merge_units
from plunit.pieces.networks import Network
from plunit.pieces.proofs.bounding import Answer, Nodes, Query
from plunit.pieces.proofs.branching import SECONDS, Effort, Extreme, search
from plunit.pieces.proofs.domain import Box, Constraints, Domain
from plunit.pieces.proofs.linear import NEVER
from plunit.pieces.rewriting import difference
from plunit.pieces.rounding import FLOOR, UNIT

PROVED = 1e-6
"""A value is proved if no other can be larger by more than this part of the largest |f| that was seen."""

GAP = 1e-10
"""The search goes on until the two agree to this part of the largest |f| that was seen."""


@dataclass(frozen=True, eq=False)
class Optimum:
    """An extreme value and its proof.

    x: [in], where it is reached; value: the network's output at x; bound: no value in the domain is beyond it, whatever
    the rounding errors; proved: value and bound agree to 1e-6 of the largest output that was seen; seconds: how long it
    took.
    """

    x: Floats
    value: float
    bound: float
    proved: bool
    seconds: float

    @classmethod
    def of(cls, found: Extreme, value: float, seconds: float) -> Optimum:
        """Compare the value with its bound."""
        near = PROVED * max(found.scale, abs(value)) + FLOOR
        proved = bool(np.isfinite(value) and found.bound - value <= near)
        return cls(found.x, value, float(max(found.bound, value)), proved, seconds)

    def __float__(self) -> float:
        return self.value


class Undecided(Exception):
    """Neither answer was proved: time is over, or a value is too close to 0. `best` has the best point and a bound."""

    def __init__(self, best: Optimum, what: str = "largest value", beyond: str = "above") -> None:
        super().__init__(
            f"undecided after {best.seconds:.0f} s: the {what} found is {best.value:.9g}, and none is {beyond} "
            f"{best.bound:.9g}; raise time_limit or take a smaller box, unless both are 0 to rounding"
        )
        self.best = best


@dataclass(frozen=True, eq=False)
class Bounds:
    """low <= f(x) <= high for all x in the domain, [out] each; proved: both are reached, to 1e-6 of the largest |f|."""

    low: Floats
    high: Floats
    proved: bool


@dataclass(frozen=True, eq=False)
class LargestGoal:
    """The aim of `search` that makes goal y large, goal [out]."""

    net: Network
    domain: Domain
    goal: Floats

    @cached_property
    def query(self) -> Query:
        """One condition of one goal."""
        return Query.of(self.net, self.domain, [self.goal[None]])

    def climb(self, x: Floats, case: Ints) -> tuple[Floats, Floats]:
        """Return goal f(x), -inf outside of the domain, and its gradient."""
        y, slopes = self.query.forward(x)
        rows = np.broadcast_to(self.goal, y.shape)
        return np.where(self.domain.holds(x), y @ self.goal, NEVER), self.query.gradients(slopes, rows)

    def floors(self, case: Ints, least: float) -> Floats:
        """Return the value that matters."""
        return np.full((len(case), 1), max(least, self._lowest))

    def bounds(self, nodes: Nodes, answer: Answer, least: float) -> Floats:
        """Return the bounds, which are relative to the floor."""
        excess, least = nodes.bounds[:, 0], max(least, self._lowest)
        found = (least + excess) + 2 * UNIT * (abs(least) + np.abs(np.where(excess > NEVER, excess, 0.0)))
        return np.where(excess > NEVER, found, NEVER)

    @cached_property
    def _lowest(self) -> float:
        """A number that no value is below: what matters until the first point of the domain is found."""
        *_, size = sizes(self.query.net, np.abs(self.domain.box).max(axis=1))
        return -1.001 * float(np.abs(self.goal) @ size) - FLOOR


def maximum(
    net: Network,
    box: Box,
    *,
    output: int = 0,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Report | None = None,
) -> Optimum:
    """Max f(x) over x in the box: where it is, and a bound that no value exceeds.

    Args:
        net: a single network.
        box: a pair (low, high) for each input; low == high fixes an input.
        output: which output.
        constraints: (A, b) for A x <= b besides the box.
        time_limit: in seconds; None for no limit. When it is over, the best point and the bound so far are returned,
            and `proved` is False.
        progress: a function that is called with the progress, such as print.

    >>> from plunit.pieces import activation, network
    >>> net = network([(np.eye(3), np.zeros(3)), activation.relu(), ([[1.0, -1.0, 0.5]], [0.0])])
    >>> found = maximum(net, [(-1, 2)] * 3)
    >>> found.value, round(found.bound, 6), found.proved
    (3.0, 3.0, True)
    """
    domain, goal = Domain.of(net, box, constraints), _one_output(net, output)
    return _largest(net, domain, goal, Effort.of(time_limit, progress))


def minimum(
    net: Network,
    box: Box,
    *,
    output: int = 0,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Report | None = None,
) -> Optimum:
    """Min f(x) over x in the box: where it is, and a bound that no value is below; arguments as `maximum`."""
    domain, goal = Domain.of(net, box, constraints), _one_output(net, output)
    found = _largest(net, domain, -goal, Effort.of(time_limit, progress))
    return replace(found, value=-found.value, bound=-found.bound)


def bounds(
    net: Network,
    box: Box,
    *,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Report | None = None,
) -> Bounds:
    """Low <= f(x) <= high for every output, each as narrow as can be; `time_limit` is for all of them together."""
    domain, effort = Domain.of(net, box, constraints), Effort.of(time_limit, progress)
    tops = [_largest(net, domain, goal, share) for goal, share in shares(_signed_outputs(net), effort)]
    ends = np.array([top.bound for top in tops])
    return Bounds(-ends[: net.outputs], ends[net.outputs :], all(top.proved for top in tops))


@overload
def distance(one: Curve, other: Curve) -> float: ...
@overload
def distance(
    one: Network,
    other: Network,
    box: Box,
    *,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Report | None = None,
) -> Optimum: ...
def distance(
    one: Network | Curve,
    other: Network | Curve,
    box: Box | None = None,
    *,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Report | None = None,
) -> Optimum | float:
    """Sup |f(x) - g(x)| over the box and all outputs, of two networks; or of two curves over their domain.

    >>> from plunit.pieces import activation, network
    >>> f = network([(np.eye(3), np.zeros(3)), activation.plu(), ([[1.0, 1.0, 1.0]], [0.0])])
    >>> g = network([([[1.0, 1.0, 1.0]], [0.0])])
    >>> round(float(distance(f, g, [(-3, 3)] * 3)), 6)
    5.4
    """
    if isinstance(one, Curve) and isinstance(other, Curve):
        if box is not None or constraints is not None:
            raise TypeError("curves have a domain of their own; give distance(one, other) alone")
        return line_curves.curve_distance(one, other)
    if not (isinstance(one, Network) and isinstance(other, Network)) or box is None:
        raise TypeError(
            f"distance takes two curves, or two networks and a box, got {type(one).__name__}, {type(other).__name__}"
            f"{' without a box' if box is None else ''}"
        )
    start, both = time.monotonic(), merge_units(difference(one, other))  # what is equal in both cancels exactly
    domain, effort = Domain.of(both, box, constraints), Effort.of(time_limit, progress).after(start)
    return largest_of([_largest(both, domain, goal, share) for goal, share in shares(_signed_outputs(both), effort)])


def _largest(net: Network, domain: Domain, goal: Floats, effort: Effort) -> Optimum:
    start = time.monotonic()
    found = search(LargestGoal(net, domain, goal), domain.box[None], effort, gap=GAP)
    return Optimum.of(found, float(net(found.x) @ goal), time.monotonic() - start)


def _one_output(net: Network, output: int) -> Floats:
    return np.asarray(np.eye(net.outputs)[check_index(output, net.outputs, "output", "outputs")])


def _signed_outputs(net: Network) -> list[Floats]:
    return [sign * row for sign in (-1.0, 1.0) for row in np.eye(net.outputs)]


def check_index(value: int, count: int, name: str, what: str) -> int:
    """Check the index of one of `count` inputs or outputs."""
    try:
        found = -1 if isinstance(value, (bool, np.bool_)) else index(value)
    except TypeError:
        found = -1
    if not 0 <= found < count:
        raise ValueError(f"{name} must be one of the {what} 0 to {count - 1}, got {value!r}")
    return found


def shares(goals: list[Floats], effort: Effort) -> Iterator[tuple[Floats, Effort]]:
    """Yield each goal with a fair share of the time that is left."""
    end = time.monotonic() + effort.seconds
    for done, goal in enumerate(goals):
        left = max(end - time.monotonic(), 0.0)
        yield goal, replace(effort, seconds=left / (len(goals) - done))


def largest_of(found: list[Optimum]) -> Optimum:
    """Return the largest of some maxima; its bound is above all of them."""
    best = max(found, key=lambda part: part.value)
    return replace(
        best,
        bound=max(part.bound for part in found),
        proved=all(part.proved or part.bound <= best.value for part in found),
        seconds=sum(part.seconds for part in found),
    )
