"""Take a box through a network: after each layer, the cells on which everything so far is affine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from plunit.pieces.arrays import Floats, Ints, Words, blocks
from plunit.pieces.crossing import Points
from plunit.pieces.layer import Affine, Units
from plunit.pieces.limits import Progress, check_count, check_memory, limited
from plunit.pieces.mesh import Mesh, cut_edges, faces_of
from plunit.pieces.networks import Network
from plunit.pieces.splitting import Part, Splits, least_cells, split

ROWS = 2**10


@dataclass(frozen=True, eq=False)
class Tree:
    """The splits of one layer. Node i < roots is cell i before the layer; line[i] < 0 marks a leaf.

    line, child, cell: [nodes]; child[i] is below the line, child[i] + 1 above it; cell[i] is the cell of a leaf.
    """

    line: Ints
    child: Ints
    cell: Ints

    def descend(self, units: Units, z: Floats, node: Ints) -> Ints:
        """Return the leaf under each node that holds a point with these z [n, units]."""
        node = node.copy()
        going = np.flatnonzero(self.line[node] >= 0)
        while len(going):
            knot, unit = units.named(self.line[node[going]])
            node[going] = self.child[node[going]] + (z[going, unit] > units.knots[0, unit, knot])
            going = going[self.line[node[going]] >= 0]
        return node


def partition(
    net: Network, mesh: Mesh, limit: int, progress: Progress | None = None
) -> tuple[Mesh, list[Words], list[Tree]]:
    """Return the mesh with the outputs as values, and for each layer the pattern of the cells and the tree."""
    patterns: list[Words] = []
    trees: list[Tree] = []
    first, *others = (Affine(weight, bias) for weight, bias in zip(net.weights, net.biases, strict=True))
    mesh = replace(mesh, state=first.of(mesh.state, mesh.member))
    for i, (f, after) in enumerate(zip(net.activations, others, strict=True)):

        def tell(part: float, cells: int, i: int = i) -> None:
            if progress:
                progress((i + part) / len(others), f"layer {i + 1} of {len(others)}: {cells:,} cells")

        with limited(limit, i + 1, len(others)):
            mesh, parent, above, tree = _Layer(Units.of(f), after, limit, tell).applied(mesh)
        patterns = [*(pattern[:, parent] for pattern in patterns), above]
        trees.append(tree)
    return mesh, patterns, trees


def onward(points: Points, units: Units, after: Affine) -> Floats:
    """Return W f(z) + b with its error, a few points at a time: what is needed in between stays in the caches."""
    state = np.empty((len(points), 2, len(after.bias[0])))
    for block in blocks(len(points), ROWS):
        part = points.take(block)
        state[block] = after.of(part.onward(units), part.member)
    return state


@dataclass(frozen=True, eq=False)
class _Layer:
    """One layer at work: the arrays of the mesh after it, as they are found."""

    units: Units
    after: Affine
    limit: int
    tell: Callable[[float, int], None]
    found: dict[str, list[Any]] = field(default_factory=dict)

    def applied(self, mesh: Mesh) -> tuple[Mesh, Ints, Words, Tree]:
        """Split the cells block by block: once the edges are cut, cells have nothing more to do with one another.

        Cells that become many are divided into blocks again, so that few points are at work at a time.
        """
        points, faces = cut_edges(self.units, mesh, self.limit)
        expected = least_cells(points, faces)
        check_count(expected, self.limit)
        # about as many vertices as cells
        check_memory(expected, 2 * len(self.after.bias[0]))
        self._store(points, faces.ends)
        cells = np.arange(len(faces))
        whole = Part(points, faces, cells, cells, np.zeros((points.sides.shape[1], len(cells)), dtype=np.uint64))
        counts = {"vertices": len(points), "edges": len(faces.ends), "nodes": len(faces), "cells": 0}
        waiting = _blocks(whole, np.arange(len(points)), np.arange(len(faces.ends)))
        while waiting:
            part, vertex, edge = waiting.pop()
            most = 4 * _corners(part.points.state.shape[2])
            splits = split(self.units, part, counts["nodes"], self._check(counts["cells"]), most)
            vertex, edge = self._numbered(splits, vertex, edge, counts)
            waiting += _blocks(splits.left, vertex, edge)
            self.tell(min(counts["cells"] / expected, 1.0), counts["cells"])
            check_memory(counts["vertices"], 2 * len(self.after.bias[0]))
        return self._result(counts["nodes"])

    def _check(self, done: int) -> Callable[[int], None]:
        return lambda new: check_count(done + new, self.limit)

    def _numbered(self, splits: Splits, vertex: Ints, edge: Ints, counts: dict[str, int]) -> tuple[Ints, Ints]:
        """Give new vertices and edges the next free numbers, keep what is done, and return all numbers of the part."""
        points, faces = splits.done.points, splits.done.faces
        new = points.take(slice(len(vertex), None))
        ends = faces.ends[len(edge) :]
        vertex = np.concatenate([vertex, counts["vertices"] + np.arange(len(new))])
        edge = np.concatenate([edge, counts["edges"] + np.arange(len(ends))])
        self._store(new, vertex[ends])
        halves = 2 * edge[faces.halves >> 1] + (faces.halves & 1)
        self._keep(halves=halves, sizes=faces.sizes, above=splits.done.above, root=splits.done.root)
        self._keep(node=splits.done.node, parent=splits.parent, line=splits.line, child=splits.child)
        counts["vertices"] += len(new)
        counts["edges"] += len(ends)
        counts["nodes"] += 2 * len(splits.line)
        counts["cells"] += len(faces)
        return vertex, edge

    def _store(self, points: Points, ends: Ints) -> None:
        state = onward(points, self.units, self.after)
        self._keep(place=points.place.copy(), state=state, member=points.member.copy(), ends=ends)

    def _keep(self, **arrays: Any) -> None:
        for name, array in arrays.items():
            self.found.setdefault(name, []).append(array)

    def _result(self, nodes: int) -> tuple[Mesh, Ints, Words, Tree]:
        arrays = {name: np.concatenate(parts, axis=-1 if name == "above" else 0) for name, parts in self.found.items()}
        faces = faces_of(arrays["ends"], arrays["halves"], arrays["sizes"])
        mesh = Mesh(arrays["place"], arrays["state"], arrays["member"], faces)
        tree = Tree(*np.full((3, nodes), -1))
        tree.line[arrays["parent"]] = arrays["line"]
        tree.child[arrays["parent"]] = arrays["child"]
        tree.cell[arrays["node"]] = np.arange(len(arrays["node"]))
        return mesh, arrays["root"], arrays["above"], tree


def _corners(width: int) -> int:
    """Return how many corners, with `width` numbers each, stay in the caches."""
    return min(max(2**20 // width, 2**10), 2**14)


def _blocks(part: Part, vertex: Ints, edge: Ints) -> list[tuple[Part, Ints, Ints]]:
    """Divide a part into blocks with their own vertices and edges, last block first; vertex, edge: their numbers."""
    faces = part.faces
    size = _corners(part.points.state.shape[2])
    bounds = np.searchsorted(faces.offsets, np.arange(0, faces.offsets[-1] + size, size))
    bounds = np.unique(np.append(bounds, len(faces)).clip(0, len(faces)))
    if len(bounds) == 2 and part.root is part.node:
        return [(part, vertex, edge)]
    return [_block(part, vertex, edge, low, high) for low, high in reversed(list(pairwise(bounds.tolist())))]


def _block(part: Part, vertex: Ints, edge: Ints, low: int, high: int) -> tuple[Part, Ints, Ints]:
    faces = part.faces
    halves = faces.halves[faces.offsets[low] : faces.offsets[high]]
    edges, which = np.unique(halves >> 1, return_inverse=True)
    vertices, ends = np.unique(faces.ends[edges], return_inverse=True)
    own = faces_of(ends.reshape(-1, 2), 2 * which + (halves & 1), faces.sizes[low:high])
    block = Part(part.points.take(vertices), own, part.root[low:high], part.node[low:high], part.above[:, low:high])
    return block, vertex[vertices], edge[edges]
