"""Measure the gradient of the first layer of fresh networks, at several depths."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from plunit.base.ranges import DOMAIN, SHARE, WIDTH, Range
from plunit.ensemble import MLP, initial
from plunit.ensemble.arrays import Array
from plunit.ensemble.training import gradient
from plunit.lab.cell import Arrays, Cell


@dataclass(frozen=True)
class DepthSpec:
    """Gradients of fresh networks on the sine of section 2.

    Attributes:
        depths: numbers of weight layers.
        width: units of every hidden layer; that of section 3.
        scale: "paper" for weights N(0, 1), "fan_in" for N(0, 1 / inputs of the layer), which keeps a signal's variance
            up to the activation.
        low: lower end of the domain.
        high: upper end.
        points: linearly spaced points.
        alpha: PLU's outer slope.
        c: the half-width of its inner piece.
    """

    depths: Annotated[tuple[int, ...], Range(2, 1024)] = (2, 4, 8, 16, 32, 64)
    width: Annotated[int, Range(1, 256)] = 5
    scale: Literal["paper", "fan_in"] = "paper"
    low: Annotated[float, DOMAIN] = -2 * math.pi
    high: Annotated[float, DOMAIN] = 2 * math.pi
    points: Annotated[int, Range(2, 10_000)] = 50
    alpha: Annotated[float, SHARE] = 0.1
    c: Annotated[float, WIDTH] = 1.0

    def __post_init__(self) -> None:
        if self.low >= self.high or list(self.depths) != sorted(set(self.depths)):
            raise ValueError(f"low must be below high, and depths must increase, got {self}")


def compute(cell: Cell, scratch: Path) -> Arrays:
    """Return seed [S], and gradient_norm [depths, S]: that of dL/dW_1 for L the mean square error, in float64."""
    norms = [first_gradient(cell, depth) for depth in cell.spec.depths]
    return {"seed": np.array(cell.seeds), "gradient_norm": np.stack(norms)}


def first_gradient(cell: Cell, depth: int) -> Array:
    """Return |dL/dW_1| of each member of one depth."""
    spec: DepthSpec = cell.spec
    network = MLP((1, *[spec.width] * (depth - 1), 1), cell.activation)
    generators = [np.random.default_rng(seed) for seed in cell.seeds]
    scales = [1 / math.sqrt(m) for m in network.widths[:-1]] if spec.scale == "fan_in" else None
    theta = initial(network, generators, scales=scales).astype(np.float64)
    x = np.linspace(spec.low, spec.high, spec.points)[None]
    _, slopes = gradient(network, theta, (x, np.sin(x)), alpha=spec.alpha, c=spec.c)
    weight, _ = next(network.layers(slopes))
    return np.asarray(np.sqrt((weight**2).sum((0, 1))))
