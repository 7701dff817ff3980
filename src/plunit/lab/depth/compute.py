"""Measure gradient norms at the start of training."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from plunit.ensemble import Network, forward, initial, one_thread
from plunit.lab.cell import Cell
from plunit.lab.depth.spec import Depth
from plunit.lab.store import Arrays


@one_thread()
def compute(cell: Cell) -> Arrays:
    """Return gradient [depths, S], the Frobenius norm of dL/dW_1 for L the mean square error, in float64; seed [S]."""
    spec: Depth = cell.spec
    norms = [first_gradient(spec, cell, depth) for depth in spec.depths]
    return {"seed": np.arange(cell.first, cell.last), "gradient": torch.stack(norms).numpy()}


def first_gradient(spec: Depth, cell: Cell, depth: int) -> Tensor:
    """Return |dL/dW_1| of each member of one depth."""
    network = Network((1, *[spec.width] * (depth - 1), 1), cell.activation)
    generators = [np.random.default_rng(seed) for seed in range(cell.first, cell.last)]
    scales = [1 / math.sqrt(m) for m in network.widths[:-1]] if spec.scale == "fan_in" else None
    theta = initial(network, generators, scales=scales).double().requires_grad_()
    x = torch.from_numpy(np.linspace(spec.low, spec.high, spec.points))[None]
    loss = (forward(network, theta, x, spec.alpha, spec.c) - x.sin()[..., None]).square().mean((0, 1))
    (gradient,) = torch.autograd.grad(loss.sum(), theta)
    weight, _ = next(network.layers(gradient))
    return weight.square().sum((0, 1)).sqrt()
