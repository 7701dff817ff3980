"""Training steps by PyTorch's autograd and its Adam: the readable statement of what `native` computes."""

from __future__ import annotations

import torch
from torch import Tensor

from plunit.ensemble.network import forward
from plunit.ensemble.state import State
from plunit.ensemble.threads import one_thread


@one_thread()
def advance(state: State, x: Tensor, y: Tensor, first: int, last: int) -> None:
    """Take steps first, ..., last - 1 of Adam on the mean square error, in place; x and y are [steps or 1, ...].

    The sum of the members' losses has each member's own gradient in that member's column, and Adam is elementwise:
    one optimiser trains them all, and none touches another.
    """
    theta = state.theta.requires_grad_()
    optimiser = torch.optim.Adam([theta], lr=state.lr)
    optimiser.state[theta] = {
        "step": torch.tensor(float(first)),
        "exp_avg": state.mean,
        "exp_avg_sq": state.square,
    }
    for step in range(first, last):
        batch = (step - first) % len(x)
        losses = (forward(state.network, theta, x[batch], state.alpha, state.c) - y[batch]).square().mean((0, 1))
        if step % state.stride == 0:
            state.history[step // state.stride] = losses.detach()
        optimiser.zero_grad()
        torch.autograd.backward(losses.sum())
        optimiser.step()
    theta.requires_grad_(False).grad = None
