"""The steepest slope of a network, proved: `lipschitz` and `is_monotone`.

A measure of the gradient, such as a norm or a component, is maximised over all linear regions by the branch and bound
of `branching`. On a part of the domain the gradient lies in a zonotope (`numpy_bounds`), which is a point where all
units are on one piece.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from plunit.pieces.activation import at_pieces
from plunit.pieces.arrays import Bools, Floats, Ints
from plunit.pieces.c_programs import Program
from plunit.pieces.exact.limits import Report
from plunit.pieces.networks import Network
from plunit.pieces.proofs.bounding import Answer, Nodes, Query, ReducedNetwork
from plunit.pieces.proofs.branching import POINTS, SECONDS, Aim, Effort, search
from plunit.pieces.proofs.linear import NEVER
from plunit.pieces.proofs.properties import Box, Constraints, Domain
from plunit.pieces.proofs.questions import PROVED, Optimum, Undecided, check_index, largest_of, shares
from plunit.pieces.rounding import FLOOR, UNIT, roundings

SAMPLES = 5000
"""The number of gradients that are evaluated to find the scale of slopes."""

NOTHING = 1e-307
"""Slopes below this fraction of the weights count as 0, because underflow makes bounds of a constant that large."""

FLAT = 1e-12
"""A domain narrower than this fraction of the box has no interior, and without one gradients have no meaning."""


def lipschitz(
    net: Network,
    box: Box,
    *,
    norm: float = 2,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Report | None = None,
) -> Optimum:
    """Return the smallest L with |f_i(x) - f_i(y)| <= L ||x - y|| on the box, for every output i.

    `norm` is the order of ||x - y||: 1, 2 or inf. L is the largest dual norm of a gradient. The gradient at x has the
    norm `value`, and no gradient has a norm above `bound`. If `proved`, the two agree to 1e-6 of their size; otherwise
    L is between them.
    """
    if isinstance(norm, bool) or not isinstance(norm, (int, float, np.number)) or norm not in (1, 2, np.inf):
        raise ValueError(f"norm must be 1, 2 or inf, got {norm!r}")
    (domain, free), effort = _inner_domain(net, box, constraints), Effort.of(time_limit, progress)
    order = {1.0: np.inf, 2.0: 2, np.inf: 1}[float(norm)]

    def largest(gradients: Floats) -> Floats:
        parts = np.abs(gradients).max(axis=-1) * free  # along a fixed input nothing moves
        most = parts.max(axis=-1, keepdims=True)  # squares neither overflow nor underflow
        ratios = np.divide(parts, most, out=np.ones_like(parts), where=(most > 0) & np.isfinite(most))
        return np.asarray(np.linalg.norm(ratios, order, axis=-1) * most[..., 0])

    found, model = [], ReducedNetwork.of(net, domain.box)
    for goal, share in shares(list(np.eye(net.outputs)), effort):
        start = time.monotonic()
        aim = Steepness(model, domain, goal, largest, euclidean=order == 2 and bool(free.all()))
        best = search(aim, domain.box[None], share, gap=1e-9)
        found.append(Optimum.of(best, best.value, time.monotonic() - start))
    return largest_of(found)


def is_monotone(
    net: Network,
    feature: int,
    box: Box,
    *,
    increasing: bool = True,
    output: int = 0,
    constraints: Constraints = None,
    time_limit: float | None = SECONDS,
    progress: Report | None = None,
) -> bool:
    """Return whether f(x) never falls (or never rises) as x[feature] grows in the box.

    False: there is a slope of the wrong sign, beyond its rounding error. True: no slope of the wrong sign exceeds 1e-6
    of the steepest one that was found along this input. `Undecided` is raised if the time limit is reached before
    either is known, or if the slopes cannot be told apart from 0.
    """
    domain, free = _inner_domain(net, box, constraints)
    feature = check_index(feature, net.inputs, "feature", "inputs")
    if not free[feature]:
        raise ValueError(f"input {feature} is fixed at {domain.box[feature, 0]}, so it cannot grow; widen the box")
    goal = np.eye(net.outputs)[check_index(output, net.outputs, "output", "outputs")]
    side, sign = (0, -1.0) if increasing else (1, 1.0)

    def wrong(gradients: Floats) -> Floats:
        return np.asarray(sign * gradients[..., feature, side])

    def accept(x: Floats, case: int) -> Floats | None:
        slope, error = _gradient(aim.query, x)
        steep = bool(sign * slope[feature] > error[feature]) and bool(_off_knots(aim.query, x[None])[0])
        return x if steep and domain.contains(x) else None

    effort, start = Effort.of(time_limit, progress), time.monotonic()
    aim = Steepness(net, domain, goal, wrong)
    largest = _largest_slope(aim, feature, start + effort.seconds / 2)
    flat = max(PROVED * largest, NOTHING * max(1.0, _largest_weights(net, feature)))
    found = search(aim, domain.box[None], effort.after(start), least=flat, accept=accept)
    if found.found or accept(found.x, found.case) is not None:  # the search considers only slopes above `flat`
        return False
    if found.bound > flat:
        best = Optimum.of(found, found.value, time.monotonic() - start)
        best = replace(best, value=sign * best.value, bound=sign * best.bound)
        raise Undecided(best, *(("smallest slope", "below") if increasing else ("largest slope", "above")))
    return True


def _largest_slope(aim: Steepness, feature: int, end: float) -> float:
    """Return the largest |slope| along an input at random points, fewer of them if the time runs out."""
    found = 0.0
    for points in np.array_split(aim.domain.points(SAMPLES), SAMPLES // POINTS):
        slopes = aim.query.forward(points)[1]
        gradients = aim.query.gradients(slopes, np.broadcast_to(aim.goal, (len(points), len(aim.goal))))
        found = max(found, float(np.abs(gradients[:, feature]).max(initial=0.0)))
        if time.monotonic() > end:
            break
    return found


def _largest_weights(net: Network, feature: int) -> float:
    """Return the largest product of weights and slopes on a path from an input to an output."""
    size = np.abs(net.layers[0].weight[:, feature])
    for (_, f), layer in zip(net.hidden, net.layers[1:], strict=True):
        size = (np.abs(layer.weight) * (np.abs(f.slopes).max(axis=-1) * size)).max(axis=1)
    return float(size.max())


def _inner_domain(net: Network, box: Box, constraints: Constraints) -> tuple[Domain, Bools]:
    """Return the domain and which inputs are free in it; ValueError if none is, or if the domain is flat."""
    if isinstance(net, Program):
        raise TypeError(f"a {type(net).__name__} is a program, which rounds and has no slopes; ask about its .net")
    domain = Domain.of(net, box, constraints)
    free = domain.box[:, 0] < domain.box[:, 1]
    if not free.any() or (constraints is not None and domain.centre[1] <= FLAT):
        what = "the constraints leave a flat domain" if free.any() else "all inputs are fixed"
        raise ValueError(f"{what}, where a gradient has no meaning; widen the domain")
    return domain, free


@dataclass(frozen=True, eq=False)
class Steepness(Aim):
    """The aim of maximising a measure of the gradient of goal y.

    measure: from ranges of gradients, [..., in, 2], to the largest measure that a gradient in them can have, [...];
    euclidean: whether it is the 2-norm, for which the step has a tighter bound.
    """

    net: Network | ReducedNetwork
    domain: Domain
    goal: Floats
    measure: Callable[[Floats], Floats]
    euclidean: bool = False

    @cached_property
    def query(self) -> Query:
        """The gradient of one goal."""
        return Query.of(self.net, self.domain, [self.goal[None]], gradient=True)

    def values_and_gradients(self, x: Floats, case: Ints) -> tuple[Floats, Floats]:
        """Return the measure of the gradients at x, -inf outside the domain or on a knot, and the gradients."""
        y, slopes = self.query.forward(x)
        found = self.query.gradients(slopes, np.broadcast_to(self.goal, y.shape))
        inside = self.domain.holds(x, -1e-14) & _off_knots(self.query, x)
        return np.where(inside, self.measure(np.stack([found, found], axis=-1)), NEVER), found

    def floors(self, case: Ints, least: float) -> Floats:
        """Return -inf: gradients have no floors."""
        return np.full((len(case), 1), NEVER)

    def bounds(self, nodes: Nodes, answer: Answer, least: float) -> Floats:
        """Return the largest measure in the ranges of the gradients."""
        found = self.measure(answer.gradient)
        with np.errstate(invalid="ignore"):
            found = found + 1e-14 * self.query.net.inputs * np.abs(found)  # the rounding errors of the measure
        if self.euclidean:
            found = np.fmin(found, nodes.bounds[:, 0])
        return np.where(nodes.bounds[:, 0] > NEVER, found, NEVER)


def _off_knots(query: Query, x: Floats) -> Bools:
    """Return at which of x [n, in] every unit that depends on x is off its knots by more than rounding."""
    felt, found = np.ones_like(x), np.ones(len(x), dtype=np.bool_)
    for (weight, _, f), (z, error) in zip(query.layers, query.enclosures(x), strict=True):
        if f is None:
            break
        knots, slopes, _ = f.units
        bends, felt = np.diff(slopes) != 0, felt @ np.abs(weight).T
        near = np.abs(z[..., None] - knots) <= error[..., None] + 4 * UNIT * np.abs(z[..., None])
        found &= ~((near & bends).any(axis=-1) & (felt > 0)).any(axis=1)
        felt = felt * np.abs(at_pieces(z, knots, slopes)[0])
    return found


def _gradient(query: Query, x: Floats) -> tuple[Floats, Floats]:
    """Return the gradient at x [in], with no unit on a knot there, and a bound on its rounding error."""
    slopes = query.forward(x[None])[1]
    size = np.abs(query.goals[0]) @ np.abs(query.net.layers[-1].weight)
    for layer, slope in zip(query.net.layers[-2::-1], slopes[::-1], strict=True):
        size = (size * np.abs(slope[0])) @ np.abs(layer.weight)
    return query.gradients(slopes, query.goals[:1])[0], roundings(4 * sum(query.net.widths) + 64) * size + FLOOR
