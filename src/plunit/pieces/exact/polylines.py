"""A polyline that is passed through a network, or through all members of an ensemble at once.

The state between layers is the polyline x -> y(x) in the space of that layer: its points in order, and the exact slope
of each segment, by the chain rule and never by differences. An affine layer moves the points; an activation first adds
the points where a unit crosses a knot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from plunit.pieces.arrays import Bools, Floats, Ints
from plunit.pieces.boxes import check_size
from plunit.pieces.exact.crossing import Points, cuts, join_points
from plunit.pieces.exact.limits import Report, check_pieces, name_layer
from plunit.pieces.exact.tolerance import Units, affine_with_error
from plunit.pieces.networks import Ensemble, Layer
from plunit.pieces.rounding import EPS


@dataclass(frozen=True, eq=False)
class Polyline:
    """Points t in order, member after member, with the values that a layer of the network has there.

    t, member: [n]; last: [n], whether it ends a member's line; turn: [n], whether the activation pattern changes at t.
    value, slope: [n, 2, units], with their errors; the slope is that of the segment that starts at t.
    """

    t: Floats
    member: Ints
    last: Bools
    turn: Bools
    value: Floats
    slope: Floats

    def where(self, keep: Bools) -> Polyline:
        """Return the points that `keep` selects."""
        return Polyline(*(getattr(self, part.name)[keep] for part in fields(self)))


def trace_line(nets: Ensemble, t: Floats, points: Floats, limit: int, progress: Report | None = None) -> Polyline:
    """Return the pieces of each member along the polyline through points [n, in] at parameters t [n].

    A point at t = 0 is removed in the end if nothing turns there and it is neither the first nor the last.
    """
    check_size(nets, np.abs(points).max(axis=0))
    line, layers = _start(nets.members, t, points), len(nets.hidden)
    extra = nets.members * int((t[1:-1] == 0).any())
    for i, (layer, f) in enumerate(nets.hidden):
        if progress:
            progress(i / layers, f"layer {i + 1} of {layers}: {len(line.t):,} knots")
        line = _move(layer, line)
        with name_layer(i + 1, layers):
            line = _activate(Units.of(f), line, lambda pieces: check_pieces(pieces - extra, limit))
    line = _drop_empty(_move(nets.layers[-1], line))
    with name_layer(layers, layers):
        check_pieces(len(line.t) - nets.members, limit)
    return line


def _start(members: int, t: Floats, points: Floats) -> Polyline:
    slope = np.zeros_like(points)
    slope[:-1] = np.diff(points, axis=0) / np.diff(t)[:, None]
    last = np.arange(len(t)) == len(t) - 1
    return Polyline(
        np.tile(t, members),
        np.repeat(np.arange(members), len(t)),
        np.tile(last, members),
        np.zeros(members * len(t), dtype=np.bool_),
        *(np.tile(np.stack([part, EPS * np.abs(part)], axis=1), (members, 1, 1)) for part in (points, slope)),
    )


def _move(layer: Layer, line: Polyline) -> Polyline:
    """Return the line after W x + b on the values and W on the slopes."""
    value = affine_with_error(layer.weight, layer.bias, line.value, line.member)
    slope = affine_with_error(layer.weight, np.zeros_like(layer.bias), line.slope, line.member)
    return replace(line, value=value, slope=slope)


def _activate(units: Units, line: Polyline, check: Callable[[int], None]) -> Polyline:
    """Return the line after the activation, with a point wherever a unit crosses a knot."""
    points = Points.at(units, line.t[:, None], line.value, line.member)
    tail = np.flatnonzero(~line.last)
    parts, segment = cuts(units, points, tail, tail + 1, lambda new: check(len(tail) + new))
    after = tail[segment]
    source = np.zeros(len(points) + len(segment), dtype=np.int64)
    inserted = np.zeros(len(source), dtype=np.bool_)
    slots = np.arange(len(segment)) + after + 1
    inserted[slots] = True
    source[slots] = len(points) + np.arange(len(segment))
    source[~inserted] = np.arange(len(points))
    origin = np.cumsum(~inserted) - 1
    points, last = join_points(points, *parts).take(source), line.last[origin] & ~inserted
    last[:-1] &= ~inserted[1:]
    above = points.sides[0] | points.sides[0][:, np.where(last, np.arange(len(last)), np.arange(1, len(last) + 1))]
    slope = units.choose(units.slopes, above, points.member)
    rise = line.slope[origin]
    rise[:, 0] *= slope
    rise[:, 1] *= np.abs(slope)
    # the pattern also changes where the piece that ends and the piece that starts are above different knots
    turn = line.turn[origin] & ~inserted
    turn[1:] |= (above[:, 1:] != above[:, :-1]).any(axis=0) & ~last[1:] & ~last[:-1]
    return Polyline(points.place[:, 0], points.member, last, turn, units.forward(points.state, points.member), rise)


def _drop_empty(line: Polyline) -> Polyline:
    """Return the line without pieces of length 0, and without a point at 0 where nothing turns.

    Points that round to the same number have no piece between them. Where that matters, values show it (`agreement`).
    """
    first = np.concatenate([[True], line.last[:-1]])
    keep = (line.t != 0) | line.turn | first | line.last
    line = line if keep.all() else line.where(keep)
    while True:
        empty = np.flatnonzero((np.diff(line.t) <= 0) & ~line.last[:-1])
        if not len(empty):
            return line
        line.turn[empty + 1] |= line.turn[empty]
        keep = np.ones(len(line.t), dtype=np.bool_)
        keep[empty] = False
        line = line.where(keep)
        line.turn[np.concatenate([[True], line.last[:-1]]) | line.last] = False
