"""Least-squares segments of few points against the global optimum, found by linear algebra for all patterns of knots.

A knot lies at a point of the data or between two neighbours. If it lies between them, then the lines on both sides are
those of a fit without the condition that they meet there (Hudson 1966). So each pattern is one linear problem, which
counts if its lines meet between the neighbours. Two knots between the same neighbours are a jump, which always counts.
"""

import itertools

import numpy as np
import pytest

from plunit.pieces import fit_segments


def patterns(points, knots):
    """Yield sorted places of the knots: 2 i is the point i, 2 i + 1 lies between the points i and i + 1."""
    for places in itertools.combinations_with_replacement(range(1, 2 * points - 2), knots):
        repeated = [a for a, b in itertools.pairwise(places) if a == b]
        if all(place % 2 for place in repeated) and len(set(repeated)) == len(repeated):
            yield places


def pattern_error(x, y, root, places):
    """Return the least squared error of one pattern, or infinity if its lines do not meet where they should."""
    side = np.searchsorted(np.array(places), 2 * np.arange(len(x)))
    number = len(places) + 1
    # lines [segment, 2] = basis [segment, 2, parameter] @ parameters
    basis = np.zeros((number, 2, 2 * number))
    basis[0, 0, 0] = basis[0, 1, 1] = 1
    for j, place in enumerate(places, 1):
        if place % 2:
            basis[j, 0, 2 * j] = basis[j, 1, 2 * j + 1] = 1
        else:
            basis[j] = basis[j - 1]
            basis[j, :, 2 * j] += [-x[place // 2], 1]
    matrix = basis[side, 0] + x[:, None] * basis[side, 1]
    found = np.linalg.lstsq(matrix * root[:, None], y * root, rcond=None)[0]
    lines = basis @ found
    for place, (before, behind) in zip(places, itertools.pairwise(lines), strict=True):
        if place % 2 and places.count(place) == 1:
            gap = (behind - before) @ [[1, 1], [x[place // 2], x[place // 2 + 1]]]
            if gap[0] * gap[1] > 0:
                return np.inf
    return float((((matrix @ found) - y) ** 2 * root**2).sum())


def least_error(x, y, w, pieces):
    """Return the least squared error of all continuous curves with this number of segments."""
    return min(pattern_error(x, y, np.sqrt(w), places) for places in patterns(len(x), pieces - 1))


@pytest.mark.parametrize(("points", "pieces"), [(8, 2), (30, 2), (9, 3), (14, 3), (22, 3), (10, 4), (14, 4)])
@pytest.mark.parametrize("walk", [False, True])
def test_the_error_is_the_least_of_all(points, pieces, walk):
    """One of twelve may end in another local optimum; none can be below the least."""
    ratios = []
    for seed in range(12):
        rng = np.random.default_rng([seed, points, pieces])
        x, y, w = np.sort(rng.uniform(0, 1, points)), rng.normal(size=points), rng.uniform(0.5, 2, points)
        y = np.cumsum(y) if walk else y
        ratios.append(fit_segments(x, y, pieces, w).squared_error / least_error(x, y, w, pieces))
    assert min(ratios) > 1 - 1e-9
    assert sorted(ratios)[-2] < 1 + 1e-9
