"""Squared errors of continuous piecewise-linear fits from running sums, without reading the data again.

On a segment [p, q] with the values u at p and v at q, and s = (x - p) / (q - p),

    sum w (y - (1 - s) u - s v)^2 = A u^2 + 2 B u v + C v^2 - 2 D u - 2 E v + sum w y^2
    A = sum w (1 - s)^2,  B = sum w s (1 - s),  C = sum w s^2,  D = sum w (1 - s) y,  E = sum w s y.

Running sums of w, w x, w x^2, w y and w x y give them for any segment. So a fit costs the same for ten points and for
ten million, and many fits are computed at once.

The least error of all curves up to a knot is a parabola a v^2 - 2 b v + c of the value v there (without sum w y^2).
One more segment gives another parabola: `extended`. Two of them, from the left and from the right, give the error of a
whole curve for any place of one knot: `joined`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from plunit.pieces.arrays import Floats

RIDGE = 1e-12
"""Added to the diagonal of the equations, as a part of the weight of all points: a segment may hold no point."""


class Parts(NamedTuple):
    """A, B, C, D, E of segments; arrays [...] or numbers."""

    a: Any
    b: Any
    c: Any
    d: Any
    e: Any

    def reversed(self) -> Parts:
        """Return the parts with the two ends exchanged."""
        return Parts(self.c, self.b, self.a, self.e, self.d)


class Parabola(NamedTuple):
    """The least error a v^2 - 2 b v + c of the curves that have the value v at a knot; arrays [...] or numbers."""

    a: Any
    b: Any
    c: Any


@dataclass(frozen=True, eq=False)
class Sums:
    """Sorted x in [-1, 1] [n], weights, and running sums [5, n + 1] of w, w x, w x^2, w y, w x y; sum w y^2.

    `below` is x, with the largest x a little lowered, so that below < t holds for all points at the last knot t.
    """

    x: Floats
    below: Floats
    w: Floats
    running: Floats
    total: float

    @classmethod
    def of(cls, x: Floats, y: Floats, w: Floats) -> Sums:
        """Return the sums of sorted data."""
        running = np.zeros((5, len(x) + 1))
        np.cumsum([w, w * x, w * x * x], axis=1, out=running[:3, 1:])
        below = np.minimum(x, np.nextafter(x[-1], -np.inf))
        return cls(x, below, w, running, 0.0).with_y(y)

    def with_y(self, y: Floats) -> Sums:
        """Return the sums for other y."""
        running, wy = self.running.copy(), self.w * y
        np.cumsum([wy, wy * self.x], axis=1, out=running[3:, 1:])
        return replace(self, running=running, total=float(wy @ y))

    @property
    def ridge(self) -> float:
        """What is added to the diagonal."""
        return RIDGE * float(self.running[0, -1])

    def up_to(self, t: Floats) -> Floats:
        """Return the sums over x < t, [5, ...]."""
        return self.running.take(self.below.searchsorted(t), axis=1)

    def between(self, p: Floats, q: Floats) -> Parts:
        """Return the parts of segments [p, q], of shapes that can be broadcast."""
        axes = max(p.ndim, q.ndim)
        p, q = (t.reshape((1,) * (axes - t.ndim) + t.shape) for t in (p, q))
        return combined(p, q, self.up_to(q) - self.up_to(p))

    def parts(self, knots: Floats) -> Parts:
        """Return the parts of the segments between knots [..., k + 1]."""
        ends = self.up_to(knots)
        return combined(knots[..., :-1], knots[..., 1:], ends[..., 1:] - ends[..., :-1])


def combined(p: Floats, q: Floats, sums: Floats) -> Parts:
    """Return the parts of segments [p, q] from the sums over their points, [5, ...]."""
    s0, s1, s2, y0, y1 = sums
    scale = 1 / (q - p)
    s, sy = (s1 - p * s0) * scale, (y1 - p * y0) * scale
    ss = np.maximum((s2 - p * (s1 + s1 - p * s0)) * (scale * scale), 0.0)
    return Parts(np.maximum(s0 - s - s + ss, 0.0), s - ss, ss, y0 - sy, sy)


def extended(parabola: Parabola, parts: Parts, ridge: float) -> Parabola:
    """Return the parabola at the other end of one more segment, with the value at this end at its best."""
    pivot, slope = 1 / (parabola.a + parts.a + ridge), parabola.b + parts.d
    turn = parts.b * pivot
    return Parabola(parts.c - parts.b * turn, parts.e - turn * slope, parabola.c - slope * slope * pivot)


def joined(left: Parabola, right: Parabola, ridge: float) -> Floats:
    """Return the least error, without sum w y^2, of curves made of two parts that meet at a knot."""
    return np.asarray(left.c + right.c - (left.b + right.b) ** 2 / (left.a + right.a + ridge))


class Chains(NamedTuple):
    """For each knot of one curve the parabolas of the parts before and after it, [3, k + 1]; the error of the curve."""

    before: Floats
    behind: Floats
    error: float


def chains(sums: Sums, knots: Floats) -> Chains:
    """Return the parabolas at the knots [k + 1] of one curve."""
    # numbers, because arrays without axes are ten times slower
    segments = [Parts(*numbers) for numbers in np.transpose(sums.parts(knots)).tolist()]
    ridge = sums.ridge
    before, behind = [Parabola(ridge, 0.0, 0.0)], [Parabola(ridge, 0.0, 0.0)]
    for first, last in zip(segments, reversed(segments), strict=True):
        before.append(extended(before[-1], first, ridge))
        behind.append(extended(behind[-1], last.reversed(), ridge))
    end = before[-1]
    error = sums.total + end.c - end.b * end.b / (end.a + ridge)
    return Chains(np.array(before).T, np.array(behind[::-1]).T, error)
