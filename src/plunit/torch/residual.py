"""A residual sum as a module, in a file of its own because saved models name it."""

from __future__ import annotations

from torch import Tensor, nn


class Residual(nn.Module):
    """x + body(x), for a body that keeps the shape of its input.

    `to_network` takes it, unlike a sum in a forward method of one's own.

    >>> import torch
    >>> Residual(nn.Identity())(torch.ones(1, 2))
    tensor([[2., 2.]])
    """

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, input: Tensor) -> Tensor:
        """Return input + body(input); not broadcast."""
        output: Tensor = self.body(input)
        if output.shape != input.shape:
            raise ValueError(f"x + body(x) needs equal shapes, got {tuple(input.shape)} and {tuple(output.shape)}")
        return input + output
