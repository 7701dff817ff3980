"""max f(x) over a domain: a good point, a program for everything better, and a check of the answer in the network.

Here is also what every question shares: its time limit, the answer with its bound, and the largest of several answers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import Any

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.exact.polygon_set import polygons
from plunit.pieces.exact_curves import curve
from plunit.pieces.limits import Progress, Unlisted
from plunit.pieces.networks import Network
from plunit.pieces.proofs.covering import Cover, curve_cover, polygon_cover, upper_bound
from plunit.pieces.proofs.domain import LARGEST, Domain
from plunit.pieces.proofs.encoding import Encoding
from plunit.pieces.proofs.highs import FEASIBLE, Contradiction, Listener, Solution
from plunit.pieces.proofs.regions import best_corner, climb, search
from plunit.pieces.proofs.tightening import encode_domain, tighten
from plunit.pieces.rewriting import combination

Box = Sequence[Any]
"""A pair (low, high) for each input."""

Constraints = tuple[Any, Any] | None
"""(A, b) for A x <= b."""

SECONDS = 60.0
"""The default time limit."""

PROVED = 1e-6
"""A value is proved if no other can be larger by more than this part of the largest |f| that was seen."""


@dataclass(frozen=True, eq=False)
class Optimum:
    """An extreme value and its proof.

    x: [in], where it is reached; value: the network's output at x; bound: no value in the domain is beyond it (for
    three or more inputs, or constraints, by the solver); proved: value and bound agree to 1e-6 of the largest output
    that was seen; seconds: how long it took.
    """

    x: Floats
    value: float
    bound: float
    proved: bool
    seconds: float

    def __float__(self) -> float:
        return self.value


class Undecided(Exception):
    """Neither answer was proved: time is over, or a value is too close to 0. `best` has the best point and a bound."""

    def __init__(self, best: Optimum) -> None:
        super().__init__(
            f"undecided after {best.seconds:.0f} s: the largest value found is {best.value:.9g}, and none is above "
            f"{best.bound:.9g}; raise time_limit or take a smaller box, unless both are 0 to rounding"
        )
        self.best = best


@dataclass(frozen=True)
class Effort:
    """The time limit in seconds, the target at which the search stops, and a function that is called with progress."""

    seconds: float = np.inf
    target: float = np.inf
    progress: Progress | None = None


def effort_of(time_limit: float | None, progress: Progress | None) -> Effort:
    """Check a time limit; None stands for no limit."""
    if time_limit is None:
        return Effort(progress=progress)
    number = isinstance(time_limit, (int, float, np.number)) and not isinstance(time_limit, bool)
    if not number or not time_limit > 0:
        raise ValueError(f"time_limit must be a positive number of seconds, or None for no limit, got {time_limit!r}")
    return Effort(float(time_limit), progress=progress)


class TimeOver(Exception):
    """The time limit was reached while pieces were computed."""


def timed(how: Effort, start: float) -> Progress:
    """Return a listener that reports progress to the caller, and raises `TimeOver` when time is over."""

    def listen(part: float, text: str) -> None:
        if time.monotonic() > start + how.seconds:
            raise TimeOver
        if how.progress is not None:
            how.progress(part, text)

    return listen


def checked_index(value: int, count: int, name: str, what: str) -> int:
    """Check the index of one of `count` inputs or outputs."""
    try:
        found = -1 if isinstance(value, (bool, np.bool_)) else index(value)
    except TypeError:
        found = -1
    if not 0 <= found < count:
        raise ValueError(f"{name} must be one of the {what} 0 to {count - 1}, got {value!r}")
    return found


def one_output(net: Network, output: int, sign: float = 1.0) -> Network:
    """Return x -> sign f_output(x)."""
    return combination(net, sign * np.eye(net.outputs)[[checked_index(output, net.outputs, "output", "outputs")]])


def shares(parts: list[Network], effort: Effort) -> Iterator[tuple[Network, Effort]]:
    """Yield each part with a fair share of the time that is left."""
    end = time.monotonic() + effort.seconds
    for done, part in enumerate(parts):
        left = max(end - time.monotonic(), 0.01)
        yield part, replace(effort, seconds=left / (len(parts) - done))


def largest_of(found: list[Optimum]) -> Optimum:
    """Return the largest of some maxima; its bound is above all of them."""
    best = max(found, key=lambda part: part.value)
    bound = max(part.bound for part in found)
    return replace(
        best,
        bound=bound,
        proved=all(part.proved or part.bound <= best.value for part in found),
        seconds=sum(part.seconds for part in found),
    )


def maximise(net: Network, domain: Domain, how: Effort) -> Optimum:
    """Return the largest value of the network's first output."""
    return maximise_each(domain, [net], how)[0]


def maximise_each(domain: Domain, parts: list[Network], effort: Effort) -> list[Optimum]:
    """Return the largest value of each network's first output; they share the time, and all layers but the last.

    So they have the same pieces, which are listed once.
    """
    found: list[Optimum] = []
    listed: tuple[Floats, Cover] | None = None
    for part, how in shares(parts, effort):
        start = time.monotonic()
        try:
            listed = listed or _listed(part, domain, timed(how, start))
            found.append(_by_pieces(part, *listed, timed(how, start), start))
        except (Unlisted, TimeOver):
            found.append(_by_program(part, domain, how, start))
    return found


