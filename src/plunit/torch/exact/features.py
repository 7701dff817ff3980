"""What a layer of a PyTorch model becomes: affine maps and elementwise activations of features in one row.

Features of several axes, [channels, height, width], are one row in the order of `Tensor.flatten`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from plunit.pieces.arrays import Floats, blocks
from plunit.pieces.limits import MEMORY
from plunit.pieces.networks import LayerLike

Shape = tuple[int, ...] | None
"""The axes of the features without that of the batch; None: one axis, whose length is not known yet."""

ROOM = MEMORY // 8
"""The matrices of a model may have at most this many numbers."""

AXES = {1: "(channels, length)", 2: "(channels, height, width)"}


class Place(NamedTuple):
    """Where a layer stands: the shape of its input, and how many more numbers its matrix may have."""

    shape: Shape
    room: int

    def image(self, axes: int) -> tuple[int, ...]:
        """Return the shape; ValueError if it is not known, or does not have `axes` axes besides the channels."""
        if self.shape is None:
            raise ValueError(
                f"it needs the shape of its input; give shape={AXES[axes]}, the shape of what the model takes, without "
                "the batch axis"
            )
        if len(self.shape) != axes + 1:
            raise ValueError(f"its input must have the axes {AXES[axes]}, got features of shape {self.shape}")
        return self.shape

    def check(self, outputs: int, inputs: int) -> None:
        """Raise ValueError if a matrix [outputs, inputs] has more than `room` numbers."""
        if outputs * inputs > self.room:
            raise ValueError(
                f"its matrix would have {outputs:,} x {inputs:,} numbers, {8e-9 * outputs * inputs:.1f} GB; "
                f"{8e-9 * self.room:.1f} GB are left of the {8e-9 * ROOM:.1f} GB allowed; take a smaller image or "
                "fewer channels"
            )


Converted = tuple[list[LayerLike], Shape]
"""What a layer becomes, and the shape after it. A weight of one axis is the diagonal of a matrix."""

Converter = Callable[[Any, Place], Converted]
"""Takes a module and its place, and returns its layers; ValueError if that is not possible.

Check-list for a new one: a line in the table `layers.CONVERT`; the function is that of the module to rounding; training
mode is refused where it matters; `Place.check` comes before memory is used; a row in `tests/torch/exact/test_images.py`
and one in `test_saved.py`, because a saved file may then hold the class.
"""


def numbers(layers: Iterable[LayerLike]) -> int:
    """Return how many numbers the matrices of these layers have."""
    return sum(layer[0].size for layer in layers if isinstance(layer, tuple))


def array(value: Tensor | float) -> Any:
    """Return the numbers in float64; ValueError if they are complex or absent."""
    if not isinstance(value, Tensor):
        return np.float64(value)
    if value.is_meta:
        raise ValueError("its tensors are on the meta device, which holds no numbers; load the weights first")
    if value.is_complex():
        raise ValueError(f"its numbers are complex ({value.dtype}); only real ones have pieces")
    return value.detach().to("cpu", torch.float64).to_dense().numpy()


def weight_of(module: nn.Module) -> Floats:
    """Return the weight of a layer in float64; ValueError if it has none."""
    weight = getattr(module, "weight", None)
    if weight is None:
        raise ValueError("it has no weight; set one, or leave the layer out")
    return np.asarray(array(weight))


def bias_of(module: nn.Module, channels: int) -> Floats:
    """Return the bias of a layer in float64, zeros if it has none, [channels]."""
    bias = module.bias
    return np.zeros(channels) if bias is None else np.asarray(array(bias))  # type: ignore[arg-type]


def per_channel(values: Floats, shape: Shape, dim: int = 1) -> Floats:
    """Return values [channels] for each feature, with the channels on axis `dim` of [batch, *shape]."""
    if shape is None or len(shape) == 1:
        if dim not in (1, -1):
            raise ValueError(f"the channels of an input [batch, features] are on axis 1, not {dim}")
        axis = 0
    else:
        axis = dim - 1 if dim > 0 else dim + len(shape)
    if shape is None:
        return values
    if not 0 <= axis < len(shape):
        raise ValueError(
            f"axis {dim} of its input [batch, {', '.join(map(str, shape))}] cannot be that of the channels"
        )
    if shape[axis] != len(values):
        raise ValueError(f"it has {len(values)} channels, but its input of shape {shape} has {shape[axis]}")
    column = values.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return np.broadcast_to(column, shape).reshape(-1)


def shape_after(apply: Callable[[Tensor], Tensor], place: Place) -> tuple[int, ...]:
    """Return the shape that a function of features gives; ValueError where PyTorch refuses them."""
    assert place.shape is not None
    place.check(1, prod(place.shape))
    try:
        found = apply(torch.zeros((1, *place.shape), dtype=torch.float64, device="cpu"))
    except (AssertionError, RuntimeError, ValueError) as error:
        raise ValueError(f"it does not take features of shape {place.shape}: {str(error).splitlines()[0]}") from None
    return tuple(found.shape[1:])


def matrix(apply: Callable[[Tensor], Tensor], place: Place) -> tuple[Floats, tuple[int, ...]]:
    """Return a linear function of features as a matrix [out, in], and the shape after it.

    Column i is the function of the i-th unit vector, in float64.
    """
    after = shape_after(apply, place)
    assert place.shape is not None
    inputs, outputs = prod(place.shape), prod(after)
    place.check(outputs, inputs)
    weight = np.empty((outputs, inputs))
    for block in blocks(inputs, max(1, 2**20 // max(inputs, outputs))):
        columns = torch.arange(block.start, block.stop, device="cpu")
        units = torch.zeros((len(columns), inputs), dtype=torch.float64, device="cpu")
        units[torch.arange(len(columns), device="cpu"), columns] = 1.0
        weight[:, block] = apply(units.reshape(-1, *place.shape)).reshape(len(columns), -1).numpy().T
    return weight, after
