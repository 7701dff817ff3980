"""The polygons on which a network of two inputs is affine: `polygons` computes them, `Polygons` holds them.

Point p is beyond the edge from a to b of a counter-clockwise polygon if (b - a) x (p - a) < 0. Places are known only
up to a blur, and a short edge has no clear direction, so beyond means less than -blur (|b - a| + |p - a|).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from plunit.base.ranges import as_count
from plunit.pieces.arrays import Floats, Ints, Words, pack_bits
from plunit.pieces.boxes import box_array, check_size, many
from plunit.pieces.exact.affine_maps import Maps, maps, same_maps
from plunit.pieces.exact.agreement import mesh_faults
from plunit.pieces.exact.limits import LIMIT, Report, Unlisted
from plunit.pieces.exact.line_curves import Counts
from plunit.pieces.exact.mesh import Faces, box_mesh, partition
from plunit.pieces.exact.tolerance import SAFETY
from plunit.pieces.networks import Ensemble, Network, as_ensemble, check_network
from plunit.pieces.rounding import EPS, TINY

Side = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Polygons:
    """f(x) = gradients[i] x + intercepts[i] on polygon i: convex polygons fill the box and share vertices and edges.

    vertices: [n, 2]; values: f there [n, out]; faces: the polygons (see `mesh`); bits: for each layer the knots that
    each polygon is above, packed.
    """

    network: Network
    box: tuple[Side, Side]
    vertices: Floats
    values: Floats
    faces: Faces
    bits: tuple[Words, ...]

    def __len__(self) -> int:
        return len(self.faces)

    def __repr__(self) -> str:
        return f"Polygons({len(self)} on {' x '.join(f'[{low:g}, {high:g}]' for low, high in self.box)})"

    @property
    def patterns(self) -> int:
        """The number of activation patterns, one for each polygon."""
        return len(self)

    @cached_property
    def labels(self) -> Ints:
        """The functional piece that contains each polygon [polygons]: neighbours with the same map are one piece."""
        return same_maps(self._maps, self.adjacency)

    @property
    def pieces(self) -> int:
        """The number of functionally distinct pieces."""
        return int(self.labels.max()) + 1

    @property
    def corners(self) -> list[Floats]:
        """The corners of each polygon, counter-clockwise."""
        return np.split(self.vertices[self.faces.tails], self.faces.offsets[1:-1])

    @cached_property
    def areas(self) -> Floats:
        """The area of each polygon: 1/2 sum (p_i - p_0) x (p_{i+1} - p_0) over its corners p."""
        faces = self.faces
        origin = self.vertices[faces.tails[np.repeat(faces.offsets[:-1], faces.sizes)]]
        a, b = self.vertices[faces.tails] - origin, self.vertices[faces.heads] - origin
        return np.asarray(0.5 * np.add.reduceat(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0], faces.offsets[:-1]))

    @property
    def gradients(self) -> Floats:
        """The matrix of each polygon's map, [polygons, out, 2]."""
        return self._maps.gradient

    @property
    def intercepts(self) -> Floats:
        """The constant of each polygon's map, [polygons, out]."""
        return self._maps.intercept

    @cached_property
    def adjacency(self) -> Ints:
        """Pairs of polygons with a common edge, [n, 2]."""
        return adjacent(self.faces)

    def locate(self, points: Any) -> Ints:
        """Return the polygon of each point [..., 2]; either one on a common edge, -1 outside the box."""
        points = np.asarray(points, dtype=np.float64)
        if points.ndim == 0 or points.shape[-1] != 2:
            raise ValueError(f"points must have shape [..., 2], got {points.shape}")
        rows, (low, high) = points.reshape(-1, 2), np.transpose(self.box)
        inside = ((rows >= low) & (rows <= high)).all(axis=1)
        found = np.full(len(rows), -1)
        found[inside] = [self._polygon(*pair) for pair in zip(rows[inside], self._keys(rows[inside]), strict=True)]
        return found.reshape(points.shape[:-1])

    def __call__(self, points: Any) -> Floats:
        """f(x): [..., 2] -> [..., out], from the map of the polygon that contains x."""
        polygon = self.locate(points)
        points = np.asarray(points, dtype=np.float64)
        if (polygon < 0).any():
            raise ValueError(f"point {points[polygon < 0][0].tolist()} is outside the box {self.box}")
        found = np.einsum("...oi,...i->...o", self.gradients[polygon], points) + self.intercepts[polygon]
        # on a steep polygon, rounding could exceed the values at its corners
        low, high = self._ranges
        return np.asarray(np.minimum(np.maximum(found, low[polygon]), high[polygon]))

    @cached_property
    def _ranges(self) -> tuple[Floats, Floats]:
        """The smallest and the largest value at the corners of each polygon, [polygons, out]."""
        corners, first = self.values[self.faces.tails], self.faces.offsets[:-1]
        return np.minimum.reduceat(corners, first), np.maximum.reduceat(corners, first)

    @cached_property
    def _maps(self) -> Maps:
        return maps(self.network.alone, self.bits, np.zeros(len(self), dtype=np.int64))

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        """The polygon of each activation pattern."""
        patterns = np.concatenate([np.zeros((1, len(self)), dtype=np.uint64), *self.bits]).T
        return {pattern.tobytes(): i for i, pattern in enumerate(patterns)}

    def _keys(self, rows: Floats) -> list[bytes]:
        """Return the activation patterns of points."""
        words, y = [np.zeros((1, len(rows)), dtype=np.uint64)], rows
        for layer, f in self.network.hidden:
            z = y @ layer.weight.T + layer.bias
            words += [pack_bits(z > knot) for knot in f.knots.T]
            y = f(z)
        return [pattern.tobytes() for pattern in np.concatenate(words).T]

    def _polygon(self, point: Floats, key: bytes) -> int:
        """Return the polygon of a point in the box with this activation pattern.

        The pattern is right where numbers are exact. Rounding blurs a line such as 1 + 1e-12 x = 1, whose edge is at
        one of many possible places. Then z can put a point on one side of the line, and the edge on the other.
        """
        guess = self._numbers.get(key)
        if guess is not None and self._inside(point, guess, guess + 1)[0] >= -1:
            return guess
        return int(np.argmax(np.where(self.areas > 0, self._inside(point, 0, len(self)), -np.inf)))

    def _inside(self, point: Floats, low: int, high: int) -> Floats:
        """Return how far a point is inside polygons low, ..., high - 1; below -1 it is outside, beyond the blur."""
        faces, first = self.faces, self.faces.offsets[low:high]
        corners = slice(first[0], faces.offsets[high])
        start = self.vertices[faces.tails[corners]]
        along, way = self.vertices[faces.heads[corners]] - start, point - start
        cross = along[:, 0] * way[:, 1] - along[:, 1] * way[:, 0]
        blur = SAFETY * EPS * float(np.abs(self.box).max())
        ratio = cross / (blur * (np.abs(along).sum(axis=1) + np.abs(way).sum(axis=1)) + TINY)
        return np.asarray(np.minimum.reduceat(ratio, first - first[0]))


