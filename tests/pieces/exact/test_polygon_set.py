"""Polygons: no gaps, no overlaps, the right map everywhere; and the polygon of a point."""

import itertools

import numpy as np
import pytest
from random_networks import dense_network

from plunit.pieces import activation, ensemble, network, plane, polygon_counts, polygons
from plunit.pieces.exact.mesh import faces_of

BOX = ((-3.0, 3.0), (-2.0, 4.0))


def distance_inside(found, polygon, points):
    """Return the distance of each point from the boundary of its polygon, negative outside."""
    result, every = [], found.corners
    for corners, point in zip((every[i] for i in polygon), points, strict=True):
        edge = np.roll(corners, -1, axis=0) - corners
        normal = np.stack([-edge[:, 1], edge[:, 0]], axis=1) / np.maximum(np.linalg.norm(edge, axis=1), 1e-300)[:, None]
        result.append(((point - corners) * normal).sum(axis=1).min())
    return np.array(result)


def check_partition(net, found, seed=0):
    """No overlaps, no gaps, and the right map everywhere."""
    (a, b), (c, d) = found.box
    whole = (b - a) * (d - c)
    assert abs(found.areas.sum() - whole) <= 1e-9 * whole
    assert found.areas.min() >= -1e-12 * whole
    points = np.random.default_rng(seed).uniform([a, c], [b, d], (500, 2))
    at = found.locate(points)
    assert distance_inside(found, at, points).min() >= -1e-9
    scale = max(np.abs(found.values).max(), 1.0)
    np.testing.assert_allclose(found(points), net(points), rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(found.values, net(found.vertices), rtol=0, atol=1e-9 * scale)
    corner_polygon = np.repeat(np.arange(len(found)), found.faces.sizes)
    corners = found.vertices[found.faces.tails]
    maps = np.einsum("coi,ci->co", found.gradients[corner_polygon], corners) + found.intercepts[corner_polygon]
    np.testing.assert_allclose(maps, net(corners), rtol=0, atol=1e-9 * scale)
    edges = np.bincount(found.faces.halves >> 1, minlength=len(found.faces.ends))
    assert set(edges) <= {1, 2}
    assert len(np.unique(found.faces.halves)) == len(found.faces.halves)


@pytest.mark.parametrize("f", [activation.plu(), activation.relu(), activation.hardsigmoid()])
@pytest.mark.parametrize("widths", [(20, 20), (8, 8, 8, 8), (70,)])
def test_polygons_partition_the_box_and_equal_the_network(widths, f):
    net = dense_network(len(widths), 2, *widths, 2, f=f)
    check_partition(net, polygons(net, BOX))


@pytest.mark.parametrize("exponent", [-6, -12, -13, -14, -15, -16, -17])
@pytest.mark.parametrize("layers", [1, 2])
def test_slivers(exponent, layers):
    """Lines with ever smaller differences: polygons thinner than rounding leave no gap and no overlap."""
    rng = np.random.default_rng(exponent + 100)
    near = 10.0**exponent
    base = rng.normal(size=(3, 2)).repeat(5, axis=0)
    weight, bias = base + near * rng.normal(size=base.shape), near * rng.normal(size=15)
    parts = [(weight, bias), activation.plu()]
    if layers == 2:
        second = rng.normal(size=(2, 15)).repeat(4, axis=0)
        parts += [(second + near * rng.normal(size=second.shape), near * rng.normal(size=8)), activation.plu()]
    net = network([*parts, (rng.normal(size=(1, 15 if layers == 1 else 8)), [0.0])])
    check_partition(net, polygons(net, BOX))


def grid(n, knots):
    lines = np.concatenate([np.tile([[1.0, 0.0]], (n, 1)), np.tile([[0.0, 1.0]], (n, 1))])
    return network([(lines, -np.concatenate([knots, knots])), activation.relu(), (np.ones((1, 2 * n)), [0.0])])


def test_adjacency_is_common_edges():
    found = polygons(dense_network(7, 2, 4, 4, 1), BOX)
    pairs = {tuple(pair) for pair in found.adjacency.tolist()}
    corners = [{tuple(corner) for corner in polygon} for polygon in found.corners]
    numbered = itertools.combinations(enumerate(corners), 2)
    assert pairs == {(i, j) for (i, one), (j, two) in numbered if len(one & two) >= 2}


def test_locate_on_vertices_edges_and_outside():
    found = polygons(dense_network(8, 2, 6, 6, 1), BOX)
    points = np.concatenate([found.vertices, found.vertices[found.faces.ends].mean(axis=1)])
    at = found.locate(points)
    assert (at >= 0).all()
    assert np.abs(distance_inside(found, at, points)).max() < 1e-12
    assert found.locate([[3.1, 0.0], [0.0, -2.1], [np.inf, np.nan], [0.0, 0.0]]).tolist()[:3] == [-1] * 3
    assert found.locate(np.zeros((2, 3, 2))).shape == (2, 3)
    with pytest.raises(ValueError, match=r"\[3.1, 0.0\]"):
        found([3.1, 0.0])


@pytest.mark.parametrize("inputs", [3, 7])
def test_plane_through_more_inputs(inputs):
    rng = np.random.default_rng(inputs)
    net = dense_network(9, inputs, 8, 8, 1)
    origin, u, v = rng.normal(size=(3, inputs))
    found = polygons(plane(net, origin, u, v), BOX)
    s = rng.uniform([-3, -2], [3, 4], (200, 2))
    np.testing.assert_allclose(found(s), net(origin + s @ np.stack([u, v])), atol=1e-9)


@pytest.mark.parametrize("f", [activation.plu(), activation.relu()], ids=["plu", "relu"])
def test_ensemble_counts_are_those_of_its_members(f):
    rng = np.random.default_rng(4)

    def pair(out, before):
        return rng.normal(size=(out, before, 40)), rng.normal(size=(out, 40))

    group = ensemble([pair(3, 2), f, pair(3, 3), f, pair(1, 3)])
    numbers = polygon_counts(group, BOX)
    alone = [polygons(group.member(i), BOX) for i in range(0, 40, 7)]
    assert numbers.patterns[::7].tolist() == [one.patterns for one in alone]
    assert numbers.pieces[::7].tolist() == [one.pieces for one in alone]


def test_polygons_that_become_many_are_divided(monkeypatch):
    net = dense_network(4, 2, 40, 10, 1)
    whole = polygons(net, BOX)
    monkeypatch.setattr("plunit.pieces.exact.mesh._corners", lambda part: 30)
    found = polygons(net, BOX)
    assert (len(found), found.pieces) == (len(whole), whole.pieces)
    check_partition(net, found)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("biased", [0.0, 1.0])
def test_the_same_line_rounded_differently_is_one_line(seed, biased):
    """ReLU(w x) = ReLU(k w x) / k: units repeated at other scales change neither function nor polygons."""
    rng = np.random.default_rng(seed)
    scales = np.array([1.0, 0.1, 1 / 3, 7.0])
    plain, repeated, before = [], [], 2
    for width in (5, 4, 1):
        weight, bias = rng.normal(size=(width, before)), biased * rng.normal(size=width)
        plain += [(weight, bias), activation.relu()]
        wide = weight if before == 2 else np.repeat(weight, 4, axis=1) / np.tile(4 * scales, before)
        if width > 1:
            wide, bias = (
                np.repeat(part, 4, axis=0) * np.tile(scales, width).reshape(-1, *[1] * (part.ndim - 1))
                for part in (wide, bias)
            )
        repeated += [(wide, bias), activation.relu()]
        before = width
    one, many = polygons(network(plain[:-1]), BOX), polygons(network(repeated[:-1]), BOX)
    assert (many.patterns, many.pieces) == (one.patterns, one.pieces)
    check_partition(network(repeated[:-1]), many)


CANCEL, ROW, RELU = np.array([[0.1], [0.2], [-0.3]]), np.array([[1.0, 1.0]]), activation.relu()


@pytest.mark.parametrize(
    "parts",
    [
        [(ROW.repeat(3, axis=0), np.zeros(3)), RELU, (CANCEL.T, [0.0])],
        [(ROW, [0.0]), RELU, (CANCEL, np.zeros(3)), activation.identity(), (np.ones((1, 3)), [0.0])],
    ],
)
def test_gradients_that_cancel_but_for_rounding_are_equal(parts):
    found = polygons(network(parts), BOX)
    assert (found.patterns, found.pieces) == (2, 1)


def test_each_member_has_its_own_tolerance():
    rng = np.random.default_rng(0)
    size, out = rng.uniform(1, 2, 9), rng.normal(size=9)
    out[-1] = -out[:-1] @ size[:-1] / size[-1]
    weight = np.ones((1, 2, 1)) * size[:, None, None] * np.array([1.0, 1e6])
    out = out[None, :, None] * np.ones(2)
    group = ensemble([(weight, np.zeros((9, 2))), activation.relu(), (out, np.zeros((1, 2)))])
    assert polygon_counts(group, BOX).pieces.tolist() == [1, 1]


SQUARE = ((-1.0, 1.0), (-1.0, 1.0))


@pytest.mark.parametrize("patterns", [True, False])
def test_a_point_is_found_by_its_pattern_and_by_edges_alone(patterns):
    """The lines x = k / 8 and y = k / 8 for k = -7, ..., 7 make 16 x 16 squares of side 1 / 8."""
    found, points = polygons(grid(15, np.arange(-7, 8) / 8), SQUARE), np.random.default_rng(0).uniform(-1, 1, (300, 2))
    if not patterns:
        vars(found)["_numbers"] = {}
    low = np.array([corners.min(axis=0) for corners in found.corners])
    assert len(found) == 256
    np.testing.assert_allclose(low[found.locate(points)], np.floor(points * 8) / 8, rtol=0, atol=1e-15)


TRIANGLES = faces_of(np.array([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]]), np.array([0, 2, 9, 4, 6, 8]), np.array([3, 3]))
"""A square of vertices 0 to 3, cut from 0 to 2 into two triangles: edge 4 is the cut."""


def test_each_half_edge_has_one_owner():
    assert TRIANGLES.tails.tolist() == [0, 1, 2, 2, 3, 0]
    assert TRIANGLES.owner.tolist() == [0, 0, 0, 1, 1, 1]
    assert TRIANGLES.neighbours.tolist() == [[0, -1], [0, -1], [1, -1], [1, -1], [1, 0]]


def test_a_point_is_looked_for_where_a_blurred_line_is_drawn():
    """1 - 1e-12 y is on the knot 1 for y = 0, and in floating point for many other y."""
    net = network([([[0.0, -1e-12], [1.0, 0.0]], [1.0, 0.0]), activation.plu(), ([[0.0, 1.0]], [0.0])])
    found = polygons(net, SQUARE)
    y = np.linspace(-1, 1, 20_001)
    at = found.locate(np.stack([np.full_like(y, 0.5), y], axis=1))
    low, high = (np.array([end(corners[:, 1]) for corners in found.corners]) for end in (np.min, np.max))
    assert len(found) == 2
    assert ((low[at] <= y + 1e-12) & (y - 1e-12 <= high[at])).all()
