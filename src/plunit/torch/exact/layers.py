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
from torch import Tensor, nn
from torch.nn import functional

from plunit.pieces import Activation, activation
from plunit.pieces.arrays import Bools, Floats, Ints
from plunit.pieces.formats.pooling import Slide, find_windows, pair_maxima
from plunit.torch.exact.chains import LayerChain
from plunit.torch.module import PLU

Converter = Callable[[Any, LayerChain], None]
"""Takes a module and the chain of what comes before it, and adds the module; ValueError if that is not possible.

Check-list for a new one: a line in the table `CONVERT`, and one in `network.FEATURES` if it has a number of features;
the function is that of the module to rounding; training mode is refused where it matters; `LayerChain.check` comes
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


def _linear(module: nn.Linear, chain: LayerChain) -> None:
    """Add W x + b along the last axis of the features."""
    weight = weight_of(module)
    bias = bias_of(module, len(weight))
    if chain.shape[-1] != weight.shape[1]:
        raise ValueError(f"it takes {weight.shape[1]} features, but its input has shape {chain.shape}")
    if len(chain.shape) == 1:
        chain.affine(weight, bias, (len(weight),))
        return
    tensor = torch.from_numpy(weight)
    whole, after = chain.matrix(lambda x: functional.linear(x, tensor))
    chain.affine(whole, np.tile(bias, len(whole) // len(bias)), after)


def _plu(module: PLU, chain: LayerChain) -> None:
    several = module.num_parameters > 1
    values = (array(value) for value in (module.alpha, module.c))
    parts = (chain.per_channel(value, module.dim) if several and value.ndim else value for value in values)
    chain.activate(activation.plu(*parts))


def _prelu(module: nn.PReLU, chain: LayerChain) -> None:
    slope = weight_of(module)
    chain.activate(activation.leaky_relu(slope[0] if len(slope) == 1 else chain.per_channel(slope)))


def _everywhere(make: Callable[[Any], Activation]) -> Converter:
    """Return the converter of an activation that is the same for all features."""
    return lambda module, chain: chain.activate(make(module))


def _convolution(axes: int, module: nn.Conv1d | nn.Conv2d, chain: LayerChain) -> None:
    chain.image(axes)
    weight = torch.from_numpy(weight_of(module))
    bias = bias_of(module, len(weight))
    # what the module itself calls, padding included; without bias the function is linear
    whole, after = chain.matrix(lambda x: module._conv_forward(x, weight, None))
    chain.affine(whole, np.repeat(bias, prod(after[1:])), after)


def _average(axes: int, module: nn.Module, chain: LayerChain) -> None:
    chain.image(axes)
    weight, after = chain.matrix(module.forward)
    chain.affine(weight, np.zeros(len(weight)), after)


def _maximum(axes: int, module: nn.MaxPool1d | nn.MaxPool2d, chain: LayerChain) -> None:
    if module.return_indices:
        raise ValueError("it returns indices besides the maxima; take return_indices=False")
    shape, after = chain.image(axes), chain.shape_after(module.forward)
    settings = (module.kernel_size, module.stride, module.padding, module.dilation)
    steps = zip(*(s if isinstance(s, tuple | list) else (s,) * axes for s in settings), strict=True)
    slides = [Slide(count, *step) for count, step in zip(after[1:], steps, strict=True)]
    add_maxima(find_windows(shape, slides), chain)
    chain.shape = after


def _batch_norm(axes: tuple[int, ...], module: nn.BatchNorm1d | nn.BatchNorm2d, chain: LayerChain) -> None:
    """Add (x - mean) / sqrt(var + eps) * weight + bias, as the affine map it is in eval mode."""
    if module.training or module.running_mean is None or module.running_var is None:
        raise ValueError("batch statistics depend on the batch; call .eval() and keep track_running_stats=True")
    if len(chain.shape) not in axes:
        chain.image(axes[-1] - 1)
    scale: Floats = 1 / np.sqrt(array(module.running_var) + module.eps)
    if module.weight is not None:
        scale = scale * array(module.weight)
    shift = bias_of(module, len(scale)) - scale * array(module.running_mean)
    chain.affine(chain.per_channel(scale), chain.per_channel(shift))


def _dropout(module: nn.Dropout, chain: LayerChain) -> None:
    if module.training:
        raise ValueError("in training mode its output is random; call .eval() on the model")


def _flatten(module: nn.Flatten, chain: LayerChain) -> None:
    if module.start_dim in (0, -1 - len(chain.shape)):
        raise ValueError("it flattens the axis of the batch too; take Flatten(), which flattens all axes but the first")
    chain.shape = chain.shape_after(module.forward)


def _unflatten(module: nn.Unflatten, chain: LayerChain) -> None:
    if not isinstance(module.dim, int) or module.dim in (0, -1 - len(chain.shape)):
        raise ValueError(f"it splits axis {module.dim!r}; give the number of an axis after that of the batch")
    chain.shape = chain.shape_after(module.forward)


def _same(module: nn.Module, chain: LayerChain) -> None:
    """Add nothing."""


def add_maxima(windows: Ints, chain: LayerChain) -> None:
    """Add max over x[windows[i]] for each i; -1 where a window [taps] has fewer."""
    rounds, last = pair_maxima(windows)
    inputs = prod(chain.shape)
    for pairs in rounds:
        _add_round(pairs, inputs, chain)
        inputs = len(pairs)
    chain.check(len(last), inputs)
    chosen = np.zeros((len(last), inputs))
    chosen[np.arange(len(last)), last] = 1.0
    chain.affine(chosen, np.zeros(len(last)))


def _add_round(pairs: Ints, inputs: int, chain: LayerChain) -> None:
    """Add max(x[a], x[b]) for each of the pairs (a, b), or x[a] where b is -1."""
    several = pairs[:, 1] >= 0
    first, source = np.unique(pairs[:, 0], return_inverse=True)
    units = len(first) + int(several.sum())
    chain.check(units, inputs + len(pairs))
    split, sums = np.zeros((units, inputs)), np.zeros((len(pairs), units))
    split[np.arange(len(first)), first] = 1.0
    rest = np.arange(len(first), units)
    split[rest, pairs[several, 1]] = 1.0
    split[rest, pairs[several, 0]] = -1.0
    sums[np.arange(len(pairs)), source.reshape(-1)] = 1.0
    sums[np.flatnonzero(several), rest] = 1.0
    chain.affine(split, np.zeros(units))
    chain.activate(_mixed(np.arange(units) < len(first)))
    chain.affine(sums, np.zeros(len(pairs)))


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
"""How each of these layers is turned into affine maps and activations (see `Converter`)."""

VIEWS = tuple(kind for kind, made in CONVERT.items() if made in (_dropout, _flatten, _unflatten, _same))
"""Layers whose output is, in eval mode, their input in the same memory."""
