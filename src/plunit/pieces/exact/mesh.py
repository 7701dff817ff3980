"""A partition of a box into convex polygons that share vertices and edges, and its edges cut by a layer's knots.

Edge e runs from vertex ends[e, 0] to ends[e, 1]. Half-edge h = 2 e + flip is that edge in the direction of `flip`, so
its tail is ends.ravel()[h] and its head ends.ravel()[h ^ 1]. A polygon is a run of half-edges,
counter-clockwise. The sides of a vertex are decided once (see `layer`) for all polygons that share the vertex. So
polygons neither overlap nor leave gaps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plunit.pieces.arrays import Bools, Floats, Ints, runs, starts
from plunit.pieces.exact.crossing import Points, cuts, joined
from plunit.pieces.exact.layer import EPS, Units
from plunit.pieces.limits import check_count


@dataclass(frozen=True, eq=False)
class Faces:
    """Polygon i is halves[offsets[i] : offsets[i + 1]]; ends [edges, 2], halves [corners], offsets [polygons + 1]."""

    ends: Ints
    halves: Ints
    offsets: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def sizes(self) -> Ints:
        """The number of corners of each polygon."""
        return np.diff(self.offsets)

    @cached_property
    def tails(self) -> Ints:
        """The vertex at which each half-edge starts: the corners of the polygons, in order."""
        return self.ends.reshape(-1)[self.halves]

    @cached_property
    def heads(self) -> Ints:
        """The vertex at which each half-edge ends."""
        return np.asarray(self.ends.reshape(-1)[self.halves ^ 1])

    @cached_property
    def owner(self) -> Ints:
        """The polygon of each half-edge, and so of each corner, in order."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @cached_property
    def beside(self) -> Ints:
        """The two polygons beside each edge, [edges, 2]: beside[e, flip] owns half-edge 2 e + flip; -1 if none does."""
        beside = np.full(2 * len(self.ends), -1)
        beside[self.halves] = self.owner
        return beside.reshape(-1, 2)

    def where(self, keep: Bools) -> Faces:
        """Return the polygons that are kept."""
        return faces_of(self.ends, self.halves[np.repeat(keep, self.sizes)], self.sizes[keep])


def faces_of(ends: Ints, halves: Ints, sizes: Ints) -> Faces:
    """Return the polygons whose half-edges follow one another, sizes[i] each."""
    return Faces(ends, halves, np.concatenate([[0], np.cumsum(sizes)]))


@dataclass(frozen=True, eq=False)
class Mesh:
    """Polygons, and their vertices: place [n, 2], member [n], and values with their errors, state [n, 2, units]."""

    place: Floats
    state: Floats
    member: Ints
    faces: Faces


def box_mesh(x: tuple[float, float], y: tuple[float, float], members: int) -> Mesh:
    """Return one box for each member, as a mesh of one polygon each."""
    corners = np.array([[x[0], y[0]], [x[1], y[0]], [x[1], y[1]], [x[0], y[1]]], dtype=np.float64)
    place = np.tile(corners, (members, 1))
    tail = np.arange(4 * members)
    head = tail - tail % 4 + (tail + 1) % 4
    faces = faces_of(np.stack([tail, head], axis=1), 2 * tail, np.full(members, 4))
    return Mesh(place, np.stack([place, EPS * np.abs(place)], axis=1), tail // 4, faces)


def cut_edges(units: Units, mesh: Mesh, limit: int) -> tuple[Points, Faces]:
    """Add every vertex where a unit crosses a knot inside an edge; no more than `limit` polygons allow."""
    points = Points.at(units, mesh.place, mesh.state, mesh.member)
    ends = mesh.faces.ends
    # in the end every vertex has three or more edges, so there are at most two vertices for each polygon
    parts, edge = cuts(units, points, ends[:, 0], ends[:, 1], lambda new: check_count(new // 2, limit))
    cut_ends, first, count = subdivide(ends, edge, len(points) + np.arange(len(edge)))
    e, flip = np.divmod(mesh.faces.halves, 2)
    corner, rank = runs(count[e] + 1)
    step = np.where(flip[corner] == 1, count[e][corner] - rank, rank)
    halves = 2 * (first[e][corner] + step) + flip[corner]
    sizes = np.add.reduceat(count[e] + 1, mesh.faces.offsets[:-1])
    return joined(points, *parts), faces_of(cut_ends, halves, sizes)


def subdivide(ends: Ints, edge: Ints, vertex: Ints) -> tuple[Ints, Ints, Ints]:
    """Put vertex[i] on edge[i], edges ascending and vertices in order from tail to head.

    Returns the ends of all parts, and for each edge the index of its first part and the number of its vertices.
    """
    count = np.bincount(edge, minlength=len(ends))
    first = np.arange(len(ends)) + starts(count)
    parts = np.empty((len(ends) + len(edge), 2), dtype=np.int64)
    slot = edge + np.arange(len(edge))
    parts[first, 0] = ends[:, 0]
    parts[slot, 1] = vertex
    parts[slot + 1, 0] = vertex
    parts[first + count, 1] = ends[:, 1]
    return parts, first, count
