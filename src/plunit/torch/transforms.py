"""Whether a transform of PyTorch is at work, which needs PyTorch's own ops instead of a custom one.

PyTorch has no public function that says so for torch.func and forward mode. This is the only file that asks its private
ones.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad


def is_recorded() -> bool:
    """Whether torch.compile, torch.export or torch.jit.trace records the ops that run."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]


def is_transformed(*values: Any) -> bool:
    """Whether torch.func is at work, or forward mode on one of these values; those that are no tensors do not count.

    >>> is_transformed(torch.ones(2))
    False
    >>> torch.func.vmap(lambda x: x * is_transformed(x))(torch.ones(2))
    tensor([1., 1.])
    """
    if torch._C._functorch.maybe_current_level() is not None:
        return True
    if forward_ad._current_level < 0:
        return False
    tensors = [value for value in values if isinstance(value, Tensor)]
    return any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in tensors)  # type: ignore[no-untyped-call]
