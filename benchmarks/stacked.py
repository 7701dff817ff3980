"""Train modules of one kind side by side, their parameters stacked: fewer and larger operations."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.optim.lr_scheduler import CosineAnnealingLR

from plunit.invertible.bijections import boundary
from plunit.invertible.bijections.smooth_plu import annealing_of
from plunit.invertible.flow import Flow

__all__ = ["train"]

Loss = Callable[..., Tensor]
"""loss(call, *batch): the loss of one member, `call` being the member as a function."""


def train(
    modules: Sequence[nn.Module],
    loss: Loss,
    draw: Callable[[], tuple[Tensor, ...]],
    *,
    steps: int,
    lr: float,
    progress: Callable[[float], object] = lambda done: None,
) -> Tensor:
    """Train in place, as `plunit.invertible.Flow.fit` does, and return the losses [steps, members].

    A member that diverges stays in: its losses are NaN or infinite from there on. Flows are annealed as their
    bijections were built to be.

    Args:
        modules: the members; the same class and shapes.
        loss: of one member.
        draw: returns the batches of a step, members on the first axis.
        steps: of Adam, the step size falling to 0 along a half cosine.
        lr: the step size at the start.
        progress: called with the part that is done, after each step.

    >>> from plunit.invertible import density
    >>> flows = [Flow(density(2, blocks=1)) for seed in range(3)]
    >>> train(flows, lambda call, x: -call((x,)).mean(), lambda: (torch.randn(3, 100, 2),), steps=5, lr=0.01).shape
    torch.Size([5, 3])
    """
    stack = _Stack(modules, loss)
    # not fused as in Flow.fit: the two round differently, and kept results were made with this one
    optimizer = torch.optim.Adam(stack.parameters.values(), lr, foreach=True)
    schedule = CosineAnnealingLR(optimizer, steps)
    annealing = annealing_of(modules[0].bijection) if isinstance(modules[0], Flow) else None
    history: list[Tensor] = []
    for step in range(steps):
        if annealing is not None and not annealing.shrink_corners(stack, step, steps):
            annealing = None
        losses = stack.losses(*draw())
        optimizer.zero_grad()
        losses.sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        history.append(losses.detach())
        progress((step + 1) / steps)
    stack.copy_back()
    return torch.stack(history)


class _Stack:
    """Modules of one kind as one model: their parameters and buffers stacked, members on the first axis."""

    def __init__(self, modules: Sequence[nn.Module], loss: Loss) -> None:
        self.modules, self.loss = list(modules), loss
        self.parameters, self.buffers = stack_module_state(self.modules)
        self.template = copy.deepcopy(self.modules[0])

    def losses(self, *batch: Tensor) -> Tensor:
        """Return the loss of each member."""

        def member(parameters: dict[str, Tensor], buffers: dict[str, Tensor], *batch: Tensor) -> Tensor:
            return self.loss(functools.partial(functional_call, self.template, (parameters, buffers)), *batch)

        with boundary.under("data have none"):  # no gradients; tensors within vmap do not say so
            return vmap(member)(self.parameters, self.buffers, *batch)

    def named_buffers(self) -> Iterable[tuple[str, Tensor]]:
        """The stacked buffers, with their names."""
        return self.buffers.items()

    def sharpen(self) -> None:
        """Remove the corners of flows. The parameters stay, by name and by number; the buffers are others."""
        for module in self.modules:
            cast(Flow, module).sharpen()
        _, self.buffers = stack_module_state(self.modules)
        self.template = copy.deepcopy(self.modules[0])

    @torch.no_grad()
    def copy_back(self) -> None:
        """Give each module its parameters and buffers."""
        stacked = {**self.parameters, **self.buffers}
        for i, module in enumerate(self.modules):
            for name, tensor in (*module.named_parameters(), *module.named_buffers()):
                tensor.copy_(stacked[name][i])
