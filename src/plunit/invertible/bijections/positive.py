"""Positive numbers of a module, one per feature: learned as exp(raw_<name>), or fixed_<name>, as it was given."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def register(module: nn.Module, name: str, value: float, features: int, learnable: bool) -> None:
    """Add a positive number to a module: the parameter `raw_<name>` if learnable, else the buffer `fixed_<name>`."""
    if not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number, the same for all features at the start, got {type(value).__name__}")
    dtype = torch.get_default_dtype()
    if not usable(torch.tensor(float(value))):
        raise ValueError(
            f"{name} must be positive and finite in a bijection, {range_of(dtype)}, got {value}; the "
            f"paper has alpha = 0.1 and c = 1"
        )
    if learnable:
        module.register_parameter(f"raw_{name}", nn.Parameter(torch.full((features,), math.log(value))))
    else:
        module.register_buffer(f"fixed_{name}", torch.full((features,), float(value)))


def usable(value: Tensor) -> bool:
    """Say whether all numbers are positive and finite, and so are their inverses."""
    eps = torch.finfo(value.dtype).eps
    return bool(((value >= eps) & (value <= 1 / eps)).all())


def range_of(dtype: torch.dtype) -> str:
    """Name the range of usable numbers."""
    eps = torch.finfo(dtype).eps
    return f"{eps:.1e} to {1 / eps:.1e} in {dtype}"


def of(module: nn.Module, name: str) -> Tensor:
    """Return the number of a module."""
    return implied(module, name, source(module, name))


def source(module: nn.Module, name: str) -> Tensor:
    """Return what a module holds of the number: `raw_<name>` or `fixed_<name>`."""
    held: Tensor = getattr(module, key(module, name))
    return held


def implied(module: nn.Module, name: str, source: Tensor) -> Tensor:
    """Return the number from what this module, or one like it, holds."""
    return exp(source) if key(module, name).startswith("raw_") else source


def key(module: nn.Module, name: str) -> str:
    """Return the name under which a module holds the number."""
    return f"fixed_{name}" if f"fixed_{name}" in module._buffers else f"raw_{name}"


def limit(dtype: torch.dtype) -> float:
    """Return the largest useful |raw|, log(1/eps)."""
    return -math.log(torch.finfo(dtype).eps)


def exp(raw: Tensor) -> Tensor:
    """Return the exponential, kept between eps and 1/eps of the dtype."""
    return raw.clamp(-limit(raw.dtype), limit(raw.dtype)).exp()
