"""Fewer units for the same function: equal and opposite units are merged, and fewer identities carry values.

Each step maps (weight, bias) of a layer, its activation, and (weight, bias) of the next layer to new ones. A step that
would round a number is skipped, so that the function stays exactly the same.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from plunit.pieces.activation import Activation, identity, stack
from plunit.pieces.arrays import Affine, Floats, Ints
from plunit.pieces.networks import Layer, LayerLike, Network
from plunit.pieces.rounding import exact_product, sum_is_exact

_Stage = tuple[Affine, Activation, Affine]
"""(weight, bias), the activation, and (weight, bias) of the next layer."""


def merge_units(net: Network) -> Network:
    """Return the same function with fewer units: equal ones are merged, and relu(-z) next to relu(z) becomes z.

    A unit stays as it is where a sum would be rounded.

    >>> from plunit.pieces import activation, network
    >>> net = network([([[1.0], [1.0], [2.0]], [0.0] * 3), activation.plu(), ([[1.0, 1.0, 3.0]], [0.0])])
    >>> merge_units(net), merge_units(net).layers[-1].weight.tolist()
    (Network(1 - 2 - 1), [[2.0, 3.0]])
    """
    layers = list(net.layers)
    for i, (_, f) in enumerate(net.hidden):
        layer, after = layers[i : i + 2]
        stage: _Stage = (layer.weight, layer.bias), f, (after.weight, after.bias)
        for step in (_merge_equal, _share_opposites, _merge_equal, _drop_unused):
            stage = step(*stage)
        layers[i : i + 2] = Layer(*stage[0], stage[1]), Layer(*stage[2], after.activation)
    return Network(tuple(layers))


def slim(layers: list[LayerLike]) -> list[LayerLike]:
    """Return layers of the same function with fewer units: opposite ReLUs share one, and identities are few.

    max(a, b) is often written by relu(z) and relu(-z) with z = a - b. As relu(-z) = relu(z) - z, one of them is enough.
    """
    found: list[Any] = list(layers)
    places = range(0, len(found) - 2, 2)
    units = -1
    # fewer units in one layer make equal ones in the next
    tried: dict[tuple[Any, int], list[Any]] = {}
    while units != (units := sum(len(found[i][1]) for i in places)):
        for step, order in (
            (_merge_equal, places),
            (_share_opposites, places),
            (_drop_unused, places[::-1]),
            (_carry_less, places),
        ):
            for i in order:
                # a step that changes nothing returns its arguments, and need not be tried again
                given = found[i : i + 3]
                if not all(map(operator.is_, tried.get((step, i), [None]), given)):
                    tried[step, i], found[i : i + 3] = given, step(*given)
    return found


def _merge_equal(layer: Affine, f: Activation, after: Affine) -> _Stage:
    """Merge units that are equal in all their numbers, where the sum of their outgoing weights is exact."""
    alike = _alike(layer[0])
    numbers = [layer[0][alike], layer[1][alike, None], f.knots[alike], f.slopes[alike], f.at_zero[alike, None]]
    place = _distinct(np.concatenate(numbers, axis=1))[1]
    order = np.argsort(place, kind="stable")
    groups = np.split(alike[order], np.flatnonzero(np.diff(place[order])) + 1)
    if len(groups) == len(alike):
        return layer, f, after
    taken = after[0].copy()
    kept: Any = np.ones(len(layer[1]), dtype=np.bool_)
    for units in (group for group in groups if len(group) > 1):
        sums = [_exact_sum(row) for row in taken[:, units].tolist()]
        if None not in sums:
            taken[:, units[0]], kept[units[1:]] = sums, False
    if kept.all():
        return layer, f, after
    return (layer[0][kept], layer[1][kept]), f.part(kept), (taken[:, kept], after[1])


def _exact_sum(numbers: list[float]) -> float | None:
    """Return the sum, or None if it would be rounded or too large."""
    try:
        total = math.fsum(numbers)
    except OverflowError:
        return None
    return total if math.fsum([*numbers, -total]) == 0 else None


def _alike(weight: Floats) -> Ints:
    """Return the units whose weights may be equal or opposite to those of another unit: a cheap first comparison."""
    # sums of the same sizes in the same order are equal
    sizes, starts = np.abs(weight).sum(axis=1), np.argmax(weight != 0, axis=1)
    _, place, counts = np.unique(sizes + 1j * starts, return_inverse=True, return_counts=True)
    return np.flatnonzero(counts[place.reshape(-1)] > 1)


def _distinct(rows: Floats) -> tuple[Ints, Ints]:
    """Return the index of the first of each kind of row, and the number of the kind of each row."""
    seen: dict[bytes, int] = {}
    # no number is -0.0
    place = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in rows + 0.0], dtype=np.int64)
    return np.unique(place, return_index=True)[1], place


def _share_opposites(layer: Affine, f: Activation, after: Affine) -> _Stage:
    """Replace relu(-z), where another unit is relu(z), by relu(z) - z with an identity unit z."""
    is_relu = (f.at_zero == 0) & (f.slopes[:, 0] == 0) & (f.slopes[:, 1:] == 1).all(axis=1)
    is_relu &= (f.knots[:, :1] == 0).all(axis=1) & (f.knots.shape[1] > 0)
    alike = _alike(layer[0])
    alike = alike[is_relu[alike]]
    rows = np.column_stack([layer[0][alike], layer[1][alike]]) + 0.0
    seen: dict[bytes, int] = {}
    pairs = []
    for unit, row in zip(alike.tolist(), rows, strict=True):
        other = seen.get((0.0 - row).tobytes())
        if other is None:
            seen.setdefault(row.tobytes(), unit)
        else:
            pairs.append((unit, other))
    if not pairs:
        return layer, f, after
    weight, bias, taken = layer[0].copy(), layer[1].copy(), after[0].copy()
    knots, slopes = f.knots.copy(), f.slopes.copy()
    for unit, other in pairs:
        if sum_is_exact(taken[:, other], taken[:, unit]):
            taken[:, other] += taken[:, unit]
            taken[:, unit] *= -1
            weight[unit], bias[unit], knots[unit], slopes[unit] = weight[other], bias[other], np.inf, 1.0
    return (weight, bias), Activation(knots, slopes, f.at_zero), (taken, after[1])


def _drop_unused(layer: Affine, f: Activation, after: Affine) -> _Stage:
    """Leave out the units that the next layer does not use."""
    used = (after[0] != 0).any(axis=0)
    if used.all() or not used.any():
        return layer, f, after
    return (layer[0][used], layer[1][used]), f.part(used), (after[0][:, used], after[1])


def _carry_less(layer: Affine, f: Activation, after: Affine) -> _Stage:
    """Carry the inputs of identity units, or the sums made from these units, if those are fewer and exact."""
    (weight, bias), (taken, shift) = layer, after
    carries = (f.slopes == 1).all(axis=1) & (f.at_zero == 0)
    source = np.flatnonzero((weight[carries] != 0).any(axis=0))
    first, place = _distinct(taken[:, carries])
    sums = taken[first][:, carries]
    used = sums.any(axis=1)
    few = min(len(source), int(used.sum()))
    if few >= carries.sum() or (carries.all() and not few):
        return layer, f, after
    if len(source) == few:
        rows, shifts = np.eye(weight.shape[1])[source], np.zeros(few)
        both = exact_product((taken[:, carries], shift), (weight[carries][:, source], bias[carries]))
        columns, shift = both or (taken, shift)
    else:
        both = exact_product((sums[used], np.zeros(few)), (weight[carries], bias[carries]))
        rows, shifts = both or (weight, bias)
        columns = np.eye(len(sums))[place][:, used]
    if both is None:
        return layer, f, after
    rest = ~carries
    inner = np.concatenate([weight[rest], rows]), np.concatenate([bias[rest], shifts])
    units = stack([f.part(rest), identity().broadcast(len(rows))])
    return _drop_unused(inner, units, (np.concatenate([taken[:, rest], columns], axis=1), shift))
