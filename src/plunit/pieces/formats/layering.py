"""A graph of affine maps and units as a chain of layers: values that skip a layer pass it as identity units.

A `Tensor` is a vector of numbers: the inputs, units f(z) of another tensor z, or affine in its parents. The level of
units is the number of layers before them. Between two layers of the chain stand the units of that level, and the fewest
tensors found that everything behind needs of the levels before: x + body(x) carries x, or the sum so far, and two
affine maps in a row are one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from plunit.pieces.activation import Activation, identity
from plunit.pieces.arrays import Floats
from plunit.pieces.formats.importer import Room
from plunit.pieces.networks import LayerLike

_NUMBERS = count()

Linear = Callable[..., Floats]
"""Takes [n, size] of every parent and returns [n, size] of the tensor, without its bias."""


@dataclass(frozen=True, eq=False)
class Tensor:
    """linear(parents) + bias; or units, activation(parent); or the inputs, if there is neither."""

    size: int
    parents: tuple[Tensor, ...] = ()
    linear: Linear | None = None
    bias: Floats | None = None
    activation: Activation | None = None
    number: int = field(default_factory=lambda: next(_NUMBERS))

    @property
    def is_affine(self) -> bool:
        """Whether it is no input and no unit."""
        return self.linear is not None

    def __post_init__(self) -> None:
        below = max((parent.level for parent in self.parents), default=-1)
        object.__setattr__(self, "level", below if self.is_affine else below + 1)
        through = sum(parent.price for parent in self.parents)
        object.__setattr__(self, "price", min(self.size, through) if self.is_affine else self.size)

    level: int = field(init=False)
    """The number of layers of units that it takes."""

    price: int = field(init=False)
    """The number of identity units that carry it through a layer, or what it is made of."""


def chain(output: Tensor) -> list[LayerLike]:
    """Return the layers of a network that computes a tensor of the inputs."""
    wanted = [output]
    stages: list[tuple[list[Tensor], list[Tensor]]] = []
    for level in range(output.level, -1, -1):
        held = _held(wanted, level)
        stages.insert(0, (held, wanted))
        # what the units of this level are made of, and what passes them
        wanted = [each.parents[0] if level and each.level == level else each for each in held]
    room = Room()
    layers: list[LayerLike] = []
    for level, (held, wanted) in enumerate(stages):
        layers += [_activation(held, level)] if level else []
        layers.append(_affine(wanted, held, room))
    return _pruned(layers)


def _held(wanted: Sequence[Tensor], level: int) -> list[Tensor]:
    """Return what stands behind the units of a level, so that all of `wanted` is affine in it."""
    found: dict[int, Tensor] = {}
    for each in _between(wanted, lambda t: not _is_open(t, level)):
        if not _is_open(each, level):
            found[each.number] = each
    for number in sorted(found, reverse=True):
        rest = {other for other in found if other != number}
        made_of = _between([found[number]], lambda t, rest=rest: t.number in rest)  # type: ignore[misc]
        if found[number].is_affine and all(t.is_affine or t.number in rest for t in made_of):
            del found[number]
    return [found[number] for number in sorted(found)]


def _is_open(tensor: Tensor, level: int) -> bool:
    """Whether a tensor is not held behind the units of a level, but made of its parents there."""
    if not tensor.is_affine:
        return False
    return tensor.level == level or tensor.size > sum(parent.price for parent in tensor.parents)


def _between(tensors: Iterable[Tensor], stops: Callable[[Tensor], bool]) -> list[Tensor]:
    """Return these tensors and what they are made of, down to where it stops, parents first."""
    todo, seen = list(tensors), {}
    while todo:
        each = todo.pop()
        if each.number not in seen:
            seen[each.number] = each
            todo += () if stops(each) else each.parents
    return [seen[number] for number in sorted(seen)]


def _affine(wanted: Sequence[Tensor], held: Sequence[Tensor], room: Room) -> tuple[Floats, Floats]:
    """Return (weight, bias) of the tensors `wanted`, as affine in the tensors `held`."""
    width, start = sum(each.size for each in held), 0
    found: dict[int, tuple[Floats, Floats]] = {}
    for each in held:
        room.take(f"a layer of {width:,} units", 8 * width * each.size)
        found[each.number] = np.eye(width, each.size, -start), np.zeros((1, each.size))
        start += each.size
    for each in _between(wanted, lambda t: t.number in found):
        if each.number in found:
            continue
        room.take(f"a layer of {each.size:,} units", 8 * width * each.size)
        assert each.linear is not None
        parents = [found[parent.number] for parent in each.parents]
        weight, bias = (each.linear(*(pair[i] for pair in parents)) for i in range(2))
        found[each.number] = weight, bias if each.bias is None else bias + each.bias
    pairs = [found[each.number] for each in wanted]
    return np.concatenate([pair[0] for pair in pairs], axis=1).T, np.concatenate([pair[1][0] for pair in pairs])


def _activation(held: Sequence[Tensor], level: int) -> Activation:
    """Return the functions of the units of a level, and the identity for what passes them."""
    functions = [each.activation if each.level == level else None for each in held]
    parts = [(f or identity()).spread(each.size) for f, each in zip(functions, held, strict=True)]
    most = max(part.knots.shape[1] for part in parts)

    def padded(array: Floats, width: int, last: Floats | float) -> Floats:
        return np.concatenate([array, np.broadcast_to(last, (len(array), width - array.shape[1]))], axis=1)

    return Activation(
        np.concatenate([padded(part.knots, most, np.inf) for part in parts]),
        np.concatenate([padded(part.slopes, most + 1, part.slopes[:, -1:]) for part in parts]),
        np.concatenate([part.at_zero for part in parts]),
    )


def _pruned(layers: list[LayerLike]) -> list[LayerLike]:
    """Return the layers without the units that no later layer uses."""
    for i in range(len(layers) - 3, -1, -2):
        (weight, bias), f, (after, shift) = layers[i : i + 3]  # type: ignore[misc]
        used = (after != 0).any(axis=0)
        if used.any() and not used.all():
            layers[i : i + 3] = [(weight[used], bias[used]), f.part(used), (after[:, used], shift)]  # type: ignore
    return layers
