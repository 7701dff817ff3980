"""Layers of a model as nodes of a graph of affine maps and units, in float64: the table `CONVERT`.

`Features` are the values after some layers. Features with several axes, [channels, height, width], are stored as one
row, in the order of `Tensor.flatten`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from plunit.pieces import Activation, activation
from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.formats.pooling import Slide, find_windows, pair_maxima
from plunit.pieces.graphs import Budget, Pick, Product, Total, check_bytes
from plunit.pieces.graphs import Tensor as Node
from plunit.torch.module import PLU

AXES = {1: "(channels, length)", 2: "(channels, height, width)"}

_Linear = Callable[[Tensor], Tensor]
"""A linear function of features [n, *shape]."""


@dataclass(frozen=True)
class Features:
    """The features after some layers; methods return the features after one more layer.

    `budget` counts the matrices of the layers before they are allocated, so that an error names the layer.
    """

    node: Node
    shape: tuple[int, ...]
    budget: Budget

    def linear(self, apply: _Linear, bias: Floats, *, is_mean: bool = False) -> Features:
        """Return W x + b, for a linear function W of the features, and b for each output channel or feature."""
        after = self.shape_after(apply)
        self.count(prod(after), prod(self.shape))

        def rows(x: Floats) -> Floats:
            with torch.no_grad():
                found = apply(torch.from_numpy(x).reshape(-1, *self.shape))
            return found.reshape(len(x), -1).numpy()

        return self._affine(Product(rows, is_mean), np.repeat(bias, prod(after) // len(bias)), after)

    def matrix(self, weight: Floats, bias: Floats) -> Features:
        """Return W x + b, for a matrix W and features with one axis."""
        self.count(*weight.shape)
        return self._affine(Product(weight), bias, (len(weight),))

    def scale(self, factor: Floats, shift: Floats) -> Features:
        """Return factor x + shift for each feature, with rounded factors."""
        scaled = self._affine(Pick(np.arange(self.node.size), factor), shift, self.shape)
        return replace(scaled, node=replace(scaled.node, rounded=True))

    def _affine(self, linear: Pick | Product, bias: Floats, shape: tuple[int, ...]) -> Features:
        return replace(self, node=Node(prod(shape), (self.node,), linear, bias), shape=shape)

    def pick(self, index: Ints) -> Features:
        """Return x[index] as one row, 0 where the index is -1."""
        return self._affine(Pick(index), np.zeros(len(index)), (len(index),))

    def activate(self, function: Activation) -> Features:
        """Return f(x) for each feature."""
        return replace(self, node=Node(self.node.size, (self.node,), activation=function))

    def add(self, other: Features, sign: float = 1.0) -> Features:
        """Return x + sign y, for features y of the same shape."""
        self.count(self.node.size, self.node.size)
        return replace(self, node=Node(self.node.size, (self.node, other.node), Total((1.0, sign))))

    def shape_after(self, apply: _Linear) -> tuple[int, ...]:
        """Return the shape of a function of the features; raise ValueError if PyTorch refuses them."""
        check_bytes("the input", 8 * prod(self.shape))
        try:
            found = apply(torch.zeros((1, *self.shape), dtype=torch.float64, device="cpu"))
        except (AssertionError, RuntimeError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise ValueError(f"features of shape {self.shape} are not accepted: {reason}") from None
        return tuple(found.shape[1:])

    def check_image(self, axes: int) -> None:
        """Raise ValueError unless the features have `axes` axes in addition to the channels."""
        if len(self.shape) != axes + 1:
            raise ValueError(f"the input must have the axes {AXES[axes]}, got features of shape {self.shape}")

    def per_channel(self, values: Floats, dim: int = 1) -> Floats:
        """Return values [channels] for each feature, with the channels on axis `dim` of [batch, *shape]."""
        axis = dim - 1 if dim > 0 else dim + len(self.shape)
        if not 0 <= axis < len(self.shape):
            axes = ", ".join(map(str, self.shape))
            raise ValueError(f"axis {dim} of the input [batch, {axes}] cannot be the channel axis")
        if self.shape[axis] != len(values):
            raise ValueError(
                f"the layer has {len(values)} channels, but its input of shape {self.shape} has {self.shape[axis]}"
            )
        column = values.reshape([-1 if i == axis else 1 for i in range(len(self.shape))])
        return np.broadcast_to(column, self.shape).reshape(-1)

    def count(self, outputs: int, inputs: int) -> None:
        """Count a matrix [outputs, inputs]; raise ValueError if it is too large."""
        self.budget.take(f"the matrix of {outputs:,} x {inputs:,} numbers", 8 * outputs * inputs)


Converter = Callable[[Any, Features], Features]
"""Returns the features after a module, given the module and the features before it; raises ValueError if it cannot.

