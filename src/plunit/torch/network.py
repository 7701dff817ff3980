"""A PyTorch model as the exact piecewise-linear network of `plunit.pieces`, in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from plunit.pieces import Activation, Network, activation, ensemble, network
from plunit.torch.module import PLU

Layer = Activation | tuple[Any, Any]


def to_network(module: nn.Module) -> Network:
    """Turn an `nn.Sequential` (or a single layer) of one-axis features into a network for `plunit.pieces`.

    Layers: Linear, PLU, ReLU, LeakyReLU, PReLU, Hardtanh, ReLU6, Hardsigmoid, Identity, Flatten, BatchNorm1d in eval
    mode, and Sequential of these. Anything else is an error that names the layer.

    >>> f = to_network(nn.Sequential(nn.Linear(1, 3), PLU(), nn.Linear(3, 1)))
    >>> f.inputs, f.outputs
    (1, 1)
    """
    return network(list(_layers(module, "")))


def to_ensemble(layers: Iterable[tuple[Tensor, Tensor]], activations: Activation | Sequence[Activation]) -> Network:
    """Turn the layers of an ensemble, weights [out, in, S] and biases [out, S], into an ensemble for `plunit.pieces`.

    One activation for all layers, or a sequence with one for each but the last. One member is `.member(i)` of it.

    >>> layers = [(torch.ones(3, 1, 5), torch.zeros(3, 5)), (torch.ones(1, 3, 5), torch.zeros(1, 5))]
    >>> to_ensemble(layers, activation.plu()).members
    5
    """
    pairs = [(_array(weight), _array(bias)) for weight, bias in layers]
    between = [activations] * (len(pairs) - 1) if isinstance(activations, Activation) else activations
    if len(between) != len(pairs) - 1:
        raise ValueError(f"{len(pairs)} layers need {len(pairs) - 1} activations between them, got {len(between)}")
    chain: list[Layer] = [pairs[0]]
    for f, pair in zip(between, pairs[1:], strict=True):
        chain += [f, pair]
    return ensemble(chain)


def _layers(module: nn.Module, name: str) -> Iterator[Layer]:
    """Yield the layers of a module, which is called `name` in the model."""
    if isinstance(module, nn.Sequential):
        for child, part in module.named_children():
            yield from _layers(part, f"{name}.{child}" if name else child)
    elif isinstance(module, nn.Flatten):
        if module.start_dim != 1 or module.end_dim != -1:
            raise ValueError(f"layer {name!r} is {module}; use Flatten(), which flattens all axes but the first")
    elif type(module) in _CONVERT:
        try:
            yield _CONVERT[type(module)](module)
        except ValueError as error:
            raise ValueError(f"layer {name!r}, {module}: {error}") from None
    else:
        raise TypeError(
            f"layer {name!r} is {module}, which is not affine or elementwise piecewise-linear; allowed are "
            f"{', '.join(kind.__name__ for kind in LAYERS)}"
        )


def _array(value: Tensor | float) -> Any:
    return value.detach().to("cpu", torch.float64).numpy() if isinstance(value, Tensor) else np.float64(value)


def _linear(module: nn.Linear) -> Layer:
    weight = _array(module.weight)
    return weight, np.zeros(len(weight)) if module.bias is None else _array(module.bias)


def _batch_norm(module: nn.BatchNorm1d) -> Layer:
    """(x - mean) / sqrt(var + eps) * weight + bias, as the affine map it is in eval mode."""
    if module.training or module.running_mean is None or module.running_var is None:
        raise ValueError("batch statistics depend on the batch; call .eval() and keep track_running_stats=True")
    scale = 1 / np.sqrt(_array(module.running_var) + module.eps)
    if module.weight is not None:
        scale = scale * _array(module.weight)
    shift = 0.0 if module.bias is None else _array(module.bias)
    return np.diag(scale), shift - scale * _array(module.running_mean)


def _plu(module: PLU) -> Layer:
    if module.num_parameters > 1 and module.dim not in (1, -1):
        raise ValueError(f"the channels of an input [batch, features] are on axis 1, not {module.dim}")
    return activation.plu(_array(module.alpha), _array(module.c))


def _prelu(module: nn.PReLU) -> Layer:
    slope = _array(module.weight)
    return activation.leaky_relu(slope if len(slope) > 1 else slope[0])


_CONVERT: dict[type[nn.Module], Callable[[Any], Layer]] = {
    nn.Linear: _linear,
    nn.BatchNorm1d: _batch_norm,
    PLU: _plu,
    nn.ReLU: lambda module: activation.relu(),
    nn.LeakyReLU: lambda module: activation.leaky_relu(module.negative_slope),
    nn.PReLU: _prelu,
    nn.Hardtanh: lambda module: activation.hardtanh(module.min_val, module.max_val),
    nn.ReLU6: lambda module: activation.relu6(),
    nn.Hardsigmoid: lambda module: activation.hardsigmoid(),
    nn.Identity: lambda module: activation.identity(),
}

LAYERS: tuple[type[nn.Module], ...] = (nn.Sequential, nn.Flatten, *_CONVERT)
"""What a model can be made of."""
