"""y = f(W x + b) for many points at once, and on which side of each knot every unit is: the rule of tolerance.

A unit is *on* a knot where |z - knot| <= tolerance, else below or above it. The tolerance is 512 times the rounding
error of z, estimated from layer to layer as if single errors were independent:

    e_z^2 = W^2 e_x^2 + (eps (|W| max|x| + |b|))^2,        e_y = max|f'| e_z,        e_x = eps max|x| at the input,

with the maximum over all points of the domain. So kinks that coincide but for rounding are one kink; a piece appears
only where some unit is beyond the tolerance; and no value moves by more than the tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plunit.pieces.activation import Activation
from plunit.pieces.arrays import WORD, Bools, Floats, Ints, Words, blocks, pack, unpack

SAFETY = 512.0
CHUNK = 2**17
EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)


def affine(weight: Floats, bias: Floats, rows: Floats, member: Ints) -> Floats:
    """W x + b of rows [n, in], with weight [members, out, in] and bias [members, out] of the member of each row."""
    if len(weight) == 1:
        return np.asarray(rows @ weight[0].T + bias[0])
    return np.asarray(np.einsum("noi,ni->no", weight[member], rows) + bias[member])


def rounding(weight: Floats, bias: Floats, size: Floats, error: Floats) -> Floats:
    """e_z = sqrt(W^2 e_x^2 + (eps (|W| |x| + |b|))^2): the rounding error of z = W x + b, [members, out].

    Args:
        weight: W [members, out, in].
        bias: b [members, out].
        size: max |x| [members, in].
        error: e_x [members, in].
    """
    carried = np.einsum("moi,mi->mo", weight**2, error**2)
    fresh = EPS * (np.einsum("moi,mi->mo", np.abs(weight), size) + np.abs(bias))
    return np.asarray(np.sqrt(carried + fresh**2))


def largest(rows: Floats, member: Ints, members: int) -> Floats:
    """Return the largest |rows[n, k]| of each member, [members, k]."""
    if members == 1:
        return np.asarray(np.abs(rows).max(axis=0, keepdims=True))
    top = np.zeros((members, rows.shape[1]))
    np.maximum.at(top, member, np.abs(rows))
    return top


@dataclass(frozen=True, eq=False)
class Layer:
    """An affine layer and the activation after it; every array starts with the axis of the members."""

    weight: Floats
    bias: Floats
    knots: Floats
    slopes: Floats
    intercepts: Floats
    tolerance: Floats

    @classmethod
    def of(cls, weight: Floats, bias: Floats, activation: Activation, error: Floats | None = None) -> Layer:
        """Take the tolerance from the rounding error of z [members, out]; without it the sides are strict."""
        tolerance = np.zeros_like(bias) if error is None else SAFETY * error + TINY
        return cls(weight, bias, activation.knots, activation.slopes, activation.intercepts, tolerance)

    @property
    def steepest(self) -> Floats:
        """The largest |f'| of each unit, [members, units]."""
        return np.asarray(np.abs(self.slopes).max(axis=-1))

    def forward(self, rows: Floats, member: Ints) -> Floats:
        """f(W x + b) of rows [n, in]."""
        z = affine(self.weight, self.bias, rows, member)
        y = self._of(self.slopes[..., 0], member) * z
        y += self._of(self.intercepts[..., 0], member)
        for j in range(self.knots.shape[-1]):
            piece = self._of(self.slopes[..., j + 1], member) * z
            piece += self._of(self.intercepts[..., j + 1], member)
            np.copyto(y, piece, where=z > self._of(self.knots[..., j], member))
        return np.asarray(y)

    def sides(self, rows: Floats, member: Ints) -> tuple[Words, Words]:
        """Return which knots each row is above, and which it is below, as words [knots * ceil(units / 64), rows]."""
        words = -(-self.bias.shape[1] // WORD)
        above = np.empty((self.knots.shape[-1] * words, len(rows)), dtype=np.uint64)
        below = np.empty_like(above)
        for block in blocks(len(rows), CHUNK // self.bias.shape[1] + 1):
            z = affine(self.weight, self.bias, rows[block], member[block])
            for j in range(self.knots.shape[-1]):
                knot = self.knots[..., j]
                lines = slice(j * words, (j + 1) * words)
                above[lines, block] = pack(z > self._of(knot + self.tolerance, member[block]))
                below[lines, block] = pack(z < self._of(knot - self.tolerance, member[block]))
        return above, below

    def slope(self, above: Words, member: Ints) -> Floats:
        """Return f' [n, units] of pieces that are given by the knots they are above."""
        units = self.bias.shape[1]
        words = -(-units // WORD)
        slope = np.broadcast_to(self._of(self.slopes[..., 0], member), (above.shape[1], units))
        for j in range(self.knots.shape[-1]):
            beyond: Bools = unpack(above[j * words : (j + 1) * words], units)
            slope = np.where(beyond, self._of(self.slopes[..., j + 1], member), slope)
        return slope

    def excess(self, rows: Floats, member: Ints, at: Ints, line: Ints) -> Floats:
        """Return z - knot of row at[i] on line[i]; line = knot * 64 ceil(units / 64) + unit is a bit of `sides`."""
        knot, unit = self.named(line)
        who = member[at] if len(self.weight) > 1 else np.zeros_like(at)
        excess = self.bias[who, unit] - self.knots[who, unit, knot]
        for block in blocks(len(at), CHUNK // rows.shape[1] + 1):
            excess[block] += np.einsum("ni,ni->n", rows[at[block]], self.weight[who[block], unit[block]])
        return excess

    def margin(self, member: Ints, line: Ints) -> Floats:
        """Return the tolerance of each line."""
        who = member if len(self.weight) > 1 else np.zeros_like(line)
        return self.tolerance[who, self.named(line)[1]]

    def named(self, line: Ints) -> tuple[Ints, Ints]:
        """Return (knot, unit) of each line."""
        return np.divmod(line, -(-self.bias.shape[1] // WORD) * WORD)

    def _of(self, array: Floats, member: Ints) -> Floats:
        """Return array [members, units] for rows of these members, so that it broadcasts with [rows, units]."""
        return array[0] if len(array) == 1 else array[member]
