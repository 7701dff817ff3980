"""Fit the functions of sections 2 to 4 by small networks, and count the pieces of the trained networks.

`compute` trains the seeds of a cell as its `FitSpec` says, and `count_pieces` counts, on the interval or the square of
the data. From the same starts, `compute_reach` takes second-order steps, which show how low the loss can get, whether
Adam gets there or not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from plunit.base.ranges import COUNT, DOMAIN, RATE, SHARE, WIDTH, Range
from plunit.ensemble import MLP, finish_members, forward, initial, train
from plunit.ensemble.arrays import Array
from plunit.ensemble.mlp import PIECEWISE, dead_units, exact
from plunit.ensemble.training import Trained
from plunit.ensemble.training_data import Data, Stream
from plunit.lab.cell import Arrays, Cell
from plunit.pieces.exact.line_curves import Counts, counts
from plunit.pieces.exact.polygon_set import polygon_counts

COURSE = 128
"""Seeds, the first ones, for which pieces are counted during training, too."""

_BLOCK = 512
_LARGEST = 1e20


def curve(t: Array) -> Array:
    """[(cos t - cos 2t)^3, (sin 2t - sin t)^3]: the paper's parametric function with c = [1, 2, 2, 1]."""
    return np.concatenate([(np.cos(t) - np.cos(2 * t)) ** 3, (np.sin(2 * t) - np.sin(t)) ** 3])


TARGETS: dict[str, tuple[Callable[[Array], Array], int, int]] = {
    "sine": (np.sin, 1, 1),
    "curve": (curve, 1, 2),
    "saddle": (lambda x: x[:1] ** 2 - x[1:] ** 2, 2, 1),
}
"""The functions the paper fits, [inputs, ...] to [outputs, ...], with their numbers of inputs and outputs."""


@dataclass(frozen=True)
class FitSpec:
    """A function and the networks that fit it; the defaults are those of section 2 of the paper.

    Attributes:
        target: a name of `TARGETS`.
        widths: units from input to output; depth 3 is three weight layers and two activations.
        steps: steps of Adam.
        low: lower end of the domain of every input.
        high: upper end.
        points: linearly spaced points of the domain, for each input: the training data, or, with `batch`, the points
            at which the final loss is computed.
        batch: 0 to train on all points at every step, else the number of uniformly drawn points of each step.
        lr: Adam's step size.
        adam: "pytorch", or "tensorflow", which adds epsilon to the uncorrected root, as the paper's program did.
        frequency: k, if f(k x) is fitted rather than the target f(x).
        alpha: PLU's outer slope, or its start if it is learned.
        c: half-width of PLU's inner piece, or its start.
        stride: the loss is recorded every `stride` steps.
        checkpoints: steps after which the weights are kept, besides the last.
    """

    target: Literal["sine", "curve", "saddle"]
    widths: Annotated[tuple[int, ...], Range(1, 256)]
    steps: Annotated[int, COUNT]
    low: Annotated[float, DOMAIN] = -2 * math.pi
    high: Annotated[float, DOMAIN] = 2 * math.pi
    points: Annotated[int, Range(2, 10_000)] = 50
    batch: Annotated[int, Range(0, 100_000)] = 0
    lr: Annotated[float, RATE] = 0.01
    adam: Literal["pytorch", "tensorflow"] = "pytorch"
    frequency: Annotated[float, Range(1e-3, 1e3)] = 1.0
    alpha: Annotated[float, SHARE] = 0.1
    c: Annotated[float, WIDTH] = 1.0
    stride: Annotated[int, COUNT] = 16
    checkpoints: Annotated[tuple[int, ...], COUNT] = (16, 32, 64, 128, 256, 512, 1024)

    def __post_init__(self) -> None:
        _, inputs, outputs = TARGETS[self.target]
        if len(self.widths) < 3 or (self.widths[0], self.widths[-1]) != (inputs, outputs):
            got = ",".join(map(str, self.widths))
            raise ValueError(f"widths for {self.target} must be {inputs},...,{outputs} with hidden layers, got {got}")
        if not -math.inf < self.low < self.high < math.inf:
            raise ValueError(f"low must be below high, both finite, got {self.low} and {self.high}")
        if list(self.checkpoints) != sorted(set(self.checkpoints)):
            raise ValueError(f"checkpoints must increase, got {self.checkpoints}")
        if self.points ** self.widths[0] > 10**6:
            raise ValueError(f"points must be at most {round(10 ** (6 / self.widths[0]))}, got {self.points}")

    def value(self, x: Array) -> Array:
        """Return the target at points x."""
        return TARGETS[self.target][0](self.frequency * x)


