"""Questions about values: how large, how small, how far apart."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import index
from typing import overload

import numpy as np

from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.boxes import box_array, box_text
from plunit.pieces.c_programs import Program
from plunit.pieces.exact import line_curves
from plunit.pieces.exact.limits import Report
from plunit.pieces.exact.line_curves import Curve
from plunit.pieces.merging import merge_units
from plunit.pieces.networks import Network
from plunit.pieces.proofs.aims import LargestGoal
from plunit.pieces.proofs.bounding import ReducedNetwork
from plunit.pieces.proofs.branching import SECONDS, Effort, Extreme, search
from plunit.pieces.proofs.program_aims import Inputs, ProgramGoal
from plunit.pieces.proofs.properties import Box, Constraints, Domain, Impossible, constraint_rows, inequality_words
from plunit.pieces.rewriting import difference
from plunit.pieces.rounding import FLOOR

PROVED = 1e-6
"""A value is proved if no other can exceed it by more than this fraction of the largest |f| found."""

GAP = 1e-10
"""The search ends when value and bound agree to this fraction of the largest |f| found."""


@dataclass(frozen=True, eq=False)
class Optimum:
    """An extreme value and its proof.

    x: [in], where the value is reached, NaN if no input was found that meets the constraints; value: the output at x;
    bound: no value in the domain lies beyond it, rounding errors included; proved: whether value and bound agree to
    1e-6 of the largest output found, or to twice the proved rounding error of a program in floating point; seconds: the
    time it took; q: [in], the integers at x of a program in fixed point; program: the program in question, if any;
    claim: what the bound says about that program, in words.
    """

    x: Floats
    value: float
    bound: float
    proved: bool
    seconds: float
    q: Ints | None = None
    program: Program | None = None
    claim: str = ""

    @classmethod
    def of(cls, found: Extreme, value: float, seconds: float, error: float = 0.0) -> Optimum:
        """Return the result of a search, proved if value and bound are close enough."""
        near = PROVED * max(found.scale, abs(value)) + FLOOR + 2 * error
        proved = bool(np.isfinite(value) and found.bound - value <= near)
        return cls(found.x, value, float(max(found.bound, value)), proved, seconds)

    def __float__(self) -> float:
        return self.value


class Undecided(Exception):
    """Neither answer was proved: the time ran out, or a value is too close to 0. `best` has a point and a bound."""

    def __init__(self, best: Optimum, what: str = "largest value", beyond: str = "above") -> None:
        super().__init__(
            f"undecided after {best.seconds:.0f} s: the {what} found is {best.value:.9g}, and none is {beyond} "
            f"{best.bound:.9g}; raise time_limit or use a smaller box, unless both are 0 up to rounding"
        )
        self.best = best


@dataclass(frozen=True, eq=False)
class Bounds:
    """low <= f(x) <= high for all x in the domain, [out] each; proved: both are reached, to 1e-6 of the largest |f|."""

    low: Floats
    high: Floats
    proved: bool


def maximum(
    net: Network | Program,
    box: Box,
    *,
    output: int = 0,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Report | None = None,
) -> Optimum:
    """Return the maximum of f(x) over x in the box: where it is, its value, and a bound that no value exceeds.

    Args:
        net: a single network, or a program (`FixedNetwork` or `FloatNetwork`). The maximum of a program is that of its
            own outputs over all inputs it can receive; in fixed point it is exact if proved.
        box: a pair (low, high) for each input; low == high fixes an input.
        output: the index of the output.
        constraints: (A, b) for A x <= b, in addition to the box.
        time_limit: in seconds; None for no limit. When it is reached, the best point and the bound so far are returned,
            and `proved` is False.
        progress: a function that is called with the progress, such as print.

    >>> from plunit.pieces import activation, network
    >>> net = network([(np.eye(3), np.zeros(3)), activation.relu(), ([[1.0, -1.0, 0.5]], [0.0])])
    >>> found = maximum(net, [(-1, 2)] * 3)
    >>> found.value, round(found.bound, 6), found.proved
    (3.0, 3.0, True)
    """
    return _extreme(net, box, output, constraints, Effort.of(time_limit, progress), 1.0)


def minimum(
    net: Network | Program,
    box: Box,
    *,
    output: int = 0,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Report | None = None,
) -> Optimum:
    """Return the minimum of f(x) over x in the box, and a bound that no value is below; arguments as in `maximum`."""
    return _extreme(net, box, output, constraints, Effort.of(time_limit, progress), -1.0)


def _extreme(
    net: Network | Program, box: Box, output: int, constraints: Constraints, effort: Effort, sign: float
) -> Optimum:
    """Return the maximum of an output (sign 1) or its minimum (sign -1); for a program with the claim in words."""
    asked = _question(net, box, constraints)
    goal = sign * np.eye(net.outputs)[check_index(output, net.outputs, "output", "outputs")]
    best = _largest(net, asked, goal, effort)
    best = replace(best, value=sign * best.value, bound=sign * best.bound)
    if not isinstance(net, Program):
        return best
    where = box_text(box_array(net.net, box, fixed=True))
    rules = " and ".join(inequality_words(*constraint_rows(constraints, net.inputs), "x", "<="))
    claim = f"y[{output}] {'<=' if sign > 0 else '>='} {best.bound!r} for every x in {where}{rules and ' with '}{rules}"
    return replace(best, program=net, claim=claim if np.isfinite(best.bound) else "")


def bounds(
    net: Network | Program,
    box: Box,
    *,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Report | None = None,
) -> Bounds:
    """Return low <= f(x) <= high for every output, as tight as possible; `time_limit` is for all outputs together."""
    asked, effort = _question(net, box, constraints), Effort.of(time_limit, progress)
    tops = [_largest(net, asked, goal, share) for goal, share in shares(_signed_outputs(net), effort)]
    low, high = np.split(np.array([top.bound for top in tops]), 2)
    return Bounds(-low, high, all(top.proved for top in tops))


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
    """Return sup |f(x) - g(x)| of two networks over the box and all outputs, or of two curves over their domain.

    >>> from plunit.pieces import activation, network
    >>> f = network([(np.eye(3), np.zeros(3)), activation.plu(), ([[1.0, 1.0, 1.0]], [0.0])])
    >>> g = network([([[1.0, 1.0, 1.0]], [0.0])])
    >>> round(float(distance(f, g, [(-3, 3)] * 3)), 6)
    5.4
    """
    if isinstance(one, Curve) and isinstance(other, Curve):
        if box is not None or constraints is not None:
            raise TypeError("curves have their own domain; call distance(one, other) without a box or constraints")
        return line_curves.curve_distance(one, other)
    if not (isinstance(one, Network) and isinstance(other, Network)) or box is None:
        raise TypeError(
            f"distance takes two curves, or two networks and a box, got {type(one).__name__}, {type(other).__name__}"
            f"{' without a box' if box is None else ''}"
        )
    start, both = time.monotonic(), merge_units(difference(one, other))  # units that are equal in both cancel exactly
    asked, effort = _question(both, box, constraints), Effort.of(time_limit, progress).after(start)
    return largest_of([_largest(both, asked, goal, share) for goal, share in shares(_signed_outputs(both), effort)])


_Question = tuple[ReducedNetwork, Domain] | Inputs


def _question(net: Network | Program, box: Box, constraints: Constraints) -> _Question:
    """Return the part of a question that is the same for all outputs."""
    if isinstance(net, Program):
        return Inputs.of(net, box, constraints)
    domain = Domain.of(net, box, constraints)
    return ReducedNetwork.of(net, domain.box), domain


def _largest(net: Network | Program, asked: _Question, goal: Floats, effort: Effort) -> Optimum:
    if isinstance(asked, Inputs):
        return _largest_of_program(asked, goal, effort)
    assert isinstance(net, Network)
    start, domain = time.monotonic(), asked[1]
    found = search(LargestGoal(*asked, goal), domain.box[None], effort, gap=GAP)
    return Optimum.of(found, float(net(found.x) @ goal), time.monotonic() - start)


def _largest_of_program(inputs: Inputs, goal: Floats, effort: Effort) -> Optimum:
    start, aim, program = time.monotonic(), ProgramGoal.of(inputs, goal), inputs.program
    exact = program.step is not None
    found = search(aim, inputs.sides, effort, gap=0.0 if exact else GAP)
    if found.value == -np.inf:
        if found.ended and (exact or found.bound == -np.inf):
            raise Impossible("no input of the program in the box meets the constraints; use a larger box")
        nowhere = np.full(program.inputs, np.nan)
        return Optimum(nowhere, -np.inf, float(found.bound), proved=False, seconds=time.monotonic() - start)
    place = inputs.nearest(found.x[None], np.zeros(1, dtype=np.int64))
    value = float(program.run(place)[0] @ goal)
    if exact and found.ended:
        found = replace(found, bound=value)
    best = Optimum.of(found, value, time.monotonic() - start, 0.0 if exact else float(np.abs(goal) @ inputs.error))
    return replace(best, x=inputs.x(place, 0)[0], q=program.integers_at(place[0]))


def _signed_outputs(net: Network | Program) -> list[Floats]:
    return [sign * row for sign in (-1.0, 1.0) for row in np.eye(net.outputs)]


def check_index(value: int, count: int, name: str, what: str) -> int:
    """Return the index of one of `count` inputs or outputs as an int; ValueError if it is out of range."""
    try:
        found = -1 if isinstance(value, (bool, np.bool_)) else index(value)
    except TypeError:
        found = -1
    if not 0 <= found < count:
        raise ValueError(f"{name} must be one of the {what} 0 to {count - 1}, got {value!r}")
    return found


def shares(goals: list[Floats], effort: Effort) -> Iterator[tuple[Floats, Effort]]:
    """Yield each goal with a fair share of the remaining time."""
    end = time.monotonic() + effort.seconds
    for done, goal in enumerate(goals):
        left = max(end - time.monotonic(), 0.0)
        yield goal, replace(effort, seconds=left / (len(goals) - done))


def largest_of(found: list[Optimum]) -> Optimum:
    """Return the largest of several maxima, with a bound for all of them."""
    best = max(found, key=lambda part: part.value)
    return replace(
        best,
        bound=max(part.bound for part in found),
        proved=all(part.proved or part.bound <= best.value for part in found),
        seconds=sum(part.seconds for part in found),
    )
