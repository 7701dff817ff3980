"""Bijections without parameters, for use after training."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from plunit.invertible.bijections.bijection import Bijection, Leaf, as_columns, expect, walk
from plunit.invertible.bijections.chain import Chain


class Frozen(Bijection):
    """The same map as another bijection, with what the parameters imply (matrices, slopes) worked out once.

    Args:
        bijection: made of leaves only. Later changes of its parameters change nothing here.

    It has no state of its own: keep that of the bijection. To change the precision, change that of the bijection and
    freeze it anew: values that were rounded apart do not undo each other to more digits.

    >>> from plunit.invertible import LU, PLU, Chain
    >>> Frozen(Chain(LU(2), PLU(2)))
    Frozen(LU, PLU)
    """

    def __init__(self, bijection: Bijection) -> None:
        expect(bijection, "Frozen")
        super().__init__(bijection.features)
        self._bounds = bijection.lipschitz()
        leaves = bijection.leaves()
        with torch.no_grad(), parametrize.cached():
            self.kept = nn.ModuleList(_Step(leaf) for leaf, _ in leaves)
        self.inverted = [inverted for _, inverted in leaves]

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return F(x) and log|det dF/dx|."""
        return self._through(x, self._steps())

    def inverse(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the x with F(x) = y, and log|det dx/dy|."""
        return self._through(y, [(step, not inverted) for step, inverted in reversed(self._steps())])

    def leaves(self) -> list[tuple[Leaf, bool]]:
        """The frozen leaves."""
        return [*self._steps()]

    def lipschitz(self) -> tuple[float, float]:
        """The bounds of the bijection."""
        return self._bounds

    def sharp(self) -> Bijection:
        """Refuse: the parameters are gone."""
        raise TypeError("a frozen bijection cannot be made sharp; freeze the sharp one: Frozen(bijection.sharp())")

    def _steps(self) -> list[tuple[_Step, bool]]:
        return list(zip(self.kept, self.inverted, strict=True))  # type: ignore[arg-type]

    def _through(self, x: Tensor, steps: list[tuple[_Step, bool]]) -> tuple[Tensor, Tensor]:
        values = [step.inverse_values() if inverted else step.values() for step, inverted in steps]
        return walk(self, x, steps, values)

    def __repr__(self) -> str:
        return f"Frozen({', '.join(leaf.kind for leaf, _ in self.leaves())})"


def part_by_part(chain: Chain) -> Chain:
    """Return the chain with each of its parts frozen."""
    return Chain(*(Frozen(part) for part in chain.parts()))


class _Step(Leaf):
    """A leaf whose values are kept as columns, in buffers."""

    def __init__(self, leaf: Leaf) -> None:
        super().__init__(leaf.features)
        self.evaluate, self.invert = leaf.evaluate, leaf.invert  # type: ignore[method-assign]
        self.is_elementwise, self._kind, self._bounds = leaf.is_elementwise, leaf.kind, leaf.lipschitz()
        for way, values in (("ahead", leaf.values()), ("back", leaf.inverse_values())):
            for index, value in enumerate(as_columns(values)):
                value = value.detach().clone(memory_format=torch.contiguous_format)
                self.register_buffer(f"{way}_{index}", value, persistent=False)

    def values(self, way: str = "ahead") -> tuple[Tensor, ...]:
        return tuple(value for name, value in self._buffers.items() if name.startswith(way))  # type: ignore[misc]

    def inverse_values(self) -> tuple[Tensor, ...]:
        return self.values("back")

    def lipschitz(self) -> tuple[float, float]:
        return self._bounds

    @property
    def kind(self) -> str:
        return self._kind
