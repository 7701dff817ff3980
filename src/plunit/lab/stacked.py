"""Train modules of one kind side by side, their parameters stacked: fewer and larger operations."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from plunit.invertible import Annealing, Flow

SOURCES = ("invertible", "torch", "functional.py", "learned.py", "lab/stacked.py")
"""The files and folders of the program that invertible networks trained here belong to."""

Loss = Callable[..., Tensor]
"""loss(call, *batch): the loss of one member, `call` being the member as a function."""


def train(
    modules: Sequence[nn.Module],
    loss: Loss,
    draw: Callable[[], tuple[Tensor, ...]],
    *,
    steps: int,
    lr: float,
    anneal: Annealing | None = None,
    watch: Callable[[float], object] = lambda done: None,
) -> Tensor:
    """Train in place, as `plunit.invertible.Flow.fit` does, and return the losses [steps, members].

    A member that diverges stays in: its losses are no numbers from there on.

    Args:
        modules: the members; the same class and shapes.
        loss: of one member.
        draw: returns the batches of a step, members on the first axis.
        steps: of Adam, the step size falling to 0 along a half cosine.
        lr: the step size at the start.
        anneal: a quantity to shrink on the way, of flows.
        watch: told the part that is done.
    """
    parameters, buffers = stack_module_state(list(modules))
    members = _side_by_side(modules[0], loss)
    optimizer = torch.optim.Adam(list(parameters.values()), lr, foreach=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    losses, sharp = [], False
    for step in range(steps):
        if anneal is not None and not sharp:
            progress = anneal.progress(step, steps)
            sharp = anneal.is_over(progress)
            if sharp:  # the parameters stay, by name and by number; the buffers are others
                buffers = _sharpen(modules)
                members = _side_by_side(modules[0], loss)
            else:
                anneal.apply(buffers.items(), progress)
        optimizer.zero_grad()
        values = members(parameters, buffers, *draw())
        values.sum().backward()
        optimizer.step()
        schedule.step()
        losses.append(values.detach())
        watch((step + 1) / steps)
    _copy_back(modules, {**parameters, **buffers})
    return torch.stack(losses)


def _side_by_side(module: nn.Module, loss: Loss) -> Any:
    """Return the loss of all members as a function of stacked parameters, stacked buffers and batches."""
    template = copy.deepcopy(module)

    def member(parameters: dict[str, Tensor], buffers: dict[str, Tensor], *batch: Tensor) -> Tensor:
        return loss(functools.partial(functional_call, template, (parameters, buffers)), *batch)

    return vmap(member)


def _sharpen(modules: Sequence[nn.Module]) -> dict[str, Tensor]:
    """Remove the corners of flows; return their buffers, stacked."""
    for module in modules:
        cast(Flow, module).sharpen()
    return stack_module_state(list(modules))[1]


@torch.no_grad()
def _copy_back(modules: Sequence[nn.Module], stacked: dict[str, Tensor]) -> None:
    for i, module in enumerate(modules):
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            tensor.copy_(stacked[name][i])
