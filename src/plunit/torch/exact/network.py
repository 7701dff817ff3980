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
from plunit.pieces.formats.importer import Model
from plunit.pieces.graphs import Budget, Tensor, make_layers
from plunit.torch.exact.layers import AXES, CONVERT, VIEWS, Features
from plunit.torch.module import PLU, Residual

LAYERS: tuple[type[nn.Module], ...] = (nn.Sequential, Residual, *CONVERT)
"""The classes of modules that a model may contain."""

FEATURES: dict[type[nn.Module], str] = {
    nn.Linear: "in_features",
    PLU: "num_parameters",
    nn.PReLU: "num_parameters",
    nn.BatchNorm1d: "num_features",
}
"""The attribute of a layer that holds its number of input features; in an activation, 1 means any number."""

REMEDY = "use a smaller image or fewer channels"
"""The remedy if the matrices of a model are too large."""


def to_network(module: nn.Module, shape: Sequence[int] | None = None) -> Network:
    """Return an `nn.Sequential` (or a single layer) as a `plunit.pieces` network.

    Args:
        module: a model made of `plunit.torch.exact.network.LAYERS`: Linear, activations such as PLU and ReLU,
            convolutions, average and max pooling, changes of shape, `Residual`, and Sequential of these. BatchNorm,
            Dropout and layers with parametrised weights (`torch.nn.utils.parametrizations`) must be in eval mode.
        shape: the shape of one input, without the batch axis; required for images, (channels, height, width). The
            network expects an image as one row, `image.flatten()`.

    Consecutive affine layers stay separate unless float64 holds their product exactly, so the network is the exact
    function of the weights. BatchNorm is the exception: its factors are rounded to float64 and multiplied into the
    layer before.

    Other layers, other `forward` methods and hooks raise an error that names the layer. So do matrices that need more
    than 2 GiB in total, or more than 1 GiB each: those of convolutions are dense.

    >>> f = to_network(nn.Sequential(nn.Linear(1, 3), nn.ReLU(), nn.Linear(3, 1)))
    >>> f.inputs, f.outputs
    (1, 1)
    >>> f = to_network(nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2), nn.Flatten()), shape=(3, 8, 8))
    >>> f.inputs, f.outputs
    (192, 36)
    """
    return convert_module(module, shape, Budget(REMEDY)).network


def convert_module(module: nn.Module, shape: Sequence[int] | None, budget: Budget) -> Model:
    """Return `to_network(module, shape)` as a model that says whether factors were rounded, within a memory budget."""
    inputs = _features(module) if shape is None else _shape_of(shape)
    # matrices are counted before they are allocated, so that an error names the layer
    with budget.lend():
        output = _walk(module, "", (), Features(Tensor(prod(inputs)), inputs, budget))
    with _name_layer(module, ""):
        layers, _, rounded = make_layers(output.node, budget)
        return Model(network(layers), rounded=rounded)


def _shape_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape as a tuple; raise ValueError unless it is one or more positive integers."""
    try:
        found = tuple(index(length) for length in shape)
    except TypeError:
        found = ()
    if not found or min(found) < 1:
        raise ValueError(f"shape must be positive integers, (channels, height, width) for an image, got {shape!r}")
    return found


def _features(module: nn.Module) -> tuple[int]:
    """Return the input shape, from the first layer that has a number of features."""
    for name, part in module.named_modules():
        kind = parametrize.type_before_parametrizations(part)
        axes = 1 if kind.__name__.endswith("1d") else 2
        if kind in FEATURES and (getattr(part, FEATURES[kind]) > 1 or not isinstance(part, PLU | nn.PReLU)):
            return (getattr(part, FEATURES[kind]),)
        if isinstance(part, nn.Unflatten) and part.dim in (1, -1) and min(part.unflattened_size) > 0:
            return (prod(part.unflattened_size),)
        if kind in CONVERT and kind.__name__.endswith(("1d", "2d")) and kind not in VIEWS:
            rule = f"the layer needs the shape of its input; give shape={AXES[axes]}, the shape of the model's input"
            raise ValueError(f"layer {name!r}, {_text(part)}: {rule}, without the batch axis")
    raise ValueError("the model does not tell its number of features; give to_network(model, shape=(features,))")


def _walk(module: nn.Module | None, name: str, around: tuple[nn.Module, ...], x: Features) -> Features:
    """Return the features after the module called `name`, which lies inside the modules `around`."""
    if any(module is outer for outer in around):
        raise ValueError(f"layer {name!r} contains itself; remove the cycle from the model")
    if module is None:
        raise TypeError(f"layer {name!r} is None; remove it from the model")
    _check_forward(module, name)
    kind = parametrize.type_before_parametrizations(module)
    if isinstance(module, nn.Sequential):
        # each place separately, because a module may be used in several
        for child, part in module._modules.items():
            x = _walk(part, f"{name}.{child}" if name else child, (*around, module), x)
        return x
    if isinstance(module, Residual):
        body = _walk(module.body, f"{name}.body" if name else "body", (*around, module), x)
        with _name_layer(module, name):
            _check_body(module.body)
            if body.shape != x.shape:
                raise ValueError(f"x + body(x) needs equal shapes, got {x.shape} and {body.shape}")
            return x.add(body)
    if kind not in CONVERT:
        raise TypeError(
            f"layer {name!r} is {_text(module)}, which is not affine or elementwise piecewise-linear; allowed are "
            f"{', '.join(kind.__name__ for kind in LAYERS)}"
        )
    with _name_layer(module, name), torch.no_grad():
        if module.training and parametrize.is_parametrized(module):
            raise ValueError("a parametrised weight may change when it is read in training mode; call .eval()")
        return CONVERT[kind](module, x)


def _check_body(body: nn.Module) -> None:
    """Raise ValueError if the body of a residual sum changes its input."""
    kinds = ((parametrize.type_before_parametrizations(part), part) for part in body.modules())
    first = next((part for kind, part in kinds if kind in CONVERT and kind not in VIEWS), None)
    if getattr(first, "inplace", False):
        raise ValueError(f"the body starts with {first}, which changes x before the sum; use inplace=False")


@contextmanager
def _name_layer(module: nn.Module, name: str) -> Iterator[None]:
    """Add the name of the layer to errors."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"layer {name!r}, {_text(module)}: {error}") from None


def _check_forward(module: nn.Module, name: str) -> None:
    """Raise TypeError or ValueError if the module may compute another function than its class."""
    where = f"layer {name!r}, {_text(module)},"
    base = next((kind for kind in (nn.Sequential, Residual) if isinstance(module, kind)), type(module))
    if "forward" in vars(module) or type(module).forward is not base.forward:
        raise TypeError(f"{where} overrides forward, so its function is unknown; use {base.__name__} itself")
    hooks = [*module._forward_pre_hooks.values(), *module._forward_hooks.values()]
    if hooks:
        kinds = ", ".join(getattr(hook, "__name__", type(hook).__name__) for hook in hooks)
        raise ValueError(
            f"{where} has forward hooks ({kinds}), which may change its function; remove them, and use the weight_norm "
            "and spectral_norm of torch.nn.utils.parametrizations"
        )


def _text(module: nn.Module) -> str:
    """Return the module as one line, without the modules inside it."""
    return f"{parametrize.type_before_parametrizations(module).__name__}({module.extra_repr()})"
