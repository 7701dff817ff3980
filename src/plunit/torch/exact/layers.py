"""Layers of a model as affine maps and activations, in float64: the table `CONVERT`.

A maximum is pairwise, in rounds: max(a, b) = a + relu(b - a).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from plunit.pieces import Activation, activation
from plunit.pieces.arrays import Bools, Floats, Ints
from plunit.pieces.networks import LayerLike
from plunit.torch.exact.features import (
    Converted,
    Converter,
    Place,
    array,
    bias_of,
    matrix,
    numbers,
    per_channel,
    shape_after,
    weight_of,
)
from plunit.torch.module import PLU


def _linear(module: nn.Linear, place: Place) -> Converted:
    """W x + b along the last axis of the features."""
    weight = weight_of(module)
    bias = bias_of(module, len(weight))
    if place.shape is not None and place.shape[-1] != weight.shape[1]:
        raise ValueError(f"it takes {weight.shape[1]} features, but its input has shape {place.shape}")
    if place.shape is None or len(place.shape) == 1:
        return [(weight, bias)], (len(weight),)
    tensor = torch.from_numpy(weight)
    whole, after = matrix(lambda x: functional.linear(x, tensor), place)
    return [(whole, np.tile(bias, len(whole) // len(bias)))], after


def _plu(module: PLU, place: Place) -> Converted:
    alpha, c = (array(value) for value in (module.alpha, module.c))
    if module.num_parameters == 1:
        return [activation.plu(alpha, c)], place.shape
    parts = (per_channel(value, place.shape, module.dim) if value.ndim else value for value in (alpha, c))
    return [activation.plu(*parts)], place.shape or (module.num_parameters,)


def _prelu(module: nn.PReLU, place: Place) -> Converted:
    slope = weight_of(module)
    if len(slope) == 1:
        return [activation.leaky_relu(slope[0])], place.shape
    return [activation.leaky_relu(per_channel(slope, place.shape))], place.shape or (len(slope),)


def _everywhere(make: Callable[[Any], Activation]) -> Converter:
    """Return the converter of an activation that is the same for all features."""
    return lambda module, place: ([make(module)], place.shape)


def _convolution(axes: int, module: nn.Conv1d | nn.Conv2d, place: Place) -> Converted:
    place.image(axes)
    weight = torch.from_numpy(weight_of(module))
    bias = bias_of(module, len(weight))
    # what the module itself calls, padding included; without bias the function is linear
    whole, after = matrix(lambda x: module._conv_forward(x, weight, None), place)
    return [(whole, np.repeat(bias, prod(after[1:])))], after


def _average(axes: int, module: nn.Module, place: Place) -> Converted:
    place.image(axes)
    weight, after = matrix(module.forward, place)
    return [(weight, np.zeros(len(weight)))], after


def _maximum(axes: int, module: nn.MaxPool1d | nn.MaxPool2d, place: Place) -> Converted:
    if module.return_indices:
        raise ValueError("it returns indices besides the maxima; take return_indices=False")
    shape, after = place.image(axes), shape_after(module.forward, place)
    settings = (module.kernel_size, module.stride, module.padding, module.dilation)
    steps = zip(*(s if isinstance(s, tuple | list) else (s,) * axes for s in settings), strict=True)
    index = np.arange(prod(shape)).reshape(shape)
    for axis, (kernel, stride, padding, dilation) in enumerate(steps, start=1):
        taps = np.arange(after[axis])[:, None] * stride + dilation * np.arange(kernel)
        beyond = max(0, int(taps.max(initial=0)) + 1 - shape[axis] - padding)
        ends = [(padding, beyond) if i == axis else (0, 0) for i in range(index.ndim)]
        # [channels, positions along the axes so far, other axes, taps so far]; -1 beyond the ends
        index = np.moveaxis(np.pad(index, ends, constant_values=-1).take(taps, axis), axis + 1, -1)
    return maxima(index.reshape(prod(after), -1), prod(shape), place), after


def _batch_norm(axes: tuple[int, ...], module: nn.BatchNorm1d | nn.BatchNorm2d, place: Place) -> Converted:
    """(x - mean) / sqrt(var + eps) * weight + bias, as the affine map it is in eval mode."""
    if module.training or module.running_mean is None or module.running_var is None:
        raise ValueError("batch statistics depend on the batch; call .eval() and keep track_running_stats=True")
    if (1 if place.shape is None else len(place.shape)) not in axes:
        place.image(axes[-1] - 1)
    scale: Floats = 1 / np.sqrt(array(module.running_var) + module.eps)
    if module.weight is not None:
        scale = scale * array(module.weight)
    shift = bias_of(module, len(scale)) - scale * array(module.running_mean)
    parts = per_channel(scale, place.shape), per_channel(shift, place.shape)
    return [parts], place.shape or (len(scale),)


def _dropout(module: nn.Dropout, place: Place) -> Converted:
    if module.training:
        raise ValueError("in training mode its output is random; call .eval() on the model")
    return [], place.shape


def _flatten(module: nn.Flatten, place: Place) -> Converted:
    if place.shape is None:
        if (module.start_dim, module.end_dim) != (1, -1):
            raise ValueError("take Flatten(), which flattens all axes but the first, or give to_network a shape")
        return [], None
    if module.start_dim in (0, -1 - len(place.shape)):
        raise ValueError("it flattens the axis of the batch too; take Flatten(), which flattens all axes but the first")
    return [], shape_after(module.forward, place)


def _unflatten(module: nn.Unflatten, place: Place) -> Converted:
    if not isinstance(module.dim, int) or module.dim == 0:
        raise ValueError(f"it splits axis {module.dim!r}; give the number of an axis after that of the batch")
    shape = place.shape
    if shape is None and module.dim in (1, -1) and -1 not in tuple(module.unflattened_size):
        shape = (prod(module.unflattened_size),)
    if shape is None:
        raise ValueError("the number of features it gets is unknown; give to_network(model, shape=(features,))")
    if module.dim == -1 - len(shape):
        raise ValueError(f"it splits axis {module.dim}, that of the batch; take Unflatten(1, ...)")
    return [], shape_after(module.forward, place._replace(shape=shape))


def _same(module: nn.Module, place: Place) -> Converted:
    return [], place.shape


def maxima(windows: Ints, inputs: int, place: Place) -> list[LayerLike]:
    """Return max over x[windows[i]] for each i as layers; a window of w features takes log2 w rounds.

    windows: [outputs, taps], indices of features; -1 where a window has fewer. A pair that several windows have is
    compared once.
    """
    # taps that are absent come last
    windows = np.take_along_axis(windows, np.argsort(windows < 0, axis=1, kind="stable"), axis=1)
    if (windows[:, 0] < 0).any():
        raise ValueError("one of its windows holds nothing but padding, where the maximum is -inf; take less padding")
    layers: list[LayerLike] = []
    while windows.shape[1] > 1:
        pairs = np.pad(windows, ((0, 0), (0, windows.shape[1] % 2)), constant_values=-1).reshape(len(windows), -1, 2)
        # the maximum of two equal features is the first
        pairs[pairs[..., 0] == pairs[..., 1], 1] = -1
        both, index = np.unique(pairs.reshape(-1, 2), axis=0, return_inverse=True)
        absent = int((both[:, 0] < 0).sum())
        windows = np.maximum(index.reshape(pairs.shape[:2]) - absent, -1)
        layers += _round(both[absent:], inputs, place._replace(room=place.room - numbers(layers)))
        inputs = len(both) - absent
    place.check(len(windows), inputs)
    chosen = np.zeros((len(windows), inputs))
    chosen[np.arange(len(windows)), windows[:, 0]] = 1.0
    return [*layers, (chosen, np.zeros(len(windows)))]


def _round(pairs: Ints, inputs: int, place: Place) -> list[LayerLike]:
    """Return max(x[a], x[b]) for each of the pairs (a, b), or x[a] where b is -1."""
    several = pairs[:, 1] >= 0
    first, source = np.unique(pairs[:, 0], return_inverse=True)
    units = len(first) + int(several.sum())
    place.check(units, inputs + len(pairs))
    split, sums = np.zeros((units, inputs)), np.zeros((len(pairs), units))
    split[np.arange(len(first)), first] = 1.0
    rest = np.arange(len(first), units)
    split[rest, pairs[several, 1]] = 1.0
    split[rest, pairs[several, 0]] = -1.0
    sums[np.arange(len(pairs)), source.reshape(-1)] = 1.0
    sums[np.flatnonzero(several), rest] = 1.0
    return [(split, np.zeros(units)), _mixed(np.arange(units) < len(first)), (sums, np.zeros(len(pairs)))]


def _mixed(passing: Bools) -> Activation:
    """Return z where `passing`, without a knot, and relu(z) elsewhere."""
    return activation.piecewise([np.where(passing, np.inf, 0.0)], [np.where(passing, 1.0, 0.0), 1.0])


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
"""How each of these layers is turned into affine maps and activations (see `features.Converter`)."""

VIEWS = tuple(kind for kind, made in CONVERT.items() if made in (_dropout, _flatten, _unflatten, _same))
"""Layers whose output is, in eval mode, their input in the same memory."""
