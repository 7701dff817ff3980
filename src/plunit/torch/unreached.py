"""Activations of a model that are not modules: functions called in a forward method, or kept as attributes."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

_FUNCTIONS = {
    nn.ReLU: ("relu", "relu_"),
    nn.LeakyReLU: ("leaky_relu", "leaky_relu_"),
    nn.GELU: ("gelu",),
    nn.SiLU: ("silu",),
    nn.Tanh: ("tanh", "tanh_"),
    nn.Sigmoid: ("sigmoid", "sigmoid_"),
    nn.ELU: ("elu", "elu_"),
}


def describe_unreached(model: nn.Module, kinds: Iterable[type[nn.Module]]) -> list[str]:
    """Return a line with the remedy for each activation of these kinds that is not a module of these kinds."""
    names = {name: kind for kind in kinds for name in _FUNCTIONS.get(kind, ())}
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
            lines[f"- {where}: {full} is a class of its own; add it to the replacements"] = None
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
                for name in sorted(_called(function) & set(names)):
                    yield method, name


def _called(function: FunctionType) -> set[str]:
    """Return the names of all functions called in a method, those of `self` and its attributes left out."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # made at run time, or without source
        return set()
    own = next(iter(inspect.signature(function).parameters), "")
    return {name for call in ast.walk(tree) if isinstance(call, ast.Call) and (name := _name(call.func, own))}


def _name(function: Any, own: str) -> str:
    """Return the last part of the name of what is called; "" if it belongs to `own`."""
    last = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    root = function
    while isinstance(root, ast.Attribute):
        root = root.value
    return "" if isinstance(root, ast.Name) and root.id == own else last


def _is_pytorchs(kind: type) -> bool:
    return kind.__module__.split(".")[0] == "torch"
