"""A graph of affine maps and units as the layers of a network: values that skip a layer pass it as identity units.

A `Tensor` is a vector of numbers: the inputs, units f(z) of another tensor z, or an affine function of its parents by
one of three maps: `Pick`, `Total` and `Product`. The level of units is the number of layers before them. Between two
layers are the units of that level, and as few tensors as possible that later layers need from earlier ones: x + body(x)
carries x, or the partial sum. The readers of ONNX and PyTorch build tensors; `make_layers` turns the last one into
layers.

Consecutive affine maps are joined if float64 holds their product exactly. Otherwise identity units keep them apart, so
that the network is exactly the function of the given numbers. Only a factor and a shift for each number, such as those
of a BatchNorm, are always joined with the adjacent map and rounded; `Layering.rounded` reports that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from plunit.pieces.activation import Activation, identity, stack
from plunit.pieces.arrays import Affine, Floats, Ints, blocks
from plunit.pieces.networks import LayerLike
from plunit.pieces.rounding import exact_product, product_is_exact, sum_is_exact

LIMIT = 2**30
"""Maximum size of a file, of a part of it, and of an array, in bytes: 1 GiB."""

_NUMBERS = count()


def check_bytes(what: str, count: int, remedy: str = "") -> None:
    """Raise ValueError if `count` bytes are more than `LIMIT`."""
    if count > LIMIT:
        raise ValueError(f"{what} has {count:,} bytes; the limit is {LIMIT:,}{remedy}")


class Budget:
    """The memory of the arrays made from a file or a model, with one limit for all steps."""

    def __init__(self, remedy: str = "") -> None:
        self._taken = 0
        self._remedy = remedy and f"; {remedy}"

    def take(self, what: str, count: int) -> None:
        """Count an array; ValueError if it has more than `LIMIT` bytes, or all arrays together more than twice that."""
        self._taken += count
        check_bytes(what, count, self._remedy)
        if self._taken > 2 * LIMIT:
            raise ValueError(
                f"with {what}, all arrays have {self._taken:,} bytes; the limit is {2 * LIMIT:,}{self._remedy}"
            )

    @contextmanager
    def lend(self) -> Iterator[None]:
        """Count the arrays of a block only until it ends, because they are released there."""
        before = self._taken
        try:
            yield
        finally:
            self._taken = before


@dataclass(frozen=True, eq=False)
class Pick:
    """factor * x[index], for the concatenated numbers x of all parents; 0 where the index is -1."""

    index: Ints
    factor: Floats | float = 1.0


@dataclass(frozen=True, eq=False)
class Total:
    """The sum of the parents, each with its sign."""

    signs: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Product:
    """W x: a matrix [size, size of the parent], or a linear function of rows [n, size of the parent].

    is_mean: whether the entries of W are 1 / n, which float64 holds only if n is a power of 2.
    """

    linear: Floats | Callable[[Floats], Floats]
    is_mean: bool = False

    def matrix(self, outputs: int, inputs: int) -> Floats:
        """Return W, whose column i is the function at the i-th unit vector."""
        if isinstance(self.linear, np.ndarray):
            return self.linear
        weight = np.empty((outputs, inputs))
        for block in blocks(inputs, max(1, 2**20 // max(inputs, outputs))):
            weight[:, block] = self.linear(np.eye(block.stop - block.start, inputs, block.start)).T
        return weight


@dataclass(frozen=True, eq=False)
class Tensor:
    """map(parents) + bias; or units, activation(parent); or the inputs, if there is neither.

    jump: [size], the largest difference between these units and those of the graph, where rounded constants cause
    jumps. rounded: whether the factors of the map were rounded, as those of a BatchNorm are.
    """

    size: int
    parents: tuple[Tensor, ...] = ()
    map: Pick | Total | Product | None = None
    bias: Floats | None = None
    activation: Activation | None = None
    jump: Floats | None = None
    rounded: bool = False
    number: int = field(default_factory=lambda: next(_NUMBERS))

    @property
    def is_affine(self) -> bool:
        """Whether the tensor is an affine function of its parents, and neither the inputs nor units."""
        return self.map is not None

    def __post_init__(self) -> None:
        below = max((parent.level for parent in self.parents), default=-1)
        object.__setattr__(self, "level", below if self.is_affine else below + 1)
        through = sum(parent.price for parent in self.parents)
        object.__setattr__(self, "price", min(self.size, through) if self.is_affine else self.size)

    level: int = field(init=False)
    """The number of layers of units up to this tensor."""

    price: int = field(init=False)
    """The number of identity units that carry the tensor, or the tensors it is computed from, through a layer."""


class Layering(NamedTuple):
    """The layers of a network, its largest difference from the graph [out], and whether factors were rounded."""

    layers: list[LayerLike]
    jump: Floats
    rounded: bool


def make_layers(output: Tensor, budget: Budget) -> Layering:
    """Return the layers of a network that computes a tensor of the inputs.

    A difference d of the values before an activation is at most (its largest slope) d after it, plus the jump.
    """
    ready: dict[tuple[int, ...], tuple[Affine, bool]] = {}
    while True:
        stages = _stages(output)
        try:
            affine = [_join(held, wanted, budget, ready) for held, wanted in stages]
        except _InexactProduct as error:
            output = _set_apart(output, error.tensors)
        else:
            break
    layers: list[LayerLike] = []
    off = np.zeros(1)
    for level, ((held, _), ((weight, bias), _)) in enumerate(zip(stages, affine, strict=True)):
        if level:
            layers.append(f := _activation(held, level))
            off = np.abs(f.slopes).max(axis=1) * off + _jumps(held, level)
        layers.append((weight, bias))
        off = np.abs(weight) @ off if off.any() else np.zeros(len(bias))
    # more than the sums are rounded
    return Layering(layers, (1 + 1e-9) * off, any(rounded for _, rounded in affine))


def _stages(output: Tensor) -> list[tuple[list[Tensor], list[Tensor]]]:
    """Return for each level the tensors held after its units, and the tensors wanted as affine functions of these."""
    wanted = [output]
    stages: list[tuple[list[Tensor], list[Tensor]]] = []
    for level in range(output.level, -1, -1):
        held = _hold(wanted, level)
        stages.insert(0, (held, wanted))
        # the parents of this level's units, and what passes them
        wanted = [each.parents[0] if level and each.level == level else each for each in held]
    return stages


def _hold(wanted: Sequence[Tensor], level: int) -> list[Tensor]:
    """Return the tensors to hold after the units of a level, such that all of `wanted` are affine in them."""
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
    """Whether a tensor is computed from its parents after the units of a level, instead of being held there."""
    if not tensor.is_affine:
        return False
    return tensor.level == level or tensor.size > sum(parent.price for parent in tensor.parents)


def _between(tensors: Iterable[Tensor], stops: Callable[[Tensor], bool]) -> list[Tensor]:
    """Return these tensors and their ancestors, up to where `stops` is true, parents first."""
    todo, seen = list(tensors), {}
    while todo:
        each = todo.pop()
        if each.number not in seen:
            seen[each.number] = each
            todo += () if stops(each) else each.parents
    return [seen[number] for number in sorted(seen)]


class _InexactProduct(Exception):
    """Consecutive affine maps whose product float64 does not hold; identity units must follow `tensors`."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = tensors


