"""A graph of affine maps and units as a chain of layers: values that skip a layer pass it as identity units.

A `Tensor` is a vector of numbers: the inputs, units f(z) of another tensor z, or affine in its parents. The level of
units is the number of layers before them. Between two layers of the chain stand the units of that level, and the fewest
tensors found that everything behind needs of the levels before: x + body(x) carries x, or the sum so far, and two
affine maps in a row are one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from plunit.pieces.activation import Activation, beside, identity
from plunit.pieces.arrays import Floats
from plunit.pieces.networks import LayerLike

LIMIT = 2**30
"""The largest file, part of a file, or array in bytes that is read: 1 GiB."""

_NUMBERS = count()

Linear = Callable[..., Floats]
"""Takes [n, size] of every parent and returns [n, size] of the tensor, without its bias."""


def check_bytes(what: str, count: int) -> None:
    """Raise ValueError if `count` bytes are more than `LIMIT`."""
    if count > LIMIT:
        raise ValueError(f"{what} has {count:,} bytes, and at most {LIMIT:,} are read")


class Room:
    """Counts the arrays that are made of a file; a `load` has one of them for all its steps."""

    def __init__(self) -> None:
        self._taken = 0

    def take(self, what: str, count: int) -> None:
        """Count an array; ValueError if it has more than `LIMIT` bytes, or all arrays more than twice as many."""
        check_bytes(what, count)
        self._taken += count
        if self._taken > 2 * LIMIT:
            raise ValueError(f"with {what} its arrays have {self._taken:,} bytes, and at most {2 * LIMIT:,} are made")

    @contextmanager
    def lend(self) -> Iterator[None]:
        """Count the arrays of a block until it ends, because they are dropped there."""
        before = self._taken
        yield
        self._taken = before


@dataclass(frozen=True, eq=False)
class Tensor:
    """linear(parents) + bias; or units, activation(parent); or the inputs, if there is neither.

    jump: [size], how much the units differ at most from those of the graph, which jump where constants are rounded.
    """

    size: int
    parents: tuple[Tensor, ...] = ()
    linear: Linear | None = None
    bias: Floats | None = None
    activation: Activation | None = None
    jump: Floats | None = None
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


def chain(output: Tensor, room: Room) -> tuple[list[LayerLike], Floats]:
    """Return the layers of a network that computes a tensor of the inputs, and how much they differ at most, [out].

    A difference d of the values before an activation is at most (its largest slope) d after it, plus the jump.
    """
    wanted = [output]
    stages: list[tuple[list[Tensor], list[Tensor]]] = []
    for level in range(output.level, -1, -1):
        held = _held(wanted, level)
        stages.insert(0, (held, wanted))
        # what the units of this level are made of, and what passes them
        wanted = [each.parents[0] if level and each.level == level else each for each in held]
    layers: list[LayerLike] = []
    off = np.zeros(1)
    for level, (held, wanted) in enumerate(stages):
        if level:
            layers.append(f := _activation(held, level))
            off = np.abs(f.slopes).max(axis=1) * off + _jumps(held, level)
        with room.lend():
            weight, bias = _affine(wanted, held, room)
        room.take(f"a layer of {len(bias):,} units", weight.nbytes)
        layers.append((weight, bias))
        off = np.abs(weight) @ off if off.any() else np.zeros(len(bias))
    return slimmed(layers), (1 + 1e-9) * off  # more than the sums are rounded


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
    return beside([(f or identity()).spread(each.size) for f, each in zip(functions, held, strict=True)])


def _jumps(held: Sequence[Tensor], level: int) -> Floats:
    """Return the jumps of the units of a level, and 0 for what passes them."""
    jumps = [each.jump if each.level == level else None for each in held]
    return np.concatenate(
        [np.broadcast_to(0.0 if jump is None else jump, each.size) for jump, each in zip(jumps, held, strict=True)]
    )


_Affine = tuple[Floats, Floats]
_Stage = tuple[_Affine, Activation, _Affine]
"""(weight, bias), the activation, and (weight, bias) of the next layer."""


def slimmed(layers: list[LayerLike]) -> list[LayerLike]:
    """Return layers of the same function with fewer units: opposite ReLUs share one, identities are as few as found.

    max(a, b) is often written by relu(z) and relu(-z) with z = a - b. As relu(-z) = relu(z) - z, one of them is enough.
    """
    found: list[Any] = list(layers)
    places = range(0, len(found) - 2, 2)
    units = -1
    # fewer units in one layer make equal ones in the next
    while units != (units := sum(len(found[i][1]) for i in places)):
        for step, order in (
            (_without_opposites, places),
            (_without_unused, places[::-1]),
            (_with_few_identities, places),
        ):
            for i in order:
                found[i : i + 3] = step(*found[i : i + 3])
    return found


def _without_opposites(layer: _Affine, f: Activation, after: _Affine) -> _Stage:
    """Replace ReLU of z or -z, where another unit is ReLU of z, by that unit and the identity of z."""
    weight, bias, taken = layer[0].copy(), layer[1].copy(), after[0].copy()
    knots, slopes = f.knots.copy(), f.slopes.copy()
    is_relu = (f.at_zero == 0) & (f.slopes[:, 0] == 0) & (f.slopes[:, 1:] == 1).all(axis=1)
    is_relu &= (f.knots[:, :1] == 0).all(axis=1) & (f.knots.shape[1] > 0)
    rows = np.column_stack([weight, bias]) + 0.0
    seen: dict[bytes, int] = {}
    for unit in np.flatnonzero(is_relu).tolist():
        if (same := seen.get(rows[unit].tobytes())) is not None:
            taken[:, same] += taken[:, unit]
            taken[:, unit] = 0.0
        elif (other := seen.get((0.0 - rows[unit]).tobytes())) is not None:
            taken[:, other] += taken[:, unit]
            taken[:, unit] *= -1
            weight[unit], bias[unit], knots[unit], slopes[unit] = weight[other], bias[other], np.inf, 1.0
        else:
            seen[rows[unit].tobytes()] = unit
    return (weight, bias), Activation(knots, slopes, f.at_zero), (taken, after[1])


def _without_unused(layer: _Affine, f: Activation, after: _Affine) -> _Stage:
    """Leave out the units that the next layer does not take."""
    used = (after[0] != 0).any(axis=0)
    if not used.any():
        return layer, f, after
    return (layer[0][used], layer[1][used]), f.part(used), (after[0][:, used], after[1])


def _with_few_identities(layer: _Affine, f: Activation, after: _Affine) -> _Stage:
    """Carry what identities are made of, or what is made of them, if that is less."""
    (weight, bias), (taken, shift) = layer, after
    carries = (f.slopes == 1).all(axis=1) & (f.at_zero == 0)
    source = np.flatnonzero((weight[carries] != 0).any(axis=0))
    sums, place = np.unique(taken[:, carries], axis=0, return_inverse=True)
    if min(len(source), len(sums)) >= carries.sum() or (carries.all() and not len(source)):
        return layer, f, after
    if len(source) <= len(sums):
        rows, shifts = np.eye(weight.shape[1])[source], np.zeros(len(source))
        columns = taken[:, carries] @ weight[carries][:, source]
        shift = shift + taken[:, carries] @ bias[carries]
    else:
        rows, shifts = sums @ weight[carries], sums @ bias[carries]
        columns = np.eye(len(sums))[place.reshape(-1)]
    kept = ~carries
    first = np.concatenate([weight[kept], rows]), np.concatenate([bias[kept], shifts])
    units = beside([f.part(kept), identity().spread(len(rows))])
    return _without_unused(first, units, (np.concatenate([taken[:, kept], columns], axis=1), shift))