Check-list for a new layer: a line in the table `CONVERT`, and one in `network.FEATURES` if it has a number of features;
the function equals the module's up to rounding; training mode is refused if it matters; `Features.count` is called
before memory is used; a row in `tests/torch/exact/test_images.py` and one in `test_saved.py`, because saved files may
then contain the class.
"""


def array(value: Tensor | float) -> Any:
    """Return the numbers in float64; raise ValueError if they are complex or on the meta device."""
    if not isinstance(value, Tensor):
        return np.float64(value)
    if value.is_meta:
        raise ValueError("the tensors are on the meta device, which holds no numbers; load the weights first")
    if value.is_complex():
        raise ValueError(f"the numbers must be real, got {value.dtype}")
    return value.detach().to("cpu", torch.float64).to_dense().numpy()


def weight_of(module: nn.Module) -> Floats:
    """Return the weight of a layer in float64; raise ValueError if it has none."""
    weight = getattr(module, "weight", None)
    if weight is None:
        raise ValueError("the layer has no weight; set one, or remove the layer")
    return np.asarray(array(weight))


def bias_of(module: nn.Module, channels: int) -> Floats:
    """Return the bias of a layer in float64, zeros if it has none, [channels]."""
    bias = module.bias
    return np.zeros(channels) if bias is None else np.asarray(array(bias))  # type: ignore[arg-type]


def _linear(module: nn.Linear, x: Features) -> Features:
    """Return W x + b along the last axis of the features."""
    weight = weight_of(module)
    bias = bias_of(module, len(weight))
    if x.shape[-1] != weight.shape[1]:
        raise ValueError(f"the layer expects {weight.shape[1]} features, but its input has shape {x.shape}")
    if len(x.shape) == 1:
        return x.matrix(weight, bias)
    tensor = torch.from_numpy(weight)
    return x.linear(lambda rows: functional.linear(rows, tensor), np.tile(bias, prod(x.shape[:-1])))


def _plu(module: PLU, x: Features) -> Features:
    several = module.num_parameters > 1
    values = (array(value) for value in (module.alpha, module.c))
    parts = (x.per_channel(value, module.dim) if several and value.ndim else value for value in values)
    return x.activate(activation.plu(*parts))


def _prelu(module: nn.PReLU, x: Features) -> Features:
    slope = weight_of(module)
    return x.activate(activation.leaky_relu(slope[0] if len(slope) == 1 else x.per_channel(slope)))


def _everywhere(make: Callable[[Any], Activation]) -> Converter:
    """Return the converter for an activation that is the same for all features."""
    return lambda module, x: x.activate(make(module))


def _convolution(axes: int, module: nn.Conv1d | nn.Conv2d, x: Features) -> Features:
    x.check_image(axes)
    weight = torch.from_numpy(weight_of(module))
    # the module itself calls this, padding included; without bias it is linear
    return x.linear(lambda rows: module._conv_forward(rows, weight, None), bias_of(module, len(weight)))


def _average(axes: int, module: nn.Module, x: Features) -> Features:
    x.check_image(axes)
    return x.linear(module.forward, np.zeros(1), is_mean=True)


def _maximum(axes: int, module: nn.MaxPool1d | nn.MaxPool2d, x: Features) -> Features:
    if module.return_indices:
        raise ValueError("return_indices=True is not supported; use return_indices=False")
    x.check_image(axes)
    after = x.shape_after(module.forward)
    settings = (module.kernel_size, module.stride, module.padding, module.dilation)
    steps = zip(*(s if isinstance(s, tuple | list) else (s,) * axes for s in settings), strict=True)
    slides = [Slide(count, *step) for count, step in zip(after[1:], steps, strict=True)]
    return replace(largest(find_windows(x.shape, slides), x), shape=after)


def largest(windows: Ints, x: Features) -> Features:
    """Return the maximum of x[windows[i]] for each i; entries of -1 pad shorter windows."""
    rounds, last = pair_maxima(windows)
    for pairs in rounds:
        x = _largest_of_pairs(pairs, x)
    return x.pick(last)


def _largest_of_pairs(pairs: Ints, x: Features) -> Features:
    """Return max(x[a], x[b]) = x[a] + relu(x[b] - x[a]) for each of the pairs (a, b), or x[a] where b is -1."""
    x.count(len(pairs), x.node.size)
    several = pairs[:, 1] >= 0
    first, source = np.unique(pairs[:, 0], return_inverse=True)
    more = x.pick(pairs[several, 1]).add(x.pick(pairs[several, 0]), -1.0).activate(activation.relu())
    place = np.where(several, np.cumsum(several) - 1, -1)
    # a number in several pairs is carried once
    return x.pick(first).pick(source.reshape(-1)).add(more.pick(place))


def _batch_norm(axes: tuple[int, ...], module: nn.BatchNorm1d | nn.BatchNorm2d, x: Features) -> Features:
    """Return (x - mean) / sqrt(var + eps) * weight + bias, the affine map of eval mode."""
    if module.training or module.running_mean is None or module.running_var is None:
        raise ValueError("batch statistics depend on the batch; call .eval() and keep track_running_stats=True")
    if len(x.shape) not in axes:
        x.check_image(axes[-1] - 1)
    scale: Floats = 1 / np.sqrt(array(module.running_var) + module.eps)
    if module.weight is not None:
        scale = scale * array(module.weight)
    shift = bias_of(module, len(scale)) - scale * array(module.running_mean)
    return x.scale(x.per_channel(scale), x.per_channel(shift))


def _dropout(module: nn.Dropout, x: Features) -> Features:
    if module.training:
        raise ValueError("the output is random in training mode; call .eval() on the model")
    return x


def _flatten(module: nn.Flatten, x: Features) -> Features:
    if module.start_dim in (0, -1 - len(x.shape)):
        raise ValueError("the batch axis would be flattened; use Flatten(), which flattens all axes but the first")
    return replace(x, shape=x.shape_after(module.forward))


def _unflatten(module: nn.Unflatten, x: Features) -> Features:
    if not isinstance(module.dim, int) or module.dim in (0, -1 - len(x.shape)):
        raise ValueError(f"dim must be an axis after the batch axis, got {module.dim!r}")
    return replace(x, shape=x.shape_after(module.forward))


def _same(module: nn.Module, x: Features) -> Features:
    return x


CONVERT: dict[type[nn.Module], Converter] = {
    nn.Linear: _linear,
    PLU: _plu,
    nn.PReLU: _prelu,
    nn.ReLU: _everywhere(lambda module: activation.relu()),
    nn.LeakyReLU: _everywhere(lambda module: activation.leaky_relu(module.negative_slope)),
    nn.Hardtanh: _everywhere(lambda module: activation.hardtanh(module.min_val, module.max_val)),
    nn.ReLU6: _everywhere(lambda module: activation.relu6()),
    nn.Hardsigmoid: _everywhere(lambda module: activation.hardsigmoid()),
    nn.Conv1d: partial(_convolution, 1),
    nn.Conv2d: partial(_convolution, 2),
    nn.AvgPool1d: partial(_average, 1),
    nn.AvgPool2d: partial(_average, 2),
    nn.AdaptiveAvgPool1d: partial(_average, 1),
    nn.AdaptiveAvgPool2d: partial(_average, 2),
    nn.MaxPool1d: partial(_maximum, 1),
    nn.MaxPool2d: partial(_maximum, 2),
    nn.BatchNorm1d: partial(_batch_norm, (1, 2)),
    nn.BatchNorm2d: partial(_batch_norm, (3,)),
    nn.Dropout: _dropout,
    nn.Dropout1d: _dropout,
    nn.Dropout2d: _dropout,
    nn.AlphaDropout: _dropout,
    nn.FeatureAlphaDropout: _dropout,
    nn.Flatten: _flatten,
    nn.Unflatten: _unflatten,
    nn.Identity: _same,
}
"""The converter of each layer (see `Converter`)."""

VIEWS = tuple(kind for kind, convert in CONVERT.items() if convert in (_dropout, _flatten, _unflatten, _same))
"""Layers whose output in eval mode is their input, in the same memory."""
