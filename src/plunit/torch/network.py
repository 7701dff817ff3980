"""A PyTorch model as the exact piecewise-linear network of `plunit.pieces`, in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from plunit.pieces import Activation, Network, activation, ensemble, network
from plunit.torch.module import PLU

Layer = Activation | tuple[Any, Any]


def to_network(module: nn.Module) -> Network:
    """Turn an `nn.Sequential` (or a single layer) of one-axis features into a network for `plunit.pieces`.

    Layers: Linear, PLU, ReLU, LeakyReLU, PReLU, Hardtanh, ReLU6, Hardsigmoid, Identity, Flatten, BatchNorm1d in eval
    mode, and Sequential of these. A parametrised weight (`torch.nn.utils.parametrizations`) is the one of eval mode.
    Anything else is an error that names the layer: other layers, other `forward` methods, hooks.

    >>> f = to_network(nn.Sequential(nn.Linear(1, 3), PLU(), nn.Linear(3, 1)))
    >>> f.inputs, f.outputs
    (1, 1)
    """
    return network(list(_layers(module, "", ())))


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


def _layers(module: nn.Module | None, name: str, around: tuple[nn.Module, ...]) -> Iterator[Layer]:
    """Yield the layers of a module, which is called `name` in the model and stands inside the modules `around`."""
    if any(module is outer for outer in around):
        raise ValueError(f"layer {name!r} contains itself; take that place out of the Sequential")
    if module is None:
        raise TypeError(f"layer {name!r} is None; leave it out of the Sequential")
    _check_forward(module, name)
    kind = parametrize.type_before_parametrizations(module)
    if isinstance(module, nn.Sequential):
        # by place, because a module may stand in several
        for child, part in module._modules.items():
            yield from _layers(part, f"{name}.{child}" if name else child, (*around, module))
    elif isinstance(module, nn.Flatten):
        if module.start_dim != 1 or module.end_dim != -1:
            raise ValueError(f"layer {name!r} is {module}; use Flatten(), which flattens all axes but the first")
    elif kind in _CONVERT:
        try:
            with _settled(module):
                yield _CONVERT[kind](module)
        except ValueError as error:
            raise ValueError(f"layer {name!r}, {_text(module)}: {error}") from None
    else:
        raise TypeError(
            f"layer {name!r} is {_text(module)}, which is not affine or elementwise piecewise-linear; allowed are "
            f"{', '.join(kind.__name__ for kind in LAYERS)}"
        )


def _check_forward(module: nn.Module, name: str) -> None:
    """Raise if the module may compute something else than its class does."""
    where = f"layer {name!r}, {_text(module)},"
    base = nn.Sequential if isinstance(module, nn.Sequential) else type(module)
    if "forward" in vars(module) or type(module).forward is not base.forward:
        raise TypeError(f"{where} has a forward of its own, which may do anything; use nn.Sequential as it is")
    hooks = [*module._forward_pre_hooks.values(), *module._forward_hooks.values()]
    if hooks:
        kinds = ", ".join(getattr(hook, "__name__", type(hook).__name__) for hook in hooks)
        raise ValueError(
            f"{where} has forward hooks ({kinds}), which may change what it computes; remove them, and for weight_norm "
            "and spectral_norm use those of torch.nn.utils.parametrizations"
        )


def _text(module: nn.Module) -> str:
    """Return the module in one line, without the modules inside it."""
    return f"{parametrize.type_before_parametrizations(module).__name__}({module.extra_repr()})"


@contextmanager
def _settled(module: nn.Module) -> Iterator[None]:
    """Have parametrised weights be those of eval mode: in training mode some change each time they are looked at."""
    inside = getattr(module, "parametrizations", None) if parametrize.is_parametrized(module) else None
    parts = list(inside.modules()) if isinstance(inside, nn.Module) else []
    modes = [part.training for part in parts]
    try:
        for part in parts:
            part.training = False
        yield
    finally:
        for part, mode in zip(parts, modes, strict=True):
            part.training = mode


def _array(value: Tensor | float) -> Any:
    if not isinstance(value, Tensor):
        return np.float64(value)
    if value.is_meta:
        raise ValueError("its tensors are on the meta device, which holds no numbers; load the weights first")
    if value.is_complex():
        raise ValueError(f"its numbers are complex ({value.dtype}); only real ones have pieces")
    return value.detach().to("cpu", torch.float64).to_dense().numpy()


def _linear(module: nn.Linear) -> Layer:
    if getattr(module, "weight", None) is None:
        raise ValueError("it has no weight; set one, or leave the layer out")
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
