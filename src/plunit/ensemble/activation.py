"""The activations an ensemble can have, as PyTorch functions a(z, alpha, c); alpha and c matter to PLU only."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from plunit.functional import formula

Activation = Callable[[Tensor, Tensor, Tensor], Tensor]


def _plain(function: Callable[[Tensor], Tensor]) -> Activation:
    return lambda z, alpha, c: function(z)


def _plu(z: Tensor, alpha: Tensor, c: Tensor) -> Tensor:
    value: Tensor = formula(torch, z, alpha, c)
    return value


ACTIVATIONS: dict[str, Activation] = {
    "tanh": _plain(torch.tanh),
    "relu": _plain(torch.relu),
    "plu": _plu,
    "identity": _plain(lambda z: z),
    "leaky_relu": _plain(F.leaky_relu),
    "hardtanh": _plain(F.hardtanh),
    "gelu": _plain(F.gelu),
    "silu": _plain(F.silu),
    "elu": _plain(F.elu),
    "plu_learned": _plu,
}
"""Name to function, in the order of the compiled program's table."""
