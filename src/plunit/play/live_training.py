"""An ensemble that trains a few steps at a time, with its losses after each part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plunit.ensemble.arrays import Array
from plunit.ensemble.levenberg_marquardt import PATIENCE, finish_members
from plunit.ensemble.mlp import MLP
from plunit.ensemble.native_steps import fill_lanes
from plunit.ensemble.training import ENGINES, engine
from plunit.ensemble.training_data import Rows, Validation, points
from plunit.ensemble.training_state import Part, Steps, initial_state

LOOKED = 512
"""Maximum number of rows, the first ones, that the loss is measured on."""


@dataclass(frozen=True)
class Snapshot:
    """An ensemble after `step` steps: parameters [parameters, S] and losses [S], both copies."""

    network: MLP
    step: int
    theta: Array
    loss: Array


class LiveTraining:
    """Members that minimise the mean square error by Adam, without a limit.

    Args:
        network: the form of the members.
        theta: the start [parameters, S], in float32 for the compiled program; see `initial`.
        rows: the table.
        unit: the losses are multiplied by it.
        options: `lr`, `alpha` and `c`, as for `train`.

    The parameters after k steps are those of `train` with k steps, to the bit, however training is divided.

    >>> from plunit.ensemble import initial
    >>> x = np.linspace(-6, 6, 50)[:, None]
    >>> network = MLP((1, 3, 3, 1))
    >>> training = LiveTraining(network, initial(network, [np.random.default_rng(0)]), Rows(x, np.sin(x)), lr=0.01)
    >>> advance_all([training], 100)
    >>> advance_all([training], 100)
    >>> training.step, bool(training.snapshot().loss < 0.5)
    (200, True)
    """

    def __init__(
        self, network: MLP, theta: Array, rows: Rows, *, lr: Any, alpha: Any = 0.1, c: Any = 1.0, unit: float = 1.0
    ) -> None:
        shape = {"alpha": alpha, "c": c, "lr": lr, "decay": 0.0}
        state = initial_state(network, theta, loss="square", stride=1, steps=1, every=1, **shape)
        # once, because the program would copy all arrays for each part
        self._state, self._members = fill_lanes(state) if engine() == "native" else state, state.members
        self._looked = Validation(rows.x[:LOOKED], rows.y[:LOOKED])
        self._given = points(rows, 1, network, theta)
        self._tests = points(Rows(self._looked.x, self._looked.y), 1, network, theta)
        self._unit, self.step = unit, 0
        # the losses before the first step, by a step of size 0 of a copy
        copy = self._state.select(slice(None))
        copy.lr[:] = 0
        ENGINES[engine()]([(copy, Steps(0, np.ones(1), self._given, self._tests, replace(self._looked, every=1)))])
        self._state.looks[:] = copy.looks

    ended = False  # Adam never ends

    def _part(self, steps: int) -> Part:
        self._state.stride = self.step + steps  # one row of history and one look, whatever the number of steps
        looked = replace(self._looked, every=self.step + steps)
        return self._state, Steps(self.step, np.ones(steps), self._given, self._tests, looked)

    def snapshot(self) -> Snapshot:
        """Return a copy of the present parameters and losses."""
        loss = self._state.looks[0, : self._members].astype(np.float64) * self._unit
        return Snapshot(self._state.network, self.step, self._state.theta[:, : self._members].copy(), loss)


class LiveFinish:
    """Like `LiveTraining`, with Levenberg and Marquardt's steps on all rows: those of one call of `finish_members`."""

    def __init__(
        self, network: MLP, theta: Array, rows: Rows, *, alpha: Any = 0.1, c: Any = 1.0, unit: float = 1.0
    ) -> None:
        self._network, self._rows, self._unit = network, Rows(rows.x, rows.y), unit
        self._options: dict[str, Any] = {"alpha": alpha, "c": c, "engine": engine()}
        self._now = finish_members(network, theta, self._rows, steps=0, **self._options)
        self.step = 0

    @property
    def ended(self) -> bool:
        """Whether no member improves any more."""
        return bool((self._now.waited >= PATIENCE).all())

    def advance(self, steps: int) -> None:
        """Take some steps."""
        self._now = finish_members(self._network, self._now, self._rows, steps=steps, **self._options)
        self.step += steps

    def snapshot(self) -> Snapshot:
        """Return a copy of the present parameters and losses."""
        return Snapshot(self._network, self.step, self._now.theta.copy(), self._now.loss * self._unit)


def advance_all(trainings: Sequence[LiveTraining] | Sequence[LiveFinish], steps: int) -> None:
    """Advance all trainings at once, with the same bits as one after the other."""
    first = [training for training in trainings if isinstance(training, LiveTraining)]
    if first:
        ENGINES[engine()]([training._part(steps) for training in first])
    for training in trainings:
        if isinstance(training, LiveFinish):
            training.advance(steps)
        else:
            training.step += steps
