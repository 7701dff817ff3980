"""Bijections without parameters, for use after training."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from plunit.invertible.bijection import Bijection, as_columns, from_columns, to_columns
from plunit.invertible.chain import Chain


class Frozen(Bijection):
    """The same map as another bijection, with what the parameters imply (matrices, slopes) worked out once.

    Args:
        bijection: made of leaves only. Later changes of its parameters change nothing here.

    >>> from plunit.invertible import LU, PLU, Chain
    >>> Frozen(Chain(LU(2), PLU(2)))
    Frozen(LU, PLU)
    """

    def __init__(self, bijection: Bijection) -> None:
        super().__init__(bijection.features)
        self._bounds = bijection.lipschitz()
        leaves = bijection.leaves()
        self.kinds = [type(leaf).__name__ for leaf, _ in leaves]
        with torch.no_grad(), parametrize.cached():
            maps = [
                (_Map(leaf.evaluate, leaf.values()), _Map(leaf.invert, leaf.inverse_values())) for leaf, _ in leaves
            ]
        pairs = [pair[::-1] if inverted else pair for pair, (_, inverted) in zip(maps, leaves, strict=True)]
        self.ahead = nn.ModuleList(ahead for ahead, _ in pairs)
        self.back = nn.ModuleList(back for _, back in reversed(pairs))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return F(x) and log|det dF/dx|."""
        return self._apply_all(self.ahead, x)

    def inverse(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the x with F(x) = y, and log|det dx/dy|."""
        return self._apply_all(self.back, y)

    def _apply_all(self, maps: nn.ModuleList, x: Tensor) -> tuple[Tensor, Tensor]:
        self._check(x, (value for part in maps for value in part.buffers()))
        y, found = to_columns(x), []
        for part in maps:
            y, log_slopes = part(y)
            found.append(log_slopes)
        shared_first = sorted(found, key=_width)  # what all samples share is summed up while it is small
        return from_columns(x, y, sum(shared_first[1:], start=shared_first[0]))

    def lipschitz(self) -> tuple[float, float]:
        """The bounds of the bijection."""
        return self._bounds

    def exact(self) -> Bijection:
        """Refuse: the parameters are gone."""
        raise TypeError("a frozen bijection cannot be made exact; freeze the exact one: Frozen(bijection.exact())")

    def __repr__(self) -> str:
        return f"Frozen({', '.join(self.kinds)})"


def part_by_part(chain: Chain) -> Chain:
    """Return the chain with each of its parts frozen."""
    return Chain(*(part if isinstance(part, Frozen) else Frozen(part) for part in chain.parts()))


class _Map(nn.Module):
    """One direction of a leaf, with its values as buffers."""

    def __init__(self, function: Callable[..., tuple[Tensor, Tensor]], values: tuple[Tensor, ...]) -> None:
        super().__init__()
        self.function = function
        for index, value in enumerate(as_columns(values)):
            self.register_buffer(f"value_{index}", value.detach().clone(memory_format=torch.contiguous_format))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.function(x, *self._buffers.values())


def _width(columns: Tensor) -> int:
    return columns.shape[1]
