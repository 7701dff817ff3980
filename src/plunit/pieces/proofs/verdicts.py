"""Whether a property holds, of a network or of a program: `holds`, and its answer, a `Verdict`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.boxes import check_size
from plunit.pieces.c_programs import Program
from plunit.pieces.exact.limits import Report
from plunit.pieces.networks import Network, check_network
from plunit.pieces.proofs.aims import Margin
from plunit.pieces.proofs.branching import SECONDS, Effort, search
from plunit.pieces.proofs.program_aims import Inputs, ProgramMargin
from plunit.pieces.proofs.properties import Case, Impossible, Property
from plunit.pieces.proofs.questions import Optimum

TOGETHER = 20_000
"""The maximum number of cases of one search."""


@dataclass(frozen=True, eq=False)
class Verdict:
    """The answer of `holds`.

    status: "proved", "refuted" or "undecided"; x, y: [in] and [out], a counterexample and the output there, as the
    network computes it in double precision or the program does, None unless refuted; seconds: the time it took; reason:
    why it is undecided; q: [in], the integers at x of a program in fixed point; program: the program in question, if
    any; claim: the property in words, if it is proved for that program.
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
    """Return whether a property holds for every x: proved, refuted by a counterexample, or undecided.

    For a network, "proved" and "refuted" are certain in exact arithmetic with its float64 weights: bounds are rounded
    outward, and a counterexample is evaluated in exact arithmetic wherever rounding could change the verdict. `load`
    says which weights are those of the file, and which are rounded. For a program, they are certain for the program
    itself, which is run on the counterexample. "undecided" means that the time limit was reached, or that a value
    cannot be told apart from its limit.

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
        raise TypeError(
            f"holds needs a Property, got {type(property).__name__}; make one with Property.always(box, rows, limits)"
        )
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
    answers = answers if isinstance(answers, Sequence) else [answers]
    for one in answers:
        known = one.program if isinstance(one, Verdict | Optimum) and one.claim else None
        if known is None or known.identity != program.identity:
            raise ValueError(
                f"only what was proved about this program can be stated, got {str(one)[:100]}; ask holds or maximum "
                "about the FixedNetwork that is saved, or about FloatNetwork(net, dtype)"
            )
    return [line for one in answers for line in one.claim.splitlines()]


def _margin(net: Network | Program, cases: list[Case]) -> Margin:
    return ProgramMargin.of(Inputs(net, cases)) if isinstance(net, Program) else Margin(net, cases)


def _groups(property: Property) -> list[list[Case]]:
    """Group the cases: those without constraints that differ only in their boxes and limits go together."""
    groups: dict[object, list[Case]] = {}
    for i, case in enumerate(property.cases):
        key = tuple((one.rows.tobytes(), one.strict) for one in case.conditions)
        groups.setdefault((key, i if len(case.limits) else None), []).append(case)
    return [cases[i : i + TOGETHER] for cases in groups.values() for i in range(0, len(cases), TOGETHER)]


def _decide(aim: Margin, effort: Effort) -> Verdict:
    """Return the verdict on the cases of an aim; its seconds are not set."""
    if (np.diff(aim.query.first) == 0).any():  # a condition without rows is met everywhere
        return _any_point(aim)
    least = 0.0 if aim.open else float(np.nextafter(0.0, -1.0))  # a margin of 0 is inside a closed case
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
    """Return the verdict if every x in a case is a counterexample."""
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
