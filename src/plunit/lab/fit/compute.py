"""Train the networks of a cell and take what figures, claims and later questions need."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from plunit.ensemble import ACTIVATIONS, Network, forward, initial, one_thread, preactivations, train
from plunit.ensemble.data import Data, Stream
from plunit.ensemble.network import spread
from plunit.lab.cell import Cell
from plunit.lab.fit.spec import Fit
from plunit.lab.fit.targets import TARGETS, Array
from plunit.lab.store import Arrays


def compute(cell: Cell) -> Arrays:
    """Train seeds first, ..., last - 1.

    Seed s has one generator, which gives first the weights and then the batches: both are the same for every
    activation, so runs are paired. The arrays:

    - seed [S]; theta [rows, S], the final weights; checkpoints [k, rows, S]; history [steps / stride, S];
    - final_loss [S], at `grid` in float64; dead [S], the number of hidden units with slope 0 at every point of `grid`;
    - alpha, c [depth - 1, S], the learned ones, if learned.
    """
    spec: Fit = cell.spec
    network = Network(spec.widths, cell.activation)
    generators = [np.random.default_rng(seed) for seed in range(cell.first, cell.last)]
    start = initial(network, generators, alpha=spec.alpha, c=spec.c)
    trained = train(
        network,
        start,
        stream(spec, generators) if spec.batch else fixed(spec),
        steps=spec.steps,
        lr=spec.lr,
        alpha=spec.alpha,
        c=spec.c,
        stride=spec.stride,
        checkpoints=[step for step in spec.checkpoints if step < spec.steps],
        engine=cell.engine,
    )
    arrays = {
        "seed": torch.arange(cell.first, cell.last),
        "theta": trained.theta,
        "checkpoints": trained.checkpoints,
        "history": trained.history,
        "final_loss": final_loss(spec, network, trained.theta),
        "dead": dead_units(spec, network, trained.theta),
    }
    if network.learned:
        fixed_shapes = [spread(network, start, value) for value in (spec.alpha, spec.c)]
        arrays["alpha"], arrays["c"] = network.shapes(trained.theta, *fixed_shapes)
    return {name: tensor.numpy() for name, tensor in arrays.items()}


def grid(spec: Fit) -> Array:
    """Return the points of the spec, [inputs, points ** inputs]."""
    axis = np.linspace(spec.low, spec.high, spec.points)
    return np.stack(np.meshgrid(*[axis] * spec.widths[0], indexing="ij")).reshape(spec.widths[0], -1)


def fixed(spec: Fit) -> Data:
    """Return the training data of a spec without batches, for all members."""
    x = grid(spec)
    return torch.from_numpy(x).float(), torch.from_numpy(TARGETS[spec.target](x)).float()


def stream(spec: Fit, generators: Sequence[np.random.Generator]) -> Stream:
    """Return batches of uniformly drawn points, each member's from its own generator."""
    span = spec.high - spec.low

    def batches(steps: int) -> Data:
        shape = (steps, spec.widths[0], spec.batch)
        draws = np.empty((len(generators), math.prod(shape)), dtype=np.float32)
        for generator, row in zip(generators, draws, strict=True):
            generator.random(out=row, dtype=np.float32)
        x = torch.from_numpy(draws * np.float32(span) + np.float32(spec.low)).T.contiguous().view(*shape, -1)
        y = TARGETS[spec.target](x.movedim(1, 0).numpy())
        return x, torch.from_numpy(y).movedim(0, 1)

    return batches


@one_thread()
def final_loss(
    spec: Fit, network: Network, theta: Tensor, alpha: Tensor | None = None, c: Tensor | None = None
) -> Tensor:
    """Return the mean square error of each member at the points of the spec."""
    x = grid(spec)
    shapes = (spec.alpha if alpha is None else alpha, spec.c if c is None else c)
    output = forward(network, theta.double(), torch.from_numpy(x), *shapes)
    return (output - torch.from_numpy(TARGETS[spec.target](x))[..., None]).square().mean((0, 1))


@one_thread()
def dead_units(spec: Fit, network: Network, theta: Tensor) -> Tensor:
    """Count the hidden units of each member whose slope is 0 at every point: no data can move their weights."""
    activate = ACTIVATIONS[network.activation]
    x = torch.from_numpy(grid(spec)).float()
    shapes = network.shapes(theta, *(spread(network, theta, value) for value in (spec.alpha, spec.c)))
    count = torch.zeros(theta.shape[1], dtype=torch.int64)
    *hidden, _ = preactivations(network, theta, x, spec.alpha, spec.c)
    for z, alpha, c in zip(hidden, *shapes, strict=True):
        z.requires_grad_()
        (slope,) = torch.autograd.grad(activate(z, alpha, c).sum(), z)
        count += (slope == 0).all(1).sum(0)
    return count
