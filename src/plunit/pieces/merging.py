"""Which neighbours are one piece: slopes and gradients that are equal within their tolerances."""

from __future__ import annotations

import numpy as np

from plunit.pieces.arrays import Bools, Floats, Ints
from plunit.pieces.gradient import Maps


def group_starts(slopes: Floats, tolerance: Floats, fresh: Bools) -> Bools:
    """Return the pieces [n] that start a group of equal slopes [n, out]; `fresh` ones always do.

    Slopes are equal where they differ by no more than the sum of their tolerances. A piece joins a group if its slope
    is equal to that of its neighbour and to that of the first piece of the group: so small differences do not add up.
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

    Gradients are equal where they differ by no more than the sum of their tolerances; being continuous, neighbours with
    equal gradients have one affine map. All polygons of a piece equal its first: small differences do not add up.
    """
    equal = _equal(maps, *pairs.T)
    group = connected(len(maps.gradient), pairs[equal])
    while True:
        first = np.unique(group, return_index=True)[1]
        far = ~_equal(maps, np.arange(len(group)), first[group])
        if not far.any():
            return group
        # the polygons that are far from the first one of their group make groups of their own
        one, two = pairs.T
        group = connected(len(group), pairs[equal & (group[one] == group[two]) & (far[one] == far[two])])


def _equal(maps: Maps, one: Ints, two: Ints) -> Bools:
    gap = np.abs(maps.gradient[one] - maps.gradient[two])
    return np.asarray((gap <= maps.tolerance[one] + maps.tolerance[two]).all(axis=(1, 2)))


def connected(count: int, pairs: Ints) -> Ints:
    """Return the connected component, 0, 1, ..., of each vertex of a graph with these pairs as edges.

    >>> connected(5, np.array([[0, 3], [3, 4]])).tolist()
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
