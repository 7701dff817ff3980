"""The state that training carries from step to step, and the steps that an engine takes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from plunit.ensemble.arrays import Array, as_factors, as_many
from plunit.ensemble.mlp import MLP, broadcast
from plunit.ensemble.nonlinearities import LOSSES
from plunit.ensemble.training_data import StepData, Validation

Selected = TypeVar("Selected", bound="State")


@dataclass
class State:
    """Parameters, Adam's moments and the recorded losses of an ensemble; an engine's `advance` changes them in place.

    Adam has its default settings (0.9, 0.999, 1e-8). A weight w loses lr decay w at each step; biases, alpha and c do
    not decay. The loss is recorded before every step that is a multiple of `stride`.
    """

    network: MLP
    loss: str
    stride: int
    lr: Array  # [S]
    decay: Array  # [S]
    alpha: Array  # [depth - 1, S]
    c: Array  # [depth - 1, S]
    theta: Array  # [parameters, S]
    mean: Array  # Adam's first moment, [parameters, S]
    square: Array  # Adam's second moment, [parameters, S]
    running: Array  # the running mean of theta, [parameters, S]; see `Validation.average`
    best: Array  # the parameters with the lowest validation loss, [parameters, S]
    best_loss: Array  # that loss, [S]; infinite before the first validation
    best_step: Array  # the number of steps after which it was found, [S]
    mark: Array  # the last validation loss that improved on the previous mark by the tolerance, [S]
    waited: Array  # the number of validations since then, [S]
    history: Array  # losses [ceil(steps / stride), S]; NaN where not recorded
    looks: Array  # validation losses [steps // every, S]; NaN after a member has stopped

    @property
    def members(self) -> int:
        """The number of members."""
        return int(self.theta.shape[1])

    def select(self: Selected, members: Any) -> Selected:
        """Return a copy with some of the members."""
        arrays = {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        kept: dict[str, Any] = {name: value[..., members].copy() for name, value in arrays.items()}
        return dataclasses.replace(self, **kept)


def initial_state(
    network: MLP, theta: Array, *, steps: int, every: int = 0, stride: int = 16, loss: str = "square", **factors: Any
) -> State:
    """Return the checked state before the first step; it copies its arrays.

    The factors are lr, decay, alpha and c, as in `train`. There is room for the losses of `steps` steps, and for one
    validation loss every `every` steps.
    """
    if theta.ndim != 2 or theta.shape[0] != network.parameters or theta.shape[1] < 1:
        raise ValueError(f"theta must be [{network.parameters}, members] for {network}, got {tuple(theta.shape)}")
    if not isinstance(loss, str) or loss not in LOSSES:
        raise ValueError(f"unknown loss {loss!r}; choose one of {', '.join(LOSSES)}")
    dtype, members = theta.dtype, theta.shape[1]
    factors = {"lr": 0.01, "decay": 0.0, "alpha": 0.1, "c": 1.0, **factors}
    lr, decay, alpha, c = (as_factors(name, value, dtype) for name, value in factors.items())
    return State(
        network,
        loss,
        stride,
        lr=as_many("lr", lr, members),
        decay=as_many("decay", decay, members),
        **{name: np.array(broadcast(network, theta, value), order="C") for name, value in (("alpha", alpha), ("c", c))},
        **{name: np.array(theta, order="C") for name in ("theta", "running", "best")},
        **{name: np.zeros(theta.shape, dtype) for name in ("mean", "square")},
        **{name: np.full(members, np.inf, dtype) for name in ("best_loss", "mark")},
        best_step=np.zeros(members, np.int64),
        waited=np.zeros(members, np.int32),
        history=np.full((math.ceil(steps / stride), members), np.nan, dtype),
        looks=np.full((steps // every if every else 0, members), np.nan, dtype),
    )


@dataclass(frozen=True)
class Steps:
    """Some steps of training: first, ..., first + len(schedule) - 1."""

    first: int  # the number of steps taken before
    schedule: Array  # the factor of the step size at each step
    training: StepData
    tests: StepData | None = None  # the validation points
    validation: Validation | None = None  # how often they are used, and patience
    adam: str = "pytorch"  # one of `plunit.ensemble.adam.ADAMS`

    @property
    def last(self) -> int:
        """The total number of steps after these."""
        return self.first + len(self.schedule)

    def shares(self) -> Array | None:
        """Return the weight of each step t in the running mean, 1 / (1 + average (t - 1)); None without a mean."""
        if not (self.validation and self.validation.average):
            return None
        return np.asarray(1 / (1 + self.validation.average * np.arange(self.first, self.last)))


Part = tuple[State, Steps]
"""An ensemble and the steps that it takes."""

Engine = Callable[[Sequence[Part]], None]
"""Takes the steps of several ensembles, in place."""


def check_capacity(state: State, steps: Steps) -> None:
    """Raise ValueError if the state has no room for the losses of these steps; the program would write past its end."""
    looks = steps.last // steps.validation.every if steps.validation else 0
    if len(state.history) * state.stride < steps.last or len(state.looks) < looks:
        raise ValueError(
            f"the state has room for {len(state.history) * state.stride} steps and {len(state.looks)} validations, but "
            f"these are {steps.last} and {looks}; create the state with larger `steps` and with `every`"
        )
