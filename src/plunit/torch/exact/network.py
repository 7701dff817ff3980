"""A PyTorch model as the exact piecewise-linear network of `plunit.pieces`, in float64."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from operator import index

import torch
from torch import nn
from torch.nn.utils import parametrize

from plunit.pieces import Network, network
from plunit.pieces.networks import LayerLike
from plunit.torch.exact.chains import alternating, inputs_of, joined, residual
from plunit.torch.exact.features import ROOM, Converted, Place, Shape, numbers
from plunit.torch.exact.layers import CONVERT, VIEWS
from plunit.torch.module import Residual

LAYERS: tuple[type[nn.Module], ...] = (nn.Sequential, Residual, *CONVERT)
"""What a model can be made of."""


def to_network(module: nn.Module, shape: Sequence[int] | None = None) -> Network:
    """Turn an `nn.Sequential` (or a single layer) into a network for `plunit.pieces`.

    Args:
        module: made of the layers in `plunit.torch.exact.network.LAYERS`: Linear, activations such as PLU and ReLU,
            convolutions, average and max pooling, BatchNorm and Dropout in eval mode, changes of shape, `Residual`, and
            Sequential of these. A parametrised weight (`torch.nn.utils.parametrizations`) is the one of eval mode.
        shape: of one input, without the batch axis; needed for images, (channels, height, width). The network takes an
            image as one row, `image.flatten()`.

    Anything else is an error that names the layer: other layers, other `forward` methods, hooks. So is a model whose
    matrices would need more than 2 GB: those of convolutions are dense.

    >>> f = to_network(nn.Sequential(nn.Linear(1, 3), nn.ReLU(), nn.Linear(3, 1)))
    >>> f.inputs, f.outputs
    (1, 1)
    >>> f = to_network(nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2), nn.Flatten()), shape=(3, 8, 8))
    >>> f.inputs, f.outputs
    (192, 36)
    """
    place = Place(_checked(shape), ROOM)
    layers, _ = _walk(module, "", (), place)
    with _named(module, ""):
        return network(alternating(joined(layers), place))


def _checked(shape: Sequence[int] | None) -> Shape:
    """Return the shape as a tuple; ValueError if it is not one or more positive integers."""
    if shape is None:
        return None
    try:
        found = tuple(index(length) for length in shape)
    except TypeError:
        found = ()
    if not found or min(found) < 1:
        raise ValueError(f"shape must be positive integers, (channels, height, width) for an image, got {shape!r}")
    return found


def _walk(module: nn.Module | None, name: str, around: tuple[nn.Module, ...], place: Place) -> Converted:
    """Return the layers of a module and the shape after it. The module is called `name` and is inside `around`."""
    if any(module is outer for outer in around):
        raise ValueError(f"layer {name!r} contains itself; take that place out of the model")
    if module is None:
        raise TypeError(f"layer {name!r} is None; leave it out of the model")
    _check_forward(module, name)
    kind = parametrize.type_before_parametrizations(module)
    if isinstance(module, nn.Sequential):
        return _sequence(module, name, (*around, module), place)
    if isinstance(module, Residual):
        return _sum(module, name, (*around, module), place)
    if kind not in CONVERT:
        raise TypeError(
            f"layer {name!r} is {_text(module)}, which is not affine or elementwise piecewise-linear; allowed are "
            f"{', '.join(kind.__name__ for kind in LAYERS)}"
        )
    with _named(module, name), _settled(module), torch.no_grad():
        return CONVERT[kind](module, place)


def _sequence(module: nn.Sequential, name: str, around: tuple[nn.Module, ...], place: Place) -> Converted:
    layers: list[LayerLike] = []
    # by place, because a module may stand in several
    for child, part in module._modules.items():
        found, shape = _walk(part, f"{name}.{child}" if name else child, around, place)
        layers += found
        place = Place(shape, place.room - numbers(found))
    return layers, place.shape


def _sum(module: Residual, name: str, around: tuple[nn.Module, ...], place: Place) -> Converted:
    body, after = _walk(module.body, f"{name}.body" if name else "body", around, place)
    with _named(module, name):
        kinds = ((parametrize.type_before_parametrizations(part), part) for part in module.body.modules())
        first = next((part for kind, part in kinds if kind in CONVERT and kind not in VIEWS), None)
        if getattr(first, "inplace", False):
            raise ValueError(f"its body starts with {first}, which changes x before the sum; take inplace=False")
        chain = joined(body)
        before = place.shape or (inputs_of(chain),)
        if after is not None and after != before:
            raise ValueError(f"x + body(x) needs equal shapes, got {before} and {after}")
        return residual(chain, prod(before), place), before


@contextmanager
def _named(module: nn.Module, name: str) -> Iterator[None]:
    """Add the layer's name to errors."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"layer {name!r}, {_text(module)}: {error}") from None


def _check_forward(module: nn.Module, name: str) -> None:
    """Raise if the module may compute something other than its class does."""
    where = f"layer {name!r}, {_text(module)},"
    base = next((kind for kind in (nn.Sequential, Residual) if isinstance(module, kind)), type(module))
    if "forward" in vars(module) or type(module).forward is not base.forward:
        raise TypeError(f"{where} has a forward of its own, which may do anything; use {base.__name__} as it is")
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
    """Put parametrisations into eval mode, because in training mode some weights change each time they are read."""
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
