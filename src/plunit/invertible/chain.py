"""Bijections made of others: one after the other, and the other way round."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from plunit.invertible.bijection import Bijection, Leaf, expect


class Composite(Bijection):
    """A bijection whose state and description are those of its parts."""

    def faults(self, state: Mapping[str, Tensor]) -> list[str]:
        """None of its own: the parts look after their states."""
        return []

    def extra_repr(self) -> str:
        """Nothing beyond the parts."""
        return ""


class Chain(Composite):
    """F = F_k o ... o F_1: the bijections one after the other, log-determinants added.

    >>> import torch
    >>> from plunit.invertible import PLU, Permutation
    >>> chain = Chain(Permutation([1, 0]), PLU(2))
    >>> y, log_det = chain(torch.tensor([0.5, 2.0]))
    >>> y
    tensor([1.1000, 0.5000])
    >>> chain.inverse(y)[0]
    tensor([0.5000, 2.0000])
    """

    def __init__(self, *bijections: Bijection) -> None:
        if not bijections:
            raise ValueError("a Chain needs at least one bijection, got none; ScaleShift(features) is the identity")
        for part in bijections:
            expect(part, "a Chain")
        sizes = [bijection.features for bijection in bijections]
        if len(set(sizes)) > 1:
            raise ValueError(f"the bijections of a Chain must have the same number of features, got {sizes}")
        super().__init__(sizes[0])
        self.bijections = nn.ModuleList(bijections)

    def parts(self) -> list[Bijection]:
        """The bijections, first applied first."""
        return list(self.bijections)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Apply all bijections."""
        total: Tensor | float = 0.0
        for bijection in self.bijections:
            x, log_det = bijection(x)
            total = total + log_det
        return x, total  # type: ignore[return-value]

    def inverse(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Undo all bijections, last first."""
        total: Tensor | float = 0.0
        for bijection in reversed(self.parts()):
            y, log_det = bijection.inverse(y)
            total = total + log_det
        return y, total  # type: ignore[return-value]

    def lipschitz(self) -> tuple[float, float]:
        """The products of the bounds."""
        forward, backward = 1.0, 1.0
        for bijection in self.parts():
            ahead, back = bijection.lipschitz()
            forward, backward = forward * ahead, backward * back
        return forward, backward

    def leaves(self) -> list[tuple[Leaf, bool]]:
        """The leaves of all bijections."""
        return [leaf for bijection in self.parts() for leaf in bijection.leaves()]

    def exact(self) -> Chain:
        """The chain, of the same kind, of the exact bijections."""
        return type(self)(*(bijection.exact() for bijection in self.parts()))


class Inverse(Composite):
    """F^-1 as a bijection: forward and inverse exchanged."""

    def __init__(self, bijection: Bijection) -> None:
        expect(bijection, "Inverse")
        super().__init__(bijection.features)
        self.bijection = bijection

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return F^-1(x)."""
        return self.bijection.inverse(x)

    def inverse(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return F(y)."""
        return self.bijection(y)  # type: ignore[no-any-return]

    def lipschitz(self) -> tuple[float, float]:
        """The bounds of F, exchanged."""
        forward, backward = self.bijection.lipschitz()
        return backward, forward

    def leaves(self) -> list[tuple[Leaf, bool]]:
        """The leaves of F, last first, and each the other way round."""
        return [(leaf, not inverted) for leaf, inverted in reversed(self.bijection.leaves())]

    def exact(self) -> Inverse:
        """The inverse of the exact bijection."""
        return Inverse(self.bijection.exact())