def _listed(net: Network, domain: Domain, progress: Progress) -> tuple[Floats, Cover]:
    """Return the knots of a curve or the corners of polygons, and the pieces as polygons."""
    if net.inputs > 2 or not domain.free:
        raise Unlisted(f"pieces are listed for one or two inputs in a box, not for {net.inputs} or with constraints")
    if net.inputs == 1:
        line = curve(net, *domain.box[0], progress=progress)
        return line.knots[:, None], curve_cover(line)
    found = polygons(net, (tuple(domain.box[0]), tuple(domain.box[1])), progress=progress)
    return found.vertices, polygon_cover(found)


def _by_pieces(net: Network, places: Floats, cover: Cover, progress: Progress, start: float) -> Optimum:
    """Return the best of these places."""
    bound, values = upper_bound(net, cover, progress), net(places)[:, 0]
    return _optimum(net, places[np.argmax(values)], bound, float(np.abs(values).max()), start)


def _by_program(net: Network, domain: Domain, how: Effort, start: float) -> Optimum:
    whole, deadline = encode_domain(net, domain), start + how.seconds
    upper, size = float(whole.output.range()[1][0]), _size(whole)
    x, seen = search(net, domain, deadline)
    value = float(net(x)[0])
    if value > how.target or time.monotonic() > deadline:
        return _optimum(net, x, upper, seen, start)
    listener = _listener(how, start, value, size)
    try:
        # only values above that of the known point need a proof
        encoding = tighten(net, domain, whole, value - 1e-7 * size, deadline)
        solution = _solve(encoding, deadline, how.target, listener)
        _check(solution, value, size)
    except Contradiction:
        # HiGHS has given wrong answers (its issue 3094): ask once more, without ranges from linear programs
        encoding = encode_domain(net, domain)
        solution = _solve(encoding, deadline, how.target, listener)
        _check(solution, value, size)
    better = _read(net, domain, encoding, solution, deadline)
    if better is not None and net(better)[0] > value:
        x = better
    # the solver's own tolerance, or its error if that shows
    slack = max(FEASIBLE * size, float(net(x)[0]) - solution.bound)
    return _optimum(net, x, min(solution.bound + slack, upper), seen, start)


def _solve(encoding: Encoding, deadline: float, target: float, listener: Listener | None) -> Solution:
    seconds = deadline - time.monotonic()
    return encoding.program.maximise(encoding.output[:1], seconds=seconds, target=target, listener=listener)


def _check(solution: Solution, value: float, size: float) -> None:
    """Raise `Contradiction` if the solver's bound is below a value that the network has."""
    if solution.bound < value - PROVED * size:
        raise Contradiction(f"HiGHS finds no value above {solution.bound}, but the network has the value {value}")


def _read(net: Network, domain: Domain, encoding: Encoding, solution: Solution, deadline: float) -> Floats | None:
    """Return the solution's x, moved to the very corner of its region."""
    if solution.t is None:
        return None
    corner = best_corner(net, domain, encoding.pattern(solution.t), deadline)
    x = domain.clip((encoding.x.matrix @ solution.t[: encoding.x.matrix.shape[1]]) + encoding.x.constant)
    points = np.stack([point for point in (x, corner) if point is not None])
    points = points[domain.holds(points)]
    if not len(points):
        return None
    return climb(net, domain, points[np.argmax(net(points)[:, 0])], deadline)


def _optimum(net: Network, x: Floats, bound: float, seen: float, start: float) -> Optimum:
    """Return the answer; `seen` is the largest |f| that was computed."""
    value = float(net(x)[0])
    bound = max(bound, value)
    return Optimum(x, value, bound, bound - value <= PROVED * max(seen, abs(value)), time.monotonic() - start)


def negated(found: Optimum) -> Optimum:
    """Return the minimum of f from the maximum of -f."""
    return replace(found, value=-found.value, bound=-found.bound)


def _size(found: Encoding) -> float:
    """Return the largest |f| by interval arithmetic; raise ValueError if values are too large for the solver."""
    largest = max(float(np.abs(part).max()) for bounds in (*found.ranges, found.output.range()) for part in bounds)
    if largest > LARGEST:
        raise ValueError(
            f"values reach {largest:.1e} inside the network on this box, more than {LARGEST:.0e}, beyond which HiGHS "
            "cannot be trusted; scale the weights or take a smaller box"
        )
    return max(float(np.abs(found.output.range()).max()), 1e-300)


def _listener(how: Effort, start: float, value: float, size: float) -> Listener | None:
    if how.progress is None:
        return None
    tell = how.progress

    def listen(best: float, bound: float) -> None:
        gap = max(bound - max(best, value), 0.0)
        spent = time.monotonic() - start
        closed = 1 - min(gap / size, 1.0) if np.isfinite(gap) else 0.0
        tell(max(closed, min(spent / how.seconds, 1.0)), f"gap {gap:.3g} after {spent:.0f} s")

    return listen
