"""z = W x + b and y = f(z) for many points at once, each number with its rounding error: the tolerance rule.

A unit is *on* a knot if |z - knot| is at most 32 e_z, and at most a quarter of the distance between its closest knots.
Otherwise the unit is below or above the knot. The error e_z is tracked from layer to layer, for each point and unit, as
if single errors were independent:

    e_z = sqrt(W^2 (e_x^2 + in (eps x)^2)) + eps |b|,        e_y = |f'(z)| e_z,        e_x = eps |x| at the input.

So an error ends where a unit is flat, and a large weight blurs only the values that depend on it. A unit on a knot is
moved there: z = knot, with the distance as its error. Hence both pieces that meet at a knot have the same value there.
The place of a knot on a steep piece is rounded, and this error does not reach a flat piece after the knot.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plunit.pieces.activation import Activation, at_pieces
from plunit.pieces.arrays import WORD, Floats, Ints, Words, blocks, pack_bits, set_bits, unpack_bits
from plunit.pieces.networks import of_members, times
from plunit.pieces.rounding import EPS, TINY

SAFETY = 32.0
"""Coincident kinks were observed up to 2 e_z apart."""

_CHUNK = 2**16
"""Numbers processed at a time: they and all numbers computed from them fit into the processor's caches."""


def affine_with_error(weight: Floats, bias: Floats, x: Floats, member: Ints) -> Floats:
    """W x + b with its error, [n, 2, out], for x with its error, [n, 2, in]; see `networks.affine`."""
    rows, error = x[:, 0], x[:, 1]
    found = np.empty((len(x), 2, weight.shape[1]))
    np.add(times(weight, rows, member), of_members(bias, member), out=found[:, 0])
    # squares of very large or small numbers overflow or vanish; `unit` and `scale` keep them near 1
    unit = max(float(error.max(initial=0.0)), EPS * float(np.abs(rows).max(initial=0.0)), TINY)
    scale = np.abs(weight).max(axis=2)
    scale[scale == 0] = 1.0
    squares = error / unit
    squares *= squares
    fresh = rows * (EPS / unit * np.sqrt(weight.shape[2]))
    fresh *= fresh
    squares += fresh
    np.sqrt(times((weight / scale[..., None]) ** 2, squares, member), out=found[:, 1])
    found[:, 1] *= of_members(unit * scale, member)
    found[:, 1] += of_members(EPS * np.abs(bias), member)
    return found


@dataclass(frozen=True, eq=False)
class Units:
    """The activation f of a layer; every array starts with the axis of the members, then that of the units.

    A *line* is a unit on one of its knots: line = knot * 64 ceil(units / 64) + unit is a bit of `sides`. `bounds` are
    the knots of `Activation.tables`, so that a z on a knot belongs to the steeper side.
    """

    knots: Floats
    slopes: Floats
    intercepts: Floats
    bounds: Floats

    @classmethod
    def of(cls, f: Activation) -> Units:
        """Return the units of an activation [members, units]; stored once if all members have the same."""
        f = f if f.at_zero.ndim == 2 else f.part(None)
        same = all((part == part[:1]).all() for part in (f.knots, f.slopes, f.at_zero))
        kept = slice(1) if same else slice(None)
        bounds, slopes, intercepts = (table[kept] for table in f.tables)
        return cls(f.knots[kept], slopes, intercepts, bounds)

    def sides(self, state: Floats, member: Ints) -> Words:
        """Return the knots that each z is above, and those that it is below, [2, knots ceil(units / 64), n].

        state: [n, 2, units], z and its error.
        """
        units, knots = self.knots.shape[1:]
        words = -(-units // WORD)
        sides = np.empty((2, knots * words, len(state)), dtype=np.uint64)
        shortest = self._reach.min(initial=np.inf)
        for block in blocks(len(state), _CHUNK // units + 1):
            z, tolerance = state[block, 0], SAFETY * state[block, 1] + TINY
            if tolerance.max(initial=0.0) > shortest:
                np.minimum(tolerance, of_members(self._reach, member[block]), out=tolerance)
            for j in range(knots):
                gap = z - of_members(self.knots[..., j], member[block])
                lines = slice(j * words, (j + 1) * words)
                sides[0, lines, block] = pack_bits(gap > tolerance)
                sides[1, lines, block] = pack_bits(gap < -tolerance)
        return sides

    def settle(self, state: Floats, member: Ints, sides: Words) -> None:
        """Move each unit that is on a knot there, with the distance as its error."""
        row, line = set_bits(~(sides[0] | sides[1]) & self._unit_bits[:, None])
        knot, unit = self.level(member[row], line), self.decode(line)[1]
        state[row, 1, unit] = np.abs(state[row, 0, unit] - knot)
        state[row, 0, unit] = knot

    def forward(self, state: Floats, member: Ints) -> Floats:
        """Return y = f(z) with its error |f'(z)| e_z, at a knot that of the steeper side, [n, 2, units]."""
        z, error = state[:, 0], state[:, 1]
        tables = (of_members(part, member) for part in (self.bounds, self.slopes, self.intercepts))
        slope, intercept = at_pieces(z, *tables)
        return np.stack([slope * z + intercept, np.abs(slope) * error], axis=1)

    def choose(self, part: Floats, above: Words, member: Ints) -> Floats:
        """Return `slopes` or `intercepts` [n, units] of pieces, each given by the knots it is above."""
        units = self.knots.shape[1]
        words = -(-units // WORD)
        found = np.empty((above.shape[1], units))
        found[:] = of_members(part[..., 0], member)
        for j in range(self.knots.shape[-1]):
            beyond = unpack_bits(above[j * words : (j + 1) * words], units)
            np.copyto(found, of_members(part[..., j + 1], member), where=beyond)
        return found

    def level(self, member: Ints, line: Ints) -> Floats:
        """Return the knot of each line."""
        knot, unit = self.decode(line)
        return np.asarray(self.knots[member if len(self.knots) > 1 else 0, unit, knot])

    def decode(self, line: Ints) -> tuple[Ints, Ints]:
        """Return (knot, unit) of each line."""
        return np.divmod(line, -(-self.knots.shape[1] // WORD) * WORD)

    @cached_property
    def _unit_bits(self) -> Words:
        """The bits of each word that stand for a unit."""
        units, knots = self.knots.shape[1:]
        return np.tile(pack_bits(np.ones((1, units), dtype=np.bool_))[:, 0], knots)

    @cached_property
    def _reach(self) -> Floats:
        """A quarter of the distance between the closest knots of a unit, so that no z is on two knots."""
        with np.errstate(invalid="ignore"):
            distance = np.diff(self.knots)
        return np.asarray(np.where(distance > 0, distance / 4, np.inf).min(axis=-1, initial=np.inf))
