"""Cut straight segments where a unit crosses a knot strictly inside: the one step that curves and cells share.

Along a segment z is affine, so from z_0 below to z_1 above a knot it meets the knot at s = (knot - z_0) / (z_1 - z_0).
A segment end that is on the knot (see `layer`) makes no cut: so a cut is never closer to an end than rounding can tell.
Of cuts closer to one another than that, the sharpest (steepest against its tolerance) is made, and what is left is
looked at again with its ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from plunit.pieces.arrays import WORD, Bools, Floats, Ints, Words, blocks, set_bits
from plunit.pieces.layer import Layer

MEMORY = 2**27


@dataclass(frozen=True, eq=False)
class Points:
    """Points of the domain: place [n, d], what the layer gets there [n, in], their member, and the sides [words, n]."""

    place: Floats
    rows: Floats
    member: Ints
    above: Words
    below: Words

    @classmethod
    def at(cls, layer: Layer, place: Floats, rows: Floats, member: Ints) -> Points:
        """Decide the sides of new points."""
        return cls(place, rows, member, *layer.sides(rows, member))

    def __len__(self) -> int:
        return len(self.place)

    def take(self, index: Ints) -> Points:
        """Return the points with these indices."""
        sides = self.above[:, index], self.below[:, index]
        return Points(self.place[index], self.rows[index], self.member[index], *sides)


def joined(*parts: Points) -> Points:
    """Return all points, one part after the other."""
    return Points(
        np.concatenate([part.place for part in parts]),
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.member for part in parts]),
        np.concatenate([part.above for part in parts], axis=1),
        np.concatenate([part.below for part in parts], axis=1),
    )


def check_memory(count: int, like: Points) -> None:
    """Raise ValueError if so many points with such rows and sides need more than 1 GB."""
    if count * (like.rows.shape[1] + 2 * len(like.above)) > MEMORY:
        raise ValueError(
            f"{count} points at once, with {like.rows.shape[1]} inputs and {len(like.above) * WORD} knots each, need "
            "more than 1 GB; take a smaller domain or a narrower network"
        )


class Pool:
    """Points that grow in place: the old ones are copied only when the room for them doubles."""

    def __init__(self, points: Points) -> None:
        self._room, self._count = points, len(points)

    @property
    def points(self) -> Points:
        """The points so far."""
        room, n = self._room, self._count
        return Points(room.place[:n], room.rows[:n], room.member[:n], room.above[:, :n], room.below[:, :n])

    def append(self, new: Points) -> None:
        """Put new points after the old ones."""
        start, self._count = self._count, self._count + len(new)
        check_memory(self._count, new)
        if self._count > len(self._room):
            self._room = joined(self._room, self._room, new)
        room, fresh = self._room, slice(start, self._count)
        room.place[fresh], room.rows[fresh], room.member[fresh] = new.place, new.rows, new.member
        room.above[:, fresh], room.below[:, fresh] = new.above, new.below


def cuts(layer: Layer, points: Points, tail: Ints, head: Ints, room: int) -> tuple[list[Points], Ints]:
    """Return new points in parts, and the segment of each, in order along the segments tail[i] -> head[i].

    With the new points in place no unit is below a knot at one end of a segment and above it at the other. More than
    `room` of them are an error.
    """
    parts, segments, total = [], [np.zeros(0, dtype=np.int64)], 0
    for block in blocks(len(tail), 2**21 // max(len(points.above) * WORD, 1)):
        new, segment = _cuts(layer, points, tail[block], head[block])
        parts.append(new)
        segments.append(segment + block.start)
        total += len(new)
        if total > room:
            raise Crowded
    return parts, np.concatenate(segments)


class Crowded(ValueError):
    """There are more pieces than there is room for."""


@contextmanager
def limited(limit: int) -> Iterator[None]:
    """Name the limit in the error when there is no more room."""
    try:
        yield
    except Crowded:
        raise ValueError(f"more than limit={limit} pieces; take a smaller domain, or raise limit") from None


def _cuts(layer: Layer, points: Points, tail: Ints, head: Ints) -> tuple[Points, Ints]:
    parts = _Segments(np.arange(len(tail)), tail, head, np.tile([0.0, 1.0], (len(tail), 1)))
    found = []
    while True:
        part, line, s, crowded = _sharpest(layer, points, parts)
        new = _between(layer, points, parts.tail[part], parts.head[part], s, line)
        span = parts.span[part]
        s = span[:, 0] + s * (span[:, 1] - span[:, 0])
        found.append((parts.owner[part], s, new))
        if not crowded.any():
            break
        points, parts = _subdivided(points, parts, crowded, part, s, new)
    owners, places, made = zip(*found, strict=True)
    if len(found) == 1:
        return made[0], owners[0]
    segment = np.concatenate(owners)
    order = np.lexsort((np.concatenate(places), segment))
    return joined(*made).take(order), segment[order]


@dataclass(frozen=True, eq=False)
class _Segments:
    """Parts of segments: part i runs from point tail[i] to head[i], over the range [s_0, s_1] of segment owner[i]."""

    owner: Ints
    tail: Ints
    head: Ints
    span: Floats


def _sharpest(layer: Layer, points: Points, parts: _Segments) -> tuple[Ints, Ints, Floats, Bools]:
    """Return part, line and s of the sharpest cut of every cluster, in order, and which parts have crowded clusters."""
    tail, head = parts.tail, parts.head
    opposite = points.above[:, tail] & points.below[:, head] | points.below[:, tail] & points.above[:, head]
    part, line = set_bits(opposite)
    start = layer.excess(points.rows, points.member, tail[part], line)
    drop = start - layer.excess(points.rows, points.member, head[part], line)
    s = start / drop
    blur = layer.margin(points.member[tail[part]], line) / np.abs(drop)
    order = np.lexsort((s, part))
    part, line, s, blur = part[order], line[order], s[order], blur[order]
    apart = (part[1:] != part[:-1]) | (s[1:] - s[:-1] > np.maximum(blur[1:], blur[:-1]))
    first = np.concatenate([[True], apart])[: len(part)]
    cluster = np.cumsum(first)
    sharpest = np.lexsort((blur, cluster))[first]
    crowded = np.zeros(len(tail), dtype=np.bool_)
    crowded[part[~first]] = True
    return part[sharpest], line[sharpest], s[sharpest], crowded


def _between(layer: Layer, points: Points, tail: Ints, head: Ints, s: Floats, line: Ints) -> Points:
    """Return the points at tail + s (head - tail), each exactly on its line.

    A point is above or below a line only if an end of its segment is: so a line through both ends holds all points
    between them, whatever rounding says, and splitting always ends.
    """
    check_memory(len(line), points)
    place, rows = (start[tail] + s[:, None] * (start[head] - start[tail]) for start in (points.place, points.rows))
    new = Points.at(layer, place, rows, points.member[tail])
    new.above[:] &= points.above[:, tail] | points.above[:, head]
    new.below[:] &= points.below[:, tail] | points.below[:, head]
    word, bit = np.divmod(line, WORD)
    keep = ~(np.uint64(1) << bit.astype(np.uint64))
    column = np.arange(len(line))
    new.above[word, column] &= keep
    new.below[word, column] &= keep
    return new


def _subdivided(
    points: Points, parts: _Segments, crowded: Bools, part: Ints, s: Floats, new: Points
) -> tuple[Points, _Segments]:
    """Return the crowded parts as the parts between their ends and the new points; `part` and `s` are in order."""
    inside = np.flatnonzero(crowded[part])
    old = np.flatnonzero(crowded)
    pool = joined(points.take(parts.tail[old]), points.take(parts.head[old]), new.take(inside))
    where = np.concatenate([parts.span[old, 0], parts.span[old, 1], s[inside]])
    rank = (np.cumsum(crowded) - 1)[part[inside]]
    point = 2 * len(old) + np.arange(len(inside))
    leads = np.diff(rank, prepend=-1) != 0
    ends = np.diff(rank, append=len(old)) != 0
    tail = np.concatenate([np.where(leads, rank, point - 1), point[ends]])
    head = np.concatenate([point, len(old) + rank[ends]])
    owner = np.concatenate([parts.owner[part[inside]], parts.owner[part[inside][ends]]])
    return pool, _Segments(owner, tail, head, np.stack([where[tail], where[head]], axis=1))
