"""Layers of images: convolutions, pooling, normalisation by channel, dropout, and changes of shape.

A maximum is pairwise, in rounds: max(a, b) = a + relu(b - a).
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import torch
from torch import nn

from plunit.pieces import Activation, activation
from plunit.pieces.arrays import Bools, Floats, Ints
from plunit.pieces.networks import LayerLike
from plunit.torch.exact.features import (
    Converter,
    Place,
    Shape,
    array,
    bias_of,
    matrix,
    numbers,
    per_channel,
    shape_after,
    weight_of,
)


def _convolution(axes: int) -> Converter:
    def convert(module: nn.Conv1d | nn.Conv2d, place: Place) -> tuple[list[LayerLike], Shape]:
        place.image(axes)
        weight = torch.from_numpy(weight_of(module))
        bias = bias_of(module, len(weight))
        # what the module itself calls, padding included; without bias the function is linear
        whole, after = matrix(lambda x: module._conv_forward(x, weight, None), place)
        return [(whole, np.repeat(bias, prod(after[1:])))], after

    return convert


def _average(axes: int) -> Converter:
    def convert(module: nn.Module, place: Place) -> tuple[list[LayerLike], Shape]:
        place.image(axes)
        weight, after = matrix(module.forward, place)
        return [(weight, np.zeros(len(weight)))], after

    return convert


def _maximum(axes: int) -> Converter:
    def convert(module: nn.MaxPool1d | nn.MaxPool2d, place: Place) -> tuple[list[LayerLike], Shape]:
        if module.return_indices:
            raise ValueError("it returns indices besides the maxima; take return_indices=False")
        channels, *sizes = place.image(axes)
        after = shape_after(module.forward, place)
        settings = (module.kernel_size, module.stride, module.padding, module.dilation)
        steps = zip(*(_each(setting, axes) for setting in settings), strict=True)
        taps = [_taps(size, out, *step) for size, out, step in zip(sizes, after[1:], steps, strict=True)]
        window = _window(taps, sizes)
        shifts = prod(sizes) * np.arange(channels)[:, None, None]
        windows = np.where(window < 0, -1, window + shifts).reshape(-1, window.shape[1])
        return maxima(windows, prod(place.shape or ()), place), after

    return convert


def _each(setting: Any, axes: int) -> tuple[int, ...]:
    return tuple(setting) if isinstance(setting, tuple | list) else (setting,) * axes


def _taps(size: int, out: int, kernel: int, stride: int, padding: int, dilation: int) -> Ints:
    """Return the indices under each window along one axis, [out, kernel]; -1 beyond the ends."""
    index = np.arange(out)[:, None] * stride - padding + dilation * np.arange(kernel)
    return np.where((index < 0) | (index >= size), -1, index)


def _window(taps: list[Ints], sizes: list[int]) -> Ints:
    """Return the indices under each window over all axes, [positions, taps]; -1 beyond an end of any axis."""
    window = np.zeros((1, 1), dtype=np.int64)
    for index, size in zip(taps, sizes, strict=True):
        grid = window[:, None, :, None] * size + index[:, None, :]
        absent = (window[:, None, :, None] < 0) | (index[:, None, :] < 0)
        window = np.where(absent, -1, grid).reshape(len(window) * len(index), -1)
    return window


def _batch_norm(axes: tuple[int, ...]) -> Converter:
    def convert(module: nn.BatchNorm1d | nn.BatchNorm2d, place: Place) -> tuple[list[LayerLike], Shape]:
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

    return convert


def _dropout(module: nn.Dropout, place: Place) -> tuple[list[LayerLike], Shape]:
    if module.training:
        raise ValueError("in training mode its output is random; call .eval() on the model")
    return [], place.shape


def _flatten(module: nn.Flatten, place: Place) -> tuple[list[LayerLike], Shape]:
    if place.shape is None:
        if (module.start_dim, module.end_dim) != (1, -1):
            raise ValueError(
                "take Flatten(), which flattens all axes but the first, or give to_network(model, shape=...)"
            )
        return [], None
    if module.start_dim in (0, -1 - len(place.shape)):
        raise ValueError("it flattens the axis of the batch too; take Flatten(), which flattens all axes but the first")
    return [], shape_after(module.forward, place)


def _unflatten(module: nn.Unflatten, place: Place) -> tuple[list[LayerLike], Shape]:
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


def _same(module: nn.Module, place: Place) -> tuple[list[LayerLike], Shape]:
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


IMAGES: dict[type[nn.Module], Converter] = {
    nn.Conv1d: _convolution(1),
    nn.Conv2d: _convolution(2),
    nn.AvgPool1d: _average(1),
    nn.AvgPool2d: _average(2),
    nn.AdaptiveAvgPool1d: _average(1),
    nn.AdaptiveAvgPool2d: _average(2),
    nn.MaxPool1d: _maximum(1),
    nn.MaxPool2d: _maximum(2),
    nn.BatchNorm1d: _batch_norm((1, 2)),
    nn.BatchNorm2d: _batch_norm((3,)),
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

VIEWS = (
    nn.Dropout,
    nn.Dropout1d,
    nn.Dropout2d,
    nn.AlphaDropout,
    nn.FeatureAlphaDropout,
    nn.Flatten,
    nn.Unflatten,
    nn.Identity,
)
"""Layers whose output is, in eval mode, their input in the same memory."""