@dataclass(frozen=True)
class ReachSpec(FitSpec):
    """The fields of `FitSpec`, with Adam's steps, and the steps of Levenberg and Marquardt from the same starts.

    Attributes:
        finish_steps: of Levenberg and Marquardt, at most; a member that stalls ends earlier.
        damping: of the first of them.
    """

    finish_steps: Annotated[int, COUNT] = 400
    damping: Annotated[float, Range(1e-9, 1e9)] = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch:
            raise ValueError(f"batch must be 0, because all points count at each step, got {self.batch}")


def compute(cell: Cell, scratch: Path) -> Arrays:
    """Train seeds first, ..., last - 1.

    Seed s has one generator, which gives first the weights and then the batches: both are the same for every
    activation, so runs are paired. The arrays:

    - seed [S]; theta [rows, S], the final weights; checkpoints [k, rows, S]; history [steps / stride, S];
    - final_loss [S], at `grid` in float64; dead [S], the number of hidden units with slope 0 at every point of `grid`;
    - alpha, c [depth - 1, S], the learned ones, if learned;
    - those of `count_pieces`, if the activation is piecewise linear.
    """
    spec: FitSpec = cell.spec
    network = MLP(spec.widths, cell.activation)
    checkpoints = [step for step in spec.checkpoints if step < spec.steps]
    trained = train_seeds(spec, network, cell, stride=spec.stride, checkpoints=checkpoints)
    arrays = {
        "seed": np.array(cell.seeds),
        "theta": trained.theta,
        "checkpoints": trained.checkpoints,
        "history": trained.history,
        "final_loss": final_loss(spec, network, trained.theta),
        "dead": dead_units(network, trained.theta, grid(spec), spec.alpha, spec.c),
    }
    if network.learned:
        arrays["alpha"], arrays["c"] = network.alphas_and_cs(trained.theta, spec.alpha, spec.c)
    return arrays | count_pieces(spec, network, arrays)


def train_seeds(spec: FitSpec, network: MLP, cell: Cell, **options: Any) -> Trained:
    """Train the seeds of a cell on the data of a spec; the loss is recorded once, unless the options say otherwise."""
    generators = [np.random.default_rng(seed) for seed in cell.seeds]
    start = initial(network, generators, alpha=spec.alpha, c=spec.c)
    data = stream(spec, generators) if spec.batch else training_data(spec)
    return train_starts(spec, network, start, data, engine=cell.engine, **options)


def train_starts(spec: FitSpec, network: MLP, start: Array, data: Data | Stream, **options: Any) -> Trained:
    """Train networks from given starts as the spec says."""
    given = {"alpha": spec.alpha, "c": spec.c, "steps": spec.steps, "lr": spec.lr, "adam": spec.adam}
    return train(network, start, data, **{"stride": spec.steps, **given, **options})


def compute_reach(cell: Cell, scratch: Path) -> Arrays:
    """Return seed, adam_loss, final_loss and taken [S], the steps until each stalled, and theta [rows, S]."""
    spec: ReachSpec = cell.spec
    network = MLP(spec.widths, cell.activation)
    start = initial(network, [np.random.default_rng(seed) for seed in cell.seeds], alpha=spec.alpha, c=spec.c)
    options: dict[str, Any] = {"alpha": spec.alpha, "c": spec.c, "engine": cell.engine}
    adam = train_starts(spec, network, start, training_data(spec), **options)
    found = finish_members(
        network, start, training_data(spec), steps=spec.finish_steps, damping=spec.damping, **options
    )
    return {
        "seed": np.array(cell.seeds),
        "theta": found.theta,
        "adam_loss": final_loss(spec, network, adam.theta),
        "final_loss": final_loss(spec, network, found.theta),
        "taken": found.steps,
    }


