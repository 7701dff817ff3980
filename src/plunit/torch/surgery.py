"""Put PLU into an existing model: swap its activations, initialise its weights, group its parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from plunit.gains import gain
from plunit.torch.module import PLU


def convert(model: nn.Module, replacements: Mapping[type[nn.Module], Callable[[], nn.Module]]) -> dict[str, nn.Module]:
    """Replace every module of the given types in place, and return what was replaced, by qualified name.

    Args:
        model: any module; it is changed only if every replacement could be made.
        replacements: from a type (exactly that, not its subclasses) to a function that makes the replacement.

    A module that stands in several places stays one module, unless its replacement has parameters: each place then
    learns its own. Replacements take over the training mode, and the device and dtype of the model's parameters.

    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> convert(model, {nn.ReLU: PLU})
    {'1': ReLU()}
    >>> model[1]
    PLU(alpha=0.1, c=1.0)
    """
    for kind, make in replacements.items():
        if not isinstance(kind, type) or not callable(make) or isinstance(make, nn.Module):
            raise TypeError(
                f"replacements go from a module type to a function that makes a module, as {{nn.ReLU: PLU}}; "
                f"got {{{kind!r}: {make!r}}}"
            )
    if type(model) in replacements:
        raise TypeError(
            f"the model itself is a {type(model).__name__} and cannot be replaced in place; make a PLU instead"
        )
    like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
    shared: dict[nn.Module, nn.Module] = {}
    places: list[tuple[nn.Module, str, nn.Module]] = []
    replaced: dict[str, nn.Module] = {}
    for parent_name, parent in model.named_modules():
        for name, old in parent._modules.items():
            if old is None or type(old) not in replacements:
                continue
            new = shared[old] if old in shared else replacements[type(old)]().to(like.device, like.dtype)
            new.train(old.training)
            if next(new.parameters(), None) is None:
                shared[old] = new
            places.append((parent, name, new))
            replaced[f"{parent_name}.{name}" if parent_name else name] = old
    for parent, name, new in places:
        setattr(parent, name, new)
    return replaced


def init_(
    module: nn.Module, *, mode: Literal["forward", "backward"] = "forward", generator: torch.Generator | None = None
) -> nn.Module:
    """Draw linear and convolution weights from N(0, gain^2 / fan), zero their biases, and return the module.

    The gain is that of the activation a layer reads from: `plunit.gain` for PLU at its present alpha and c, PyTorch's
    for ReLU, LeakyReLU, Tanh and Sigmoid, 1 for a first layer and after anything else. fan is the number of terms in a
    sum of the forward pass (mode "forward", activations keep their variance) or of the backward pass ("backward",
    gradients keep theirs). Layers are taken in the order of registration, as nn.Sequential runs them.
    """
    if mode not in ("forward", "backward"):
        raise ValueError(f'mode must be "forward" or "backward", got {mode!r}')
    factor = 1.0
    spreads: dict[nn.Linear | nn.modules.conv._ConvNd, float] = {}
    for _, layer in module.named_modules(remove_duplicate=False):  # one activation may stand in many places
        if isinstance(layer, (nn.Linear, nn.modules.conv._ConvNd)):
            spreads.setdefault(layer, factor / math.sqrt(max(_fan(layer, mode), 1)))
            factor = 1.0
        else:
            factor = _gain_of(layer, mode, factor)
    for weighted, spread in spreads.items():
        nn.init.normal_(weighted.weight, 0.0, spread, generator=generator)
        if weighted.bias is not None:
            nn.init.zeros_(weighted.bias)
    return module


def param_groups(model: nn.Module, *, weight_decay: float) -> list[dict[str, Any]]:
    """Split the trainable parameters for an optimiser: weights decay; biases, norms, alpha and c (ndim <= 1) do not.

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


def _fan(layer: nn.Linear | nn.modules.conv._ConvNd, mode: Literal["forward", "backward"]) -> float:
    """Return how many terms are summed into one number of the output, or of the gradient of the input."""
    forward = mode == "forward"
    if isinstance(layer, nn.Linear):
        return layer.in_features if forward else layer.out_features
    channels = layer.in_channels if forward else layer.out_channels
    # of the taps of a kernel, a strided convolution's backward and a transposed one's forward pass meet one per stride
    skipped = math.prod(layer.stride) if layer.transposed == forward else 1
    return channels * math.prod(layer.kernel_size) / layer.groups / skipped


def _gain_of(layer: nn.Module, mode: Literal["forward", "backward"], otherwise: float) -> float:
    """Return the gain of an activation, or `otherwise` for a layer that is none."""
    match layer:
        case PLU():
            alpha, c = (value.mean().item() if isinstance(value, Tensor) else value for value in (layer.alpha, layer.c))
            return gain(alpha, c, mode=mode)
        case nn.LeakyReLU():
            return nn.init.calculate_gain("leaky_relu", layer.negative_slope)
        case nn.ReLU() | nn.Tanh() | nn.Sigmoid():
            return nn.init.calculate_gain(type(layer).__name__.lower())  # type: ignore[arg-type]
    return otherwise
