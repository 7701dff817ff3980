"""Piecewise-linear functions with jumps: the values that a graph computes for each unit between two affine layers.

Programs write PLU in many ways: by Clip, by Where, by Sign and Abs. Each step is a `Wave`, so no list of forms is
needed. Unlike an `Activation`, a wave may jump; only the last step must be continuous, and `Wave.activation` returns
it. A wave is never evaluated: it has no values at single points, such as sign(0). `comparing` evaluates the activation
and compares it with the graph at such points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit.pieces.activation import Activation
from plunit.pieces.arrays import Bools, Floats
from plunit.pieces.graphs import check_bytes

_NEAR = 1e-6  # functions that differ by at most this fraction are equal up to rounding in float32
_ROUNDING = 2.0**-44  # jumps up to this fraction of the terms are rounding errors of waves, which use float64


@dataclass(frozen=True, eq=False)
class Wave:
    """f(z) = slopes[u, j] z + intercepts[u, j] between knots[u, j - 1] and knots[u, j].

    knots: [units, k], in order, +inf where a unit has fewer; slopes and intercepts: [units, k + 1]. If all units have
    the same function, it is stored once.
    """

    knots: Floats
    slopes: Floats
    intercepts: Floats

    @classmethod
    def line(cls, slope: Any, intercept: Any) -> Wave:
        """Return slope z + intercept, numbers or arrays [units]."""
        slope, intercept = np.broadcast_arrays(*(np.atleast_1d(np.asarray(n, np.float64)) for n in (slope, intercept)))
        return cls(np.zeros((len(slope), 0)), slope[:, None], intercept[:, None])

    @property
    def nbytes(self) -> int:
        """The memory of its arrays."""
        return self.knots.nbytes + self.slopes.nbytes + self.intercepts.nbytes

    def __add__(self, other: Wave) -> Wave:
        a, b = _join(self, other)
        return _tidy(Wave(a.knots, a.slopes + b.slopes, a.intercepts + b.intercepts))

    def __neg__(self) -> Wave:
        return Wave(self.knots, -self.slopes, -self.intercepts)

    def __sub__(self, other: Wave) -> Wave:
        return self + -other

    def __mul__(self, other: Wave) -> Wave:
        a, b = _join(self, other)
        if (a.slopes * b.slopes).any():
            raise ValueError("two functions of the input are multiplied, which is not piecewise-linear")
        slopes = a.slopes * b.intercepts + a.intercepts * b.slopes
        return _tidy(Wave(a.knots, slopes, a.intercepts * b.intercepts))

    def __gt__(self, other: Wave) -> Wave:
        """1 where f > g, else 0; ValueError if the two are equal on a piece up to rounding, but not exactly."""
        a, b, greater = _compare(self, other)
        _check_tie(a, b)
        return _tidy(Wave(a.knots, np.zeros(greater.shape), greater.astype(np.float64)))

    def maximum(self, other: Wave) -> Wave:
        """max(f, g)."""
        a, b, greater = _compare(self, other)
        return _pick(greater, a, b)

    def minimum(self, other: Wave) -> Wave:
        """min(f, g)."""
        a, b, greater = _compare(self, other)
        return _pick(greater, b, a)

    def where(self, yes: Wave, no: Wave) -> Wave:
        """Return `yes` where this is 1, and `no` where it is 0."""
        mask, a, b = _join(self, yes, no)
        return _pick(mask.intercepts > 0.5, a, b)

    def compose(self, slope: Floats, shift: Floats) -> Wave:
        """f(slope z + shift), for positive slopes [units or 1]."""
        slope, shift = slope[:, None], shift[:, None]
        # no knot is -0.0
        return Wave((self.knots - shift) / slope + 0.0, self.slopes * slope, self.intercepts + self.slopes * shift)

    def activation(self, kind: type[np.floating[Any]]) -> tuple[Activation, Floats]:
        """Return this function as an activation, and a bound on their difference, [units]; ValueError if it jumps.

        Between pieces, gaps that rounding one constant of this kind explains are allowed, as for 0.9 = (1 - alpha) c.
        The activation is continuous, so the two differ by the sum of the gaps between 0 and z.
        """
        jumps, left = self._jumps(kind), self.knots < 0
        home = np.sum(left, axis=1, keepdims=True)
        at_zero = np.take_along_axis(self.intercepts, home, axis=1)[:, 0]
        same = len(self.knots) == 1
        f = Activation(*(part[0] if same else part for part in (self.knots, self.slopes, at_zero)))
        return f, np.maximum(*(np.sum(jumps, axis=1, where=side) for side in (left, ~left)))

    def _jumps(self, kind: type[np.floating[Any]]) -> Floats:
        """Return a bound on the jump at each knot; ValueError if rounding one constant of this kind cannot cause it.

        The terms of a jump are slope * knot and the intercept on both sides. A constant is a factor of some of them,
        and rounding it changes each by at most eps / 2 of its size; rounding the knot changes the difference of two.
        """
        knots = np.where(np.isfinite(self.knots), self.knots, 0.0)
        (a, b), (c, d) = ((self.slopes[:, i] * knots, self.intercepts[:, i]) for i in (slice(None, -1), slice(1, None)))
        jumps, size = c + d - (a + b), np.maximum.reduce([np.abs(term) for term in (a, b, c, d, c - a)])
        noise = _ROUNDING * size
        jumps[~np.isfinite(self.knots) | (np.abs(jumps) <= noise)] = 0.0
        wrong = ~(np.abs(jumps) <= np.finfo(kind).eps / 2 * size + noise)
        if wrong.any():
            where = np.argmax(wrong)
            jump, knot = float(jumps.flat[where]), float(knots.flat[where])
            raise ValueError(
                f"the function of a unit jumps by {jump:.6g} at {knot:.6g}; only continuous functions are supported"
            )
        return np.where(jumps == 0, 0.0, np.abs(jumps) + noise)


def _ends(knots: Floats) -> tuple[Floats, Floats]:
    """Return the lower and the upper end of each piece, [units, k + 1]."""
    ends = np.pad(knots, ((0, 0), (1, 1)), constant_values=((0, 0), (-np.inf, np.inf)))
    return ends[:, :-1], ends[:, 1:]


def _on(knots: Floats, wave: Wave) -> Wave:
    """Return a wave on these knots, which include its own; pieces may be empty, or continue after a knot."""
    # some arrays of this size are needed at once, and one with an element for each pair of knots
    size = len(knots) * (knots.shape[1] + 1)
    check_bytes("a function of the units", size * max(128, wave.knots.shape[1]))
    low, _ = _ends(knots)
    # the piece that starts at a knot comes after all knots up to it
    piece = np.sum(wave.knots[:, None, :] <= low[:, :, None], axis=2)
    spread = (np.broadcast_to(part, (len(knots), part.shape[1])) for part in (wave.slopes, wave.intercepts))
    return Wave(knots, *(np.take_along_axis(part, piece, axis=1) for part in spread))


def _join(*waves: Wave) -> list[Wave]:
    """Return the waves on the knots of all of them."""
    units = max(len(wave.knots) for wave in waves)
    all_knots = [np.broadcast_to(wave.knots, (units, wave.knots.shape[1])) for wave in waves]
    knots = np.sort(np.concatenate(all_knots, axis=1), axis=1)
    return [_on(knots, wave) for wave in waves]


def _compare(one: Wave, other: Wave) -> tuple[Wave, Wave, Bools]:
    """Return two waves on knots between which they do not cross, and the pieces on which the first is greater."""
    a, b = _join(one, other)
    low, high = _ends(a.knots)
    slope, rise = a.slopes - b.slopes, b.intercepts - a.intercepts
    root = np.divide(rise, slope, out=np.full_like(rise, np.inf), where=slope != 0)
    root = np.where((low < root) & (root < high), root + 0.0, np.inf)  # no knot is -0.0
    knots = np.sort(np.concatenate([a.knots, root], axis=1), axis=1)
    a, b = _on(knots, a), _on(knots, b)
    inside = _inside(knots)
    return a, b, (a.slopes - b.slopes) * inside > b.intercepts - a.intercepts


def _check_tie(a: Wave, b: Wave) -> None:
    """Raise ValueError if two functions are equal on a piece only up to rounding: float32 would decide differently."""
    low, high = _ends(a.knots)
    near, tie = low < high, np.ones(a.slopes.shape, dtype=bool)
    for one, other in ((a.slopes, b.slopes), (a.intercepts, b.intercepts)):
        near &= np.isclose(one, other, rtol=_NEAR, atol=0)
        tie &= one == other
    if (near & ~tie).any():
        raise ValueError(
            "the two functions compared are equal up to rounding, which would decide the comparison; leave the "
            "comparison out"
        )


def _inside(knots: Floats) -> Floats:
    """Return a point inside each piece, or 0 where a piece is empty or has no ends."""
    low, high = _ends(knots)
    left, right = (np.where(np.isfinite(end), end, 0.0) for end in (low, high))
    choices = [left / 2 + right / 2, left + 1 + np.abs(left), right - 1 - np.abs(right)]
    bounded = [np.isfinite(low) & np.isfinite(high), np.isfinite(low), np.isfinite(high)]
    return np.select(bounded, choices, 0.0)


def _pick(first: Bools, a: Wave, b: Wave) -> Wave:
    """Return the pieces of a where `first`, else those of b."""
    return _tidy(Wave(a.knots, np.where(first, a.slopes, b.slopes), np.where(first, a.intercepts, b.intercepts)))


def _tidy(wave: Wave) -> Wave:
    """Return the same function without empty pieces and without knots where nothing changes."""
    low, high = _ends(wave.knots)
    keep = np.zeros(wave.knots.shape, dtype=bool)
    slope, intercept = wave.slopes[:, 0].copy(), wave.intercepts[:, 0].copy()
    for j in range(wave.knots.shape[1]):
        s, b = wave.slopes[:, j + 1], wave.intercepts[:, j + 1]
        keep[:, j] = ((s != slope) | (b != intercept)) & (low[:, j + 1] < high[:, j + 1])
        slope, intercept = np.where(keep[:, j], s, slope), np.where(keep[:, j], b, intercept)
    count = int(keep.sum(axis=1).max(initial=0))
    order = np.argsort(~keep, axis=1, kind="stable")[:, :count]
    kept = np.take_along_axis(keep, order, axis=1)
    knots = np.where(kept, np.take_along_axis(wave.knots, order, axis=1), np.inf)

    def pieces(part: Floats, last: Floats) -> Floats:
        after = np.where(kept, np.take_along_axis(part, order + 1, axis=1), last[:, None])
        return np.concatenate([part[:, :1], after], axis=1)

    return Wave(knots, pieces(wave.slopes, slope), pieces(wave.intercepts, intercept))
