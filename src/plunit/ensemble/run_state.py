"""What a training run carries from step to step."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plunit.base.ranges import as_count
from plunit.ensemble.arrays import Array
from plunit.ensemble.data import StepData
from plunit.ensemble.mlp import MLP


@dataclass(frozen=True)
class Validation:
    """Rows that are not trained on, and when a member has had enough.

    Attributes:
        x: inputs [n, in].
        y: targets [n, out].
        weight: of each row [n]; None is 1 for all.
        every: steps from one look at them to the next.
        patience: a member ends after so many looks whose loss was not below the best by `tolerance`.
        tolerance: see `patience`.
        average: not the parameters are looked at, and kept, but their running mean over about this part of the steps
            taken; 0 takes the parameters themselves, 1 the mean of all steps.
    """

    x: Any
    y: Any
    weight: Any = None
    every: int = 10
    patience: float = math.inf
    tolerance: float = 0.0
    average: float = 0.0

    def __post_init__(self) -> None:
        as_count("every", self.every, 1)
        if not self.patience > 0 or not 0 <= self.tolerance < math.inf:
            raise ValueError(f"need patience > 0 and tolerance >= 0; got {self.patience} and {self.tolerance}")
        if not 0 <= self.average <= 1:
            raise ValueError(f"average must be a part of the steps, from 0 to 1, got {self.average}")


@dataclass
class State:
    """Parameters, Adam's moments and the recorded losses of an ensemble; an engine's `advance` changes them in place.

    Attributes:
        network: the form of the members.
        loss: a name of `plunit.ensemble.losses.LOSSES`.
        lr: Adam's step size of each member [S]; its other settings are the usual ones (0.9, 0.999, 1e-8).
        decay: a weight w loses lr decay w at each step; [S]. Biases, alpha and c lose nothing.
        stride: the loss is recorded before every step that is a multiple of it.
        theta: [parameters, S].
        mean: Adam's first moment, [parameters, S].
        square: Adam's second moment, [parameters, S].
        running: the running mean of theta, [parameters, S]; see `Validation.average`.
        alpha: [depth - 1, S].
        c: [depth - 1, S].
        history: losses [ceil(steps / stride), S]; NaN where none was taken.
        best: the parameters with the least loss of validation, [parameters, S].
        best_loss: that loss, [S]; infinite before the first look.
        best_step: the number of steps after which it was found, [S], whole numbers.
        mark: the last loss of validation that was better than the mark before by the tolerance, [S].
        waited: how many looks ago that was, [S], whole numbers.
        looks: the losses of validation [steps / every, S]; NaN after a member has ended.
    """

    network: MLP
    loss: str
    lr: Array
    decay: Array
    stride: int
    theta: Array
    mean: Array
    square: Array
    running: Array
    alpha: Array
    c: Array
    history: Array
    best: Array
    best_loss: Array
    best_step: Array
    mark: Array
    waited: Array
    looks: Array

    @property
    def members(self) -> int:
        """The number of members."""
        return int(self.theta.shape[1])

    def select(self, members: Any) -> State:
        """Return a copy with some of the members."""
        arrays = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        kept: dict[str, Any] = {
            name: value[..., members].copy() for name, value in arrays.items() if isinstance(value, np.ndarray)
        }
        return dataclasses.replace(self, **kept)


@dataclass(frozen=True)
class Steps:
    """Some steps of training: first, ..., first + len(schedule) - 1.

    Attributes:
        first: the number of steps taken before.
        schedule: the factor of the step size at each of them.
        training: their points.
        tests: the points of validation, or None.
        validation: when they are looked at, or None.
    """

    first: int
    schedule: Array
    training: StepData
    tests: StepData | None = None
    validation: Validation | None = field(default=None)

    @property
    def last(self) -> int:
        """The number of steps taken after."""
        return self.first + len(self.schedule)

    def shares(self) -> Array:
        """Return what the running mean takes in at each step: 1 at the first, then 1 / (1 + average (t - 1))."""
        average = self.validation.average if self.validation else 0.0
        return np.asarray(1 / (1 + average * np.arange(self.first, self.last)))


Part = tuple[State, Steps]
"""An ensemble and the steps that it takes; an engine takes several parts at once."""


def whole_looks(patience: float) -> int:
    """Return the number of looks after which patience is at its end; no training has as many as 2^31 - 1.

    >>> whole_looks(3), whole_looks(2.5), whole_looks(math.inf)
    (3, 3, 2147483647)
    """
    return math.ceil(min(patience, 2**31 - 1))


def check_room(state: State, steps: Steps) -> None:
    """Raise ValueError if the state has no room for the losses of these steps: the program would write past it."""
    looks = steps.last // steps.validation.every if steps.validation else 0
    if len(state.history) * state.stride < steps.last or len(state.looks) < looks:
        raise ValueError(
            f"the state has room for {len(state.history) * state.stride} steps and {len(state.looks)} looks at the "
            f"rows of validation, these are {steps.last} and {looks}; begin with more steps, and with every"
        )
