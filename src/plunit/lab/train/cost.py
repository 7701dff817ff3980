"""Time PLU, ReLU and tanh in PyTorch, forward and backward."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from plunit.base.ranges import SHARE, WIDTH, Range
from plunit.lab.cell import Arrays, Cell
from plunit.torch import composite, has_native, plu
from plunit.torch.threads import one_thread

TIMED = ("plu", "composite", "relu", "tanh")
"""What is timed; "composite" is PLU without its compiled kernel, by PyTorch's own operations."""

_WARM_UP = 3  # calls before the first that counts


@dataclass(frozen=True)
class CostSpec:
    """The time of an activation on one thread; a seed is a repetition.

    Attributes:
        elements: of the tensor, N(0, 1) in float32.
        calls: forward and backward, of each repetition.
        alpha: PLU's outer slope.
        c: the half-width of its inner piece.
    """

    elements: Annotated[int, Range(1, 10**8)] = 1_000_000
    calls: Annotated[int, Range(1, 1000)] = 10
    alpha: Annotated[float, SHARE] = 0.1
    c: Annotated[float, WIDTH] = 1.0


@one_thread()
def compute(cell: Cell, scratch: Path) -> Arrays:
    """Return seed [S], the seconds of a call of each of `TIMED` [S], and native [S], whether PLU's kernel is compiled.

    In every repetition all of them are called, in a random order. Seconds are those of the processor, so that other
    processes count less.
    """
    spec: CostSpec = cell.spec
    generator = torch.Generator().manual_seed(0)
    x, grad = torch.randn(2, spec.elements, generator=generator)
    x.requires_grad_()
    calls: dict[str, Callable[[], Tensor]] = {
        "plu": lambda: plu(x, spec.alpha, spec.c),
        "composite": lambda: composite.plu(x, spec.alpha, spec.c),
        "relu": lambda: torch.relu(x),
        "tanh": lambda: torch.tanh(x),
    }
    for name in TIMED:
        _seconds(calls[name], x, grad, _WARM_UP)
    found: dict[str, list[float]] = {name: [] for name in TIMED}
    for seed in cell.seeds:
        for name in np.random.default_rng(seed).permutation(TIMED):
            found[name].append(_seconds(calls[name], x, grad, spec.calls))
    seconds = {f"{name}_seconds": np.array(values) for name, values in found.items()}
    return {"seed": np.array(cell.seeds), **seconds, "native": np.full(len(cell.seeds), has_native())}


def _seconds(call: Callable[[], Tensor], x: Tensor, grad: Tensor, calls: int) -> float:
    """Return the processor's seconds of one forward and backward call; PyTorch makes both in the caller's thread."""
    begun = time.thread_time()
    for _ in range(calls):
        torch.autograd.grad(call(), x, grad)
    return (time.thread_time() - begun) / calls
