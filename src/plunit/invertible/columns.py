"""Samples through a sequence of leaves, as columns; the values of all leaves of a kind are computed at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from plunit.invertible.bijection import Bijection, Leaf

Values = tuple[Tensor, ...]
Steps = Sequence[tuple["Leaf", bool]]
"""Leaves, first applied first, and whether it is their inverse that is applied."""

_OWN = frozenset(vars(nn.Module())) - {"training"}  # attributes of modules as such


def walk(user: Bijection, x: Tensor, steps: Steps) -> tuple[Tensor, Tensor]:
    """Return where the leaves take the samples x (..., n), and the log-determinant of each."""
    return walk_with(user, x, steps, implied(steps))


def walk_with(user: Bijection, x: Tensor, steps: Steps, values: Sequence[Values]) -> tuple[Tensor, Tensor]:
    """Walk with values that are known, as columns."""
    user._check(x, (value for each in values for value in each))
    y = x.reshape(-1, x.shape[-1]).mT
    apart: list[Tensor] = []
    shared: list[Tensor] = []
    for (leaf, inverted), known in zip(steps, values, strict=True):
        term = leaf.boundary_term(y, *known)
        y, log_slopes = (leaf.invert if inverted else leaf.evaluate)(y, *known)
        (apart if log_slopes.shape[1] == y.shape[1] else shared).append(log_slopes)
        if term is not None:
            apart.append(term)
    sums = [_summed(each) for each in (apart, shared) if each]
    total = sum(sums[1:], start=sums[0])
    return y.mT.reshape(x.shape), total.expand(y.shape[-1]).reshape(x.shape[:-1])


def _summed(log_slopes: list[Tensor]) -> Tensor:
    """Return the sum over all leaves and features: one number for each sample, or one for all."""
    return log_slopes[0].sum(0) if len(log_slopes) == 1 else torch.stack(log_slopes).sum((0, 1))


def implied(steps: Steps) -> list[Values]:
    """Return the values of all leaves, as columns."""
    kinds: dict[object, list[int]] = {}
    for place, (leaf, inverted) in enumerate(steps):
        kinds.setdefault((inverted, *_kind(leaf)), []).append(place)
    found: list[Values] = [()] * len(steps)
    for places in kinds.values():
        same = [steps[place] for place in places]
        for place, values in zip(places, _of_a_kind(same), strict=True):
            found[place] = values
    return found


def _kind(leaf: Leaf) -> Iterator[object]:
    """Yield what leaves must share to differ in their numbers only: all that they hold and that `raw` does not return.

    An attribute without a hash, such as a list, is that of one leaf.
    """
    yield type(leaf)
    yield from leaf._parameters
    yield from leaf._modules.values()
    for name, value in vars(leaf).items():
        if name not in _OWN:
            yield name
            yield _hashed(value)


def _hashed(value: object) -> object:
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value


def _of_a_kind(steps: Steps) -> list[Values]:
    """Return the values of leaves that differ in their numbers only."""
    first, inverted = steps[0]
    if len(steps) == 1 or not first.is_implied:
        return [as_columns(leaf.inverse_values() if inverted else leaf.values()) for leaf, _ in steps]
    together = (first.imply_inverse if inverted else first.imply)(*stacked_raw(steps))
    return list(zip(*(value.unbind() for value in as_columns(together, axes=2)), strict=True))


def stacked_raw(steps: Steps) -> list[Tensor]:
    """Return what leaves of a kind hold, stacked."""
    return [torch.stack(tensors) for tensors in zip(*(leaf.raw() for leaf, _ in steps), strict=True)]


def as_columns(values: Values, axes: int = 1) -> Values:
    """Return values with vectors of numbers as columns; orders, which are whole numbers, stay as they are."""
    return tuple(value[..., None] if value.ndim == axes and value.is_floating_point() else value for value in values)
