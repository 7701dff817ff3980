"""The training loop of flows, alone or stacked: steps of a falling size, annealing on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR

from plunit.invertible.anneal import Annealing


class Model(Protocol):
    """What annealing needs of the model that is trained."""

    def named_buffers(self) -> Iterable[tuple[str, Tensor]]:
        """All buffers, with their names."""

    def sharpen(self) -> None:
        """Remove all rounded corners. The parameters stay the same tensors."""


def minimise(
    model: Model,
    losses: Callable[[], Tensor],
    optimizer: Optimizer,
    steps: int,
    *,
    anneal: Annealing | None = None,
    check: Callable[[int, Tensor], bool] = lambda step, losses: False,
    progress: Callable[[int, Tensor], object] = lambda done, losses: None,
) -> Tensor:
    """Lower the sum of the losses, the step size falling to 0 along a half cosine. Return the losses of the steps.

    Args:
        model: what is annealed.
        losses: returns the losses of a step: one number, or one for each member of a stack.
        optimizer: holds the parameters and the step size at the start.
        steps: how many steps.
        anneal: a quantity to shrink on the way. When rho has reached its end the corners are removed.
        check: called with (steps done, losses) before the parameters change; True ends training there.
        progress: called with (steps done, losses) after they have changed.
    """
    schedule = CosineAnnealingLR(optimizer, steps)
    history: list[Tensor] = []
    sharp = False
    for step in range(steps):
        if anneal is not None and not sharp:
            passed = anneal.progress(step, steps)
            sharp = anneal.is_over(passed)
            if sharp:
                model.sharpen()  # the optimiser goes on, because the sharp model has the same parameters
            else:
                anneal.apply(model.named_buffers(), passed)
        values = losses()
        if check(step, values.detach()):
            break
        history.append(values.detach())
        optimizer.zero_grad()
        values.sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        progress(step + 1, history[-1])
    return torch.stack(history)
