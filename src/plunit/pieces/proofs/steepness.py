"""How steep a network is on a domain: its Lipschitz constant, and whether it rises along one input."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.limits import Progress
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
from plunit.pieces.proofs.domain import Domain
from plunit.pieces.proofs.highs import Contradiction, Listener
from plunit.pieces.proofs.maximising import PROVED, Effort, Optimum, TimeOver, timed
from plunit.pieces.proofs.measures import Steepness, along, dual_norm
from plunit.pieces.proofs.regions import INSIDE, domain_ball, gradient_of, inner_point, pieces_at
from plunit.pieces.proofs.searching import starts
from plunit.pieces.proofs.slopes import exclude, gradient_form
from plunit.pieces.proofs.tightening import tighten

SAMPLES = 20_000
"""The number of gradients that are evaluated before the proof."""


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
    norm `value`, and no gradient has a norm above `bound`. If `proved`, the two are equal, else L is between them.
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
    """Return whether f(x) never falls (or never rises) as x[feature] grows in the box; `Undecided` if time is over.

    Slopes within 1e-6 of the largest possible slope count as 0.
    """
    domain = Domain.of(net, box, constraints)
    feature = checked_index(feature, net.inputs, "feature", "inputs")
    wrong = np.zeros(net.inputs)
    wrong[feature] = -1.0 if increasing else 1.0
    part = one_output(net, output)
    flat = PROVED * _scale(part, feature)
    effort = replace(effort_of(time_limit, progress), target=flat)
    found = steepest(part, domain, along(wrong), effort)
    if found.value > flat:
        return False
    if found.bound > flat:
        raise Undecided(found)
    return True


def _scale(net: Network, feature: int) -> float:
    """Return a bound of |df/dx_feature| from the sizes of weights and slopes."""
    bound = np.abs(net.weights[0][0, :, feature])
    for weight, f in zip(net.weights[1:], net.activations, strict=True):
        bound = np.abs(weight[0]) @ (np.abs(f.slopes[0]).max(axis=-1) * bound)
    return float(bound.max())


def steepest(net: Network, domain: Domain, what: Steepness, how: Effort) -> Optimum:
    """Return where a function of the gradient of the network's first output is largest."""
    start = time.monotonic()
    if not domain.free and (ball := domain_ball(domain)) is not None and ball[1] <= INSIDE:
        raise ValueError("the constraints leave a flat domain, where a gradient has no meaning; loosen one of them")
    if net.inputs <= 2 and domain.free:
        found = _by_pieces(net, domain, what, timed(how, start), start)
        if found is not None:
            return found
    return _by_program(net, domain, what, how, start)


def _by_pieces(net: Network, domain: Domain, what: Steepness, progress: Progress, start: float) -> Optimum | None:
    try:
        if net.inputs == 1:
            line = curve(net, *domain.box[0], progress=progress)
            gradients, middles = line.slopes[:, :1], (line.knots[1:, None] + line.knots[:-1, None]) / 2
        else:
            found = cells(net, (tuple(domain.box[0]), tuple(domain.box[1])), progress=progress)
            gradients = found.gradients[:, 0]
            middles = np.stack([polygon.mean(axis=0) for polygon in found.polygons])
    except (ValueError, TimeOver):
        return None
    values = what.measure(gradients)
    best = int(np.argmax(values))
    value = float(values[best])
    return Optimum(middles[best], value, value, True, time.monotonic() - start)


def _by_program(net: Network, domain: Domain, what: Steepness, how: Effort, start: float) -> Optimum:
    points = starts(domain, SAMPLES)
    gradients = np.broadcast_to(gradient_of(net, pieces_at(net, points)), points.shape)
    values = what.measure(gradients)
    best = int(np.argmax(values))
    x, value, bound, deadline = points[best], float(values[best]), np.inf, start + how.seconds
    seen, thin = [gradients[best]], _Thin([], -np.inf)
    while not (_closed(value, bound) or bound <= how.target < np.inf or value > how.target):
        tops, found = _solve(net, domain, what, _Told(how, value, start), seen, thin)
        if max(thin.largest, *tops) < value and not _closed(max(thin.largest, *tops), value):
            raise Contradiction(f"HiGHS finds no steepness above {max(tops)}, but the network has {value}")
        bound = min(bound, max(value, thin.largest, *tops))
        known = len(seen), len(thin.columns), value
        for t, pattern in found:
            gradient, here = gradient_of(net, pattern), inner_point(net, domain, pattern)
            steep = float(what.measure(gradient))
            if not any(np.array_equal(gradient, old) for old in seen):
                seen.append(gradient)
            if here is None:
                thin = _Thin([*thin.columns, t], thin.largest)
            elif not all(map(np.array_equal, pieces_at(net, here), pattern)):
                thin = _Thin([*thin.columns, t], max(thin.largest, steep))
            elif steep > value:
                x, value = here, steep
        if known == (len(seen), len(thin.columns), value) or time.monotonic() > deadline:
            break
    bound = max(bound, value)
    return Optimum(x, value, bound, _closed(value, bound), time.monotonic() - start)


@dataclass(frozen=True)
class _Thin:
    """Patterns that are excluded: their regions are empty, or so thin that no floating-point x is inside.

    Units with a common kink, and kinks on the edge of the box, have such patterns. `largest` is the largest measure
    of a gradient in thin regions. It counts for the bound and not for the value.
    """

    columns: list[Floats]
    largest: float


def _closed(value: float, bound: float) -> bool:
    return bound < np.inf and bound - value <= PROVED * max(abs(value), abs(bound))


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
) -> tuple[list[float], list[tuple[Floats, list[Ints]]]]:
    """Return the bounds from the goals of a measure, and the best columns of each with their patterns."""
    encoding = tighten(net, domain, -np.inf, told.deadline)
    gradient, bounds = gradient_form(net, encoding)
    for t in thin.columns:
        exclude(encoding, t)
    tops, found = [], []
    for goal in what.goals(encoding, gradient, bounds, seen):
        seconds, listener = told.deadline - time.monotonic(), told.listener(what.back)
        solution = encoding.program.maximise(goal, seconds=seconds, listener=listener)
        tops.append(what.back(min(solution.bound, float(goal.range()[1][0]))))
        if solution.t is not None:
            found.append((solution.t, encoding.pattern(solution.t)))
    return tops, found
