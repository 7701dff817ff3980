"""What a model has become so far: a chain of affine maps and activations of features in one row.

Features of several axes, [channels, height, width], are one row in the order of `Tensor.flatten`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
import torch
from torch import Tensor

from plunit.pieces.activation import Activation, beside, identity
from plunit.pieces.arrays import Floats, blocks
from plunit.pieces.exact.limits import MEMORY
from plunit.pieces.networks import LayerLike
from plunit.pieces.rounding import exact_product

ROOM = MEMORY // 8
"""The matrices of a model may have at most this many numbers."""

AXES = {1: "(channels, length)", 2: "(channels, height, width)"}

Linear = Callable[[Tensor], Tensor]
"""A linear function of features [n, *shape]."""


class LayerChain:
    """Affine maps and activations in turn; `shape` is that of the features after them, without the batch axis."""

    def __init__(self, shape: tuple[int, ...], room: int) -> None:
        self.shape, self.room = shape, room
        self._layers: list[LayerLike] = []
        self._last: tuple[Floats, Floats] | None = None  # after the last activation

    def affine(self, weight: Floats, bias: Floats, shape: tuple[int, ...] | None = None) -> None:
        """Add W x + b. A weight of one axis is the diagonal of a matrix.

        The map is joined with an affine map before it where that is exact. A diagonal is always joined, in double
        precision: as a matrix, it could be too large. So a BatchNorm, whose factors are rounded, is part of its layer.

        >>> chain = LayerChain((2,), room=9)
        >>> chain.affine(np.ones((1, 2)), np.zeros(1))
        >>> chain.affine(np.array([3.0]), np.ones(1))
        >>> [part.tolist() for part in chain.layers()[0]]
        [[[3.0, 3.0]], [1.0]]
        """
        if self._last is not None:
            inner, shift = self._last
            if weight.ndim + inner.ndim > 2:  # two thin matrices may have a large product
                self.check(len(bias), inner.shape[-1])
            if weight.ndim == 1:
                weight, bias = (inner.T * weight).T, weight * shift + bias
            elif inner.ndim == 1:
                weight, bias = weight * inner, weight @ shift + bias
            elif (product := exact_product((weight, bias), self._last)) is None:
                self._layers.append(self._last)
            else:
                weight, bias = product
        self._last = weight, bias
        self.shape = shape or self.shape

    def activate(self, function: Activation) -> None:
        """Add an activation, after the identity if there is no affine map before it."""
        self._layers, self._last = [*self.layers(), function], None

    def layers(self) -> list[LayerLike]:
        """Return what a network is made of: an affine map before, between and after activations."""
        units = prod(self.shape)
        weight, bias = self._last or (np.ones(units), np.zeros(units))
        if weight.ndim == 1:
            self.check(len(weight), len(weight))
            weight = np.diag(weight)
        return [*self._layers, (weight, bias)]

    def add(self, body: LayerChain) -> None:
        """Add x + body(x), for a body that keeps the shape of x. Beside its units, units without knots pass x on."""
        size = prod(self.shape)
        self.check(size, size)
        one, zero = np.eye(size), np.zeros(size)
        (first, start), *inner = body.layers()  # type: ignore[misc]
        if not inner:
            self.affine(one + first, start)
            return
        *inner, (last, end) = inner  # type: ignore[misc]
        self.affine(np.vstack([one, first]), np.concatenate([zero, start]))
        units = len(start)
        for layer in inner:
            if isinstance(layer, Activation):
                self.activate(beside([identity().spread(size), layer.spread(units)]))
                continue
            weight, bias = layer
            units, inputs = weight.shape
            self.check(size + units, size + inputs)
            beside_x = np.zeros((size + units, size + inputs))
            beside_x[:size, :size], beside_x[size:, size:] = one, weight
            self.affine(beside_x, np.concatenate([zero, bias]))
        self.affine(np.hstack([one, last]), end)

    def matrix(self, apply: Linear) -> tuple[Floats, tuple[int, ...]]:
        """Return a linear function of the features as a matrix [out, in], and the shape after it.

        Column i is the function of the i-th unit vector, in float64.
        """
        after = self.shape_after(apply)
        inputs, outputs = prod(self.shape), prod(after)
        self.check(outputs, inputs)
        weight = np.empty((outputs, inputs))
        for block in blocks(inputs, max(1, 2**20 // max(inputs, outputs))):
            columns = torch.arange(block.start, block.stop, device="cpu")
            units = torch.zeros((len(columns), inputs), dtype=torch.float64, device="cpu")
            units[torch.arange(len(columns), device="cpu"), columns] = 1.0
            weight[:, block] = apply(units.reshape(-1, *self.shape)).reshape(len(columns), -1).numpy().T
        return weight, after

    def shape_after(self, apply: Linear) -> tuple[int, ...]:
        """Return the shape that a function of the features gives; ValueError where PyTorch refuses them."""
        self.check(1, prod(self.shape))
        try:
            found = apply(torch.zeros((1, *self.shape), dtype=torch.float64, device="cpu"))
        except (AssertionError, RuntimeError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise ValueError(f"it does not take features of shape {self.shape}: {reason}") from None
        return tuple(found.shape[1:])

    def image(self, axes: int) -> tuple[int, ...]:
        """Return the shape; ValueError if it does not have `axes` axes besides the channels."""
        if len(self.shape) != axes + 1:
            raise ValueError(f"its input must have the axes {AXES[axes]}, got features of shape {self.shape}")
        return self.shape

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

    def left(self) -> int:
        """Return how many more numbers the matrices may have."""
        kept = [*self._layers, *([] if self._last is None else [self._last])]
        return self.room - sum(layer[0].size for layer in kept if isinstance(layer, tuple))

    def check(self, outputs: int, inputs: int) -> None:
        """Raise ValueError if there is no room for a matrix [outputs, inputs]."""
        if outputs * inputs > self.left():
            raise ValueError(
                f"its matrix would have {outputs:,} x {inputs:,} numbers, {8e-9 * outputs * inputs:.1f} GB; "
                f"{8e-9 * self.left():.1f} GB are left of the {8e-9 * ROOM:.1f} GB allowed; take a smaller image or "
                "fewer channels"
            )
