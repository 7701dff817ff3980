"""The training of density networks: checked points, the state of a member, and its steps.

`advance` runs the compiled program of programs/csrc/chain.cpp, in float32; `numpy_chain` does the same in NumPy.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plunit import learned
from plunit.base.machine import processors
from plunit.densities.density_faults import constants
from plunit.densities.density_network import LEARNED, Architecture, DensityNetwork
from plunit.ensemble.adam import corrections, whole_looks
from plunit.ensemble.arrays import Array, as_array
from plunit.programs.interface import ChainTask, SampleArrays, Struct, call_program, run_on_threads
from plunit.programs.libraries import library

AVERAGED = 1000  # the running mean of the parameters covers about this number of steps, fewer at the beginning


@dataclass
class Member:
    """A network in training, whose arrays `advance` changes in place.

    `loss` is the lowest validation loss, the mean of |z|^2 / 2 - log|det dz/dx|; infinite before the first validation.
    """

    architecture: Architecture
    order: Array  # see `DensityNetwork`
    sign: Array
    seed: int  # the seed of its random batches
    theta: Array
    mean: Array  # Adam's first moment
    square: Array  # Adam's second moment
    average: Array  # the running mean of the parameters, which is validated
    best: Array  # the running mean with the lowest validation loss
    radii: Array  # [blocks, n], the radius within which samples estimate the density at a kink
    looks: Array  # the validation losses, one for every `every` steps; NaN where missing
    steps: int = 0  # taken
    loss: float = math.inf
    best_step: int = 0  # the number of steps after which `loss` was found
    mark: float = math.inf  # the last validation loss that improved on the previous mark
    waited: int = 0  # the number of validations since then

    def copy(self) -> Member:
        """Return a member with copies of all arrays that training changes."""
        changed = ("theta", "mean", "square", "average", "best", "radii", "looks")
        return replace(self, **{name: getattr(self, name).copy() for name in changed})

    def network(self) -> DensityNetwork:
        """Return the network with the lowest validation loss, in float64."""
        return DensityNetwork(self.architecture, self.best.astype(np.float64), self.order, self.sign.astype(np.float64))


def initial_member(start: DensityNetwork, seed: int, looks: int) -> Member:
    """Return a member before its first step, with room for `looks` validations."""
    form, theta = start.architecture, start.theta
    return Member(
        form,
        start.order,
        start.sign,
        seed,
        theta.copy(),
        mean=np.zeros_like(theta),
        square=np.zeros_like(theta),
        average=theta.copy(),
        best=theta.copy(),
        radii=np.zeros((form.blocks, form.features), theta.dtype),
        looks=np.full(looks, np.nan, theta.dtype),
    )


@dataclass(frozen=True)
class Sample:
    """Standardised points x [rows, n], in random order, because batches are read at a fixed stride.

    Weights [rows] are at least 0, or None for equal weights. Training divides them by their mean.
    """

    x: Array
    weight: Array | None = None


class PreparedSample(Sample):
    """Points that `prepare_sample` has checked: contiguous float32, with weights of mean 1."""


def prepare_sample(sample: Sample | Array, features: int, what: str) -> PreparedSample:
    """Return checked points for the engines, unchanged if they were prepared; or raise ValueError about `what`."""
    if isinstance(sample, PreparedSample) and sample.x.shape[1] == features:
        return sample
    sample = sample if isinstance(sample, Sample) else Sample(sample)
    x = _numbers(sample.x, f"x of {what}")
    if x.ndim != 2 or x.shape[1] != features or not len(x):
        raise ValueError(f"x of {what} must be [rows, {features}] with at least one row, got shape {x.shape}")
    if sample.weight is None:
        return PreparedSample(x)
    weight = _numbers(sample.weight, f"weight of {what}", np.float64)
    if weight.shape != (len(x),):
        raise ValueError(f"weight of {what} must be [{len(x)}], one for each row; got shape {weight.shape}")
    if weight.min() < 0 or not weight.max() > 0:
        raise ValueError(f"weights of {what} must be at least 0, and not all 0; the smallest is {weight.min():g}")
    weight = weight / weight.max()  # the sum of large weights may overflow
    return PreparedSample(x, np.ascontiguousarray(weight / weight.mean(), dtype=np.float32))


def check_spread(sample: Sample) -> None:
    """Raise ValueError if a column is constant, which has no density."""
    if len(sample.x) < 2:
        raise ValueError(f"a density needs at least two rows, got {len(sample.x)}")
    for fault in constants(sample.x, np.flatnonzero(np.ptp(sample.x, axis=0) == 0).tolist()):
        raise ValueError(fault)


def _numbers(values: Array, name: str, dtype: Any = np.float32) -> Array:
    with np.errstate(over="ignore"):
        array = np.ascontiguousarray(as_array(values, dtype, name))
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        place = bad[0].tolist()
        raise ValueError(
            f"{name} must be finite in {array.dtype}, got {array[tuple(place)]} at {place}; drop those rows"
        )
    return array


@dataclass(frozen=True)
class MemberSteps:
    """The next steps of a member."""

    rate: Array  # Adam's step size at each step
    training: Sample
    batch: int  # points per step
    rho: Any = 0.0  # rho at each step, unless it is learned; 0 means kinks
    tests: Sample | None = None  # the validation points
    every: int = 50  # steps between validations
    patience: float = math.inf  # the number of validations without progress after which the member stops

    @property
    def count(self) -> int:
        """The number of steps."""
        return len(self.rate)


def check_looks(member: Member, steps: MemberSteps) -> None:
    """Raise ValueError unless the member has room for all validations of these steps."""
    looks = (member.steps + steps.count) // steps.every
    if steps.tests and looks > len(member.looks):
        raise ValueError(f"the member has room for {len(member.looks)} validations, but these steps have {looks}")


def mean_shares(first: int, count: int) -> Array:
    """Return the weights of new parameters in the running mean from step `first` on: large at first, later 1/1000."""
    t = np.arange(first, first + count)
    return np.maximum(1 / AVERAGED, np.minimum(1.0, 9 / (10 + t)))


def nearest(batch: int) -> int:
    """Return the number of samples of a batch from which the density at a kink is estimated."""
    return math.ceil(math.sqrt(batch))


def mean_loss(network: DensityNetwork, sample: Sample) -> float:
    """Return the weighted mean of |z|^2 / 2 - log|det dz/dx|."""
    z, log_det = network.forward(sample.x.T)
    return float(np.average(0.5 * (z**2).sum(0) - log_det, weights=sample.weight))


_ARRAYS = ("order", "sign", "theta", "mean", "square", "average", "best", "radii", "looks")


def advance(members: Sequence[Member], steps: MemberSteps, threads: int | None = None) -> None:
    """Train all members, in place, by the compiled program.

    Threads, by default one for each processor, share the members; their number does not change the bits.
    """
    program, left = library("chain"), iter(members)  # Python's lock makes `next` of a list's iterator atomic

    def work() -> None:
        for member in left:
            advance_member(program, member, steps)

    run_on_threads(work, min(threads or processors(), len(members)))


def advance_member(program: ctypes.CDLL, member: Member, steps: MemberSteps) -> None:
    """Train one member with a given build of the program, which releases Python's lock."""
    check_looks(member, steps)
    form = member.architecture
    mean, root = corrections(np.arange(member.steps + 1, member.steps + steps.count + 1, dtype=np.float64))
    schedules = {
        "rate": steps.rate / mean,
        "root": root,
        "rho": np.broadcast_to(steps.rho, root.shape),
        "share": mean_shares(member.steps, steps.count),
    }
    with np.errstate(over="ignore"):  # at a step size with which every network diverges
        numbers = {name: np.ascontiguousarray(values, dtype=np.float32) for name, values in schedules.items()}
    task = ChainTask(
        features=form.features,
        blocks=form.blocks,
        sides=1 if form.activation == "leaky" else 2,
        learned=len(LEARNED[form.activation]),
        limit=learned.LIMIT,
        training=_sample(steps.training),
        tests=_sample(steps.tests),
        batch=steps.batch,
        nearest=nearest(steps.batch),
        every=steps.every,
        seed=member.seed % 2**64,
        first=member.steps,
        steps=steps.count,
        patience=whole_looks(steps.patience if steps.tests else math.inf),
        best_loss=member.loss,
        mark=member.mark,
        best_step=member.best_step,
        waited=member.waited,
        **numbers,
        **{name: getattr(member, name) for name in _ARRAYS},
    )
    member.steps += call_program(program.plunit_chain, ctypes.byref(task))
    member.loss, member.best_step, member.mark, member.waited = task.best_loss, task.best_step, task.mark, task.waited


def _sample(sample: Sample | None) -> Struct:
    return SampleArrays() if sample is None else SampleArrays(x=sample.x, weight=sample.weight, count=len(sample.x))
