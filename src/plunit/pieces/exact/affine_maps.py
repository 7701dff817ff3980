"""f(x) = G x + b on every polygon, from its pattern: G = W_n D_{n-1} W_{n-1} ... D_1 W_1 with D_i = diag f_i'.

The chain rule gives maps that are exact up to rounding even on the thinnest polygon; differences of values would not.
Neighbours with equal maps are one piece: `group_starts` along a line, `same_maps` on a plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from plunit.pieces.arrays import Bools, Floats, Ints, Words, blocks
from plunit.pieces.exact.tolerance import SAFETY, Units, affine_with_error
from plunit.pieces.networks import Ensemble, of_members
from plunit.pieces.rounding import EPS, TINY

BLOCK = 2**12


class Maps(NamedTuple):
    """gradient [polygons, out, in], intercept [polygons, out], and the gradient's tolerance [polygons, out, in]."""

    gradient: Floats
    intercept: Floats
    tolerance: Floats


def maps(nets: Ensemble, patterns: Sequence[Words], member: Ints) -> Maps:
    """Return the affine maps of polygons with these patterns and members [polygons].

    The tolerance is 32 times the rounding error of the gradient, tracked from the last layer back as in `tolerance`.
    """
    parts = (([above[:, part] for above in patterns], member[part]) for part in blocks(len(member), BLOCK))
    found = (_maps(nets, *part) for part in parts)
    return Maps(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))


def _maps(nets: Ensemble, patterns: Sequence[Words], member: Ints) -> Maps:
    outputs, last = nets.outputs, nets.layers[-1]
    # one row for each output of each polygon
    who = np.repeat(member, outputs)
    rows = np.broadcast_to(of_members(last.weight, member), (len(member), *last.weight.shape[1:]))
    rows = rows.reshape(len(who), -1)
    state = np.stack([rows, EPS * np.abs(rows)], axis=1)
    constant = np.broadcast_to(of_members(last.bias, member), (len(member), outputs)).reshape(-1).copy()
    for (layer, f), pattern in zip(nets.hidden[::-1], patterns[::-1], strict=True):
        units = Units.of(f)
        both = (units.choose(part, pattern, member) for part in (units.slopes, units.intercepts))
        slope, shift = (np.repeat(part, outputs, axis=0) for part in both)
        constant += (state[:, 0] * shift).sum(axis=1)
        state[:, 0] *= slope
        state[:, 1] *= np.abs(slope)
        constant += (state[:, 0] * of_members(layer.bias, who)).sum(axis=1)
        weight = layer.weight.swapaxes(1, 2)
        state = affine_with_error(weight, np.zeros(weight.shape[:2]), state, who)
    state = state.reshape(len(member), outputs, 2, nets.inputs)
    return Maps(state[:, :, 0], constant.reshape(len(member), outputs), SAFETY * state[:, :, 1] + TINY)


def group_starts(slopes: Floats, tolerance: Floats, fresh: Bools) -> Bools:
    """Return which pieces [n] start a group of equal slopes [n, out]; `fresh` pieces always do.

    Slopes are equal if they differ by at most the sum of their tolerances. A piece joins a group if its slope equals
    that of its neighbour and that of the first piece of the group, so that small differences do not add up.
    """
    first = fresh.copy()
    first[1:] |= (np.abs(np.diff(slopes, axis=0)) > tolerance[1:] + tolerance[:-1]).any(axis=1)
    start = np.flatnonzero(first)[np.cumsum(first) - 1]
    far = (np.abs(slopes - slopes[start]) > tolerance + tolerance[start]).any(axis=1)
    for begin in np.unique(start[far]):
        for piece in np.flatnonzero(start == begin):
            if (np.abs(slopes[piece] - slopes[begin]) > tolerance[piece] + tolerance[begin]).any():
                first[piece], begin = True, piece
    return first


def same_maps(maps: Maps, pairs: Ints) -> Ints:
    """Return the functional piece of each polygon, 0, 1, ...; `pairs` [n, 2] are neighbours.

    Gradients are equal if they differ by at most the sum of their tolerances. By continuity, neighbours with equal
    gradients have the same affine map. All polygons of a piece equal its first, so small differences do not add up.
    """
    equal = _equal(maps, *pairs.T)
    group = components(len(maps.gradient), pairs[equal])
    while True:
        first = np.unique(group, return_index=True)[1]
        far = ~_equal(maps, np.arange(len(group)), first[group])
        if not far.any():
            return group
        # polygons that are far from the first one of their group form new groups
        one, two = pairs.T
        group = components(len(group), pairs[equal & (group[one] == group[two]) & (far[one] == far[two])])


def _equal(maps: Maps, one: Ints, two: Ints) -> Bools:
    gap = np.abs(maps.gradient[one] - maps.gradient[two])
    return np.asarray((gap <= maps.tolerance[one] + maps.tolerance[two]).all(axis=(1, 2)))


def components(count: int, pairs: Ints) -> Ints:
    """Return the connected component, 0, 1, ..., of each vertex of a graph whose edges are these pairs.

    >>> components(5, np.array([[0, 3], [3, 4]])).tolist()
    [0, 1, 2, 0, 0]
    """
    label = np.arange(count)
    while True:
        ends = np.sort(label[pairs], axis=1)
        if (ends[:, 0] == ends[:, 1]).all():
            return np.asarray(np.unique(label, return_inverse=True)[1])
        np.minimum.at(label, ends[:, 1], ends[:, 0])
        while (label != label[label]).any():
            label = label[label]
