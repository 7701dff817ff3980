"""What a model has computed so far: a tensor of `plunit.pieces.graphs`, and its shape without the batch axis.

Features of several axes, [channels, height, width], are one row in the order of `Tensor.flatten`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import torch
from torch import Tensor

from plunit.pieces.activation import Activation
from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.graphs import Pick, Product, Room, Total, check_bytes
from plunit.pieces.graphs import Tensor as Node

AXES = {1: "(channels, length)", 2: "(channels, height, width)"}

Linear = Callable[[Tensor], Tensor]
"""A linear function of features [n, *shape]."""


@dataclass(frozen=True)
class Features:
    """The features after some layers; each method returns those after one more.

    `room` counts the matrices of the layers before they are made, so that an error names the layer.
    """

    node: Node
    shape: tuple[int, ...]
    room: Room

    def linear(self, apply: Linear, bias: Floats, *, is_mean: bool = False) -> Features:
        """W x + b, for a linear function W of the features, and b for each channel after it, or each feature."""
        after = self.shape_after(apply)
        self.count(prod(after), prod(self.shape))

        def rows(x: Floats) -> Floats:
            with torch.no_grad():
                found = apply(torch.from_numpy(x).reshape(-1, *self.shape))
            return found.reshape(len(x), -1).numpy()

        return self._affine(Product(rows, is_mean), np.repeat(bias, prod(after) // len(bias)), after)

    def matrix(self, weight: Floats, bias: Floats) -> Features:
        """W x + b, for a matrix W of features that have one axis."""
        self.count(*weight.shape)
        return self._affine(Product(weight), bias, (len(weight),))

    def scale(self, factor: Floats, shift: Floats) -> Features:
        """Factor x + shift of each feature, with rounded factors."""
        scaled = self._affine(Pick(np.arange(self.node.size), factor), shift, self.shape)
        return replace(scaled, node=replace(scaled.node, rounded=True))

    def _affine(self, linear: Pick | Product, bias: Floats, shape: tuple[int, ...]) -> Features:
        return replace(self, node=Node(prod(shape), (self.node,), linear, bias), shape=shape)

    def pick(self, index: Ints) -> Features:
        """x[index] in one row, 0 where the index is -1."""
        return self._affine(Pick(index), np.zeros(len(index)), (len(index),))

    def activate(self, function: Activation) -> Features:
        """f(x) of each feature."""
        return replace(self, node=Node(self.node.size, (self.node,), activation=function))

    def add(self, other: Features, sign: float = 1.0) -> Features:
        """X + sign y, for features y of the same shape."""
        self.count(self.node.size, self.node.size)
        return replace(self, node=Node(self.node.size, (self.node, other.node), Total((1.0, sign))))

    def shape_after(self, apply: Linear) -> tuple[int, ...]:
        """Return the shape that a function of the features gives; ValueError where PyTorch refuses them."""
        check_bytes("its input", 8 * prod(self.shape))
        try:
            found = apply(torch.zeros((1, *self.shape), dtype=torch.float64, device="cpu"))
        except (AssertionError, RuntimeError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise ValueError(f"it does not take features of shape {self.shape}: {reason}") from None
        return tuple(found.shape[1:])

    def check_image(self, axes: int) -> None:
        """Raise ValueError if the features do not have `axes` axes besides the channels."""
        if len(self.shape) != axes + 1:
            raise ValueError(f"its input must have the axes {AXES[axes]}, got features of shape {self.shape}")

    def per_channel(self, values: Floats, dim: int = 1) -> Floats:
        """Return values [channels] for each feature, with the channels on axis `dim` of [batch, *shape]."""
        axis = dim - 1 if dim > 0 else dim + len(self.shape)
        if not 0 <= axis < len(self.shape):
            axes = ", ".join(map(str, self.shape))
            raise ValueError(f"axis {dim} of its input [batch, {axes}] cannot be that of the channels")
        if self.shape[axis] != len(values):
            raise ValueError(
                f"it has {len(values)} channels, but its input of shape {self.shape} has {self.shape[axis]}"
            )
        column = values.reshape([-1 if i == axis else 1 for i in range(len(self.shape))])
        return np.broadcast_to(column, self.shape).reshape(-1)

    def count(self, outputs: int, inputs: int) -> None:
        """Count a matrix [outputs, inputs]; ValueError if it is too large."""
        self.room.take(f"its matrix of {outputs:,} x {inputs:,} numbers", 8 * outputs * inputs)
