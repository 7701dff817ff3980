"""Points of a line or of a plane before an activation: the value of each unit, and its side of each knot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plunit.pieces.arrays import Floats, Ints, Words
from plunit.pieces.layer import Units


@dataclass(frozen=True, eq=False)
class Points:
    """Points of the domain before an activation, decided once.

    place: [n, d]; member: [n].
    state: [2, units] for each point, z and its error; a unit on a knot has been put there (see `layer`).
    sides: [2, words, n], the knots that each point is above, and those that it is below, as bits.
    """

    place: Floats
    state: Floats
    member: Ints
    sides: Words

    @classmethod
    def at(cls, units: Units, place: Floats, state: Floats, member: Ints) -> Points:
        """Decide the sides of points; `state` is changed in place."""
        sides = units.sides(state, member)
        units.settle(state, member, sides)
        return cls(place, state, member, sides)

    def __len__(self) -> int:
        return len(self.place)

    def take(self, index: Ints | slice) -> Points:
        """Return the points with these indices."""
        return Points(self.place[index], self.state[index], self.member[index], self.sides[:, :, index])


def joined(*parts: Points) -> Points:
    """Return all points, one part after the other."""
    return Points(
        np.concatenate([part.place for part in parts]),
        np.concatenate([part.state for part in parts]),
        np.concatenate([part.member for part in parts]),
        np.concatenate([part.sides for part in parts], axis=2),
    )


class Pool:
    """Points that grow in place: the old ones are copied only when the room for them is used up."""

    def __init__(self, points: Points) -> None:
        self._room, self._count = points, len(points)

    @property
    def points(self) -> Points:
        """The points so far."""
        return self._room.take(slice(self._count))

    def append(self, new: Points) -> None:
        """Put new points after the old ones."""
        old, start, self._count = self.points, self._count, self._count + len(new)
        if self._count > len(self._room):
            # room that is not used costs nothing
            room = 4 * self._count
            self._room = Points(
                np.empty((room, old.place.shape[1])),
                np.empty((room, *old.state.shape[1:])),
                np.empty(room, dtype=np.int64),
                np.empty((*old.sides.shape[:2], room), dtype=np.uint64),
            )
            self._put(old, slice(start))
        self._put(new, slice(start, self._count))

    def _put(self, points: Points, at: slice) -> None:
        room = self._room
        room.place[at], room.state[at], room.member[at] = points.place, points.state, points.member
        room.sides[:, :, at] = points.sides
