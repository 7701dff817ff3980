"""Questions about values and rules: how large, how small, how far apart, and whether a property holds."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import overload

import numpy as np

from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.boxes import box_array, box_text, check_size
from plunit.pieces.exact import line_curves
from plunit.pieces.exact.limits import Report
from plunit.pieces.exact.line_curves import Curve
from plunit.pieces.merging import merge_units
from plunit.pieces.networks import Network, check_network
from plunit.pieces.programs import Program
from plunit.pieces.proofs.aims import Inputs, LargestGoal, Margin, ProgramGoal, ProgramMargin
from plunit.pieces.proofs.bounding import ReducedNetwork
from plunit.pieces.proofs.branching import SECONDS, Effort, Extreme, search
from plunit.pieces.proofs.properties import Box, Case, Constraints, Domain, Impossible, Property
from plunit.pieces.rewriting import difference
from plunit.pieces.rounding import FLOOR

PROVED = 1e-6
"""A value is proved if no other can be larger by more than this fraction of the largest |f| that was seen."""

GAP = 1e-10
"""The search ends when the two agree to this fraction of the largest |f| that was seen."""

TOGETHER = 20_000
"""The maximum number of cases of one search."""


@dataclass(frozen=True, eq=False)
class Optimum:
    """An extreme value and its proof.

    x: [in], where it is reached, NaN if no input that meets the constraints was found; value: the output at x; bound:
    no value in the domain is beyond it, whatever the rounding errors; proved: value and bound agree to 1e-6 of the
    largest output that was seen, or to twice the proved rounding error of a program in floating point; seconds: how
    long it took; q: [in], the integers at x of a program in fixed point; program: the one that was asked about, if one
    was; claim: what the bound says about it, in words.
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
        """Compare the value with its bound."""
        near = PROVED * max(found.scale, abs(value)) + FLOOR + 2 * error
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