def polygons(net: Network, box: tuple[Side, Side], *, limit: int = LIMIT, progress: Report | None = None) -> Polygons:
    """Return all polygons of a network of two inputs on the box ((x low, x high), (y low, y high)).

    The result is accurate to 1e-7 of the largest |f|, apart from the rounding of x. If that is not possible, an error
    says where and why. For a plane through a larger input space: polygons(plane(net, origin, u, v), box).

    >>> from plunit.pieces import activation, network
    >>> net = network([([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0]), activation.relu(), ([[1.0, 0.0]], [0.0])])
    >>> found = polygons(net, ((-1, 1), (-1, 1)))
    >>> found.patterns, found.pieces, found.areas.tolist()
    (4, 2, [1.0, 1.0, 1.0, 1.0])
    """
    check_network(net)
    box = _read_box(net, box, limit)
    mesh, bits = partition(net.alone, box_mesh(*box, 1), limit, progress)
    for reason in mesh_faults(net.alone, mesh, bits).values():
        raise Unlisted(reason)
    return Polygons(net, box, mesh.place, mesh.state[:, 0], mesh.faces, tuple(bits))


def polygon_counts(nets: Network | Ensemble, box: tuple[Side, Side], *, limit: int = LIMIT) -> Counts:
    """Return the numbers of patterns and pieces on the box of each member of an ensemble of two-input networks."""
    nets = as_ensemble(nets)
    box = _read_box(nets, box, limit)
    mesh, bits = partition(nets, box_mesh(*box, nets.members), limit)
    faces = mesh.faces
    member = mesh.member[faces.tails[faces.offsets[:-1]]]
    labels = same_maps(maps(nets, bits, member), adjacent(faces))
    first = np.unique(labels, return_index=True)[1]
    found = Counts(*(np.bincount(who, minlength=nets.members) for who in (member, member[first])))
    for wrong in mesh_faults(nets, mesh, bits):
        found.patterns[wrong] = found.pieces[wrong] = 0
    return found


def _read_box(net: Network | Ensemble, box: Any, limit: int) -> tuple[Side, Side]:
    as_count("limit", limit, 1, np.inf)
    if net.inputs != 2:
        raise ValueError(f"the network has {many(net.inputs, 'input')}, polygons need 2; use plane(net, origin, u, v)")
    sides = box_array(net, box)
    check_size(net, np.abs(sides).max(axis=1))
    x, y = map(tuple, sides.tolist())
    return x, y


def adjacent(faces: Faces) -> Ints:
    """Return the pairs of polygons with a common edge, [n, 2]."""
    sides = np.sort(faces.neighbours, axis=1)
    code = np.unique((sides[:, 0] * len(faces) + sides[:, 1])[sides[:, 0] >= 0])
    return np.stack(np.divmod(code, len(faces)), axis=1)
