"""Bijections made of others: one after the other, and the other way round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from torch import Tensor, nn

from plunit.invertible.bijections.bijection import Bijection, Leaf, expect, walk
from plunit.invertible.bijections.blocks import are_blocks, walk_blocks

if TYPE_CHECKING:
    from plunit.invertible.bijections.anneal import Annealing

_Steps = list[tuple[Bijection, bool]]


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
        return self._through(x, self._own_steps())

    def inverse(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Undo all bijections, last first."""
        return self._through(y, _turned(self._own_steps()))

    def steps(self) -> _Steps:
        """The steps of all bijections; itself if calling them would not be the same."""
        return self._own_steps() if _is_just(self, Chain) else [(self, False)]

    def _own_steps(self) -> _Steps:
        return [step for bijection in self.parts() for step in bijection.steps()]

    def _through(self, x: Tensor, steps: _Steps) -> tuple[Tensor, Tensor]:
        """Take the steps; leaves in a row are taken together."""
        total: Tensor | float = 0.0
        while steps:
            count = next((i for i, (step, _) in enumerate(steps) if not _is_just(step, Leaf)), len(steps))
            x, log_det = _walk(self, x, steps[:count]) if count else _call(*steps[0], x)
            total, steps = total + log_det, steps[count or 1 :]
        return x, total  # type: ignore[return-value]

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

    def sharp(self) -> Chain:
        """The chain, of the same kind, of the sharp bijections."""
        return type(self)(*(bijection.sharp() for bijection in self.parts())).train(self.training)

    @property
    def annealing(self) -> Annealing | None:
        """That of the first bijection that has one."""
        return next((found for part in self.parts() if (found := part.annealing) is not None), None)


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

    def sharp(self) -> Inverse:
        """The inverse of the sharp bijection."""
        return Inverse(self.bijection.sharp()).train(self.training)

    @property
    def annealing(self) -> Annealing | None:
        """That of F."""
        return self.bijection.annealing

    def steps(self) -> _Steps:
        """The steps of F, last first, and each the other way round."""
        return _turned(self.bijection.steps()) if _is_just(self, Inverse) else [(self, False)]


def _turned(steps: _Steps) -> _Steps:
    return [(bijection, not inverted) for bijection, inverted in reversed(steps)]


def _walk(user: Bijection, x: Tensor, steps: _Steps) -> tuple[Tensor, Tensor]:
    leaves = cast(Any, steps)
    return walk_blocks(user, x, leaves) if are_blocks(steps) else walk(user, x, leaves)


def _call(bijection: Bijection, inverted: bool, x: Tensor) -> tuple[Tensor, Tensor]:
    return bijection.inverse(x) if inverted else bijection(x)


def _is_just(bijection: Bijection, kind: type[Bijection]) -> bool:
    """Say whether a bijection goes both ways as this kind does, and nobody waits for its call."""
    own = type(bijection)
    hooked = bijection._forward_hooks or bijection._forward_pre_hooks or bijection._backward_hooks
    return own.forward is kind.forward and own.inverse is kind.inverse and not hooked
