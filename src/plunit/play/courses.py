"""The networks of one activation in training, part by part."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plunit.ensemble import Network, Rows, Validation, engine, initial
from plunit.ensemble.arrays import Array
from plunit.ensemble.data import points
from plunit.ensemble.state import Steps
from plunit.ensemble.training import ENGINES, begin
from plunit.play.settings import Settings
from plunit.play.targets import Task

WHOLE = 512
"""Larger tables are learned in batches of random rows, and their loss is that of this many rows."""

BATCH = 128
"""Rows of a batch."""


@dataclass(frozen=True)
class Snapshot:
    """The networks of one activation after `step` steps: theta [rows, S] in scaled units, mean square errors [S]."""

    network: Network
    step: int
    theta: Array
    loss: Array


class Course:
    """The state of one activation's networks; `advance` goes on with it."""

    def __init__(self, network: Network, start: Array, task: Task, settings: Settings) -> None:
        x, y = task.scaled
        self.network, self.step = network, 0
        self._state = begin(
            network,
            start[: network.rows],
            loss="square",
            lr=settings.lr,
            decay=0.0,
            alpha=settings.alpha,
            c=settings.c,
            stride=1,
            steps=1,
            every=1,
        )
        batch, seeds = (BATCH, range(settings.networks)) if len(x) > WHOLE else (0, ())
        self._looks = Validation(x[:WHOLE], y[:WHOLE])
        self._given = points(Rows(x, y, batch=batch, seeds=list(seeds)), 1, network, self._state.theta)
        self._tests = points(Rows(self._looks.x, self._looks.y), 1, network, self._state.theta)
        self._unit = float(np.mean(task.scales[1].spread ** 2))
        self._advance = ENGINES[engine()]
        self.look()

    def advance(self, steps: int) -> None:
        """Take some steps of Adam, and look at the losses after the last."""
        last = self.step + steps
        # one row of history and one look, whatever the number of steps
        self._state.stride = last
        looks = replace(self._looks, every=last)
        self._advance(self._state, Steps(self.step, np.ones(steps), self._given, self._tests, looks))
        self.step = last

    def look(self) -> None:
        """Look at the losses before the first step, by a step of size 0 of a copy."""
        copy = self._state.select(slice(None))
        copy.lr[:] = 0
        self._advance(copy, Steps(0, np.ones(1), self._given, self._tests, replace(self._looks, every=1)))
        self._state.looks[:] = copy.looks

    def snapshot(self) -> Snapshot:
        """Return a copy of the networks and their losses in the units of the user."""
        loss = self._state.looks[0].astype(np.float64) * self._unit
        return Snapshot(self.network, self.step, self._state.theta.copy(), loss)


def courses_of(task: Task, settings: Settings) -> list[Course]:
    """Return the networks of each activation before their first step; network i starts alike in all of them."""
    widths = (task.inputs, *[settings.width] * settings.depth, task.outputs)
    generators = [np.random.default_rng([settings.seed, i]) for i in range(settings.networks)]
    # the raw alpha and c come last, so that the other activations take the rows before
    everyone = "plu_learned" if "plu_learned" in settings.activations else "plu"
    start = initial(Network(widths, everyone), generators, alpha=settings.alpha, c=settings.c)
    return [Course(Network(widths, name), start, task, settings) for name in settings.activations]


def bytes_of(task: Task, settings: Settings) -> int:
    """Estimate the memory of a session: parameters, moments, best ones, copies, and the table."""
    widths = (task.inputs, *[settings.width] * settings.depth, task.outputs)
    rows = max(Network(widths, name).rows for name in settings.activations)
    each = 4 * settings.networks * (8 * rows + 500)
    return len(settings.activations) * each + 16 * task.x.nbytes + 16 * task.y.nbytes
