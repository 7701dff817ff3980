"""Points of a line or a plane before an activation: the value of each unit, and its side of each knot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from plunit.pieces.arrays import WORD, Bools, Floats, Ints, Words, blocks, runs, set_bits
from plunit.pieces.exact.limits import check_points
from plunit.pieces.exact.tolerance import SAFETY, Units
from plunit.pieces.rounding import EPS


@dataclass(frozen=True, eq=False)
class Points:
    """Points of the domain before an activation, each decided once.

    place: [n, d]; member: [n].
    state: [2, units] for each point, z and its error; a unit on a knot has been moved there (see `tolerance`).
    sides: [2, words, n], the knots that each point is above, and those that it is below, as bits.
    """

    place: Floats
    state: Floats
    member: Ints
    sides: Words

    @classmethod
    def at(cls, units: Units, place: Floats, state: Floats, member: Ints) -> Points:
        """Return points with their sides decided; `state` is changed in place."""
        sides = units.sides(state, member)
        units.settle(state, member, sides)
        return cls(place, state, member, sides)

    def __len__(self) -> int:
        return len(self.place)

    def take(self, index: Ints | slice) -> Points:
        """Return the points with these indices."""
        return Points(self.place[index], self.state[index], self.member[index], self.sides[:, :, index])


def join_points(*parts: Points) -> Points:
    """Return the points of all parts, in order."""
    return Points(
        np.concatenate([part.place for part in parts]),
        np.concatenate([part.state for part in parts]),
        np.concatenate([part.member for part in parts]),
        np.concatenate([part.sides for part in parts], axis=2),
    )


class Pool:
    """Points in arrays that grow: old points are copied only when the capacity is exhausted."""

    def __init__(self, points: Points) -> None:
        self._room, self._count = points, len(points)

    @property
    def points(self) -> Points:
        """The points so far."""
        return self._room.take(slice(self._count))

    def append(self, new: Points) -> None:
        """Append new points to the old ones."""
        old, start, self._count = self.points, self._count, self._count + len(new)
        if self._count > len(self._room):
            # unused memory costs nothing
            room = 4 * self._count
            rows = (np.empty((room, *part.shape[1:]), part.dtype) for part in (old.place, old.state, old.member))
            place, state, member = rows
            self._room = Points(place, state, member, np.empty((*old.sides.shape[:2], room), dtype=np.uint64))
            self._write(old, slice(start))
        self._write(new, slice(start, self._count))

    def _write(self, points: Points, at: slice) -> None:
        room = self._room
        room.place[at], room.state[at], room.member[at] = points.place, points.state, points.member
        room.sides[:, :, at] = points.sides


def cuts(
    units: Units, points: Points, tail: Ints, head: Ints, check: Callable[[int], None]
) -> tuple[list[Points], Ints]:
    """Return new points in parts, and the segment of each, in order along the segments tail[i] -> head[i].

    With the new points in place, no unit is below a knot at one end of a segment and above it at the other. `check` is
    called with the number of new points so far, and raises an error if it is too large.
    """
    parts, segments, total = [], [np.zeros(0, dtype=np.int64)], 0
    for block in blocks(len(tail), 2**21 // max(points.sides.shape[1] * WORD, 1) + 1):
        new, segment = _cuts(units, points, tail[block], head[block])
        parts.append(new)
        segments.append(segment + block.start)
        total += len(new)
        check(total)
        check_points(len(points) + total, 2 * (points.state.shape[2] + points.sides.shape[1]))
    return parts, np.concatenate(segments)


def _cuts(units: Units, points: Points, tail: Ints, head: Ints) -> tuple[Points, Ints]:
    parts = _Segments(np.arange(len(tail)), tail, head, np.tile([0.0, 1.0], (len(tail), 1)))
    found: list[tuple[Ints, Floats, Points]] = []
    while True:
        part, line, weights, crowded = _sharpest(units, points, parts)
        new = _between(units, points, parts.tail[part], parts.head[part], weights, line)
        if not found and not crowded.any():
            return new, part
        rank = _ranks(part, parts.span)
        found.append((parts.owner[part], rank, new))
        if not crowded.any():
            break
        points, parts = _subdivide(points, parts, crowded, part, rank, new)
    owners, ranks, cut_points = zip(*found, strict=True)
    segment = np.concatenate(owners)
    order = np.lexsort((np.concatenate(ranks), segment))
    return join_points(*cut_points).take(order), segment[order]


@dataclass(frozen=True, eq=False)
class _Segments:
    """Parts of segments: part i runs from point tail[i] to head[i]; its points get ranks in span[i] of owner[i]."""

    owner: Ints
    tail: Ints
    head: Ints
    span: Floats


def _ranks(part: Ints, span: Floats) -> Floats:
    """Return increasing numbers within span [parts, 2] for new points in order, part after part."""
    count = np.bincount(part, minlength=len(span))
    owner, rank = runs(count)
    return np.asarray(span[owner, 0] + (rank + 1) / (count[owner] + 1) * (span[owner, 1] - span[owner, 0]))


def _sharpest(units: Units, points: Points, parts: _Segments) -> tuple[Ints, Ints, Floats, Bools]:
    """Return part, line and weights (1 - s, s) of the sharpest cut of each cluster, and which parts are crowded.

    The cuts are in order. A part is crowded if one of its clusters has several cuts.
    """
    tail, head = parts.tail, parts.head
    start, stop = points.sides[:, :, tail], points.sides[:, :, head]
    part, line = set_bits(start[0] & stop[1] | start[1] & stop[0])
    knot, unit = units.level(points.member[tail[part]], line), units.decode(line)[1]
    (back, back_error), (front, front_error) = (points.state[end[part], :, unit].T for end in (tail, head))
    back, front = np.abs(back - knot), np.abs(front - knot)
    weights = np.stack([front, back]) / (back + front)
    blur = SAFETY * (weights[0] * back_error + weights[1] * front_error) / (back + front) + 4 * EPS
    order = np.lexsort((weights[1], part))
    part, line, weights, blur = part[order], line[order], weights[:, order], blur[order]
    s = weights[1]
    apart = (part[1:] != part[:-1]) | (s[1:] - s[:-1] > np.maximum(blur[1:], blur[:-1]))
    crowded = np.zeros(len(tail), dtype=np.bool_)
    if apart.all():
        return part, line, weights, crowded
    first = np.concatenate([[True], apart])
    sharpest = np.lexsort((blur, np.cumsum(first)))[first]
    crowded[part[~first]] = True
    return part[sharpest], line[sharpest], weights[:, sharpest], crowded


def _between(units: Units, points: Points, tail: Ints, head: Ints, weights: Floats, line: Ints) -> Points:
    """Return the points (1 - s) tail + s head, each exactly on its line.

    A point is above or below a line only if an end of its segment is. So if both ends are on a line, all points between
    them are on it, despite rounding. Therefore splitting always ends.
    """
    # with both s and 1 - s given, nothing cancels: near 0, and near either end, a place is exact up to rounding
    back, front = weights[:, :, None]
    start, stop = points.place[tail], points.place[head]
    place = np.minimum(np.maximum(back * start + front * stop, np.minimum(start, stop)), np.maximum(start, stop))
    state, other = points.state[tail], points.state[head]
    state *= back[..., None]
    other *= front[..., None]
    state += other
    member, column = points.member[tail], np.arange(len(line))
    unit = units.decode(line)[1]
    state[column, 0, unit], state[column, 1, unit] = units.level(member, line), 0.0
    sides = units.sides(state, member)
    sides &= points.sides[:, :, tail] | points.sides[:, :, head]
    word, bit = np.divmod(line, WORD)
    sides[:, word, column] &= ~(np.uint64(1) << bit.astype(np.uint64))
    units.settle(state, member, sides)
    return Points(place, state, member, sides)


def _subdivide(
    points: Points, parts: _Segments, crowded: Bools, part: Ints, ranks: Floats, new: Points
) -> tuple[Points, _Segments]:
    """Return the crowded parts, divided at the new points; `part` is in order."""
    inside = np.flatnonzero(crowded[part])
    old = np.flatnonzero(crowded)
    pool = join_points(points.take(parts.tail[old]), points.take(parts.head[old]), new.take(inside))
    where = np.concatenate([parts.span[old, 0], parts.span[old, 1], ranks[inside]])
    rank = (np.cumsum(crowded) - 1)[part[inside]]
    point = 2 * len(old) + np.arange(len(inside))
    leads = np.diff(rank, prepend=-1) != 0
    ends = np.diff(rank, append=len(old)) != 0
    tail = np.concatenate([np.where(leads, rank, point - 1), point[ends]])
    head = np.concatenate([point, len(old) + rank[ends]])
    owner = np.concatenate([parts.owner[part[inside]], parts.owner[part[inside][ends]]])
    return pool, _Segments(owner, tail, head, np.stack([where[tail], where[head]], axis=1))