def grid(spec: FitSpec) -> Array:
    """Return the points of the spec, [inputs, points ** inputs]."""
    axis = np.linspace(spec.low, spec.high, spec.points)
    return np.stack(np.meshgrid(*[axis] * spec.widths[0], indexing="ij")).reshape(spec.widths[0], -1)


def training_data(spec: FitSpec) -> Data:
    """Return the training data of a spec without batches, for all members."""
    x = grid(spec)
    return x.astype(np.float32), spec.value(x).astype(np.float32)


def stream(spec: FitSpec, generators: Sequence[np.random.Generator]) -> Stream:
    """Return batches of uniformly drawn points, each member's from its own generator."""
    span = spec.high - spec.low

    def batches(steps: int) -> Data:
        shape = (steps, spec.widths[0], spec.batch)
        draws = np.empty((len(generators), math.prod(shape)), dtype=np.float32)
        for generator, row in zip(generators, draws, strict=True):
            generator.random(out=row, dtype=np.float32)
        x = np.ascontiguousarray((draws * np.float32(span) + np.float32(spec.low)).T).reshape(*shape, -1)
        return x, spec.value(x.swapaxes(0, 1)).swapaxes(0, 1)

    return batches


def final_loss(spec: FitSpec, network: MLP, theta: Array) -> Array:
    """Return the mean square error of each member at the points of the spec."""
    x = grid(spec)
    output = forward(network, theta.astype(np.float64), x, spec.alpha, spec.c)
    return np.asarray(((output - spec.value(x)[..., None]) ** 2).mean((0, 1)))


def count_pieces(spec: FitSpec, network: MLP, arrays: Arrays) -> Arrays:
    """Return the counts of trained networks; {} if their activation is not piecewise linear.

    - initial_pieces, trained_pieces, random_pieces [S]: functionally distinct pieces before and after training, and
      with the same initial weights but biases N(0, 1) rather than 0; *_patterns [S]: activation patterns, likewise;
    - course [steps, S'], for the seeds S' below `COURSE`: pieces after each of `steps`.
    """
    if network.activation not in PIECEWISE:
        return {}
    generators = [np.random.default_rng(seed) for seed in arrays["seed"]]
    start = initial(network, generators, alpha=spec.alpha, c=spec.c)
    random = start.copy()
    for _, bias in network.layers(random):  # the same for every activation
        draws = [generator.standard_normal(len(bias), dtype=np.float32) for generator in generators]
        bias[...] = np.stack(draws, axis=-1)
    stages = {"initial": start, "random": random, "trained": arrays["theta"]}
    found = {stage: count(spec, network, theta) for stage, theta in stages.items()}
    first = int((arrays["seed"] < COURSE).sum())
    between = [count(spec, network, theta[:, :first]).pieces for theta in arrays["checkpoints"]]
    course = [found["initial"].pieces[:first], *between, found["trained"].pieces[:first]]
    numbers = {f"{stage}_pieces": both.pieces for stage, both in found.items()}
    patterns = {f"{stage}_patterns": both.patterns for stage, both in found.items()}
    return {**numbers, **patterns, "course": np.stack(course)}


def counted_steps(spec: FitSpec) -> list[int]:
    """Return the steps after which pieces are counted: before the first, at the checkpoints, after the last."""
    return [0, *(step for step in spec.checkpoints if step < spec.steps), spec.steps]


def count(spec: FitSpec, network: MLP, theta: Array) -> Counts:
    """Count patterns and pieces of each member [S] on the domain of the spec; 0 where training diverged."""
    both, domain = np.zeros((2, theta.shape[1]), dtype=np.int64), (spec.low, spec.high)
    # training diverged if a weight is NaN, which compares as false, or larger than this
    sound = np.flatnonzero((np.abs(theta) < _LARGEST).all(0))
    for first in range(0, len(sound), _BLOCK):
        members = sound[first : first + _BLOCK]
        net = exact(network, theta[:, members], spec.alpha, spec.c)
        both[:, members] = counts(net, *domain) if net.inputs == 1 else polygon_counts(net, (domain, domain))
    return Counts(*both)
