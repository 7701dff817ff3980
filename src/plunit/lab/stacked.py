"""Train modules of one kind side by side, their parameters stacked: fewer and larger operations."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from plunit.invertible import Annealing

Loss = Callable[..., Tensor]
"""loss(call, *batch): the loss of one member, `call` being the member as a function."""


def train(
    modules: list[nn.Module],
    loss: Loss,
    draw: Callable[[], tuple[Tensor, ...]],
    *,
    steps: int,
    lr: float,
    anneal: Annealing | None = None,
    watch: Callable[[float], object] = lambda done: None,
) -> Tensor:
    """Train in place, as `plunit.invertible.Flow.fit` does, and return the losses [steps, members].

    Args:
        modules: the members; the same class and shapes.
        loss: of one member.
        draw: returns the batches of a step, members on the first axis.
        steps: of Adam, the step size falling to 0 along a half cosine.
        lr: the step size at the start.
        anneal: a quantity to shrink on the way; the corners of SmoothPLU are left in.
        watch: told the part that is done.
    """
    parameters, buffers = stack_module_state(modules)
    template = copy.deepcopy(modules[0])

    def member(parameters: dict[str, Tensor], buffers: dict[str, Tensor], *batch: Tensor) -> Tensor:
        return loss(functools.partial(functional_call, template, (parameters, buffers)), *batch)

    members: Any = vmap(member)
    optimizer = torch.optim.Adam(list(parameters.values()), lr, foreach=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    losses = []
    for step in range(steps):
        if anneal is not None:
            anneal.apply(buffers.items(), step / max(steps - 1, 1))
        optimizer.zero_grad()
        values = members(parameters, buffers, *draw())
        values.sum().backward()
        optimizer.step()
        schedule.step()
        losses.append(values.detach())
        watch((step + 1) / steps)
    _copy_back(modules, {**parameters, **buffers})
    return torch.stack(losses)


@torch.no_grad()
def _copy_back(modules: list[nn.Module], stacked: dict[str, Tensor]) -> None:
    for i, module in enumerate(modules):
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            tensor.copy_(stacked[name][i])
