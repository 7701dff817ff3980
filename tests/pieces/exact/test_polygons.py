import numpy as np
import pytest
from random_networks import random_network

from plunit.pieces import activation, cell_counts, cells, ensemble, network, plane

BOX = ((-3.0, 3.0), (-2.0, 4.0))


def dense(widths, f, seed, inputs=2, outputs=1, spread=1.0):
    rng = np.random.default_rng(seed)
    layers, before = [], inputs
    for width in widths:
        layers += [(rng.normal(size=(width, before)) / np.sqrt(before), spread * rng.normal(size=width)), f]
        before = width
    return network([*layers, (rng.normal(size=(outputs, before)), rng.normal(size=outputs))])


def distance_inside(found, cell, points):
    """Return the distance of each point from the boundary of its cell, negative outside."""
    result = np.empty(len(points))
    for i, (c, point) in enumerate(zip(cell, points, strict=True)):
        corners = found.vertices[found.faces.tails[found.faces.offsets[c] : found.faces.offsets[c + 1]]]
        edge = np.roll(corners, -1, axis=0) - corners
        normal = np.stack([-edge[:, 1], edge[:, 0]], axis=1) / np.maximum(np.linalg.norm(edge, axis=1), 1e-300)[:, None]
        result[i] = ((point - corners) * normal).sum(axis=1).min()
    return result


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
    corner_cell = np.repeat(np.arange(len(found)), found.faces.sizes)
    corners = found.vertices[found.faces.tails]
    maps = np.einsum("coi,ci->co", found.gradients[corner_cell], corners) + found.intercepts[corner_cell]
    np.testing.assert_allclose(maps, net(corners), rtol=0, atol=1e-9 * scale)
    edges = np.bincount(found.faces.halves >> 1, minlength=len(found.faces.ends))
    assert set(edges) <= {1, 2}
    assert len(np.unique(found.faces.halves)) == len(found.faces.halves)


@pytest.mark.parametrize("f", [activation.plu(), activation.relu(), activation.hardtanh(), activation.hardsigmoid()])
@pytest.mark.parametrize("widths", [(3, 3), (20, 20), (8, 8, 8, 8), (70,)])
def test_cells_partition_the_box_and_equal_the_network(widths, f):
    net = dense(widths, f, seed=len(widths), outputs=2)
    check_partition(net, cells(net, BOX))


@pytest.mark.parametrize("exponent", [-6, -10, -12, -13, -14, -15, -16, -17])
@pytest.mark.parametrize("layers", [1, 2])
def test_slivers(exponent, layers):
    """Lines that differ by less and less: cells thinner than rounding leave no gap and no overlap."""
    rng = np.random.default_rng(exponent + 100)
    near = 10.0**exponent
    base = rng.normal(size=(3, 2)).repeat(5, axis=0)
    weight, bias = base + near * rng.normal(size=base.shape), near * rng.normal(size=15)
    parts = [(weight, bias), activation.plu()]
    if layers == 2:
        second = rng.normal(size=(2, 15)).repeat(4, axis=0)
        parts += [(second + near * rng.normal(size=second.shape), near * rng.normal(size=8)), activation.plu()]
    net = network([*parts, (rng.normal(size=(1, 15 if layers == 1 else 8)), [0.0])])
    check_partition(net, cells(net, BOX))


@pytest.mark.parametrize("seed", range(12))
def test_zero_biases_all_lines_through_one_point(seed):
    rng = np.random.default_rng(seed)
    layers = [(rng.normal(size=(9, 2)), np.zeros(9)), activation.relu(), (rng.normal(size=(9, 9)), np.zeros(9))]
    net = network([*layers, activation.relu(), (rng.normal(size=(1, 9)), [0.0])])
    found = cells(net, ((-1.0, 1.0), (-1.0, 1.0)))
    check_partition(net, found)
    # homogeneous: every cell is a cone, so each has the origin as a corner
    assert all(np.abs(polygon).max(axis=1).min() < 1e-12 for polygon in found.polygons)


def grid(n, knots):
    lines = np.concatenate([np.tile([[1.0, 0.0]], (n, 1)), np.tile([[0.0, 1.0]], (n, 1))])
    return network([(lines, -np.concatenate([knots, knots])), activation.relu(), (np.ones((1, 2 * n)), [0.0])])


@pytest.mark.parametrize("n", [1, 2, 15])
def test_parallel_lines_make_a_grid(n):
    found = cells(grid(n, np.arange(1.0, n + 1)), ((0.0, n + 1.0), (0.0, n + 1.0)))
    assert (found.patterns, found.pieces, len(found.adjacency)) == ((n + 1) ** 2, (n + 1) ** 2, 2 * n * (n + 1))
    np.testing.assert_allclose(found.areas, 1.0)


def test_lines_on_the_boundary_make_no_cells():
    assert cells(grid(2, np.array([0.0, 1.0])), ((0.0, 1.0), (0.0, 1.0))).patterns == 1


