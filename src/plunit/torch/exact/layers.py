"""Layers of a model as nodes of a graph of affine maps and units, in float64: the table `CONVERT`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
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
from plunit.torch.exact.features import Features
from plunit.torch.module import PLU

Converter = Callable[[Any, Features], Features]
"""Takes a module and the features before it, and returns those after it; ValueError if that is not possible.

Check-list for a new one: a line in the table `CONVERT`, and one in `network.FEATURES` if it has a number of features;
the function is that of the module to rounding; training mode is refused where it matters; `Features.count` comes
before memory is used; a row in `tests/torch/exact/test_images.py` and one in `test_saved.py`, because a saved file may
then hold the class.
"""


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


def _linear(module: nn.Linear, x: Features) -> Features:
    """W x + b along the last axis of the features."""
    weight = weight_of(module)
    bias = bias_of(module, len(weight))
    if x.shape[-1] != weight.shape[1]:
        raise ValueError(f"it takes {weight.shape[1]} features, but its input has shape {x.shape}")
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
    """Return the converter of an activation that is the same for all features."""
    return lambda module, x: x.activate(make(module))


def _convolution(axes: int, module: nn.Conv1d | nn.Conv2d, x: Features) -> Features:
    x.check_image(axes)
    weight = torch.from_numpy(weight_of(module))
    # what the module itself calls, padding included; without bias the function is linear
    return x.linear(lambda rows: module._conv_forward(rows, weight, None), bias_of(module, len(weight)))


def _average(axes: int, module: nn.Module, x: Features) -> Features:
    x.check_image(axes)
    return x.linear(module.forward, np.zeros(1), is_mean=True)


def _maximum(axes: int, module: nn.MaxPool1d | nn.MaxPool2d, x: Features) -> Features:
    if module.return_indices:
        raise ValueError("it returns indices besides the maxima; take return_indices=False")
    x.check_image(axes)
    after = x.shape_after(module.forward)
    settings = (module.kernel_size, module.stride, module.padding, module.dilation)
    steps = zip(*(s if isinstance(s, tuple | list) else (s,) * axes for s in settings), strict=True)
    slides = [Slide(count, *step) for count, step in zip(after[1:], steps, strict=True)]
    return replace(largest(find_windows(x.shape, slides), x), shape=after)


def largest(windows: Ints, x: Features) -> Features:
    """Return max over x[windows[i]] for each i; -1 where a window [taps] has fewer."""
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
    # a number that is in several pairs is carried once
    return x.pick(first).pick(source.reshape(-1)).add(more.pick(place))


def _batch_norm(axes: tuple[int, ...], module: nn.BatchNorm1d | nn.BatchNorm2d, x: Features) -> Features:
    """(x - mean) / sqrt(var + eps) * weight + bias, the affine map that it is in eval mode."""
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
        raise ValueError("in training mode its output is random; call .eval() on the model")
    return x


def _flatten(module: nn.Flatten, x: Features) -> Features:
    if module.start_dim in (0, -1 - len(x.shape)):
        raise ValueError("it flattens the axis of the batch too; use Flatten(), which flattens all axes but the first")
    return replace(x, shape=x.shape_after(module.forward))


def _unflatten(module: nn.Unflatten, x: Features) -> Features:
    if not isinstance(module.dim, int) or module.dim in (0, -1 - len(x.shape)):
        raise ValueError(f"it splits axis {module.dim!r}; give the number of an axis after that of the batch")
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
"""How each of these layers is turned into affine maps and activations (see `Converter`)."""

VIEWS = tuple(kind for kind, convert in CONVERT.items() if convert in (_dropout, _flatten, _unflatten, _same))
"""Layers whose output is, in eval mode, their input in the same memory."""
