"""A box of one or two inputs, covered by polygons on each of which the network is affine, to rounding.

A polygon is the convex hull of its corners, and has the pattern of its middle. By that pattern the network is an affine
map on the whole polygon, whose largest value is at a corner. Two errors are followed from layer to layer, for each unit
in each polygon:

    error    of the computed map at the corners:            e_z = |W| e_y + gamma_{n + 5} (|W| |y| + |b|)
    apart    of the map from the network, in exact numbers: d_y = L d_z + (largest - smallest slope) beyond

where `beyond` is how far the map of a unit leaves its piece at a corner, and L the largest slope that the unit can
have in the polygon. So the bound holds wherever polygons are drawn: one that is drawn wrongly makes it wider. gamma_k
is that of `rounding`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plunit.pieces.activation import Activation
from plunit.pieces.arrays import Floats, Ints, blocks
from plunit.pieces.exact.polygon_set import Polygons
from plunit.pieces.exact_curves import Curve
from plunit.pieces.limits import Progress
from plunit.pieces.networks import Network
from plunit.pieces.proofs.regions import pieces_at
from plunit.pieces.rounding import EPS, gamma

CELLS = 2**9
"""Polygons at a time."""

LOST = 4 * float(np.finfo(np.float64).smallest_subnormal)
"""What underflow can take from a product."""

WIDER = 1 + 1e-6
"""Errors are sums of positive numbers, themselves in double precision."""


@dataclass(frozen=True, eq=False)
class Cover:
    """Polygons that cover a box: their corners [n, in], one polygon after another, and the first corner of each."""

    corners: Floats
    offsets: Ints

    @property
    def middles(self) -> Floats:
        """The middle of each polygon, [polygons, in]."""
        sums = np.add.reduceat(self.corners, self.offsets[:-1])
        return np.asarray(sums / np.diff(self.offsets)[:, None])

    def parts(self) -> list[Cover]:
        """Return the polygons in groups."""
        groups = [self.offsets[block.start : block.stop + 1] for block in blocks(len(self.offsets) - 1, CELLS)]
        return [Cover(self.corners[first[0] : first[-1]], first - first[0]) for first in groups]


def curve_cover(line: Curve) -> Cover:
    """Return the pieces of a curve as polygons."""
    ends = np.stack([line.knots[:-1], line.knots[1:]], axis=1)
    return Cover(ends.reshape(-1, 1), np.arange(0, 2 * len(ends) + 1, 2))


def polygon_cover(polygons: Polygons) -> Cover:
    """Return polygons as polygons."""
    return Cover(polygons.vertices[polygons.faces.tails], polygons.faces.offsets)


def upper_bound(net: Network, polygons: Cover, progress: Progress) -> float:
    """Return a bound that the network's first output exceeds nowhere in the polygons."""
    parts, found = polygons.parts(), -np.inf
    for done, part in enumerate(parts):
        progress(done / len(parts), f"bounds of {len(polygons.offsets) - 1:,} pieces")
        found = max(found, float(np.max(np.add(*_values(net, part)))))
    return found


def certain_value(net: Network, x: Floats) -> float:
    """Return a number that the exact value of the first output at x [in] is not below."""
    value, error = _values(net, Cover(x[None], np.array([0, 1])))
    return float(value[0] - error[0])


def _values(net: Network, polygons: Cover) -> tuple[Floats, Floats]:
    """Return the largest value of each polygon by its map, and how far the network can be from it."""
    pattern = pieces_at(net, polygons.middles)
    y, first = polygons.corners, polygons.offsets[:-1]
    error = apart = np.zeros((len(first), net.inputs))
    for i, layer in enumerate(net.layers):
        wide, size = np.abs(layer.weight).T, np.maximum.reduceat(np.abs(y), first) + error
        lost = LOST * (size.sum(axis=1, keepdims=True) + len(wide)) * (wide > 0).any(axis=0)
        error = error @ wide + gamma(len(wide) + 5) * (size @ wide + np.abs(layer.bias)) + lost
        apart = apart @ wide
        y = y @ layer.weight.T + layer.bias
        if layer.activation is not None:
            y, error, apart = _through(layer.activation, polygons.offsets, y, error, apart, pattern[i])
    tops = np.maximum.reduceat(y[:, 0], first)
    return tops, WIDER * (error + apart)[:, 0] + EPS * np.abs(tops)


def _through(
    f: Activation, offsets: Ints, z: Floats, error: Floats, apart: Floats, piece: Ints
) -> tuple[Floats, Floats, Floats]:
    """Return y = slope z + intercept at the corners [n, units], by the pieces [polygons, units], and its two errors."""
    knots, slopes, unit, first = f.knots, f.slopes, np.arange(z.shape[1]), offsets[:-1]
    ends = np.pad(knots, ((0, 0), (1, 1)), constant_values=((0, 0), (-np.inf, np.inf)))
    slope, intercept = slopes[unit, piece], f.intercepts[unit, piece]
    least, most = np.minimum.reduceat(z, first), np.maximum.reduceat(z, first)
    beyond = np.maximum(ends[unit, piece] - least, most - ends[unit, piece + 1]) + error
    steep, flat = slopes.max(axis=1), slopes.min(axis=1)
    gain = np.where(beyond + apart > 0, np.maximum(np.abs(steep), np.abs(flat)), np.abs(slope))
    apart = gain * apart + (steep - flat) * np.maximum(beyond, 0.0)
    jumps = np.abs(np.diff(slopes)) * np.where(np.isfinite(knots), np.abs(knots), 0.0)
    table = gamma(knots.shape[1] + 4) * (2 * jumps.sum(axis=1) + np.abs(f.at_zero))
    terms = np.abs(slope) * (np.maximum(np.abs(least), np.abs(most)) + error) + np.abs(intercept)
    error = np.abs(slope) * error + gamma(7) * terms + table + LOST
    owner = np.repeat(np.arange(len(first)), np.diff(offsets))
    return slope[owner] * z + intercept[owner], error, apart
