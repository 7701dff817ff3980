"""How steep a network is on a domain: its Lipschitz constant, and whether it rises along one input."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from plunit.pieces.arrays import Floats, Ints, blocks
from plunit.pieces.limits import Progress, Unlisted
from plunit.pieces.line import curve
from plunit.pieces.networks import Network
from plunit.pieces.polygons import cells
from plunit.pieces.proofs.asking import (
    SECONDS,
    Box,
    Constraints,
    Undecided,
    checked_index,
    effort_of,
    largest_of,
    one_output,
    shares,
)
from plunit.pieces.proofs.covering import polygon_cover
from plunit.pieces.proofs.domain import Domain
from plunit.pieces.proofs.highs import FEASIBLE, Contradiction, Listener
from plunit.pieces.proofs.maximising import PROVED, Effort, Optimum, TimeOver, timed
from plunit.pieces.proofs.measures import Steepness, along, dual_norm
from plunit.pieces.proofs.regions import INSIDE, domain_ball, gradient_error, gradient_of, inner_point, pieces_at
from plunit.pieces.proofs.searching import STARTS, starts
from plunit.pieces.proofs.slopes import exclude, gradient_form
from plunit.pieces.proofs.tightening import encode_domain, tighten

SAMPLES = 20_000
"""The number of gradients that are evaluated before the proof."""

BLOCK = 1000
"""Gradients at a time, between two looks at the clock."""


def lipschitz(
    net: Network,
    box: Box,
    *,
    norm: float = 2,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Progress | None = None,
) -> Optimum:
    """The smallest L with |f_i(x) - f_i(y)| <= L ||x - y|| on the box, for every output i.

    `norm` is the order of ||x - y||: 1, 2 or inf. L is the largest dual norm of a gradient. The gradient at x has the
    norm `value`, and no gradient has a norm above `bound`. If `proved`, the two are equal to 1e-6 of their size, or are
    0 to the tolerance of the solver; else L is between them.
    """
    if isinstance(norm, bool) or not isinstance(norm, (int, float)) or norm not in (1, 2, np.inf):
        raise ValueError(f"norm must be 1, 2 or inf, got {norm!r}")
    domain = Domain.of(net, box, constraints)
    effort = effort_of(time_limit, progress)
    parts = [one_output(net, i) for i in range(net.outputs)]
    what = dual_norm(float(norm))
    return largest_of([steepest(part, domain, what, share) for part, share in shares(parts, effort)])


def is_monotone(
    net: Network,
    feature: int,
    box: Box,
    *,
    increasing: bool = True,
    output: int = 0,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Progress | None = None,
) -> bool:
    """Return whether f(x) never falls (or never rises) as x[feature] grows in the box.

    False: there is a slope of the wrong sign, beyond its rounding error. True: no slope of the wrong sign is larger
    than 1e-6 of the steepest one that was found along this input. `Undecided` is raised if time is over before either,
    or if the slopes cannot be told apart from 0.
    """
    domain = Domain.of(net, box, constraints)
    feature = checked_index(feature, net.inputs, "feature", "inputs")
    wrong = np.zeros(net.inputs)
    wrong[feature] = -1.0 if increasing else 1.0
    part = one_output(net, output)
    points = starts(domain, STARTS)
    slopes = np.broadcast_to(gradient_of(part, pieces_at(part, points)), points.shape)[:, feature]
    flat = PROVED * float(np.abs(slopes).max())
    found = steepest(part, domain, along(wrong), replace(effort_of(time_limit, progress), target=flat))
    if found.value > gradient_error(part, pieces_at(part, found.x))[feature]:
        return False
    if found.bound > flat:
        raise Undecided(found)
    return True


def steepest(net: Network, domain: Domain, what: Steepness, how: Effort) -> Optimum:
    """Return where a function of the gradient of the network's first output is largest."""
    start = time.monotonic()
    if not domain.free and (ball := domain_ball(domain)) is not None and ball[1] <= INSIDE:
        raise ValueError("the constraints leave a flat domain, where a gradient has no meaning; loosen one of them")
    if net.inputs <= 2 and domain.free:
        try:
            return _by_pieces(net, domain, what, timed(how, start), start)
        except (Unlisted, TimeOver):
            pass
    return _by_program(net, domain, what, how, start)


def _by_pieces(net: Network, domain: Domain, what: Steepness, progress: Progress, start: float) -> Optimum:
    if net.inputs == 1:
        line = curve(net, *domain.box[0], progress=progress)
        gradients, errors = line.slopes[:, :1], line.tolerance[:, :1]
        middles = (line.knots[1:, None] + line.knots[:-1, None]) / 2
    else:
        found = cells(net, (tuple(domain.box[0]), tuple(domain.box[1])), progress=progress)
        gradients, errors = found.gradients[:, 0], found.tolerances[:, 0]
        middles = polygon_cover(found).middles
    values = what.measure(gradients)
    best = int(np.argmax(values))
    bound = float((values + what.change(errors)).max())
    return _optimum(middles[best], float(values[best]), bound, start)


