"""Initialise the weights of a model with PLU, and group its parameters for an optimiser.

The variance of the weights follows He et al. (2015; docs/glossary.md).
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn

from plunit.gains import gain
from plunit.torch.module import PLU


def init_(
    module: nn.Module, *, mode: Literal["forward", "backward"] = "forward", generator: torch.Generator | None = None
) -> nn.Module:
    """Draw linear and convolution weights from N(0, gain^2 / fan), zero their biases, and return the module.

    The gain is that of the activation before the layer: `plunit.gain` for PLU with its current alpha and c, PyTorch's
    for ReLU, LeakyReLU, Tanh and Sigmoid, 1 for a first layer and after anything else. fan is the number of terms in a
    sum of the forward pass (mode "forward": activations keep their variance) or of the backward pass ("backward":
    gradients keep theirs). Layers are assumed to follow each other in the order of registration, as in nn.Sequential.
    """
    if mode not in ("forward", "backward"):
        raise ValueError(f'mode must be "forward" or "backward", got {mode!r}')
    factor = 1.0
    spreads: dict[nn.Linear | nn.modules.conv._ConvNd, float] = {}
    for _, layer in module.named_modules(remove_duplicate=False):  # an activation may be used in several places
        if isinstance(layer, (nn.Linear, nn.modules.conv._ConvNd)):
            spreads.setdefault(layer, factor / math.sqrt(max(_fan(layer, mode), 1)))
            factor = 1.0
        else:
            factor = _gain_of(layer, mode, factor)
    for weighted in spreads:
        _check_weight(weighted)
    for weighted, spread in spreads.items():
        nn.init.normal_(weighted.weight, 0.0, spread, generator)
        if weighted.bias is not None:
            nn.init.zeros_(weighted.bias)
    return module


def param_groups(model: nn.Module, *, weight_decay: float) -> list[dict[str, Any]]:
    """Return parameter groups for an optimiser: weights decay; biases, norms, alpha and c (ndim <= 1) do not.

    >>> groups = param_groups(nn.Sequential(nn.Linear(2, 3), PLU(learnable=True)), weight_decay=0.01)
    >>> [(len(group["params"]), group["weight_decay"]) for group in groups]
    [(1, 0.01), (3, 0.0)]
    """
    if not weight_decay >= 0:
        raise ValueError(f"weight_decay must be >= 0, got {weight_decay}")
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {"params": [p for p in trainable if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in trainable if p.ndim <= 1], "weight_decay": 0.0},
    ]


def _check_weight(layer: nn.Module) -> None:
    """Raise unless the weight is a parameter, so that it can be set."""
    if "weight" not in layer._parameters:
        raise ValueError(
            f"the weight of {layer} is computed from other parameters, as by weight norm or pruning; call init_ before "
            "adding that, or initialise this layer directly"
        )


def _fan(layer: nn.Linear | nn.modules.conv._ConvNd, mode: Literal["forward", "backward"]) -> float:
    """Return the number of terms in the sum for a number of the output, or of the input's gradient."""
    forward = mode == "forward"
    if isinstance(layer, nn.Linear):
        return layer.in_features if forward else layer.out_features
    channels = layer.in_channels if forward else layer.out_channels
    # with a stride s, one in s taps reaches a number, in the backward pass of a convolution and in the forward pass of
    # a transposed one
    skipped = math.prod(layer.stride) if layer.transposed == forward else 1
    return channels * math.prod(layer.kernel_size) / layer.groups / skipped


def _gain_of(layer: nn.Module, mode: Literal["forward", "backward"], otherwise: float) -> float:
    """Return the gain of an activation, or `otherwise` for any other layer."""
    match layer:
        case PLU():
            alpha, c = (value.mean().item() if isinstance(value, Tensor) else value for value in (layer.alpha, layer.c))
            return gain(alpha, c, mode=mode)
        case nn.LeakyReLU():
            return nn.init.calculate_gain("leaky_relu", layer.negative_slope)
        case nn.ReLU() | nn.Tanh() | nn.Sigmoid():
            return nn.init.calculate_gain(type(layer).__name__.lower())  # type: ignore[arg-type]
    return otherwise
