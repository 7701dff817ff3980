"""The level set f(x) = y on the polygons of a network, as exact segments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plunit.pieces.arrays import Bools, Floats, Ints
from plunit.pieces.exact.polygons import Cells
from plunit.pieces.exact.splitting import following, turns
from plunit.pieces.exact_curves import NEAR


class Level(NamedTuple):
    """segments [n, 2, 2], from point to point, in polygon cell[n]; flat: the polygons on which f = y throughout."""

    segments: Floats
    cell: Ints
    flat: Ints


def level_set(cells: Cells, y: float, output: int = 0) -> Level:
    """Return {x : f(x) = y} of one output; neighbouring segments meet in the same point, bit for bit.

    Segments through a polygon have f > y on their left. An edge on which f = y is a segment too, unless f = y on both
    sides. A single vertex at which f touches y is not a segment. A vertex with |f - y| <= 512 eps max(|f|, |y|) is on
    the level.

    >>> from plunit.pieces import activation, cells, network
    >>> net = network([([[1.0, 0.0]], [0.0]), activation.relu()])
    >>> level_set(cells(net, ((-1, 1), (0, 1))), 0.5).segments.tolist()
    [[[0.5, 1.0], [0.5, 0.0]]]
    """
    if not np.isfinite(y):
        raise ValueError(f"y must be finite, got {y}")
    gap = cells.values[:, output] - y
    gap[np.abs(gap) <= NEAR * max(abs(y), float(np.abs(cells.values[:, output]).max()))] = 0.0
    faces, corners = cells.faces, cells.faces.tails
    highest = np.maximum.reduceat(gap[corners], faces.offsets[:-1])
    lowest = np.minimum.reduceat(gap[corners], faces.offsets[:-1])
    crossed = (highest > 0) & (lowest < 0)
    inner = _through(cells, gap, crossed)
    edges, beside = _along(cells, gap, (highest == 0) & (lowest == 0))
    return Level(
        np.concatenate([inner, cells.vertices[faces.ends[edges]]]),
        np.concatenate([np.flatnonzero(crossed), beside]),
        np.flatnonzero((highest == 0) & (lowest == 0)),
    )


def _through(cells: Cells, gap: Floats, crossed: Bools) -> Floats:
    """Return the segment in which the level passes through each crossed polygon."""
    faces = cells.faces.where(crossed)
    corners = faces.tails
    sides = []
    for before in turns(faces, gap[corners] > 0, gap[corners] < 0):
        vertex = corners[following(faces, before)]
        tail, head = faces.ends[faces.halves[before] >> 1].T
        with np.errstate(invalid="ignore", divide="ignore"):
            s = (gap[tail] / (gap[tail] - gap[head]))[:, None]
        # the edge has one direction for both of its polygons, so both find the same point
        between = cells.vertices[tail] + s * (cells.vertices[head] - cells.vertices[tail])
        sides.append(np.where(gap[vertex][:, None] == 0, cells.vertices[vertex], between))
    return np.stack(sides, axis=1)


def _along(cells: Cells, gap: Floats, flat: Bools) -> tuple[Ints, Ints]:
    """Return the edges that lie on the level, unless inside a flat part, and a polygon beside each that is not flat."""
    faces = cells.faces
    sides = faces.beside
    sloped = (sides >= 0) & ~flat[sides]
    edges = np.flatnonzero((gap[faces.ends] == 0).all(axis=1) & sloped.any(axis=1))
    return edges, np.where(sloped[edges, 0], sides[edges, 0], sides[edges, 1])
