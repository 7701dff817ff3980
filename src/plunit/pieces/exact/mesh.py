"""A partition of a box into convex polygons that share vertices and edges, split along the knots of a layer.

Edge e runs from vertex ends[e, 0] to ends[e, 1]. Half-edge h = 2 e + flip is that edge in the direction of `flip`, so
its tail is ends.ravel()[h] and its head ends.ravel()[h ^ 1]. A polygon is a run of half-edges,
counter-clockwise. The sides of a vertex are decided once (see `layer`) for all polygons that share the vertex. So
polygons neither overlap nor leave gaps.

A layer first cuts all edges (`cut_edges`). So a line on which a unit is on a knot enters and leaves a polygon at a
vertex. The polygon is split along the chord between the two vertices, and the other lines cut the chord. One round of
`split` splits all polygons that have a line through them, each by its first line; the two parts wait for the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plunit.pieces.arrays import Bools, Floats, Ints, Words, lowest_bit, runs, starts
from plunit.pieces.exact.crossing import Points, Pool, cuts, join_points
from plunit.pieces.exact.limits import check_count
from plunit.pieces.exact.tolerance import Units
from plunit.pieces.rounding import EPS


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
    return join_points(points, *parts), faces_of(cut_ends, halves, sizes)


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


@dataclass(frozen=True, eq=False)
class Patch:
    """Some polygons with their vertices and edges.

    root: [polygons], the polygon before the layer that each is a part of.
    above: [words, polygons], the knots that each polygon is above.
    """

    points: Points
    faces: Faces
    root: Ints
    above: Words

    def where(self, keep: Bools) -> Patch:
        """Return the polygons that are kept, with all vertices and edges."""
        return Patch(self.points, self.faces.where(keep), self.root[keep], self.above[:, keep])


def split(units: Units, part: Patch, check: Callable[[int], None], most: int) -> tuple[Patch, Patch]:
    """Split polygons, their edges cut, until no unit is below a knot in one corner and above it in another.

    `check` is called with a lower bound on the number of polygons, and raises if it is too large. With more than `most`
    vertices, the remaining polygons are left for later. Return those that are done and those that are left, both with
    the new vertices and edges after the given ones.
    """
    pool, faces, root = Pool(part.points), part.faces, part.root
    done = [part.where(np.zeros(len(faces), dtype=np.bool_))]
    finished = 0
    while True:
        points = pool.points
        above, crossed = _sides(points, faces)
        ready = (crossed == 0).all(axis=0)
        now = Patch(points, faces, root, above)
        done.append(now.where(ready))
        left = now.where(~ready)
        finished += len(done[-1].faces)
        check(finished + 2 * len(left.faces))
        if not len(left.faces) or (len(points) > most and len(left.faces) > 1):
            break
        word, mask = lowest_bit(crossed[:, ~ready])
        root = np.repeat(left.root, 2)
        faces = _halve(units, pool, left.faces, *_chord(points, left.faces, word, mask), check)
    return _collect(done, left), left


def _collect(parts: list[Patch], last: Patch) -> Patch:
    """Return all polygons of the parts, with the vertices and edges of the last."""
    halves, sizes = (np.concatenate([getattr(part.faces, name) for part in parts]) for name in ("halves", "sizes"))
    root = np.concatenate([part.root for part in parts])
    above = np.concatenate([part.above for part in parts], axis=1)
    return Patch(last.points, faces_of(last.faces.ends, halves, sizes), root, above)


def _sides(points: Points, faces: Faces) -> tuple[Words, Words]:
    """Return the lines that each polygon is above in some corner, and those that pass through it."""
    corners, first = faces.tails, faces.offsets[:-1]
    above, below = np.bitwise_or.reduceat(points.sides[:, :, corners], first, axis=2)
    return above, above & below


def _chord(points: Points, faces: Faces, word: Ints, mask: Words) -> tuple[Ints, Ints]:
    """Return the corners at which the line of each polygon goes from above to below, and back, counter-clockwise.

    Both are on the line, because the edges are cut: so the line passes through neither part, and splitting ends. They
    follow the last corner over the line, and the last one under it. Rounding can put a corner on the line although both
    its neighbours are over the line, if an edge is almost parallel to the line. Such a corner is skipped.
    """
    polygon = faces.owner
    over, under = points.sides[:, word[polygon], faces.tails] & mask[polygon] != 0
    off = np.flatnonzero(over | under)
    count = np.bincount(polygon[off], minlength=len(faces))
    after = np.arange(1, len(off) + 1)
    after[starts(count) + count - 1] = starts(count)
    turn = np.flatnonzero(over[off] != over[off][after])
    first = np.searchsorted(polygon[off][turn], np.arange(len(faces)))
    one, two = off[turn[first]], off[turn[first + 1]]
    last = np.stack([np.where(over[one], one, two), np.where(over[one], two, one)])
    down, up = np.where(last + 1 == faces.offsets[1:], faces.offsets[:-1], last + 1)
    return down, up


def _halve(units: Units, pool: Pool, faces: Faces, down: Ints, up: Ints, check: Callable[[int], None]) -> Faces:
    """Replace each polygon by its part below the chord from corner `down` to corner `up`, and its part above."""
    corners, sizes = faces.tails, faces.sizes
    chords = np.stack([corners[down], corners[up]], axis=1)
    points = pool.points
    # in the end every vertex has three or more edges, so there are at most two vertices for each polygon
    parts, chord = cuts(units, points, chords[:, 0], chords[:, 1], lambda new: check(new // 2))
    pieces, first, count = subdivide(chords, chord, len(points) + np.arange(len(chord)))
    polygon = faces.owner
    rank = (np.arange(len(polygon)) - down[polygon]) % sizes[polygon]
    arc = (up - down) % sizes
    length = np.stack([arc, sizes - arc], axis=1) + count[:, None] + 1
    start = starts(length.reshape(-1)).reshape(-1, 2)
    halves = np.empty(length.sum(), dtype=np.int64)
    below = rank < arc[polygon]
    halves[np.where(below, start[polygon, 0] + rank, start[polygon, 1] + rank - arc[polygon])] = faces.halves
    polygon, rank = runs(count + 1)
    edge = len(faces.ends) + first[polygon]
    halves[start[polygon, 0] + arc[polygon] + rank] = 2 * (edge + count[polygon] - rank) + 1
    halves[start[polygon, 1] + (sizes - arc)[polygon] + rank] = 2 * (edge + rank)
    for part in parts:
        pool.append(part)
    return faces_of(np.concatenate([faces.ends, pieces]), halves, length.reshape(-1))
