"""Replace the activations of an existing model, and report those that cannot be replaced.

Activations that are not modules, such as functions called in a forward method or stored as attributes, are found by
reading the source of the model's classes.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from plunit.torch.op import plu

Make = Callable[..., nn.Module]
"""Returns a replacement, from no arguments or from the old module."""

_HOOKS = [name for name in vars(nn.Module()) if "_hook" in name and not name.startswith(("_state", "_load"))]
_FUNCTIONS: dict[Any, type[nn.Module]] = {F.relu: nn.ReLU, torch.relu: nn.ReLU, F.gelu: nn.GELU}
"""The functions that layers of nn.Transformer hold as activations, and their modules."""
_NAMES = {
    nn.ReLU: ("relu", "relu_"),
    nn.LeakyReLU: ("leaky_relu", "leaky_relu_"),
    nn.GELU: ("gelu",),
    nn.SiLU: ("silu",),
    nn.Tanh: ("tanh", "tanh_"),
    nn.Sigmoid: ("sigmoid", "sigmoid_"),
    nn.ELU: ("elu", "elu_"),
}
"""The names of the functions that compute the same as these modules."""


def convert(model: nn.Module, replacements: Mapping[type[nn.Module], Make]) -> dict[str, Any]:
    """Replace every module of the given types in place, and return the replaced ones by qualified name.

    Args:
        model: any module; it is changed only if every replacement succeeds.
        replacements: a dict from a type (not its subclasses) to a function that returns the replacement. A function
            with a parameter that has no default gets the old module:
            `{nn.LeakyReLU: lambda old: PLU(alpha=old.negative_slope)}`.

    A module that is used in several places stays shared, unless its replacement has parameters: then each place learns
    its own. Replacements inherit the training mode, hooks, the `inplace` flag, and the device and dtype of the closest
    parameters before them. The functions `relu` and `gelu` in layers of nn.Transformer are replaced like nn.ReLU and
    nn.GELU. A warning names activations that cannot be replaced, such as `F.relu` in a forward method.

    >>> from plunit.torch import PLU
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> convert(model, {nn.ReLU: PLU})
    {'1': ReLU()}
    >>> model[1]
    PLU(alpha=0.1, c=1.0)
    """
    _check(model, replacements)
    places = list(_places(model, replacements))
    shared: dict[Any, nn.Module] = {}
    made = [_make_replacement(place, replacements[place.kind], shared) for place in places]
    for place, new in zip(places, made, strict=True):
        setattr(place.parent, place.name, new)
    _settle_transformers(model, {place.parent for place in places})
    left = _unreached(model, replacements)
    if left:
        warnings.warn("convert could not replace:\n" + "\n".join(left), stacklevel=2)
    elif not places:
        kinds = ", ".join(kind.__name__ for kind in replacements)
        warnings.warn(f"convert found no module of the types {kinds}; check the types with print(model)", stacklevel=2)
    return {place.full_name: place.old for place in places}


@dataclass(frozen=True)
class _Place:
    """The place of an activation: attribute `name` of `parent`, after the parameter `like` if there is one."""

    full_name: str
    parent: nn.Module
    name: str
    old: Any
    kind: type[nn.Module]
    like: Tensor


def _check(model: nn.Module, replacements: Any) -> None:
    for kind, make in replacements.items() if isinstance(replacements, Mapping) else [(replacements, None)]:
        if not isinstance(kind, type) or not callable(make) or isinstance(make, nn.Module):
            rule = "replacements must map module types to functions that return a module, such as {nn.ReLU: PLU}"
            raise TypeError(f"{rule}; got {replacements!r}")
    if type(model) in replacements:
        raise TypeError(
            f"the model itself is a {type(model).__name__} and cannot be replaced in place; create a PLU instead"
        )


def _places(model: nn.Module, replacements: Mapping[type[nn.Module], Make]) -> Iterator[_Place]:
    """Yield all places in the order of registration; shared modules are entered once."""
    like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
    entered = set()

    def walk(parent: nn.Module, prefix: str) -> Iterator[_Place]:
        nonlocal like
        entered.add(parent)
        like = next((p for p in parent._parameters.values() if p is not None and p.is_floating_point()), like)
        for name, child in parent._modules.items():
            if child is None:
                continue
            if type(child) in replacements:
                yield _Place(prefix + name, parent, name, child, type(child), like)
            elif child not in entered:
                yield from walk(child, f"{prefix}{name}.")
        function = vars(parent).get("activation")
        is_transformer = isinstance(parent, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer))
        if is_transformer and _FUNCTIONS.get(function) in replacements:
            yield _Place(f"{prefix}activation", parent, "activation", function, _FUNCTIONS[function], like)

    yield from walk(model, "")


def _make_replacement(place: _Place, make: Callable[..., Any], shared: dict[Any, nn.Module]) -> nn.Module:
    old = place.old
    if isinstance(old, nn.Module) and old in shared:
        return shared[old]
    new = None if make is plu else make(old) if _wants_old(make) else make()
    if not isinstance(new, nn.Module):
        name = getattr(make, "__name__", repr(make))
        rule = f"the replacement of {place.kind.__name__} must return a module, but {name} does not"
        raise TypeError(f"{rule}; use the class PLU, not the function plu")
    new = new.to(place.like.device, place.like.dtype)
    new.train(place.parent.training)
    if isinstance(old, nn.Module):
        new.train(old.training)
        if getattr(old, "inplace", False) and hasattr(new, "inplace"):
            setattr(new, "inplace", True)  # noqa: B010  # a module of any type
        for name in _HOOKS:  # share the dictionaries, so that handles can still remove their hooks
            setattr(new, name, getattr(old, name))
        if next(new.parameters(), None) is None:
            shared[old] = new
    return new


def _settle_transformers(model: nn.Module, changed: set[nn.Module]) -> None:
    """Set the attributes that nn.Transformer's constructors derive from an activation that is neither ReLU nor GELU.

    Otherwise evaluation runs PyTorch's fused ReLU or GELU, or passes nested tensors, which PLU does not support.
    """
    for module in model.modules():
        if isinstance(module, nn.TransformerEncoderLayer) and module in changed:
            module.activation_relu_or_gelu = 0
        elif isinstance(module, nn.TransformerEncoder) and not changed.isdisjoint(module.modules()):
            module.use_nested_tensor = False
        elif isinstance(module, nn.TransformerDecoderLayer) and module in changed:
            # copied and unpickled decoders have F.relu unless the activation is also an ordinary attribute
            vars(module)["activation"] = module.activation


def _wants_old(make: Make) -> bool:
    """Whether a function has a positional parameter without a default."""
    try:
        parameters = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(p.kind in positional and p.default is p.empty for p in parameters)


def _unreached(model: nn.Module, kinds: Iterable[type[nn.Module]]) -> list[str]:
    """Return a line with the remedy for each activation of these kinds that is not a module of exactly these types."""
    names = {name: kind for kind in kinds for name in _NAMES.get(kind, ())}
    functions = {getattr(home, name): name for home in (torch, F) for name in names if hasattr(home, name)}
    lines: dict[str, None] = {}  # an ordered set
    for place, module in model.named_modules():
        where = place or "the model itself"
        for attribute, value in vars(module).items():
            if isinstance(value, FunctionType | type(torch.relu)) and value in functions:
                lines[f"- {where}: attribute {attribute} is the function {functions[value]}; set it to a PLU()"] = None
        kind = type(module)
        alike = [k.__name__ for k in kinds if k.__name__.lower() in kind.__name__.lower() and kind is not k]
        if alike and not _is_pytorchs(kind) and not any(module.children()):
            full = f"{kind.__module__}.{kind.__qualname__}"
            lines[f"- {where}: {full} is another class; add it to the replacements"] = None
        for method, name in _calls(kind, names):
            lines[f"- {kind.__qualname__}.{method} calls {name}; replace the call by a PLU module"] = None
    return list(lines)


def _calls(kind: type[nn.Module], names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield (method, function) for the calls of these functions in the methods of a class."""
    for owner in kind.__mro__[: kind.__mro__.index(nn.Module)]:
        if _is_pytorchs(owner):
            continue
        for method, function in vars(owner).items():
            if inspect.isfunction(function):
                for name in sorted(_find_calls(function) & set(names)):
                    yield method, name


def _find_calls(function: FunctionType) -> set[str]:
    """Return the names of all functions called in a method, except those of `self` and its attributes."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # made at run time, or without source
        return set()
    own = next(iter(inspect.signature(function).parameters), "")
    return {name for call in ast.walk(tree) if isinstance(call, ast.Call) and (name := _last_name(call.func, own))}


def _last_name(function: Any, own: str) -> str:
    """Return the last part of the name of a called function; "" if the function belongs to `own`."""
    last = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    root = function
    while isinstance(root, ast.Attribute):
        root = root.value
    return "" if isinstance(root, ast.Name) and root.id == own else last


def _is_pytorchs(kind: type) -> bool:
    return kind.__module__.split(".")[0] == "torch"
