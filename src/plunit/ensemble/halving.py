"""The best of many starts and shapes: train all for a while, continue with the better half, and so on.

This is successive halving (Jamieson and Talwalkar, 2016; docs/glossary.md). `halve` is the algorithm, for any `Race`:
networks here (`search_networks`), densities in `plunit.densities.searching`. The best networks get the second-order
finish of `levenberg_marquardt` if the validation rows show that it pays.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from plunit.base.progress import Pace, Progress, TwoParts, interruption, part_of
from plunit.ensemble.adam import half_cosine
from plunit.ensemble.arrays import Array
from plunit.ensemble.levenberg_marquardt import DAMPING, Finish, affordable_steps, finish_members, square_losses
from plunit.ensemble.mlp import MLP, initial
from plunit.ensemble.training import ENGINES
from plunit.ensemble.training_data import Rows, StepData, Validation, held_points, points
from plunit.ensemble.training_state import Engine, State, Steps, initial_state
from plunit.programs.libraries import choose_engine

LAST = 0.3  # the last layer starts smaller by this factor, so that outputs begin near the mean of the targets

RUNGS = (0.125, 0.25, 0.5, 1.0)
"""Fractions of the steps after which the worse half of the members stops; after the last one all stop."""

MOST_FINISH = 100
"""The maximum number of steps of an "auto" finish; more gain little."""

PROBE, PROBED = 8, 2
"""If the lowest validation loss is below `PROMISING`, "auto" tries 8 steps on the 2 best members and then decides."""

PROMISING = 0.02
"""In units of the variance of the target. A higher loss means noise, or a network that is too small."""

FALL = 0.98
"""The finish continues if a loss falls to this fraction or less; functions reach 0.4 to 0.93, tables 1."""

_SHARE = 5.5  # operations of J^T J that take 1.9 times as long as one of Adam's, in the compiled programs


class Race(Protocol):
    """Members in training, and those that have stopped.

    `advance` and `drop` return another race and leave this one unchanged. So all members are at the same step after
    Ctrl-C, which Python may raise anywhere inside them.
    """

    @property
    def step(self) -> int:
        """The number of steps taken by the members in training."""

    def sizes(self) -> Sequence[int]:
        """Return the number of parameters of each member in training."""

    def standings(self) -> Array:
        """Return the lowest validation loss of each member in training, or its rank among its competitors."""

    def least(self) -> float:
        """Return the lowest validation loss of all members; infinite before the first validation."""

    def advance(self: Racing, last: int) -> Racing:
        """Return the race after `last` steps."""

    def drop(self: Racing, worse: Array) -> Racing:
        """Return the race without the members in training for which `worse` is true; they have stopped."""


Racing = TypeVar("Racing", bound=Race)


def halve(
    race: Racing, steps: int, every: int, keep: int, work: float, progress: Progress, marks: Sequence[int] = ()
) -> tuple[Racing, bool]:
    """Train all members and stop the worse half at each rung; return the final race, and whether Ctrl-C ended it.

    Args:
        race: the race before the first step.
        steps: the number of steps of the members that are trained to the end.
        every: steps between validations; rungs are at validations.
        keep: the minimum number of members that are trained to the end.
        work: the result of `estimate_work`.
        progress: see `search_networks`. It cannot stop training before the first validation.
        marks: steps at which the race must pause.

    Before the first validation, Ctrl-C raises KeyboardInterrupt.
    """
    rungs = [min(steps, math.ceil(part * steps / every) * every) for part in RUNGS]
    done, pace, interrupted = 0.0, Pace(), False
    try:
        while race.sizes() and race.step < steps:
            first, size = race.step, sum(race.sizes())
            race = race.advance(pace.next(first, min(mark for mark in (*rungs, *marks) if mark > first)))
            done += (race.step - first) * size
            least = race.least()
            if progress(min(done / work, 0.99), least) and (race.step >= every or math.isfinite(least)):
                break
            if race.step in rungs[:-1]:
                race = race.drop(_worse(race.standings(), keep))
    except KeyboardInterrupt:
        if not math.isfinite(race.least()):
            raise
        interrupted = True
    return race.drop(np.ones(len(race.sizes()), dtype=bool)), interrupted


def estimate_work(sizes: Sequence[int], steps: int, keep: int) -> float:
    """Return the total of steps times parameters over all rungs, as if every shape lost the same fraction."""
    members, total, previous = len(sizes), 0.0, 0.0
    for part in RUNGS:
        total += members / len(sizes) * (part - previous)
        previous, members = part, min(members, max(keep, members // 2))
    return total * steps * sum(sizes)


def finish_operations(work: float, batch: int) -> float:
    """Return the multiplications of a finish that takes 1.9 times as long as Adam takes for `work`."""
    return _SHARE * work * batch


def places(losses: Array, fold: Array) -> Array:
    """Return the rank of each member, from 0, within its fold; losses on different rows are not comparable.

    >>> places(np.array([3.0, 1.0, 9.0, np.nan, 7.0]), np.array([0, 0, 1, 0, 1])).tolist()
    [1, 0, 1, 2, 0]
    """
    order = np.argsort(losses, kind="stable")  # NaN is last
    found = np.empty(len(losses), np.int64)
    for one in np.unique(fold):
        mine = order[fold[order] == one]
        found[mine] = np.arange(len(mine))
    return found


def _worse(losses: Array, keep: int) -> Array:
    """Return which members are in the worse half; NaN is worst."""
    order = np.argsort(np.where(np.isnan(losses), np.inf, losses), kind="stable")
    worse = np.ones(len(losses), dtype=bool)
    worse[order[: max(keep, len(losses) // 2)]] = False
    return worse


@dataclass(frozen=True)
class Candidate:
    """A member of a search after its training."""

    network: MLP
    start: int  # the number of its start, from 0
    loss: float  # the lowest validation loss
    best_step: int  # the number of steps after which it was found
    steps: int  # the number of steps taken
    theta: Array  # the parameters after `best_step` steps, [parameters]
    history: Array  # training losses, one for every 16 steps
    looks: Array  # validation losses, one for every `Validation.every` steps
    first_held: int = 0  # the first of its validation rows, if rows are held


def search_networks(
    networks: Sequence[MLP],
    rows: Rows,
    validation: Validation,
    *,
    starts: int,
    steps: int,
    keep: int = 1,
    finish: int | str = 0,
    finishers: int = 2,
    seed: int = 0,
    alpha: float = 0.1,
    c: float = 1.0,
    engine: str | None = None,
    progress: Progress = lambda done, best: None,
    interrupted: Callable[[], object] | None = None,
    **options: Any,
) -> list[Candidate]:
    """Train `starts` members of each network, and return all of them, the best first.

    Args:
        networks: the shapes.
        rows: the table to train on; its `seeds` are not used, each member has its own. With `held` rows, start i is
            trained on all rows except those that begin at firsts[i], on which it is validated. Starts of one fold,
            with the same rows, compete with each other, and each fold keeps the same number.
        validation: the validation rows, if none are held.
        starts: the number of members of each shape.
        steps: steps of the members that are trained to the end. Adam's step size falls to 0 by a half cosine.
        keep: the minimum number of members that are trained to the end.
        finish: the number of Levenberg-Marquardt steps on all rows that follow for the best `finishers` members of each
            shape; "auto" takes as many as are worth it (`_Finishing`). Their result is used if it lowers the
            validation loss. Only for least squares.
        finishers: see `finish`.
        seed: member i of shape j starts with the generator of (seed, j, i).
        alpha: the outer slope of PLU.
        c: the half-width of its inner piece.
        engine: "native" or "numpy"; by default native if possible.
        progress: called now and then with the fraction of the work done and the lowest loss so far. If it returns
            true, the search ends with the members so far, after the first validation at the earliest.
        interrupted: called if Ctrl-C ended the search; the default is a warning.
        options: loss, lr and decay as in `train`; decay is a number, or one for each start.
    """
    name = choose_engine(engine)
    advance = ENGINES[name]
    options |= {"alpha": alpha, "c": c, "steps": steps, "every": validation.every}
    states = tuple(
        _start_members(network, [seed, j], starts, rows.firsts, **options) for j, network in enumerate(networks)
    )
    race = _NetworkRace(rows, validation, half_cosine(steps), advance).train(states)
    parts = TwoParts(progress, 0.5 if finish else 1.0)
    work = estimate_work(race.sizes(), steps, keep)
    race, stopped = halve(race, steps, validation.every, keep, work, parts.first)
    found, pressed = list(race.ended), [True] * stopped
    if finish and not (stopped or parts.asked):
        shape = {"alpha": alpha, "c": c, "engine": name, "interrupted": lambda: pressed.append(True)}
        found = _Finishing(finish, finishers, work, rows, validation, shape, parts.second, pressed).members(found)
    found = sorted(found, key=lambda one: (math.isnan(one.loss), one.loss))
    progress(1.0, found[0].loss)
    if pressed:
        interrupted() if interrupted else warnings.warn(interruption(race.step, steps), stacklevel=2)
    return found


@dataclass
class _Starts(State):
    """The members of one shape that are in training."""

    number: Array  # the number of each start, [S]
    seeds: Array  # the seeds of the draws, [S]
    firsts: Array  # the first held row of each, [S]

    def points(self, rows: Rows, validation: Validation) -> tuple[StepData, StepData]:
        """Return the table with the draws of these members, and their validation points."""
        drawn = replace(rows, seeds=self.seeds.tolist(), firsts=self.firsts.tolist())
        given = points(drawn, 1, self.network, self.theta)
        if rows.held:
            return given, held_points(drawn, self.theta)
        return given, points(validation.rows(), 1, self.network, self.theta)

    def candidate(self, i: int, step: int, validation: Validation) -> Candidate:
        """Return the result of member i at this step."""
        looked = np.flatnonzero(np.isfinite(self.looks[:, i]))
        if self.waited[i] >= validation.patience and len(looked):  # it stopped before the rung
            step = int(looked[-1] + 1) * validation.every
        return Candidate(
            self.network,
            int(self.number[i]),
            float(self.best_loss[i]),
            int(self.best_step[i]),
            step,
            self.best[:, i].copy(),
            history=self.history[np.isfinite(self.history[:, i]), i],
            looks=self.looks[looked, i],
            first_held=int(self.firsts[i]),
        )


@dataclass(frozen=True)
class _NetworkRace:
    """The `Race` of networks; a rung also ends the members that ran out of patience."""

    rows: Rows
    validation: Validation
    schedule: Array
    engine: Engine
    states: tuple[_Starts, ...] = ()
    given: tuple[tuple[StepData, StepData], ...] = ()  # training and validation points of each state
    ended: tuple[Candidate, ...] = ()
    step: int = 0

    def sizes(self) -> Sequence[int]:
        return [state.network.parameters for state in self.states for _ in range(state.members)]

    def standings(self) -> Array:
        losses = np.concatenate([state.best_loss for state in self.states])
        return places(losses, np.concatenate([state.firsts for state in self.states])) if self.rows.held else losses

    def least(self) -> float:
        return min([float(state.best_loss.min()) for state in self.states] + [one.loss for one in self.ended])

    def train(self, states: Sequence[_Starts]) -> _NetworkRace:
        """Return the race with these members in training."""
        given = tuple(state.points(self.rows, self.validation) for state in states)
        return replace(self, states=tuple(states), given=given)

    def advance(self, last: int) -> _NetworkRace:
        states = tuple(state.select(slice(None)) for state in self.states)
        schedule = self.schedule[self.step : last]
        steps = [Steps(self.step, schedule, given, tests, self.validation) for given, tests in self.given]
        self.engine(list(zip(states, steps, strict=True)))
        return replace(self, states=states, step=last)

    def drop(self, worse: Array) -> _NetworkRace:
        kept, ended, at = [], list(self.ended), 0
        for state in self.states:
            over = worse[at : at + state.members] | (state.waited >= self.validation.patience)
            at += state.members
            ended += [state.candidate(i, self.step, self.validation) for i in np.flatnonzero(over).tolist()]
            if not over.all():
                kept.append(state.select(~over))
        return replace(self, ended=tuple(ended)).train(kept)


def _start_members(network: MLP, seed: Sequence[int], starts: int, firsts: Sequence[int], **options: Any) -> _Starts:
    generators = [np.random.default_rng([*seed, i]) for i in range(starts)]
    scales = [1 / math.sqrt(n) for n in network.widths[:-1]]
    scales[-1] *= LAST
    theta = initial(network, generators, scales=scales, alpha=options["alpha"], c=options["c"])
    seeds = np.array([g.integers(2**63) for g in generators], dtype=np.uint64)
    held = np.resize(np.array(firsts or [0], np.int64), starts)
    return _Starts(**vars(initial_state(network, theta, **options)), number=np.arange(starts), seeds=seeds, firsts=held)


@dataclass(frozen=True)
class _Finishing:
    """The finish of the best members of a search.

    Attributes:
        steps: the number of Levenberg-Marquardt steps. "auto" takes as many as need about 1.9 times the time of the
            search, at most `MOST_FINISH`, and none if the best members gain little from the first ones.
        count: the number of members of each shape that are finished, equally many of each fold.
        work: the total of Adam's steps times parameters.
        rows: the rows on which the members are finished.
        validation: the validation rows.
        options: options of `finish_members`.
        progress: called for the finish only.
        pressed: gets an entry at Ctrl-C, which ends the finish.
    """

    steps: int | str
    count: int
    work: float
    rows: Rows
    validation: Validation
    options: dict[str, Any]
    progress: Progress
    pressed: list[bool]

    def members(self, found: Sequence[Candidate]) -> list[Candidate]:
        """Return the members, finished ones with the result if their validation loss is lower."""
        if self.rows.held:
            return self._of_folds(found)
        after: dict[int, Candidate] = {}
        sound = sorted((one for one in found if math.isfinite(one.loss)), key=lambda one: one.loss)
        networks = list(dict.fromkeys(one.network for one in sound))
        for i, network in enumerate(networks):
            some = [one for one in sound if one.network == network][: self.count]
            after |= zip(map(id, some), self._finish(some, i, len(networks)), strict=False)
        return [after.get(id(one), one) for one in found]

    def _of_folds(self, found: Sequence[Candidate]) -> list[Candidate]:
        """Finish the members of each fold on their training rows; the held rows validate."""
        folds = sorted({one.first_held for one in found})
        after: list[Candidate] = []
        for i, first in enumerate(folds):
            train, tests = self.rows.without_held(first)
            part = replace(
                self,
                count=math.ceil(self.count / len(folds)),
                work=self.work / len(folds),
                rows=train,
                validation=Validation(tests.x, tests.y, tests.weight),
                progress=part_of(self.progress, i, len(folds)),
            )
            after += part.members([one for one in found if one.first_held == first])
        return after

    def _finish(self, some: list[Candidate], shape: int, shapes: int) -> list[Candidate]:
        """Return some members of one shape after the finish; the first ones continue from the end of their trial."""
        if self.steps != "auto":
            return self._better(
                some, self._take_steps(some, int(self.steps), progress=part_of(self.progress, shape, shapes))
            )
        steps, first, others = min(MOST_FINISH, self._affordable(some) // shapes), some[:PROBED], some[PROBED:]
        if steps <= PROBE or some[0].loss > PROMISING:
            return []
        begun = self._take_steps(first, PROBE)
        tried = self._better(first, begun)
        if not any(new.loss <= FALL * old.loss for old, new in zip(first, tried, strict=True)):
            return []
        halves = [part_of(self.progress, 2 * shape + k, 2 * shapes) for k in (0, 1)]
        found = self._better(first, self._take_steps(first, steps - PROBE, begun, progress=halves[0]))
        return [*found, *(self._better(others, self._take_steps(others, steps, progress=halves[1])) if others else ())]

    def _affordable(self, some: list[Candidate]) -> int:
        """Return how many steps of these members are worth their time, in proportion to Adam's operations."""
        rows = len(self.rows.x)
        operations = finish_operations(self.work, self.rows.batch or rows)
        return affordable_steps(some[0].network, rows, len(some), operations)

    def _take_steps(self, some: list[Candidate], steps: int, begun: Finish | None = None, **watch: Any) -> Finish:
        start = begun or np.stack([one.theta for one in some], axis=1)
        options = {"steps": 0 if self.pressed else steps, "damping": DAMPING, **self.options, **watch}
        return finish_members(some[0].network, start, self.rows, **options)

    def _better(self, some: list[Candidate], now: Finish) -> list[Candidate]:
        """Return the members, with the parameters after the finish where the validation loss is lower."""
        losses = square_losses(some[0].network, now.theta, self.validation.rows(), **self.options)
        return [
            replace(one, loss=loss, theta=new.copy()) if loss < one.loss else one
            for one, loss, new in zip(some, losses.tolist(), now.theta.T, strict=True)
        ]