def _set_apart(output: Tensor, tensors: Sequence[Tensor]) -> Tensor:
    """Return the same graph with identity units after these tensors."""
    apart = {each.number for each in tensors}
    found: dict[int, Tensor] = {}
    for each in _between([output], lambda t: False):
        parents = tuple(found[parent.number] for parent in each.parents)
        # tensors before the new units keep their numbers
        same = all(old is new for old, new in zip(each.parents, parents, strict=True))
        copy = each if same else replace(each, parents=parents, number=next(_NUMBERS))
        found[each.number] = Tensor(copy.size, (copy,), activation=identity()) if each.number in apart else copy
    return found[output.number]


@dataclass(frozen=True, eq=False)
class _Rows:
    """factor x[index] + bias for the held numbers x; the index is -1 where the factor is 0."""

    index: Ints
    factor: Floats
    bias: Floats


def _join(
    held: Sequence[Tensor], wanted: Sequence[Tensor], budget: Budget, ready: dict[tuple[int, ...], tuple[Affine, bool]]
) -> tuple[Affine, bool]:
    """Return (weight, bias) of the tensors `wanted` as functions of those `held`, and whether a factor was rounded."""
    key = (*(each.number for each in held), -1, *(each.number for each in wanted))
    if key not in ready:
        with budget.lend():
            joint = _Joint(held, budget)
            affine = joint.affine(wanted)
        budget.take(f"a layer of {len(affine[1]):,} units", affine[0].nbytes)
        ready[key] = affine, joint.rounded
    return ready[key]


