"""What the members are trained on: one batch for all steps, or a stream of new ones."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from plunit.ensemble.network import Network

Data = tuple[Tensor, Tensor]
"""Inputs [in, batch] and targets [out, batch], shared by the members; or [in, batch, S] and [out, batch, S]."""

Stream = Callable[[int], Data]
"""Called with n, returns the batches of the next n steps: [n, in, batch, S] and [n, out, batch, S]."""

_BLOCK = 64  # PyTorch sums the columns of a row's last, incomplete block in another order


def take(data: Data | Stream, steps: int, network: Network, theta: Tensor) -> Data:
    """Return x [steps or 1, in, batch, members or 1] and y likewise, checked and filled up like theta."""
    x, y = (part.to(theta) for part in (data(steps) if callable(data) else data))
    if not callable(data):
        x, y = (part[None] if part.ndim == 3 else part[None, ..., None] for part in (x, y))
    members = max(x.shape[-1], y.shape[-1])
    shape = (steps if callable(data) else 1, x.shape[2] if x.ndim == 4 else 0)
    for part, units, name in ((x, network.widths[0], "inputs"), (y, network.widths[-1], "targets")):
        if part.ndim != 4 or part.shape[:3] != (shape[0], units, shape[1]) or part.shape[3] not in {1, theta.shape[1]}:
            raise ValueError(
                f"{name} must be [{units}, batch] or [{units}, batch, {theta.shape[1]}], in a stream with a first axis "
                f"of {steps} steps, and as many points in inputs and targets; got {tuple(part.shape)}"
            )
    if members == 1:
        return x.contiguous(), y.contiguous()
    return fill(x.expand(*x.shape[:3], members)), fill(y.expand(*y.shape[:3], members))


def fill(values: Tensor) -> Tensor:
    """Repeat the last member up to a multiple of the block, contiguous."""
    missing = -values.shape[-1] % _BLOCK
    if not missing:
        return values.contiguous()
    return torch.cat([values, values[..., -1:].expand(*values.shape[:-1], missing)], dim=-1)