@pytest.mark.parametrize(
    ("f", "out", "patterns", "pieces"),
    [
        (activation.plu(), [[1.0, 1.0]], 9, 9),
        (activation.plu(1.0, 1.0), [[1.0, 1.0]], 9, 1),
        (activation.plu(0.0, 1.0), [[1.0, 1.0]], 9, 9),
        (activation.plu(0.5, 0.0), [[1.0, 1.0]], 4, 1),
        (activation.plu(), [[1.0, 0.0]], 9, 3),
        (activation.relu(), [[1.0, 1.0]], 4, 4),
        (activation.identity(), [[1.0, 1.0]], 1, 1),
    ],
)
def test_patterns_and_pieces_differ_where_kinks_are_dead(f, out, patterns, pieces):
    net = network([(np.eye(2), [0.0, 0.0]), f, (out, [0.0])])
    found = cells(net, ((-2.0, 2.0), (-2.0, 2.0)))
    assert (found.patterns, found.pieces) == (patterns, pieces)
    assert (found.labels.min(), found.labels.max() + 1) == (0, pieces)
    assert tuple(count[0] for count in cell_counts(net, found.box)) == (patterns, pieces)


def test_equal_maps_merge_only_as_neighbours():
    # |x| folded twice has slope 0 on the left and on the right, with a sloped strip between
    net = network([([[1.0, 0.0]], [0.0]), activation.hardtanh(), ([[0.0]], [0.0])])
    assert cells(net, BOX).pieces == 1
    wave = network(
        [([[1.0, 0.0], [1.0, 0.0]], [0.0, -1.0]), activation.relu(), ([[1.0, -2.0], [0.0, 1.0]], [0.0, 0.0])]
    )
    two = network([([[1.0, 0.0], [-1.0, 0.0]], [-1.0, -1.0]), activation.relu(), ([[1.0, 1.0]], [0.0])])
    assert (cells(wave, BOX).pieces, cells(two, BOX).pieces) == (3, 3)
    step = network([([[1.0, 0.0]], [0.0]), activation.hardtanh(), ([[1.0]], [0.0])])
    assert cells(step, BOX).pieces == 3


def test_adjacency_is_common_edges():
    found = cells(dense((4, 4), activation.plu(), 7), BOX)
    pairs = {tuple(pair) for pair in found.adjacency.tolist()}
    corners = [{tuple(corner) for corner in polygon} for polygon in found.polygons]
    expected = {
        (i, j) for i in range(len(found)) for j in range(i + 1, len(found)) if len(corners[i] & corners[j]) >= 2
    }
    assert pairs == expected


def test_locate_on_vertices_edges_and_outside():
    found = cells(dense((6, 6), activation.plu(), 8), BOX)
    points = np.concatenate([found.vertices, found.vertices[found.faces.ends].mean(axis=1)])
    at = found.locate(points)
    assert (at >= 0).all()
    assert np.abs(distance_inside(found, at, points)).max() < 1e-12
    assert found.locate([[3.1, 0.0], [0.0, -2.1], [0.0, 0.0]]).tolist()[:2] == [-1, -1]
    assert found.locate(np.zeros((2, 3, 2))).shape == (2, 3)
    with pytest.raises(ValueError, match=r"\[3.1, 0.0\] is outside the box"):
        found([3.1, 0.0])


@pytest.mark.parametrize("inputs", [3, 7])
def test_plane_through_more_inputs(inputs):
    rng = np.random.default_rng(inputs)
    net = dense((8, 8), activation.plu(), 9, inputs=inputs)
    origin, u, v = rng.normal(size=(3, inputs))
    flat = plane(net, origin, u, v)
    found = cells(flat, BOX)
    check_partition(flat, found)
    s = rng.uniform([-3, -2], [3, 4], (200, 2))
    np.testing.assert_allclose(found(s), net(origin + s @ np.stack([u, v])), atol=1e-9)


@pytest.mark.parametrize("f", [activation.plu(), activation.relu()], ids=["plu", "relu"])
def test_ensemble_counts_are_those_of_its_members(f):
    rng = np.random.default_rng(4)

    def pair(out, before):
        return rng.normal(size=(out, before, 40)), rng.normal(size=(out, 40))

    group = ensemble([pair(3, 2), f, pair(3, 3), f, pair(1, 3)])
    numbers = cell_counts(group, BOX)
    alone = [cells(group.member(i), BOX) for i in range(0, 40, 7)]
    assert numbers.patterns[::7].tolist() == [one.patterns for one in alone]
    assert numbers.pieces[::7].tolist() == [one.pieces for one in alone]


