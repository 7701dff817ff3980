"""After a search: the second-order finish of its best members, where the rows of validation say that it pays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from plunit.base.progress import Progress
from plunit.ensemble.levenberg_marquardt import DAMPING, Finish, finish_members
from plunit.ensemble.runs import Rows, Validation

if TYPE_CHECKING:
    from plunit.ensemble.halving import Candidate

MOST = 100
"""Steps of a member that "auto" takes at most; more give little."""

PROBE, PROBED = 8, 2
"""After 8 steps of the 2 best members "auto" decides, if the least loss of validation was below `PROMISING` before."""

PROMISING = 0.02
"""In units of the variance of the target. Where more is left there is noise, or the network is too small."""

FALL = 0.98
"""It goes on if one of their losses is at most this part of what it was: of functions 0.4 to 0.93, of tables 1."""

_SHARE = 5.5  # numbers of J^T J that take 1.9 times as long as one number of Adam's steps, by the compiled programs


@dataclass(frozen=True)
class Finishing:
    """What finishes the best members of a search.

    Attributes:
        steps: of Levenberg and Marquardt, or "auto": as many as take about 1.9 times as long as the search did, at most
            `MOST`, and none where the best members gain little from the first ones.
        count: so many members of each shape are finished, as many of each fold.
        work: Adam's steps of all members, times their parameters.
        rows: on which they are finished.
        validation: rows that decide.
        options: alpha, c and engine.
        progress: as of `search`, for the finish alone.
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
        """Return the members; those that were finished with the result, if their loss of validation is lower."""
        if self.rows.held:
            return self._of_folds(found)
        after, places = list(found), {id(one): i for i, one in enumerate(found)}
        sound = sorted((one for one in found if math.isfinite(one.loss)), key=lambda one: one.loss)
        networks = list(dict.fromkeys(one.network for one in sound))
        for i, network in enumerate(networks):
            some = [one for one in sound if one.network == network][: self.count]
            for before, one in zip(some, self._finished(some, i, len(networks)), strict=False):
                after[places[id(before)]] = one
        return after

    def _of_folds(self, found: Sequence[Candidate]) -> list[Candidate]:
        """Finish the members of each fold on the rows that they have learned from; the others decide."""
        folds = sorted({one.fold for one in found})
        after: list[Candidate] = []
        for i, fold in enumerate(folds):
            train, tests = self.rows.without_held(fold)
            part = replace(
                self,
                count=math.ceil(self.count / len(folds)),
                work=self.work / len(folds),
                rows=train,
                validation=Validation(tests.x, tests.y, tests.weight),
                progress=_part(self.progress, i, len(folds)),
            )
            after += part.members([one for one in found if one.fold == fold])
        return after

    def _finished(self, some: list[Candidate], shape: int, shapes: int) -> list[Candidate]:
        """Return what became of some members of one shape; the first ones go on from where they were tried."""
        if self.steps != "auto":
            return self._better(some, self._run(some, int(self.steps), progress=_part(self.progress, shape, shapes)))
        steps, first, others = min(MOST, self._affordable(some) // shapes), some[:PROBED], some[PROBED:]
        if steps <= PROBE or some[0].loss > PROMISING:
            return []
        begun = self._run(first, PROBE)
        tried = self._better(first, begun)
        if not any(new.loss <= FALL * old.loss for old, new in zip(first, tried, strict=True)):
            return []
        halves = [_part(self.progress, 2 * shape + k, 2 * shapes) for k in (0, 1)]
        found = self._better(first, self._run(first, steps - PROBE, begun, progress=halves[0]))
        return [*found, *(self._better(others, self._run(others, steps, progress=halves[1])) if others else ())]

    def _affordable(self, some: list[Candidate]) -> int:
        """Return how many steps of these members are worth the time, by their operations and Adam's."""
        p, count = some[0].network.parameters, len(self.rows.x)
        step = p * p * (count * some[0].network.widths[-1] + 3 * p)  # J^T J, and its factor
        return int(_SHARE * self.work * (self.rows.batch or count) / (step * len(some)))

    def _run(self, some: list[Candidate], steps: int, begun: Finish | None = None, **watch: Any) -> Finish:
        start = begun or np.stack([one.theta for one in some], axis=1)
        steps = 0 if self.pressed else steps
        watch["interrupted"] = lambda: self.pressed.append(True)
        return finish_members(some[0].network, start, self.rows, steps=steps, damping=DAMPING, **self.options, **watch)

    def _better(self, some: list[Candidate], now: Finish) -> list[Candidate]:
        """Return the members, or what became of them where the loss of validation is lower."""
        note: dict[str, Any] = {"interrupted": lambda: self.pressed.append(True)}
        network, rows = some[0].network, self.validation.rows()
        losses = finish_members(network, now.theta, rows, steps=0, **self.options, **note).loss
        return [
            replace(one, loss=loss, theta=new.copy()) if loss < one.loss else one
            for one, loss, new in zip(some, losses.tolist(), now.theta.T, strict=True)
        ]


def _part(progress: Progress, i: int, count: int) -> Progress:
    return lambda done, best: progress((i + done) / count, best)


class Whole:
    """Passes progress on as that of the first part of some work, and remembers whether it asked to stop."""

    def __init__(self, progress: Progress, share: float) -> None:
        self.progress, self.share, self.best, self.asked = progress, share, math.inf, False

    def __call__(self, done: float, best: float) -> bool:
        """Report the first part."""
        self.best = best
        self.asked = bool(self.progress(self.share * done, best)) or self.asked
        return self.asked

    def second(self) -> Progress:
        """Return what reports the second part; it shows the least loss of validation that the first one found."""

        def report(done: float, _: float) -> bool:
            self.asked = self.asked or bool(self.progress(self.share + (0.99 - self.share) * done, self.best))
            return self.asked

        return report
