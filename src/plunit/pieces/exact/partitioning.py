"""Take a box through a network: after each layer, the polygons on which everything so far is affine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from plunit.pieces.arrays import Floats, Ints, Words, blocks
from plunit.pieces.exact.crossing import Points
from plunit.pieces.exact.limits import Report, check_count, check_memory, name_layer
from plunit.pieces.exact.mesh import Mesh, Patch, cut_edges, faces_of, split
from plunit.pieces.exact.tolerance import Units, affine_with_error
from plunit.pieces.networks import Ensemble, Layer

ROWS = 2**10


def partition(nets: Ensemble, mesh: Mesh, limit: int, progress: Report | None = None) -> tuple[Mesh, list[Words]]:
    """Return the mesh with the outputs as values, and for each layer the pattern of the polygons."""
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
    """The work on one layer, with the part of the mesh after it that is finished."""

    def __init__(self, units: Units, after: Layer, limit: int, tell: Callable[[float, int], None]) -> None:
        self._units, self._after, self._limit, self._tell = units, after, limit, tell
        self._found: dict[str, list[Any]] = defaultdict(list)
        self._vertices = self._edges = self._polygons = 0

    def apply(self, mesh: Mesh) -> tuple[Mesh, Ints, Words]:
        """Return the mesh after the layer, and for each polygon the old one that holds it, and its pattern."""
        points, faces = cut_edges(self._units, mesh, self._limit)
        vertex, edge = self._add_points(points, faces.ends)
        nothing = np.zeros((points.sides.shape[1], len(faces)), dtype=np.uint64)
        self._split(Patch(points, faces, np.arange(len(faces)), nothing), vertex, edge, (0.0, 1.0))
        return self._result()

    def _split(self, part: Patch, vertex: Ints, edge: Ints, span: tuple[float, float]) -> None:
        """Split the polygons block by block: once the edges are cut, polygons are independent of one another.

        A block whose polygons become many is divided again, to bound the memory. `span` is the part of the layer's work
        from its start to its end.
        """
        start, end = span
        for block, own_vertex, own_edge, share in _blocks(part, vertex, edge):
            done, left = split(self._units, block, self._check, 4 * _corners(block))
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
        check_count(self._polygons + polygons, self._limit)

    def _add_points(self, points: Points, ends: Ints, vertex: Ints | None = None) -> tuple[Ints, Ints]:
        """Give new vertices and edges the next free numbers, and return these; vertex: the numbers before them."""
        check_memory(self._vertices + len(points), 2 * len(self._after.bias[0]))
        numbers = self._vertices + np.arange(len(points)), self._edges + np.arange(len(ends))
        self._vertices += len(points)
        self._edges += len(ends)
        own = numbers[0] if vertex is None else np.append(vertex, numbers[0])
        self._keep(place=points.place.copy(), member=points.member.copy(), ends=own[ends], state=self._onward(points))
        return numbers

    def _onward(self, points: Points) -> Floats:
        """Return W f(z) + b with its error, a few points at a time, so that f(z) stays in the processor's caches."""
        after, state = self._after, np.empty((len(points), 2, len(self._after.bias[0])))
        for block in blocks(len(points), ROWS):
            part = points.take(block)
            y = self._units.forward(part.state, part.member)
            state[block] = affine_with_error(after.weight, after.bias, y, part.member)
        return state

    def _add_polygons(self, done: Patch, edge: Ints) -> None:
        """Keep the polygons that are done."""
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
    """Return how many corners, with z and its error in each, stay in the caches."""
    return int(min(max(2**20 // part.points.state.shape[2], 2**10), 2**14))


def _blocks(part: Patch, vertex: Ints, edge: Ints) -> Iterator[tuple[Patch, Ints, Ints, float]]:
    """Yield blocks of polygons with their own vertices and edges, and the numbers of these, given those of all.

    The last number is the fraction of all polygons up to the end of the block.
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
