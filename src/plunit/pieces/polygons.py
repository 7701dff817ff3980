"""All convex cells of a network of two inputs on a box, with the affine map of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from plunit.pieces.arrays import Bools, Floats, Ints, Words
from plunit.pieces.crossing import limited
from plunit.pieces.gradient import gradients
from plunit.pieces.line import Counts
from plunit.pieces.mesh import Faces, Mesh, box_mesh
from plunit.pieces.networks import Network, check_size, single
from plunit.pieces.partitioning import Tree, blockwise, partition

LIMIT = 2_000_000
Range = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Cells:
    """f(x) = gradients[i] x + intercepts[i] on cell i: convex polygons that fill the box and share vertices and edges.

    vertices: [n, 2]; values: f there [n, out]; faces: the polygons (see `mesh`); bits: for each layer the knots that
    each cell is above, packed; trees: for each layer how it was split.
    """

    network: Network
    box: tuple[Range, Range]
    vertices: Floats
    values: Floats
    faces: Faces
    bits: tuple[Words, ...]
    trees: tuple[Tree, ...]

    def __len__(self) -> int:
        return len(self.faces)

    @property
    def patterns(self) -> int:
        """The number of activation patterns: of cells."""
        return len(self)

    @cached_property
    def labels(self) -> Ints:
        """The functional piece that each cell is part of [cells]: neighbours with the same map are one piece."""
        equal = same_map(self.gradients, self._maps[1][0], self.adjacency)
        return connected(len(self), self.adjacency[equal])

    @property
    def pieces(self) -> int:
        """The number of functionally distinct pieces."""
        return int(self.labels.max()) + 1

    @property
    def polygons(self) -> list[Floats]:
        """The corners of each cell, counter-clockwise."""
        return np.split(self.vertices[self.faces.tails], self.faces.offsets[1:-1])

    @cached_property
    def areas(self) -> Floats:
        """The area of each cell."""
        return polygon_areas(self.vertices, self.faces)

    @property
    def gradients(self) -> Floats:
        """The matrix of each cell's map, [cells, out, 2]."""
        return self._maps[0]

    @cached_property
    def intercepts(self) -> Floats:
        """The constant of each cell's map, [cells, out]."""
        first = self.faces.tails[self.faces.offsets[:-1]]
        return np.asarray(self.values[first] - np.einsum("coi,ci->co", self.gradients, self.vertices[first]))

    @cached_property
    def adjacency(self) -> Ints:
        """Pairs of cells with a common edge, [n, 2]."""
        return adjacent(self.faces)

    def locate(self, points: Any) -> Ints:
        """Return the cell of each point [..., 2]; on a common edge one of its cells, outside the box -1."""
        points = self._points(points)
        rows = points.reshape(-1, 2)
        found = blockwise(self._leaf, rows, np.zeros(len(rows), dtype=np.int64))
        (left, right), (bottom, top) = self.box
        x, y = rows.T
        inside = (x >= left) & (x <= right) & (y >= bottom) & (y <= top)
        return np.where(inside, found, -1).reshape(points.shape[:-1])

    def __call__(self, points: Any) -> Floats:
        """f(x): [..., 2] -> [..., out], from the map of the cell that holds x."""
        cell = self.locate(points)
        points = self._points(points)
        if (cell < 0).any():
            raise ValueError(f"point {points[cell < 0][0].tolist()} is outside the box {self.box}; take larger cells")
        return np.asarray(np.einsum("...oi,...i->...o", self.gradients[cell], points) + self.intercepts[cell])

    @cached_property
    def _maps(self) -> tuple[Floats, Floats]:
        return gradients(self.network, self.bits, np.zeros(len(self), dtype=np.int64))

    def _leaf(self, rows: Floats, cell: Ints) -> Ints:
        for layer, tree in zip(self.network.layers(), self.trees, strict=True):
            cell = tree.cell[tree.descend(layer, rows, cell)]
            rows = layer.forward(rows, cell)
        return cell

    def _points(self, points: Any) -> Floats:
        array: Floats = np.asarray(points, dtype=np.float64)
        if array.ndim == 0 or array.shape[-1] != 2:
            raise ValueError(f"points must have shape [..., 2], got {array.shape}")
        return array


