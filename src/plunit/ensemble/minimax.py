"""Minimax: lower the largest error of trained networks instead of their mean square error.

First, Levenberg-Marquardt steps lower the mean of |error|^p for p = 2, 4, 8: the larger p is, the more the largest
errors count. Then linear programs (`linear_programs.py`) find the step d with the smallest max |e + J d| for the errors
e and their Jacobian J, within a trust region that grows with success and shrinks without. At each stage the members
with the smallest maximum errors continue. No member's maximum error ever grows.

Against a formula the errors are largest at the kinks of a network, which move. So the points follow them: before each
stage and after each program, the points with large errors climb, and the peaks that they reach are added.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from plunit.base.progress import Progress, interruption
from plunit.ensemble import numpy_steps
from plunit.ensemble.arrays import Array
from plunit.ensemble.levenberg_marquardt import DAMPING, affordable_steps, finish_members
from plunit.ensemble.linear_programs import chebyshev_step
from plunit.ensemble.mlp import MLP
from plunit.ensemble.outputs import output_blocks
from plunit.ensemble.training_state import initial_state

BEGINNERS = 8
"""Number of members at the start."""

POWERS = ((2, 8, 40), (4, 6, 20), (8, 4, 20))
"""Stages: the power of the errors, the number of members that continue, and the steps of each."""

_PROGRAMS = ((4, 12), (1, 30))
"""Stages: the number of members that continue, and the maximum number of linear programs for each."""

ACTIVE, PER_PARAMETER = 0.75, 6
"""A program uses the errors above this fraction of the largest, and at most this number of them per parameter."""

_REACH, LEAST_REACH = 0.01, 3e-5
"""The initial trust region, and the size at which a member stops: how much a parameter may change the outputs, as a
fraction of the largest error."""

GOOD, POOR = (0.6, 1.7), (0.25, 0.4)
"""The trust region grows by the factor 1.7 if a step achieves more than 0.6 of the predicted decrease, and shrinks by
0.4 if it achieves less than 0.25."""

AGREED, _ROUNDS = 1.02, 4
"""Programs are repeated, at most 4 times, while a search between the points finds an error larger by this factor."""

PEAKS, CELLS, FRESH = 200, 1600, 2048
"""The maximum number of points that climb, the number of cells of the box, of which each sends at most one point, and
the number of random points among the candidates."""

_CLIMBS, _TRIES = 12, 6  # steps of a climb, and random tries in each
_HIGH = 0.7  # peaks above this fraction of the largest error become points
_LIFT = 1e-3  # fraction of the mean effect of a parameter, so that one without effect moves little
_PROGRAM = 5.0  # Levenberg-Marquardt steps on the same rows that take as long as a program


@dataclass(frozen=True)
class Target:
    """The function that networks are fitted to, if it is known everywhere.

    Attributes:
        values: returns f [n, out] at points [n, in]; errors are not counted where f is not finite.
        box: the ends of each input [in, 2].
        worst: returns points [n, in] at which the errors of a member [parameters, 1] may be large, from a search that
            is better than random points.
        start: one more start [parameters], if one is known.
    """

    values: Callable[[Array], Array]
    box: Array
    worst: Callable[[Array], Array] | None = None
    start: Array | None = None


class Lowered(NamedTuple):
    """The best members [parameters, S], their largest errors [S], and the number of each at the start [S].

    The start of the formula, if it has one, is number -1.
    """

    theta: Array
    largest: Array
    number: Array


def lower_largest_errors(
    network: MLP,
    theta: Array,
    x: Array,
    y: Array,
    *,
    operations: float,
    best: int = 1,
    formula: Target | None = None,
    alpha: float = 0.1,
    c: float = 1.0,
    engine: str | None = None,
    progress: Progress = lambda done, least: None,
    interrupted: Callable[[], object] | None = None,
) -> Lowered:
    """Lower the largest errors of trained members, and return the `best` ones, the smallest error first.

    Args:
        network: the form of the members.
        theta: the start [parameters, S], the most promising members first; `BEGINNERS` are used, or `best` if larger.
        x: points [n, in].
        y: targets [n, out].
        operations: the approximate budget of multiplications; a few steps are always taken.
        best: the number of members to return.
        formula: the function of the targets; if given, points are added where the errors are largest.
        alpha: the outer slope of PLU.
        c: the half-width of its inner piece.
        engine: "native" or "numpy", for the Levenberg-Marquardt steps.
        progress: called with the fraction done and the smallest maximum error; if it returns true, the work ends.
        interrupted: called if Ctrl-C ended the work; the default is a warning. The best members so far are returned.

    The same start gives the same bits on the same processor, except that NumPy's products may depend on the number of
    BLAS threads.
    """
    theta = np.asarray(theta, np.float64)[:, : max(BEGINNERS, best)]
    points = _Points(network, alpha, c, x, y, formula)
    run = _Lowering(points, engine, best, progress)
    begin = {number: theta[:, [number]] for number in range(theta.shape[1])}
    if formula is not None and formula.start is not None:
        begin[-1] = formula.start[:, None]
    run.known = {number: _Member(one, float(points.errors(one).max())) for number, one in begin.items()}
    try:
        run.lower(operations)
    except KeyboardInterrupt:
        if interrupted is None:
            warnings.warn(interruption(round(100 * run.done), 100), stacklevel=2)
        else:
            interrupted()
    order = run.order()[:best]
    largest = np.array([run.known[number].largest for number in order])
    return Lowered(np.concatenate([run.known[number].theta for number in order], axis=1), largest, np.array(order))


@dataclass(frozen=True)
class _Member:
    """The best parameters of a member so far [parameters, 1], and their largest error."""

    theta: Array
    largest: float


@dataclass(frozen=True)
class _Points:
    """Points x [n, in] with targets y [n, out], and the search for more."""

    network: MLP
    alpha: float
    c: float
    x: Array
    y: Array
    formula: Target | None

    def errors(self, theta: Array) -> Array:
        """Return the largest |error| over a member's outputs at each point [n]; NaN becomes infinite."""
        return self._errors_at(theta, self.x, self.y)

    def _errors_at(self, theta: Array, x: Array, y: Array) -> Array:
        blocks = output_blocks(self.network, theta, x, self.alpha, self.c)
        found = np.concatenate([np.abs(values[0] - y[rows]).max(1) for rows, values in blocks])
        return np.asarray(np.where(np.isfinite(y).all(axis=1), np.where(np.isnan(found), np.inf, found), 0.0))

    def join(self, x: Array) -> _Points:
        """Return these points together with the given ones, if there is a formula."""
        if self.formula is None or not len(x):
            return self
        y = self.formula.values(x)
        x, y = (part[np.isfinite(y).all(axis=1)] for part in (x, y))
        return replace(self, x=np.concatenate([self.x, x]), y=np.concatenate([self.y, y]))

    def peaks(self, theta: Array) -> Array:
        """Return points where a member's errors are large, at local peaks of a random climb; none for a table."""
        if self.formula is None:
            return self.x[:0]
        rng, (low, high) = np.random.default_rng(len(self.x)), self.formula.box.T
        fresh = rng.uniform(low, high, (FRESH, len(low)))
        x = np.concatenate([self.x, fresh])
        found = np.concatenate([self.errors(theta), self._errors_at(theta, fresh, self.formula.values(fresh))])
        side = max(2, round(CELLS ** (1 / len(low))))
        cell = np.minimum((side * (x - low) / (high - low)).astype(np.int64), side - 1) @ side ** np.arange(len(low))
        order = np.lexsort([-found, cell])
        tops = order[np.diff(cell[order], prepend=-1) > 0]  # the highest of each cell
        tops = tops[np.argsort(-found[tops], kind="stable")[:PEAKS]]
        x, found, rows = x[tops], found[tops], np.arange(len(tops))
        for step in np.geomspace(0.5, 0.005, _CLIMBS) / side:
            away = step * (high - low) * rng.standard_normal((len(x), _TRIES, len(low)))
            tried = np.clip(x[:, None] + away, low, high)
            flat = tried.reshape(-1, len(low))
            values = self._errors_at(theta, flat, self.formula.values(flat)).reshape(len(x), _TRIES)
            top = values.argmax(axis=1)
            better = values[rows, top] > found
            x = np.where(better[:, None], tried[rows, top], x)
            found = np.where(better, values[rows, top], found)
        return np.asarray(x[found > _HIGH * found.max()])

    def linear(self, theta: Array, rows: Array) -> tuple[Array, Array]:
        """Return a member's errors at some points, and their Jacobian in the parameters [parameters, n out]."""
        state = initial_state(self.network, theta, steps=0, alpha=self.alpha, c=self.c)
        outputs, slopes = numpy_steps.jacobian(state, self.x[rows].T[None])
        flat = np.moveaxis(slopes[:, :, 0], 1, 0).reshape(len(theta), -1)
        return (outputs[0] - self.y[rows].T).ravel(), flat


