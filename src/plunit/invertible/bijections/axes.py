"""Bijections that keep the axes: a scale and shift of each feature, and permutations."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from plunit.invertible.bijections import positive
from plunit.invertible.bijections.bijection import Elementwise, Leaf


class ScaleShift(Elementwise):
    """y = exp(raw_scale) * x + shift on each feature; the identity at the start."""

    def __init__(self, features: int) -> None:
        super().__init__(features)
        self.raw_scale = nn.Parameter(torch.zeros(features))
        self.shift = nn.Parameter(torch.zeros(features))

    @property
    def scale(self) -> Tensor:
        """The factors, one per feature."""
        return positive.exp(self.raw_scale)

    def raw(self) -> tuple[Tensor, ...]:
        """Both parameters."""
        return self.raw_scale, self.shift

    def imply(self, *raw: Tensor) -> tuple[Tensor, ...]:
        """The scale and the shift."""
        raw_scale, shift = raw
        return positive.exp(raw_scale), shift

    @staticmethod
    def evaluate(x: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return scale * x + shift and log(scale)."""
        scale, shift = values
        return scale * x + shift, scale.log()

    @staticmethod
    def invert(y: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return (y - shift) / scale and -log(scale)."""
        scale, shift = values
        return (y - shift) / scale, -scale.log()

    def lipschitz(self) -> tuple[float, float]:
        """The largest scale, and 1 over the smallest."""
        scale = self.scale.detach()
        return scale.max().item(), 1 / scale.min().item()


class Permutation(Leaf):
    """y[i] = x[order[i]].

    >>> Permutation([2, 0, 1])(torch.tensor([1.0, 2.0, 3.0]))[0]
    tensor([3., 1., 2.])
    """

    order: Tensor

    def __init__(self, order: Sequence[int]) -> None:
        order = [operator.index(index) for index in order]
        super().__init__(len(order))
        if not is_permutation(order):
            raise ValueError(f"a permutation must name each of 0 to {len(order) - 1} once, got {order}")
        self.register_buffer("order", torch.tensor(order))

    def values(self) -> tuple[Tensor, ...]:
        """The order."""
        return (self.order,)

    def inverse_values(self) -> tuple[Tensor, ...]:
        """The order that undoes it."""
        return (self.order.argsort(),)

    @staticmethod
    def evaluate(x: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the features in another order, and 0."""
        (order,) = values
        return x.index_select(0, order), x.new_zeros(len(order), 1)

    @classmethod
    def invert(cls, y: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        """Evaluate: the inverse is of the same kind."""
        return cls.evaluate(y, *values)

    def lipschitz(self) -> tuple[float, float]:
        """1 and 1."""
        return 1.0, 1.0

    def faults(self, state: Mapping[str, Tensor]) -> list[str]:
        """An order that does not name each of 0 to n - 1 once."""
        order = state.get("order")
        if order is None or is_permutation(order.tolist()):
            return []
        return [f"order must name each of 0 to {len(order) - 1} once, got {order.tolist()}; load another state"]


def is_permutation(order: list[int]) -> bool:
    """Say whether each of 0 to n - 1 is in the list once."""
    return sorted(order) == list(range(len(order)))