class _Joint:
    """The composition of consecutive affine maps, from the tensors that are held to later ones."""

    def __init__(self, held: Sequence[Tensor], budget: Budget) -> None:
        self.rounded = False
        self._budget = budget
        self._found: dict[int, _Rows | Affine] = {}
        self._width = 0
        for each in held:
            index = np.arange(self._width, self._width + each.size)
            self._found[each.number] = _Rows(index, np.ones(each.size), np.zeros(each.size))
            self._width += each.size
        self._held = set(self._found)

    def affine(self, wanted: Sequence[Tensor]) -> Affine:
        """Return (weight, bias) of these tensors, concatenated."""
        for each in _between(wanted, lambda t: t.number in self._held):
            if each.number not in self._found:
                self._found[each.number] = self._compose(each)
        parts = [self._dense(self._found[each.number]) for each in wanted]
        if len(parts) == 1:
            return parts[0]
        self._take(sum(each.size for each in wanted))
        return np.concatenate([weight for weight, _ in parts]), np.concatenate([bias for _, bias in parts])

    def _take(self, units: int) -> None:
        self._budget.take(f"a layer of {units:,} units", 8 * units * self._width)

    def _compose(self, tensor: Tensor) -> _Rows | Affine:
        """Return map(parents) + bias; `_InexactProduct` if float64 does not hold it and parents can be kept apart."""
        self.rounded |= tensor.rounded
        parents = [self._found[parent.number] for parent in tensor.parents]
        bias = np.zeros(tensor.size) if tensor.bias is None else np.asarray(tensor.bias, dtype=np.float64)
        apart = [parent for parent in tensor.parents if parent.is_affine and parent.number not in self._held]
        if isinstance(tensor.map, Pick):
            return self._pick(tensor.map, parents, bias)
        if isinstance(tensor.map, Total):
            found, is_exact = self._total(tensor.map, parents, bias)
        else:
            assert tensor.map is not None
            found, is_exact = self._product(tensor.map, parents[0], bias, tensor.parents[0].size)
        if apart and not is_exact:
            raise _InexactProduct(apart)
        return found

    def _pick(self, pick: Pick, parents: Sequence[_Rows | Affine], bias: Floats) -> _Rows | Affine:
        if all(isinstance(part, _Rows) for part in parents):
            # index -1 selects the last row
            parts: list[Any] = [*parents, _Rows(np.array([-1]), np.zeros(1), np.zeros(1))]
            index, factor, shift = (
                np.concatenate([getattr(part, name) for part in parts])[pick.index]
                for name in ("index", "factor", "bias")
            )
            return _Rows(index, self._times(pick.factor, factor), self._plus(self._times(pick.factor, shift), bias))
        self._take(len(bias))
        weight, shift, start = np.zeros((len(bias), self._width)), np.zeros(len(bias)), 0
        for part in parents:
            rows, numbers = self._dense(part)
            here = (pick.index >= start) & (pick.index < start + len(numbers))
            weight[here], shift[here] = rows[pick.index[here] - start], numbers[pick.index[here] - start]
            start += len(numbers)
        if np.any(pick.factor != 1.0):
            factor = np.broadcast_to(pick.factor, len(shift))
            weight, shift = self._times(factor[:, None], weight), self._times(factor, shift)
        return weight, self._plus(shift, bias)

    def _total(self, total: Total, parents: Sequence[_Rows | Affine], bias: Floats) -> tuple[Affine, bool]:
        """Return the sum of the parents, and whether it is exact."""
        self._take(2 * len(bias))
        weight, shift, is_exact = np.zeros((len(bias), self._width)), bias, True
        for sign, part in zip(total.signs, parents, strict=True):
            numbers = sign * (part.bias if isinstance(part, _Rows) else part[1])
            is_exact = is_exact and sum_is_exact(shift, numbers)
            shift = shift + numbers
            if isinstance(part, _Rows):
                place: Any = np.flatnonzero(part.index >= 0), part.index[part.index >= 0]
                terms = sign * part.factor[place[0]]
            else:
                place, terms = ..., sign * part[0]
            is_exact = is_exact and sum_is_exact(weight[place], terms)
            weight[place] += terms
        return (weight, shift), is_exact

    def _product(self, product: Product, part: _Rows | Affine, bias: Floats, inputs: int) -> tuple[Affine, bool]:
        """Return W (part) + bias, and whether no sum of several products is rounded."""
        self._budget.take(f"a layer of {len(bias):,} units", 8 * len(bias) * inputs)
        matrix = product.matrix(len(bias), inputs)
        self.rounded |= product.is_mean and bool((np.frexp(matrix[matrix != 0])[0] != 0.5).any())
        if not isinstance(part, _Rows) or (np.bincount(part.index + 1)[1:] > 1).any():
            self._take(len(bias))
            weight, shift = self._dense(part)
            both = exact_product((matrix, bias), (weight, shift))
            return both or (matrix @ weight, matrix @ shift + bias), both is not None
        # each held number enters once, with its factor
        if part.bias.any():
            none = np.zeros((inputs, 0))
            self.rounded |= exact_product((matrix, bias), (none, part.bias)) is None
            bias = matrix @ part.bias + bias
        if (part.factor != 1.0).any():
            matrix = self._times(matrix, part.factor)
        if np.array_equal(part.index, np.arange(self._width)):
            return (matrix, bias), True
        self._take(len(bias))
        weight = np.zeros((len(bias), self._width))
        weight[:, part.index[part.index >= 0]] = matrix[:, part.index >= 0]
        return (weight, bias), True

    def _dense(self, part: _Rows | Affine) -> Affine:
        if not isinstance(part, _Rows):
            return part
        self._take(len(part.bias))
        weight = np.zeros((len(part.bias), self._width))
        used = np.flatnonzero(part.index >= 0)
        weight[used, part.index[used]] = part.factor[used]
        return weight, part.bias

    def _times(self, factor: Floats | float, numbers: Floats) -> Floats:
        self.rounded |= not product_is_exact(np.asarray(factor, dtype=np.float64), numbers)
        return np.asarray(factor * numbers)

    def _plus(self, one: Floats, other: Floats) -> Floats:
        self.rounded |= not sum_is_exact(one, other)
        return one + other


def _activation(held: Sequence[Tensor], level: int) -> Activation:
    """Return the functions of the units of a level, and the identity for the numbers that pass it."""
    functions = [each.activation if each.level == level else None for each in held]
    return stack([(f or identity()).broadcast(each.size) for f, each in zip(functions, held, strict=True)])


def _jumps(held: Sequence[Tensor], level: int) -> Floats:
    """Return the jumps of the units of a level, and 0 for the numbers that pass it."""
    jumps = [each.jump if each.level == level else None for each in held]
    return np.concatenate(
        [np.broadcast_to(0.0 if jump is None else jump, each.size) for jump, each in zip(jumps, held, strict=True)]
    )
