"""Minimax: lower the largest error of trained networks instead of their mean square error.

First steps of Levenberg and Marquardt lower the mean of |error|^p, with p = 2, 4, 8: the larger p is, the more the
largest errors count. Then come linear programs (`linear_programs.py`): of the errors e and their slopes J in the
parameters, the step d with the smallest max |e + J d| within a trust region, which grows and shrinks with success. The
members with the smallest largest errors continue. No member gets a larger error than it had.

Against a formula the errors are largest at the kinks of a network, and these move. So points follow them: before each
stage and after each program, the points with large errors climb, and the peaks that they reach become points.
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
"""Number of members that begin."""

POWERS = ((2, 8, 40), (4, 6, 20), (8, 4, 20))
"""Powers of the errors, the number of members whose errors they lower, and the steps of each."""

_PROGRAMS = ((4, 12), (1, 30))
"""Number of members that continue, and the maximum number of linear programs of each."""

ACTIVE, PER_PARAMETER = 0.75, 6
"""A program has the errors above this fraction of the largest, and at most this number of them for each parameter."""

_REACH, LEAST_REACH = 0.01, 3e-5
"""The trust region at first, and where a member ends: how much a parameter may change the outputs, as a fraction of the
largest error."""

GOOD, POOR = (0.6, 1.7), (0.25, 0.4)
"""The trust region grows by 1.7 where a step brings more than 0.6 of what its program predicts, and shrinks by 0.4
where it brings less than 0.25."""

NEAR, _ROUNDS = 1.02, 4
"""Programs follow while a search between the points finds an error that is larger by this factor, at most 4 times."""

PEAKS, CELLS, FRESH = 200, 1600, 2048
"""The number of points that climb, at most one of each cell of the box, and of random points that are among them."""

_CLIMBS, _TRIES = 12, 6  # steps of a climb, and the random tries of each
_HIGH = 0.7  # peaks above this fraction of the largest error become points
_LIFT = 1e-3  # of the mean effect of a parameter, so that one without effect moves little
_PROGRAM = 5.0  # steps of Levenberg and Marquardt on the same rows that take as long as a program


@dataclass(frozen=True)
class Target:
    """The function that networks are fitted to, where it is known everywhere.

    Attributes:
        values: f at points [n, in], [n, out]; errors are not counted where it is not finite.
        box: the ends of each input [in, 2].
        worst: points [n, in] at which the errors of a member [parameters, 1] may be large, from a search that knows
            more than random points.
    """

    values: Callable[[Array], Array]
    box: Array
    worst: Callable[[Array], Array] | None = None


class Lowered(NamedTuple):
    """The best members, [parameters, S], their largest errors [S], and which one of the start each was [S]."""

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
    """Lower the largest errors of trained members, and return the `best` ones, the one with the smallest error first.

    Args:
        network: the form of the members.
        theta: where they start [parameters, S], the most promising first; `BEGINNERS` begin, or `best` if that is more.
        x: points [n, in].
        y: targets [n, out].
        operations: about how many multiplications it may take, apart from a few steps that are always taken.
        best: how many members are returned.
        formula: what the targets are values of: then points are added where the errors are largest.
        alpha: the outer slope of PLU.
        c: the half-width of its inner piece.
        engine: "native" or "numpy", for the steps of Levenberg and Marquardt.
        progress: called with the part that is done and the smallest of the largest errors; if it returns true, the work
            ends.
        interrupted: called if Ctrl-C has ended the work; by default a warning. The best so far is returned.

    The same start gives the same bits on the same processor, except that NumPy's products may depend on how many
    threads BLAS has.
    """
    theta = np.asarray(theta, np.float64)[:, : max(BEGINNERS, best)]
    points = _Points(network, alpha, c, x, y, formula)
    run = _Lowering(points, engine, best, progress)
    run.known = {
        number: _Member(theta[:, [number]], float(points.errors(theta[:, [number]]).max()))
        for number in range(theta.shape[1])
    }
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
    """Points x [n, in] with targets y [n, out], and what finds more of them."""

    network: MLP
    alpha: float
    c: float
    x: Array
    y: Array
    formula: Target | None

    def errors(self, theta: Array) -> Array:
        """Return the largest |error| over the outputs of one member at each point [n]; infinite instead of NaN."""
        return self._errors_at(theta, self.x, self.y)

    def _errors_at(self, theta: Array, x: Array, y: Array) -> Array:
        blocks = output_blocks(self.network, theta, x, self.alpha, self.c)
        found = np.concatenate([np.abs(values[0] - y[rows]).max(1) for rows, values in blocks])
        return np.asarray(np.where(np.isfinite(y).all(axis=1), np.where(np.isnan(found), np.inf, found), 0.0))

    def join(self, x: Array) -> _Points:
        """Return these points and others."""
        if self.formula is None or not len(x):
            return self
        y = self.formula.values(x)
        x, y = (part[np.isfinite(y).all(axis=1)] for part in (x, y))
        return replace(self, x=np.concatenate([self.x, x]), y=np.concatenate([self.y, y]))

    def peaks(self, theta: Array) -> Array:
        """Return points with large errors of one member, from which random steps lead no higher; none for a table."""
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
        """Return the errors of one member at some points, and their slopes in the parameters [parameters, n out]."""
        state = initial_state(self.network, theta, steps=0, alpha=self.alpha, c=self.c)
        outputs, slopes = numpy_steps.jacobian(state, self.x[rows].T[None])
        flat = np.moveaxis(slopes[:, :, 0], 1, 0).reshape(len(theta), -1)
        return (outputs[0] - self.y[rows].T).ravel(), flat


@dataclass
class _Lowering:
    """The members on their way, by their numbers."""

    points: _Points
    engine: str | None
    best: int
    progress: Progress
    known: dict[int, _Member] = field(default_factory=dict)
    done: float = 0.0
    stopped: bool = False

    def lower(self, operations: float) -> None:
        """Take the steps of all powers, then the programs."""
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
        """Go on with the best members until a search between the points finds no error that is larger by `NEAR`."""
        for _ in range(_ROUNDS):
            before = {number: self.known[number] for number in self.order()[: self.best]}
            for one in before.values():
                self.points = self.points.join(worst(one.theta))
            for number, one in self.known.items():
                self.known[number] = replace(one, largest=max(one.largest, float(self.points.errors(one.theta).max())))
            wrong = [number for number, one in before.items() if self.known[number].largest > NEAR * one.largest]
            if not wrong:
                return
            for number in wrong:
                for _ in self._take_programs(number, _PROGRAMS[0][1]):
                    if self._report(self.done):
                        return

    def _plan(self, operations: float) -> Iterator[tuple[int, int, int, float]]:
        """Yield the power, or 0 for programs, the number of members that continue, their steps, and the cost of all."""
        parameters, rows = self.points.network.parameters, len(self.points.x)
        program = _PROGRAM * min(1.0, PER_PARAMETER * parameters / rows)
        stages = [(power, members, steps, 1.0) for power, members, steps in POWERS]
        stages += [(0, members, steps, program) for members, steps in _PROGRAMS]
        stages = [(power, min(len(self.known), max(n, self.best)), steps, cost) for power, n, steps, cost in stages]
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
        """Return the numbers of the members, the one with the smallest largest error first."""
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
        """Lower the largest error of a member by linear programs; yield the part that is done after each."""
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
            if after.max() < largest:  # the points know too little: look between them
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
