"""Take a box through a network: after each layer, the cells on which everything so far is affine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from plunit.pieces.arrays import Floats, Ints, Words, blocks
from plunit.pieces.crossing import Points
from plunit.pieces.layer import EPS, Layer, affine, largest, rounding
from plunit.pieces.mesh import Faces, Mesh, cut_edges, faces_of
from plunit.pieces.networks import Network
from plunit.pieces.splitting import Splits, split


@dataclass(frozen=True, eq=False)
class Tree:
    """The splits of one layer. Node i < roots is cell i before the layer; line[i] < 0 marks a leaf.

    line, child, cell: [nodes]; child[i] is below the line, child[i] + 1 above it; cell[i] is the cell of a leaf.
    """

    line: Ints
    child: Ints
    cell: Ints

    def descend(self, layer: Layer, rows: Floats, node: Ints) -> Ints:
        """Return the leaf under each node that holds rows [n, in]."""
        z = affine(layer.weight, layer.bias, rows, node)
        node = node.copy()
        going = np.flatnonzero(self.line[node] >= 0)
        while len(going):
            knot, unit = layer.named(self.line[node[going]])
            node[going] = self.child[node[going]] + (z[going, unit] > layer.knots[0, unit, knot])
            going = going[self.line[node[going]] >= 0]
        return node


ROWS = 2**10
Onward = Callable[[Floats, Ints], Any]


def partition(net: Network, mesh: Mesh, limit: int) -> tuple[Mesh, list[Words], list[Tree]]:
    """Return the mesh with the network's outputs as rows, and for each layer the pattern of the cells and the tree."""
    patterns: list[Words] = []
    trees: list[Tree] = []
    error = EPS * largest(mesh.rows, mesh.member, net.members)

    def outputs(rows: Floats, member: Ints) -> Floats:
        return affine(net.weights[-1], net.biases[-1], rows, member)

    for i, f in enumerate(net.activations):
        error = rounding(net.weights[i], net.biases[i], largest(mesh.rows, mesh.member, net.members), error)
        layer = Layer.of(net.weights[i], net.biases[i], f, error)
        onward = _then(layer.forward, outputs) if i == len(net.activations) - 1 else layer.forward
        mesh, parent, above, tree = _through(layer, mesh, onward, limit)
        patterns = [*(pattern[:, parent] for pattern in patterns), above]
        trees.append(tree)
        error = layer.steepest * error
    if not net.activations:
        mesh = Mesh(mesh.place, outputs(mesh.rows, mesh.member), mesh.member, mesh.faces)
    return mesh, patterns, trees


def _then(first: Onward, second: Onward) -> Onward:
    return lambda rows, member: second(first(rows, member), member)


@dataclass(frozen=True, eq=False)
class _Shard:
    """The parts of one block of cells: its new vertices and edges, its cells, and its branches of the tree."""

    place: Floats
    rows: Floats
    member: Ints
    ends: Ints
    halves: Ints
    sizes: Ints
    above: Words
    root: Ints
    node: Ints
    parent: Ints
    line: Ints
    child: Ints


def _through(layer: Layer, mesh: Mesh, onward: Onward, limit: int) -> tuple[Mesh, Ints, Words, Tree]:
    """Split the cells block by block: once the edges are cut, cells have nothing more to do with one another."""
    points, faces = cut_edges(layer, mesh, limit)
    vertices, edges, nodes, cells = len(points), len(faces.ends), len(faces), 0
    shards = []
    for low, high in _cell_blocks(faces, points.rows.shape[1]):
        local, own, vertex, edge = _local(points, faces, low, high)
        splits = split(layer, local, own, np.arange(low, high), nodes, limit - cells)
        shard = _shard(splits, onward, vertex, edge, vertices, edges)
        shards.append(shard)
        vertices += len(shard.place)
        edges += len(shard.ends)
        nodes += 2 * len(shard.line)
        cells += len(shard.sizes)
    old = points.place, blockwise(onward, points.rows, points.member), points.member, faces.ends
    place, rows, member, ends = (
        np.concatenate([first, *(getattr(shard, name) for shard in shards)])
        for name, first in zip(("place", "rows", "member", "ends"), old, strict=True)
    )
    halves, sizes, above, root, node, parent, line, child = (
        np.concatenate([getattr(shard, name) for shard in shards], axis=-1)
        for name in ("halves", "sizes", "above", "root", "node", "parent", "line", "child")
    )
    tree = _tree(nodes, node, parent, line, child)
    return Mesh(place, rows, member, faces_of(ends, halves, sizes)), root, above, tree


def _shard(splits: Splits, onward: Onward, vertex: Ints, edge: Ints, vertices: int, edges: int) -> _Shard:
    """Give the new vertices and edges of a block the next free numbers, and take the vertices onward."""
    points, faces = splits.points, splits.faces
    old, old_edges = len(vertex), len(edge)
    vertex = np.concatenate([vertex, vertices + np.arange(len(points) - old)])
    edge = np.concatenate([edge, edges + np.arange(len(faces.ends) - old_edges)])
    return _Shard(
        points.place[old:],
        blockwise(onward, points.rows[old:], points.member[old:]),
        points.member[old:],
        vertex[faces.ends[old_edges:]],
        2 * edge[faces.halves >> 1] + (faces.halves & 1),
        faces.sizes,
        *(splits.above, splits.root, splits.node, splits.parent, splits.line, splits.child),
    )


def _tree(nodes: int, leaf: Ints, parent: Ints, line: Ints, child: Ints) -> Tree:
    tree = Tree(*np.full((3, nodes), -1))
    tree.line[parent] = line
    tree.child[parent] = child
    tree.cell[leaf] = np.arange(len(leaf))
    return tree


def blockwise(onward: Onward, rows: Floats, member: Ints) -> Any:
    """Apply `onward` to a few rows at a time, so that what it needs in between stays in the caches."""
    if len(rows) <= ROWS:
        return onward(rows, member)
    return np.concatenate([onward(rows[block], member[block]) for block in blocks(len(rows), ROWS)])


def _cell_blocks(faces: Faces, width: int) -> list[tuple[int, int]]:
    """Return ranges of cells whose corners, with `width` numbers each, stay in the caches."""
    size = min(max(2**20 // width, 2**10), 2**14)
    bounds = np.searchsorted(faces.offsets, np.arange(0, faces.offsets[-1] + size, size))
    bounds = np.unique(np.append(bounds, len(faces)).clip(0, len(faces)))
    return list(pairwise(bounds.tolist()))


def _local(points: Points, faces: Faces, low: int, high: int) -> tuple[Points, Faces, Ints, Ints]:
    """Return some cells with their own vertices and edges, and the indices of these."""
    halves = faces.halves[faces.offsets[low] : faces.offsets[high]]
    edge, which = np.unique(halves >> 1, return_inverse=True)
    vertex, ends = np.unique(faces.ends[edge], return_inverse=True)
    own = faces_of(ends.reshape(-1, 2), 2 * which + (halves & 1), faces.sizes[low:high])
    return points.take(vertex), own, vertex, edge
