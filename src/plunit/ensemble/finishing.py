"""After a search: the second-order finish of its best members, where the rows of validation say that it pays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from plunit.base.progress import Progress
from plunit.ensemble.levenberg_marquardt import DAMPING, finish_members
from plunit.ensemble.runs import Rows, Validation

if TYPE_CHECKING:
    from plunit.ensemble.halving import Candidate
    from plunit.ensemble.mlp import MLP

MOST = 100
"""Steps of a member that "auto" takes at most; more give little."""

PROBE = 8
"""After so many steps of the two best members "auto" decides, if the least loss of validation was below `PROMISING`."""

PROMISING = 0.02
"""In units of the variance of the target. Where more is left there is noise, or the network is too small."""

FALL = 0.98
"""It goes on if one of their losses is at most this part of what it was: of functions 0.6 to 0.97, of tables 1."""

_SHARE = 5.0  # numbers of J^T J that take 1.7 times as long as one number of Adam's steps, by the compiled programs


@dataclass(frozen=True)
class Finishing:
    """Returns the members after the finish of the best of each shape.

    Attributes:
        steps: of Levenberg and Marquardt, or "auto": as many as take about 1.7 times as long as the search did, at most
            `MOST`, and none where the best member gains little from the first ones.
        count: so many members of each shape are finished, as many of each fold.
        work: Adam's steps of all members, times their parameters.
        options: alpha, c and engine.
    """

    steps: int | str
    count: int
    work: float
    options: dict[str, Any]

    def __call__(
        self,
        found: Sequence[Candidate],
        rows: Rows,
        validation: Validation,
        progress: Progress,
        interrupted: Callable[[], object],
    ) -> list[Candidate]:
        """Finish the best of each fold on its rows; a member takes the result if its loss of validation is lower."""
        after = {(one.network, one.start): one for one in found}
        sound = sorted((one for one in found if math.isfinite(one.loss)), key=lambda one: one.loss)
        groups: dict[tuple[MLP, int], list[Candidate]] = {}
        for one in sound:
            groups.setdefault((one.network, one.fold), []).append(one)
        folds = len({fold for _, fold in groups})
        for i, ((_, fold), members) in enumerate(groups.items()):
            some = members[: math.ceil(self.count / folds)]
            train, tests = rows.without_held(fold) if rows.held else (rows, validation.rows())
            if steps := self._worth(some, train, tests, len(groups)):
                watch = {"progress": _part(progress, i, len(groups)), "interrupted": interrupted}
                after |= {(one.network, one.start): one for one in self._finished(some, train, tests, steps, watch)}
        return list(after.values())

    def _worth(self, some: list[Candidate], rows: Rows, tests: Rows, groups: int) -> int:
        """Return the number of steps for members of one shape and fold."""
        if self.steps != "auto":
            return int(self.steps)
        steps = min(MOST, self._affordable(some, rows) // groups)
        if steps < PROBE or some[0].loss > PROMISING:
            return 0
        tried = self._finished(some[:2], rows, tests, PROBE, {})
        gains = any(new.loss <= FALL * old.loss for old, new in zip(some, tried, strict=False))
        return steps if gains else 0

    def _affordable(self, some: list[Candidate], rows: Rows) -> int:
        """Return how many steps of these members take as long as Adam's took, by the operations of both.

        The compiled programs take about as long for 3.4 numbers of one as for 1.2 of the other.
        """
        p, count = some[0].network.parameters, len(rows.x)
        step = p * p * (count * some[0].network.widths[-1] + 3 * p)  # J^T J, and its factor
        return int(_SHARE * self.work * (rows.batch or count) / (step * len(some)))

    def _finished(
        self, some: list[Candidate], rows: Rows, tests: Rows, steps: int, watch: dict[str, Any]
    ) -> list[Candidate]:
        network, start = some[0].network, np.stack([one.theta for one in some], axis=1)
        theta = finish_members(network, start, rows, steps=steps, damping=DAMPING, **self.options, **watch).theta
        losses = finish_members(network, theta, tests, steps=0, **self.options).loss
        return [
            replace(one, loss=loss, theta=new.copy()) if loss < one.loss else one
            for one, loss, new in zip(some, losses.tolist(), theta.T, strict=True)
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
        return lambda done, _: self.progress(self.share + (0.99 - self.share) * done, self.best)