def _by_program(net: Network, domain: Domain, what: Steepness, how: Effort, start: float) -> Optimum:
    deadline = start + how.seconds
    x, gradient = _steep_sample(net, domain, what, deadline)
    value, bound = float(what.measure(gradient)), np.inf
    seen, thin = [gradient], _Thin([], -np.inf)
    while not (_closed(value, bound, _blur(what, seen)) or bound <= how.target < np.inf or value > how.target):
        tops, found = _solve(net, domain, what, _Told(how, value, start), seen, thin)
        if max(thin.largest, *tops) < value and not _closed(max(thin.largest, *tops), value):
            raise Contradiction(f"HiGHS finds no steepness above {max(tops)}, but the network has {value}")
        bound = min(bound, max(value, thin.largest, *tops))
        known = len(seen), len(thin.patterns), value
        for pattern in found:
            gradient, here = gradient_of(net, pattern), inner_point(net, domain, pattern, deadline)
            steep = float(what.measure(gradient))
            if not any(np.array_equal(gradient, old) for old in seen):
                seen.append(gradient)
            if here is None:
                thin = _Thin([*thin.patterns, pattern], thin.largest)
            elif not all(map(np.array_equal, pieces_at(net, here), pattern)):
                thin = _Thin([*thin.patterns, pattern], max(thin.largest, steep))
            elif steep > value:
                x, value = here, steep
        if known == (len(seen), len(thin.patterns), value) or time.monotonic() > deadline:
            break
    return _optimum(x, value, bound, start, _blur(what, seen))


def _blur(what: Steepness, seen: list[Floats]) -> float:
    """Return the measure that the solver cannot tell apart from 0, from the steepest gradient of a pattern it met."""
    return what.back(FEASIBLE * float(np.abs(what.measure(np.stack(seen))).max()) ** what.power)


def _steep_sample(net: Network, domain: Domain, what: Steepness, deadline: float) -> tuple[Floats, Floats]:
    """Return the steepest of many points and the gradient there."""
    points, found = starts(domain, SAMPLES), []
    for block in blocks(len(points), BLOCK):
        some = points[block]
        gradients = np.broadcast_to(gradient_of(net, pieces_at(net, some)), some.shape)
        best = int(np.argmax(what.measure(gradients)))
        found.append((some[best], gradients[best]))
        if time.monotonic() > deadline:
            break
    return max(found, key=lambda pair: float(what.measure(pair[1])))


def _optimum(x: Floats, value: float, bound: float, start: float, blur: float = 0.0) -> Optimum:
    bound = max(bound, value)
    return Optimum(x, value, bound, _closed(value, bound, blur), time.monotonic() - start)


@dataclass(frozen=True)
class _Thin:
    """Patterns that are excluded: their regions are empty, or so thin that no floating-point x is inside.

    Units with a common kink, and kinks on the edge of the box, have such patterns. `largest` is the largest measure
    of a gradient in thin regions. It counts for the bound and not for the value.
    """

    patterns: list[list[Ints]]
    largest: float


def _closed(value: float, bound: float, blur: float = 0.0) -> bool:
    """Whether the two agree to 1e-6 of their size, or cannot be told apart from 0."""
    return bound < np.inf and (bound - value <= PROVED * max(abs(value), abs(bound)) or -blur <= value <= bound <= blur)


@dataclass(frozen=True)
class _Told:
    """The effort, the best value so far and the time of the start: what the progress display needs."""

    how: Effort
    value: float
    start: float

    @property
    def deadline(self) -> float:
        return self.start + self.how.seconds

    def listener(self, back: Callable[[float], float]) -> Listener | None:
        """Return a listener for goals whose value, through `back`, is the measure."""
        tell = self.how.progress
        if tell is None:
            return None

        def listen(best: float, bound: float) -> None:
            spent = time.monotonic() - self.start
            text = f"steepness between {self.value:.4g} and {back(bound):.4g} after {spent:.0f} s"
            tell(min(spent / self.how.seconds, 1.0), text)

        return listen


def _solve(
    net: Network, domain: Domain, what: Steepness, told: _Told, seen: list[Floats], thin: _Thin
) -> tuple[list[float], list[list[Ints]]]:
    """Return the bounds from the goals of a measure, and the pattern where each is largest."""
    encoding = tighten(net, domain, encode_domain(net, domain), -np.inf, told.deadline)
    gradient, bounds = gradient_form(net, encoding)
    for pattern in thin.patterns:
        exclude(encoding, pattern)
    tops, found = [], []
    for goal in what.goals(encoding, gradient, bounds, seen):
        seconds, listener = told.deadline - time.monotonic(), told.listener(what.back)
        solution = encoding.program.maximise(goal, seconds=seconds, listener=listener)
        tops.append(what.back(min(solution.bound, float(goal.range()[1][0]))))
        if solution.t is not None:
            found.append(encoding.pattern(solution.t))
    return tops, found
