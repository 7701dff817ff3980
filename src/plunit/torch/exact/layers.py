"""Linear layers and activations of features, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from plunit.pieces import Activation, activation
from plunit.pieces.arrays import Floats
from plunit.pieces.networks import LayerLike
from plunit.torch.exact.features import (
    Converter,
    Place,
    Shape,
    array,
    bias_of,
    matrix,
    per_channel,
    weight_of,
)
from plunit.torch.module import PLU


def _linear(module: nn.Linear, place: Place) -> tuple[list[LayerLike], Shape]:
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


def _plu(module: PLU, place: Place) -> tuple[list[LayerLike], Shape]:
    alpha, c = (array(value) for value in (module.alpha, module.c))
    if module.num_parameters == 1:
        return [activation.plu(alpha, c)], place.shape
    parts = (_spread(value, place.shape, module.dim) for value in (alpha, c))
    return [activation.plu(*parts)], place.shape or (module.num_parameters,)


def _prelu(module: nn.PReLU, place: Place) -> tuple[list[LayerLike], Shape]:
    slope = weight_of(module)
    if len(slope) == 1:
        return [activation.leaky_relu(slope[0])], place.shape
    return [activation.leaky_relu(per_channel(slope, place.shape))], place.shape or (len(slope),)


def _spread(values: Floats, shape: Shape, dim: int) -> Floats:
    """Return a number as it is, and an array for each feature."""
    return per_channel(values, shape, dim) if values.ndim else values


def _everywhere(make: Callable[[Any], Activation]) -> Converter:
    """Return the converter of an activation that is the same for all features."""
    return lambda module, place: ([make(module)], place.shape)


FEATURES: dict[type[nn.Module], Converter] = {
    nn.Linear: _linear,
    PLU: _plu,
    nn.PReLU: _prelu,
    nn.ReLU: _everywhere(lambda module: activation.relu()),
    nn.LeakyReLU: _everywhere(lambda module: activation.leaky_relu(module.negative_slope)),
    nn.Hardtanh: _everywhere(lambda module: activation.hardtanh(module.min_val, module.max_val)),
    nn.ReLU6: _everywhere(lambda module: activation.relu6()),
    nn.Hardsigmoid: _everywhere(lambda module: activation.hardsigmoid()),
}
"""How each of these layers is turned into affine maps and activations (see `features.Converter`)."""