@dataclass
class _Lowering:
    """The members during the work, by number."""

    points: _Points
    engine: str | None
    best: int
    progress: Progress
    known: dict[int, _Member] = field(default_factory=dict)
    done: float = 0.0
    stopped: bool = False

    def lower(self, operations: float) -> None:
        """Run the stages of all powers, then the linear programs."""
        stages = list(self._plan(operations))
        total = sum(cost for *_, cost in stages)
        for power, members, steps, cost in stages:
            some, first = self.order()[:members], self.done
            if power:
                self._take_steps(some, power, steps, partial(self._report_part, first, cost / total))
            else:
                for k, number in enumerate(some):
                    part = first + k * cost / total / len(some)
                    for at in self._take_programs(number, steps):
                        self._report(part + at * cost / total / len(some))
                        if self.stopped:
                            break
            if self.stopped:
                return
            self.done = first + cost / total
        if self.points.formula is not None and self.points.formula.worst is not None:
            self._agree(self.points.formula.worst)

    def _agree(self, worst: Callable[[Array], Array]) -> None:
        """Repeat programs on the best members until a search between points finds no error larger by `AGREED`."""
        for _ in range(_ROUNDS):
            before = {number: self.known[number] for number in self.order()[: self.best]}
            for one in before.values():
                self.points = self.points.join(worst(one.theta))
            for number, one in self.known.items():
                self.known[number] = replace(one, largest=max(one.largest, float(self.points.errors(one.theta).max())))
            wrong = [number for number, one in before.items() if self.known[number].largest > AGREED * one.largest]
            if not wrong:
                return
            for number in wrong:
                for _ in self._take_programs(number, _PROGRAMS[0][1]):
                    if self._report(self.done):
                        return

    def _plan(self, operations: float) -> Iterator[tuple[int, int, int, float]]:
        """Yield each stage: the power, or 0 for programs, the number of members, their steps, and the total cost."""
        parameters, rows = self.points.network.parameters, len(self.points.x)
        program = _PROGRAM * min(1.0, PER_PARAMETER * parameters / rows)
        stages = [(power, members, steps, 1.0) for power, members, steps in POWERS]
        stages += [(0, members, steps, program) for members, steps in _PROGRAMS]
        more = int(-1 in self.known)  # the start from a curve comes on top of the trained members
        stages = [
            (power, min(len(self.known), max(n, self.best) + more), steps, cost) for power, n, steps, cost in stages
        ]
        wanted = sum(members * steps * cost for _, members, steps, cost in stages)
        share = min(1.0, affordable_steps(self.points.network, rows, 1, operations) / wanted)
        for power, members, steps, cost in stages:
            count = max(2, round(share * steps))
            yield power, members, count, members * count * cost

    def _report(self, done: float) -> bool:
        least = min(member.largest for member in self.known.values())
        self.stopped = bool(self.progress(min(done, 1.0), least)) or self.stopped
        return self.stopped

    def _report_part(self, first: float, share: float, done: float) -> bool:
        return self._report(first + share * done)

    def order(self) -> list[int]:
        """Return the numbers of the members, the smallest maximum error first."""
        return sorted(self.known, key=lambda number: self.known[number].largest)

    def _take_steps(self, some: list[int], power: int, steps: int, report: Callable[[float], bool]) -> None:
        """Lower the mean of |error|^power of some members."""
        theta = np.concatenate([self.known[number].theta for number in some], axis=1)
        if power > 2:
            for one in theta.T:
                self.points = self.points.join(self.points.peaks(one[:, None]))
        pressed: list[None] = []
        after = finish_members(
            self.points.network,
            theta,
            (self.points.x.T, self.points.y.T),
            steps=steps,
            alpha=self.points.alpha,
            c=self.points.c,
            damping=DAMPING,
            power=power,
            engine=self.engine,
            progress=lambda done, _: report(done),
            interrupted=lambda: pressed.append(None),
        ).theta
        for one in after.T:
            self.points = self.points.join(self.points.peaks(one[:, None]))
        for number, one in zip(some, after.T, strict=True):
            before, now = (float(self.points.errors(part).max()) for part in (self.known[number].theta, one[:, None]))
            self.known[number] = (
                _Member(one[:, None], now) if now < before else replace(self.known[number], largest=before)
            )
        if pressed:
            raise KeyboardInterrupt

    def _take_programs(self, number: int, count: int) -> Iterator[float]:
        """Lower the largest error of a member by linear programs; yield the fraction done after each."""
        points, theta, reach = self.points, self.known[number].theta, _REACH
        points = points.join(points.peaks(theta))
        errors = points.errors(theta)
        for k in range(count):
            largest = float(errors.max())
            self.known[number] = _Member(theta, largest)
            if not 0 < largest < np.inf or reach < LEAST_REACH:
                return
            most = PER_PARAMETER * len(theta) // points.y.shape[1]
            active = np.argsort(-errors, kind="stable")[:most]
            e, slopes = points.linear(theta, active[errors[active] > ACTIVE * largest])
            effect = np.sqrt((slopes**2).mean(axis=1))
            effect += max(_LIFT * float(np.sqrt((effect**2).mean())), np.finfo(float).tiny)
            step, predicted = chebyshev_step(e, slopes, reach * largest / effect)
            trial = theta + step[:, None]
            after = points.errors(trial)
            if after.max() < largest:  # errors between the points may be larger
                found = points.peaks(trial)
                points = points.join(found)
                errors, after = points.errors(theta), points.errors(trial)
            fall = largest - float(after.max())
            if fall > 0:
                theta, errors = trial, after
            rate = fall / max(largest - predicted, 1e-300)
            reach *= GOOD[1] if rate > GOOD[0] else POOR[1] if rate < POOR[0] else 1.0
            yield (k + 1) / count
        self.known[number] = _Member(theta, float(errors.max()))