def maximum(
    net: Network | Program,
    box: Box,
    *,
    output: int = 0,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Report | None = None,
) -> Optimum:
    """Max f(x) over x in the box: where it is, and a bound that no value exceeds.

    Args:
        net: a single network; or a program, a `FixedNetwork` or a `FloatNetwork`, whose own outputs count then, at the
            inputs that it can get. The answer is exact for fixed point.
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
    asked, goal = _question(net, box, constraints), _one_output(net, output)
    best = _largest(net, asked, goal, Effort.of(time_limit, progress))
    return _with_claim(best, net, box, constraints, f"y[{output}] <= {best.bound!r}")


def minimum(
    net: Network | Program,
    box: Box,
    *,
    output: int = 0,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Report | None = None,
) -> Optimum:
    """Min f(x) over x in the box: where it is, and a bound that no value is below; arguments as `maximum`."""
    asked, goal = _question(net, box, constraints), _one_output(net, output)
    best = _largest(net, asked, -goal, Effort.of(time_limit, progress))
    best = replace(best, value=-best.value, bound=-best.bound)
    return _with_claim(best, net, box, constraints, f"y[{output}] >= {best.bound!r}")


def _with_claim(best: Optimum, net: Network | Program, box: Box, constraints: Constraints, claim: str) -> Optimum:
    if not isinstance(net, Program):
        return best
    where = box_text(box_array(net.net, box, fixed=True))
    meets = "" if constraints is None else " that meets the constraints of the question"
    return replace(best, program=net, claim=f"{claim} for every x in {where}{meets}")


def bounds(
    net: Network | Program,
    box: Box,
    *,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Report | None = None,
) -> Bounds:
    """Low <= f(x) <= high for every output, each as narrow as can be; `time_limit` is for all of them together."""
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
    """Sup |f(x) - g(x)| over the box and all outputs, of two networks; or of two curves over their domain.

    >>> from plunit.pieces import activation, network
    >>> f = network([(np.eye(3), np.zeros(3)), activation.plu(), ([[1.0, 1.0, 1.0]], [0.0])])
    >>> g = network([([[1.0, 1.0, 1.0]], [0.0])])
    >>> round(float(distance(f, g, [(-3, 3)] * 3)), 6)
    5.4
    """
    if isinstance(one, Curve) and isinstance(other, Curve):
        if box is not None or constraints is not None:
            raise TypeError("curves have their own domain; give only distance(one, other)")
        return line_curves.curve_distance(one, other)
    if not (isinstance(one, Network) and isinstance(other, Network)) or box is None:
        raise TypeError(
            f"distance takes two curves, or two networks and a box, got {type(one).__name__}, {type(other).__name__}"
            f"{' without a box' if box is None else ''}"
        )
    start, both = time.monotonic(), merge_units(difference(one, other))  # what is equal in both cancels exactly
    asked, effort = _question(both, box, constraints), Effort.of(time_limit, progress).after(start)
    return largest_of([_largest(both, asked, goal, share) for goal, share in shares(_signed_outputs(both), effort)])


_Question = tuple[ReducedNetwork, Domain] | Inputs


def _question(net: Network | Program, box: Box, constraints: Constraints) -> _Question:
    """Return what is the same for all outputs."""
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


def _one_output(net: Network | Program, output: int) -> Floats:
    return np.asarray(np.eye(net.outputs)[check_index(output, net.outputs, "output", "outputs")])


def _signed_outputs(net: Network | Program) -> list[Floats]:
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


@dataclass(frozen=True, eq=False)
class Verdict:
    """The answer of `holds`.

    status: "proved", "refuted" or "undecided"; x, y: [in] and [out], a counterexample and the output there, in exact
    arithmetic or of the program that was asked about, None unless refuted; seconds: how long it took; reason: why it is
    undecided; q: [in], the integers at x of a program in fixed point; program: the one that was asked about, if one
    was; claim: the property in words, if it is proved of the program.
    """

    status: str
    x: Floats | None
    y: Floats | None
    seconds: float
    reason: str = ""
    q: Ints | None = None
    program: Program | None = None
    claim: str = ""


def holds(
    net: Network | Program, property: Property, *, time_limit: float | None = SECONDS, progress: Report | None = None
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
    if not isinstance(net, Program):
        check_network(net)
    if not isinstance(property, Property):
        raise TypeError(f"holds takes a Property, got {type(property).__name__}; Property.always(box, rows, limits)")
    property.check_fits(net)
    if isinstance(net, Network):
        check_size(net, np.abs([case.box for case in property.cases]).max(axis=(0, 2)))
    effort, start = Effort.of(time_limit, progress), time.monotonic()
    reasons = []
    for aim in [_margin(net, cases) for cases in _groups(property)]:
        left = effort.after(start)
        if not left.seconds:
            reasons.append(f"time limit reached after {time.monotonic() - start:.1f} s")
            break
        verdict = _decide(aim, left)
        if verdict.status == "refuted":
            return replace(verdict, seconds=time.monotonic() - start)
        if verdict.status == "undecided":
            reasons.append(verdict.reason)
    seconds = time.monotonic() - start
    if reasons:
        return Verdict("undecided", None, None, seconds, reasons[0])
    program = net if isinstance(net, Program) else None
    claim = "" if program is None else property.claim
    return Verdict("proved", None, None, seconds, program=program, claim=claim)


def claims(answers: Sequence[Verdict | Optimum], program: Program) -> list[str]:
    """Return what was proved about a program, in words; ValueError if an answer is not a proof about this program."""
    for one in answers:
        if one.program is None or one.program.identity != program.identity or not one.claim:
            raise ValueError(
                f"only what was proved about this program can be stated, got {str(one)[:100]}; ask holds or maximum "
                "about the FixedNetwork that is saved, or about FloatNetwork(net, dtype)"
            )
    return [line for one in answers for line in one.claim.splitlines()]


def _margin(net: Network | Program, cases: list[Case]) -> Margin:
    return ProgramMargin.of(Inputs(net, cases)) if isinstance(net, Program) else Margin(net, cases)


def _groups(property: Property) -> list[list[Case]]:
    """Return cases that differ in only their boxes and limits, and have no constraints, together."""
    groups: dict[object, list[Case]] = {}
    for i, case in enumerate(property.cases):
        key = tuple((one.rows.tobytes(), one.strict) for one in case.conditions)
        groups.setdefault((key, i if len(case.limits) else None), []).append(case)
    return [cases[i : i + TOGETHER] for cases in groups.values() for i in range(0, len(cases), TOGETHER)]


def _decide(aim: Margin, effort: Effort) -> Verdict:
    """Return the verdict on the cases of an aim; its seconds are not set."""
    if (np.diff(aim.query.first) == 0).any():  # a condition without rows is met everywhere
        return _any_point(aim)
    least = 0.0 if aim.open else float(np.nextafter(0.0, -1.0))  # a margin of 0 is inside of a closed case
    try:
        found = search(aim, aim.boxes, effort, least=least, accept=aim.witness)
    except Impossible:  # no x meets the constraints
        return Verdict("proved", None, None, 0.0)
    if found.found:
        return _refutation(aim, found.x, found.case)
    if found.ended and found.bound <= least:
        return Verdict("proved", None, None, 0.0)
    known = f"the largest margin found is {found.value:.3g}, and none is above {found.bound:.3g}"
    closed = "; open bounds of inputs count as closed here" if any(case.exact for case in aim.cases) else ""
    why = "a value is too close to its limit" if found.ended else "time limit reached"
    return Verdict("undecided", None, None, 0.0, f"{why}: {known}{closed}")


def _any_point(aim: Margin) -> Verdict:
    """Return the verdict where every x in a case is a counterexample."""
    reason = ""
    for number, case in enumerate(aim.cases):
        try:
            x = case.points(1)[0]
        except Impossible:
            continue
        if case.contains(x):
            return _refutation(aim, x, number)
        reason = "no x was found that meets the constraints exactly"
    return Verdict("undecided" if reason else "proved", None, None, 0.0, reason)


def _refutation(aim: Margin, x: Floats, case: int) -> Verdict:
    if isinstance(aim, ProgramMargin):
        program = aim.inputs.program
        at = aim.inputs.x(x[None], case)[0]
        return Verdict("refuted", at, program.run(x[None])[0], 0.0, "", program.integers_at(x))
    return Verdict("refuted", x, aim.net(x), 0.0)
