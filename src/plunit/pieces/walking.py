"""Find the polygon that holds a point: walk from a first guess over edges to neighbours, until no edge is crossed.

Point p is beyond the edge from a to b of a counter-clockwise polygon if (b - a) x (p - a) < 0. Places are known to
`blur` only, and a short edge has no clear direction: so beyond means less than -blur (|b - a| + |p - a|).
"""

from __future__ import annotations

import numpy as np

from plunit.pieces.arrays import Floats, Ints, runs, starts
from plunit.pieces.layer import TINY
from plunit.pieces.mesh import Faces

STEPS = 1000


def walked(vertices: Floats, faces: Faces, points: Floats, cell: Ints, blur: float) -> Ints:
    """Return the polygon that holds each point [n, 2], found from the polygon where the search for it starts [n].

    A point that is in no polygon, or whose walk does not end, keeps the polygon it starts from.
    """
    found, going = cell.copy(), np.arange(len(cell))
    for _ in range(STEPS):
        moved, edge = _beyond(vertices, faces, points[going], found[going], blur)
        if not len(moved):
            return found
        going = going[moved]
        found[going] = faces.beside.reshape(-1)[faces.halves[edge] ^ 1]
        lost = found[going] < 0
        found[going[lost]] = cell[going[lost]]
        going = going[~lost]
    found[going] = cell[going]
    return found


def _beyond(vertices: Floats, faces: Faces, points: Floats, cell: Ints, blur: float) -> tuple[Ints, Ints]:
    """Return the points that are beyond an edge of their polygon, and the edge that each is farthest beyond."""
    sizes = faces.sizes[cell]
    owner, rank = runs(sizes)
    edge = faces.offsets[cell][owner] + rank
    start = vertices[faces.tails[edge]]
    along, way = vertices[faces.heads[edge]] - start, points[owner] - start
    cross = along[:, 0] * way[:, 1] - along[:, 1] * way[:, 0]
    ratio = cross / (blur * (np.abs(along).sum(axis=1) + np.abs(way).sum(axis=1)) + TINY)
    outside = np.minimum.reduceat(ratio, starts(sizes)) < -1 if len(cell) else np.zeros(0, dtype=np.bool_)
    moved = np.flatnonzero(outside)
    mine = np.flatnonzero(outside[owner])
    farthest = np.lexsort((ratio[mine], owner[mine]))[starts(sizes[moved])]
    return moved, edge[mine[farthest]]
