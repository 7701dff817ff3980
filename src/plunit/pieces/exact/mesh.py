"""A partition of a box into convex polygons that share vertices and edges, split along the knots of each layer.

`partition` passes a box through a network. After each layer, the network so far is affine on every polygon.

Edge e runs from vertex ends[e, 0] to ends[e, 1]. Half-edge h = 2 e + flip is that edge in the direction of `flip`, so
its tail is ends.ravel()[h] and its head ends.ravel()[h ^ 1]. A polygon is a run of half-edges, counter-clockwise. The
sides of a vertex are decided once (see `tolerance`) for all polygons that share the vertex, so polygons neither overlap
nor leave gaps.

A layer first cuts all edges (`cut_edges`). So a line on which a unit is on a knot enters and leaves a polygon at a
vertex. The polygon is split along the chord between the two vertices, and the other lines cut the chord. One round of
`split_polygons` splits every polygon that a line passes through, by its first line; both halves continue in the next
round.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from plunit.pieces.arrays import Bools, Floats, Ints, Words, blocks, lowest_bit, run_starts, runs
from plunit.pieces.exact.crossing import Points, Pool, cuts, join_points
from plunit.pieces.exact.limits import Report, check_pieces, check_points, name_layer
from plunit.pieces.exact.tolerance import Units, affine_with_error
from plunit.pieces.networks import Ensemble, Layer
from plunit.pieces.rounding import EPS

_ROWS = 2**10


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
        """The vertex at which each half-edge starts; these are the corners of the polygons, in order."""
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
    def neighbours(self) -> Ints:
        """The two polygons at each edge, [edges, 2]: neighbours[e, flip] owns half-edge 2 e + flip, -1 if none does."""
        neighbours = np.full(2 * len(self.ends), -1)
        neighbours[self.halves] = self.owner
        return neighbours.reshape(-1, 2)

    def where(self, keep: Bools) -> Faces:
        """Return the polygons that are kept."""
        return faces_of(self.ends, self.halves[np.repeat(keep, self.sizes)], self.sizes[keep])


def faces_of(ends: Ints, halves: Ints, sizes: Ints) -> Faces:
    """Return the polygons whose half-edges follow one another, sizes[i] each."""
    return Faces(ends, halves, np.concatenate([[0], np.cumsum(sizes)]))


@dataclass(frozen=True, eq=False)
class Mesh:
    """Polygons and their vertices: place [n, 2], member [n], and values with their errors, state [n, 2, units]."""

    place: Floats
    state: Floats
    member: Ints
    faces: Faces


def box_mesh(x: tuple[float, float], y: tuple[float, float], members: int) -> Mesh:
    """Return a mesh with the box as one polygon for each member."""
    corners = np.array([[x[0], y[0]], [x[1], y[0]], [x[1], y[1]], [x[0], y[1]]], dtype=np.float64)
    place = np.tile(corners, (members, 1))
    tail = np.arange(4 * members)
    head = tail - tail % 4 + (tail + 1) % 4
    faces = faces_of(np.stack([tail, head], axis=1), 2 * tail, np.full(members, 4))
    return Mesh(place, np.stack([place, EPS * np.abs(place)], axis=1), tail // 4, faces)


def cut_edges(units: Units, mesh: Mesh, limit: int) -> tuple[Points, Faces]:
    """Return the mesh with a vertex wherever a unit crosses a knot inside an edge; `limit` bounds the polygons."""
    points = Points.at(units, mesh.place, mesh.state, mesh.member)
    ends = mesh.faces.ends
    # in the end every vertex has at least three edges, so there are at most two vertices for each polygon
    parts, edge = cuts(units, points, ends[:, 0], ends[:, 1], lambda new: check_pieces(new // 2, limit))
    cut_ends, first, count = subdivide(ends, edge, len(points) + np.arange(len(edge)))
    e, flip = np.divmod(mesh.faces.halves, 2)
    corner, rank = runs(count[e] + 1)
    step = np.where(flip[corner] == 1, count[e][corner] - rank, rank)
    halves = 2 * (first[e][corner] + step) + flip[corner]
    sizes = np.add.reduceat(count[e] + 1, mesh.faces.offsets[:-1])
    return join_points(points, *parts), faces_of(cut_ends, halves, sizes)


def subdivide(ends: Ints, edge: Ints, vertex: Ints) -> tuple[Ints, Ints, Ints]:
    """Return edges divided by vertex[i] on edge[i], where edges ascend and vertices are in order from tail to head.

    The result is the ends of all parts, and for each edge the index of its first part and the number of its vertices.
    """
    count = np.bincount(edge, minlength=len(ends))
    first = np.arange(len(ends)) + run_starts(count)
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

    root: [polygons], the polygon before the layer that contains each polygon.
    above: [words, polygons], the knots that each polygon is above.
    """

    points: Points
    faces: Faces
    root: Ints
    above: Words

    def where(self, keep: Bools) -> Patch:
        """Return the polygons that are kept, with all vertices and edges."""
        return Patch(self.points, self.faces.where(keep), self.root[keep], self.above[:, keep])


