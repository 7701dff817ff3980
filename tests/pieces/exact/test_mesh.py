import numpy as np

from plunit.pieces.exact.mesh import faces_of


def test_each_half_edge_has_one_owner():
    """A square of vertices 0 to 3, cut from 0 to 2 into two triangles: edge 4 is the cut."""
    ends = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])
    faces = faces_of(ends, np.array([0, 2, 9, 4, 6, 8]), np.array([3, 3]))
    assert faces.tails.tolist() == [0, 1, 2, 2, 3, 0]
    assert faces.owner.tolist() == [0, 0, 0, 1, 1, 1]
    assert faces.beside.tolist() == [[0, -1], [0, -1], [1, -1], [1, -1], [1, 0]]