@pytest.mark.parametrize("scale", [1e-30, 1e-9, 1e9, 1e30])
def test_scale_of_the_weights_does_not_matter(scale):
    rng = np.random.default_rng(11)
    weight, bias, out = rng.normal(size=(6, 2)), rng.normal(size=6), rng.normal(size=(1, 6))
    plain = cells(network([(weight, bias), activation.relu(), (out, [0.0])]), BOX)
    scaled = cells(network([(scale * weight, scale * bias), activation.relu(), (out, [0.0])]), BOX)
    assert (scaled.patterns, scaled.pieces) == (plain.patterns, plain.pieces)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda net: cells(net, ((0.0, 0.0), (0.0, 1.0))), "low < high.* for x"),
        (lambda net: cells(net, ((0.0, 1.0), (0.0, np.inf))), "finite.* for y"),
        (lambda net: cells(net, ((0.0, 1.0), (np.nan, 1.0))), "finite.* for y"),
        (lambda net: cells(net, (-3, 3)), r"a box is \(\(x low, x high\), \(y low, y high\)\), got \(-3, 3\)"),
        (lambda net: cells(net, ((0, 1), (0, 1), (0, 1))), "a box is"),
        (lambda net: cells(net, ((0, 1, 2), (0, 1))), "a box needs two numbers, low and high, got .* for x"),
        (lambda net: cells(net, BOX, limit=10), "limit=10 .*raise limit"),
        (lambda net: cell_counts(net, BOX, limit=10), "limit=10 "),
        (lambda net: cells(random_network(0, 1, 2, 1), BOX), r"1 inputs.*plane"),
        (lambda net: plane(net, [0.0], [1.0], [1.0]), "2 coordinates"),
        (lambda net: plane(net, [0.0, np.inf], [1.0, 0.0], [0.0, 1.0]), "finite"),
        (lambda net: cells(net, BOX).locate([1.0, 2.0, 3.0]), r"\[\.\.\., 2\]"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(dense((20,), activation.plu(), 1))


def test_cells_that_become_many_are_divided(monkeypatch):
    net = dense((40, 10), activation.plu(), 4)
    whole = cells(net, BOX)
    monkeypatch.setattr("plunit.pieces.exact.partitioning._corners", lambda part: 30)
    found = cells(net, BOX)
    assert (len(found), found.pieces) == (len(whole), whole.pieces)
    check_partition(net, found)


def test_a_torch_module_is_no_network():
    torch = pytest.importorskip("torch")
    for call in (cells, cell_counts):
        with pytest.raises(TypeError, match=r"got Linear; plunit\.torch\.to_network"):
            call(torch.nn.Linear(2, 1), BOX)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("biased", [0.0, 1.0])
def test_the_same_line_rounded_differently_is_one_line(seed, biased):
    """ReLU(w x) = ReLU(k w x) / k: units repeated at other scales change neither function nor cells."""
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
    one, many = cells(network(plain[:-1]), BOX), cells(network(repeated[:-1]), BOX)
    assert (many.patterns, many.pieces) == (one.patterns, one.pieces)
    check_partition(network(repeated[:-1]), many)


def test_rounding_is_carried_through_the_layers():
    """Lines x = i / 7 alone: the unit that is on its knot but for rounding of the layer before adds none."""
    weight = np.array([[1e8, 0.0], [1e8, 0.0], *[[1.0, 0.0]] * 5])
    bias = np.array([0.3, 0.0, *(-i / 7 for i in range(1, 6))])
    difference = np.eye(6, 7, 1)
    difference[0, :2] = [1, -1]
    layers = [(weight, bias), activation.relu(), (difference, np.zeros(6)), activation.identity()]
    shifted = (np.eye(6), np.array([-0.3, 0, 0, 0, 0, 0]))
    net = network([*layers, shifted, activation.relu(), (np.ones((1, 6)), [0.0])])
    assert cells(net, ((0.01, 1.0), (0.0, 1.0))).patterns == 6


CANCEL = np.array([[0.1], [0.2], [-0.3]])


@pytest.mark.parametrize("late", [False, True])
def test_gradients_that_cancel_but_for_rounding_are_equal(late):
    row = np.array([[1.0, 1.0]])
    if late:
        parts = [
            (row, [0.0]),
            activation.relu(),
            (CANCEL, np.zeros(3)),
            activation.identity(),
            (np.ones((1, 3)), [0.0]),
        ]
    else:
        parts = [(row.repeat(3, axis=0), np.zeros(3)), activation.relu(), (CANCEL.T, [0.0])]
    assert (cells(network(parts), BOX).patterns, cells(network(parts), BOX).pieces) == (2, 1)


def test_each_member_has_its_own_tolerance():
    rng = np.random.default_rng(0)
    size, out = rng.uniform(1, 2, 9), rng.normal(size=9)
    out[-1] = -out[:-1] @ size[:-1] / size[-1]
    weight = np.ones((1, 2, 1)) * size[:, None, None] * np.array([1.0, 1e6])
    out = out[None, :, None] * np.ones(2)
    group = ensemble([(weight, np.zeros((9, 2))), activation.relu(), (out, np.zeros((1, 2)))])
    assert cell_counts(group, BOX).pieces.tolist() == [1, 1]