def split_polygons(units: Units, part: Patch, check: Callable[[int], None], most: int) -> tuple[Patch, Patch]:
    """Split polygons, whose edges are cut, until no unit is below a knot in one corner and above it in another.

    `check` is called with a lower bound on the number of polygons, and raises an error if it is too large. Beyond
    `most` vertices, the remaining polygons are left for later. Return the finished polygons and those that are left,
    both with the new vertices and edges after the given ones.
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
    """Return the polygons of all parts, with the vertices and edges of the last."""
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

    Both are on the line, because the edges are cut; so the line passes through neither part, and splitting ends. They
    follow the last corner above the line and the last corner below it. If an edge is almost parallel to the line,
    rounding can put a corner on the line although both its neighbours are above it. Such a corner is skipped.
    """
    polygon = faces.owner
    over, under = points.sides[:, word[polygon], faces.tails] & mask[polygon] != 0
    off = np.flatnonzero(over | under)
    count = np.bincount(polygon[off], minlength=len(faces))
    after = np.arange(1, len(off) + 1)
    after[run_starts(count) + count - 1] = run_starts(count)
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
    # in the end every vertex has at least three edges, so there are at most two vertices for each polygon
    parts, chord = cuts(units, points, chords[:, 0], chords[:, 1], lambda new: check(new // 2))
    pieces, first, count = subdivide(chords, chord, len(points) + np.arange(len(chord)))
    polygon = faces.owner
    rank = (np.arange(len(polygon)) - down[polygon]) % sizes[polygon]
    arc = (up - down) % sizes
    length = np.stack([arc, sizes - arc], axis=1) + count[:, None] + 1
    start = run_starts(length.reshape(-1)).reshape(-1, 2)
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


def partition(nets: Ensemble, mesh: Mesh, limit: int, progress: Report | None = None) -> tuple[Mesh, list[Words]]:
    """Return the mesh with the outputs as values, and for each layer the patterns of the polygons."""
    patterns: list[Words] = []
    first, *others = nets.layers
    mesh = replace(mesh, state=affine_with_error(first.weight, first.bias, mesh.state, mesh.member))
    for i, ((_, f), after) in enumerate(zip(nets.hidden, others, strict=True)):

        def tell(part: float, polygons: int, i: int = i) -> None:
            if progress:
                progress((i + part) / len(others), f"layer {i + 1} of {len(others)}: {polygons:,} polygons")

        with name_layer(i + 1, len(others)):
            mesh, parent, above = _LayerWork(Units.of(f), after, limit, tell).apply(mesh)
        patterns = [*(pattern[:, parent] for pattern in patterns), above]
    return mesh, patterns


class _LayerWork:
    """The work on one layer, with the finished part of the mesh after it."""

    def __init__(self, units: Units, after: Layer, limit: int, tell: Callable[[float, int], None]) -> None:
        self._units, self._after, self._limit, self._tell = units, after, limit, tell
        self._found: dict[str, list[Any]] = defaultdict(list)
        self._vertices = self._edges = self._polygons = 0

    def apply(self, mesh: Mesh) -> tuple[Mesh, Ints, Words]:
        """Return the mesh after the layer, and for each polygon the old polygon that contains it, and its pattern."""
        points, faces = cut_edges(self._units, mesh, self._limit)
        vertex, edge = self._add_points(points, faces.ends)
        nothing = np.zeros((points.sides.shape[1], len(faces)), dtype=np.uint64)
        self._split(Patch(points, faces, np.arange(len(faces)), nothing), vertex, edge, (0.0, 1.0))
        return self._result()

    def _split(self, part: Patch, vertex: Ints, edge: Ints, span: tuple[float, float]) -> None:
        """Split the polygons block by block: once the edges are cut, polygons are independent of one another.

        A block that gets too many polygons is divided again, to bound the memory. `span` is the interval of the
        layer's progress that these blocks cover.
        """
        start, end = span
        for block, own_vertex, own_edge, share in _blocks(part, vertex, edge):
            done, left = split_polygons(self._units, block, self._check, 4 * _corners(block))
            points = done.points.take(slice(len(own_vertex), None))
            new_vertex, new_edge = self._add_points(points, done.faces.ends[len(own_edge) :], own_vertex)
            own_vertex, own_edge = np.append(own_vertex, new_vertex), np.append(own_edge, new_edge)
            self._add_polygons(done, own_edge)
            stop = span[0] + share * (end - span[0])
            start += (stop - start) * len(done.faces) / (len(done.faces) + len(left.faces))
            self._tell(start, self._polygons)
            if len(left.faces):
                self._split(left, own_vertex, own_edge, (start, stop))
            start = stop

    def _check(self, polygons: int) -> None:
        check_pieces(self._polygons + polygons, self._limit)

    def _add_points(self, points: Points, ends: Ints, vertex: Ints | None = None) -> tuple[Ints, Ints]:
        """Return the numbers of new vertices and edges, the next free ones; vertex: the numbers of earlier vertices."""
        check_points(self._vertices + len(points), 2 * len(self._after.bias[0]))
        numbers = self._vertices + np.arange(len(points)), self._edges + np.arange(len(ends))
        self._vertices += len(points)
        self._edges += len(ends)
        own = numbers[0] if vertex is None else np.append(vertex, numbers[0])
        self._keep(place=points.place.copy(), member=points.member.copy(), ends=own[ends], state=self._onward(points))
        return numbers

    def _onward(self, points: Points) -> Floats:
        """Return W f(z) + b with its error, computed a few points at a time so that f(z) stays in the caches."""
        after, state = self._after, np.empty((len(points), 2, len(self._after.bias[0])))
        for block in blocks(len(points), _ROWS):
            part = points.take(block)
            y = self._units.forward(part.state, part.member)
            state[block] = affine_with_error(after.weight, after.bias, y, part.member)
        return state

    def _add_polygons(self, done: Patch, edge: Ints) -> None:
        """Store finished polygons."""
        faces, halves = done.faces, 2 * edge[done.faces.halves >> 1] + (done.faces.halves & 1)
        self._keep(halves=halves, sizes=faces.sizes, above=done.above, root=done.root)
        self._polygons += len(faces)

    def _keep(self, **arrays: Any) -> None:
        for name, array in arrays.items():
            self._found[name].append(array)

    def _result(self) -> tuple[Mesh, Ints, Words]:
        found = {name: np.concatenate(parts, axis=-1 if name == "above" else 0) for name, parts in self._found.items()}
        faces = faces_of(found["ends"], found["halves"], found["sizes"])
        return Mesh(found["place"], found["state"], found["member"], faces), found["root"], found["above"]


def _corners(part: Patch) -> int:
    """Return the number of corners, with z and its error in each, that fit into the processor's caches."""
    return int(min(max(2**20 // part.points.state.shape[2], 2**10), 2**14))


def _blocks(part: Patch, vertex: Ints, edge: Ints) -> Iterator[tuple[Patch, Ints, Ints, float]]:
    """Yield blocks of polygons with their own vertices and edges, the numbers of these, and the fraction of progress.

    vertex and edge: the numbers of all vertices and edges. The fraction is that of all polygons up to the block's end.
    """
    faces, size = part.faces, _corners(part)
    if faces.offsets[-1] <= size and len(part.points) <= size:
        yield part, vertex, edge, 1.0
        return
    bounds = np.searchsorted(faces.offsets, np.arange(0, faces.offsets[-1] + size, size))
    for low, high in pairwise(np.unique(np.append(bounds, len(faces)).clip(0, len(faces))).tolist()):
        halves = faces.halves[faces.offsets[low] : faces.offsets[high]]
        edges, which = np.unique(halves >> 1, return_inverse=True)
        vertices, ends = np.unique(faces.ends[edges], return_inverse=True)
        own = faces_of(ends.reshape(-1, 2), 2 * which + (halves & 1), faces.sizes[low:high])
        inner = Patch(part.points.take(vertices), own, part.root[low:high], part.above[:, low:high])
        yield inner, vertex[vertices], edge[edges], high / len(faces)