def cells(net: Network, box: tuple[Range, Range], *, limit: int = LIMIT) -> Cells:
    """Return all cells of a network of two inputs on the box ((x low, x high), (y low, y high)).

    For a plane through a larger input space: cells(plane(net, origin, u, v), box).

    >>> from plunit.pieces import activation, network
    >>> net = network([([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0]), activation.relu(), ([[1.0, 0.0]], [0.0])])
    >>> found = cells(net, ((-1, 1), (-1, 1)))
    >>> found.patterns, found.pieces, found.areas.tolist()
    (4, 2, [1.0, 1.0, 1.0, 1.0])
    """
    single(net)
    mesh, bits, trees = _partition(net, box, limit)
    return Cells(net, box, mesh.place, mesh.rows, mesh.faces, tuple(bits), tuple(trees))


def cell_counts(net: Network, box: tuple[Range, Range], *, limit: int = LIMIT) -> Counts:
    """Count patterns and pieces on the box in every member of an ensemble of two-input networks."""
    mesh, bits, _ = _partition(net, box, limit)
    faces = mesh.faces
    member = mesh.member[faces.tails[faces.offsets[:-1]]]
    maps, tolerance = gradients(net, bits, member)
    pairs = adjacent(faces)
    equal = same_map(maps, tolerance[member[pairs[:, 0]]] if net.members > 1 else tolerance[0], pairs)
    labels = connected(len(faces), pairs[equal])
    first = np.unique(labels, return_index=True)[1]
    return Counts(*(np.bincount(who, minlength=net.members) for who in (member, member[first])))


def _partition(net: Network, box: tuple[Range, Range], limit: int) -> tuple[Mesh, list[Words], list[Tree]]:
    if net.inputs != 2:
        raise ValueError(f"this network has {net.inputs} inputs, cells need 2; use plane(net, origin, u, v)")
    for name, (low, high) in zip("xy", box, strict=True):
        if not -np.inf < low < high < np.inf:
            raise ValueError(f"a box needs finite low < high, got [{low}, {high}] for {name}")
    check_size(net, np.abs(box).max(axis=1))
    with limited(limit):
        return partition(net, box_mesh(*box, net.members), limit)


def polygon_areas(vertices: Floats, faces: Faces) -> Floats:
    """1/2 sum (p_i - p_0) x (p_{i+1} - p_0) over the corners p of each cell."""
    origin = vertices[faces.tails[np.repeat(faces.offsets[:-1], faces.sizes)]]
    a, b = vertices[faces.tails] - origin, vertices[faces.ends.reshape(-1)[faces.halves ^ 1]] - origin
    return np.asarray(0.5 * np.add.reduceat(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0], faces.offsets[:-1]))


def adjacent(faces: Faces) -> Ints:
    """Return the pairs of cells with a common edge, [n, 2]."""
    sides = np.sort(faces.beside, axis=1)
    code = np.unique((sides[:, 0] * len(faces) + sides[:, 1])[sides[:, 0] >= 0])
    return np.stack(np.divmod(code, len(faces)), axis=1)


def same_map(maps: Floats, tolerance: Floats, pairs: Ints) -> Bools:
    """Return which pairs of neighbours have equal gradients; being continuous, they are then one affine map."""
    return np.asarray((np.abs(maps[pairs[:, 0]] - maps[pairs[:, 1]]) <= tolerance).all(axis=(1, 2)))


def connected(count: int, pairs: Ints) -> Ints:
    """Return the connected component, 0, 1, ..., of each vertex of a graph with these pairs as edges.

    >>> connected(5, np.array([[0, 3], [3, 4]])).tolist()
    [0, 1, 2, 0, 0]
    """
    label = np.arange(count)
    while True:
        ends = np.sort(label[pairs], axis=1)
        if (ends[:, 0] == ends[:, 1]).all():
            return np.asarray(np.unique(label, return_inverse=True)[1])
        np.minimum.at(label, ends[:, 1], ends[:, 0])
        while (label != label[label]).any():
            label = label[label]
