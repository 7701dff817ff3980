"""Curves and polygons against rational arithmetic: the same pieces, and the same number of them."""

import numpy as np
import pytest
import rational_networks
from random_networks import random_network

from plunit.pieces import counts, curve, polygon_counts, polygons

BOX = ((-2.0, 2.0), (-2.0, 2.0))


@pytest.mark.parametrize("seed", range(120))
def test_curve_is_the_rational_one(seed):
    net = random_network(seed, 1, 6, 4, outputs=1 + seed % 2)
    exact = rational_networks.intervals(net, -3, 3)
    found = curve(net, -3.0, 3.0)
    merged = rational_networks.merged(exact)
    assert (found.patterns, found.pieces, len(found.merge().slopes)) == (len(exact), merged, merged)
    assert np.transpose(counts(net, -3.0, 3.0)).tolist() == [[len(exact), merged]]
    np.testing.assert_allclose(found.merge()(found.knots), found.values, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.knots, [float(low) for low, _, _ in exact] + [3.0], rtol=0, atol=1e-9)
    lines = np.array([[[float(number) for number in line] for line in maps] for _, _, maps in exact])
    np.testing.assert_allclose(found.slopes, lines[..., 0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.intercepts, lines[..., 1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(80))
def test_polygons_are_the_rational_ones(seed):
    net = random_network(seed, 2, 5, 3)
    exact = rational_networks.polygons(net, BOX)
    found = polygons(net, BOX)
    merged = rational_networks.merged_polygons(exact)
    assert (found.patterns, found.pieces, len(np.unique(found.labels))) == (len(exact), merged, merged)
    assert np.transpose(polygon_counts(net, BOX)).tolist() == [[len(exact), merged]]
    at = found.locate([[float(x) for x in rational_networks.center(corners)] for corners, _ in exact])
    assert sorted(at) == list(range(len(exact)))
    areas = [float(rational_networks.area(corners)) for corners, _ in exact]
    np.testing.assert_allclose(found.areas[at], areas, rtol=0, atol=1e-9)
    maps = np.array([[[float(number) for number in line] for line in lines] for _, lines in exact])
    np.testing.assert_allclose(found.gradients[at], maps[..., :2], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.intercepts[at], maps[..., 2], rtol=1e-9, atol=1e-9)
