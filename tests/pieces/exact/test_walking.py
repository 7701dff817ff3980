import numpy as np
import pytest

from plunit.pieces import activation, cells, network
from plunit.pieces.exact.mesh import faces_of
from plunit.pieces.exact.polygons import walked

BOX = ((-1.0, 1.0), (-1.0, 1.0))


def grid():
    """|x - k / 8| + |y - k / 8| for k = -7, ..., 7: 16 x 16 squares of side 1 / 8."""
    weight, bias = np.repeat(np.eye(2), 15, axis=0), -np.tile(np.arange(-7, 8) / 8, 2)
    return cells(network([(weight, bias), activation.absolute(), (np.ones((1, 30)), [0.0])]), BOX)


def test_a_walk_ends_in_the_square_of_the_point_wherever_it_starts():
    found, rng = grid(), np.random.default_rng(0)
    points, start = rng.uniform(-1, 1, (300, 2)), rng.integers(256, size=300)
    at = walked(found.vertices, found.faces, points, start, 1e-14)
    low = np.array([corners.min(axis=0) for corners in found.polygons])
    assert len(found) == 256
    np.testing.assert_allclose(low[at], np.floor(points * 8) / 8, rtol=0, atol=1e-15)


@pytest.mark.parametrize(("point", "at"), [((0.4, 0.6), 1), ((0.6, 0.4), 0), ((0.5 - 1e-9, 0.5), 0), ((2.0, -1.0), 0)])
def test_a_walk_needs_more_than_the_blur_and_a_cell_to_go_to(point, at):
    """A square, cut from (0, 0) to (1, 1); the search starts below the cut."""
    vertices = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    ends = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])
    faces = faces_of(ends, np.array([0, 2, 9, 4, 6, 8]), np.array([3, 3]))
    assert walked(vertices, faces, np.array([point]), np.array([0]), 1e-8).tolist() == [at]


def test_a_short_edge_has_no_direction():
    """The corner (1, 1) is two vertices, which rounding has put in the wrong order."""
    vertices = np.array([[0.0, 0.0], [1.0, 0.0], [1.0 - 2**-53, 1.0 - 2**-53], [1.0, 1.0], [0.0, 1.0]])
    ends = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]])
    faces = faces_of(ends, np.array([0, 2, 4, 6, 8, 5]), np.array([5, 1]))
    assert walked(vertices, faces, np.array([[0.9, 0.1]]), np.array([0]), 1e-14).tolist() == [0]


def test_a_point_is_looked_for_where_a_blurred_line_is_drawn():
    """1 - 1e-12 y is on the knot 1 for y = 0, and in floating point far around."""
    net = network([([[0.0, -1e-12], [1.0, 0.0]], [1.0, 0.0]), activation.plu(), ([[0.0, 1.0]], [0.0])])
    found = cells(net, BOX)
    y = np.linspace(-1, 1, 20_001)
    at = found.locate(np.stack([np.full_like(y, 0.5), y], axis=1))
    low, high = (np.array([end(corners[:, 1]) for corners in found.polygons]) for end in (np.min, np.max))
    assert len(found) == 2
    assert ((low[at] <= y + 1e-12) & (y - 1e-12 <= high[at])).all()
