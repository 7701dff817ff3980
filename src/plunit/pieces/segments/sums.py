"""The data of a least-squares fit, and the squared errors of segments from running sums of the data.

Data are sorted, and scaled to units in which squares keep their digits. On a segment [p, q] with the values u at p and
v at q, and s = (x - p) / (q - p),

    sum w (y - (1 - s) u - s v)^2 = A u^2 + 2 B u v + C v^2 - 2 D u - 2 E v + sum w y^2
    A = sum w (1 - s)^2,  B = sum w s (1 - s),  C = sum w s^2,  D = sum w (1 - s) y,  E = sum w s y.

Running sums of w, w x, w x^2, w y and w x y give A to E for any segment. So a fit costs the same for ten points and for
ten million, and many fits are computed at once.

The least error of all curves up to a knot is a parabola a v^2 - 2 b v + c of the value v there (without sum w y^2).
One more segment gives another parabola (`extend`). Two of them, from the left and from the right, give the error of a
whole curve for any place of one knot (`join_parabolas`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from plunit.base.ranges import as_count
from plunit.pieces.arrays import Floats

_MANY = 300
"""Maximum number of segments, unless there is one between each pair of neighbouring points."""

LEAST = 1e-150
"""The smallest span of x: squares of smaller numbers may underflow, and those of their reciprocals overflow."""

RIDGE = 1e-12
"""Added to the diagonal of the equations, as a fraction of the total weight, because a segment may hold no point."""


class SortedData(NamedTuple):
    """Sorted data in the units of the search, x in [-1, 1], |y| <= 1, weights of mean 1; and the original units."""

    x: Floats
    y: Floats
    w: Floats
    middle: tuple[float, float]
    scale: tuple[float, float]
    ends: tuple[float, float]
    unit: float


def _check_data(x: Any, y: Any, weights: Any) -> tuple[Floats, Floats, Floats]:
    """Return the data as sorted arrays, without points of weight 0; ValueError if they are not finite numbers."""
    given = {"x": x, "y": y, "weights": np.ones(np.shape(x)) if weights is None else weights}
    arrays = {name: np.asarray(array, dtype=np.float64) for name, array in given.items()}
    for name, array in arrays.items():
        if array.ndim != 1 or len(array) != len(arrays["x"]):
            shapes = ", ".join(f"{key} {value.shape}" for key, value in arrays.items())
            raise ValueError(f"x, y and weights must have one axis and equal lengths, got {shapes}")
        if not np.isfinite(array).all():
            at = int(np.argmin(np.isfinite(array)))
            raise ValueError(f"{name} must be finite, got {array[at]} at index {at}; leave that point out")
    if (arrays["weights"] < 0).any():
        raise ValueError(f"weights must be >= 0, got {arrays['weights'].min()}")
    keep = np.flatnonzero(arrays["weights"] > 0)
    order = keep[np.argsort(arrays["x"][keep], kind="stable")]
    return arrays["x"][order], arrays["y"][order], arrays["weights"][order]


def read_data(x: Any, y: Any, weights: Any) -> SortedData:
    """Return the data in the units of the search; ValueError if they cannot be fitted."""
    x, y, w = _check_data(x, y, weights)
    if len(x) < 2 or x[0] == x[-1]:
        raise ValueError(f"a fit needs points at two or more different x, got {len(np.unique(x))} with weight > 0")
    middle, half = x[0] / 2 + x[-1] / 2, x[-1] / 2 - x[0] / 2
    if half < LEAST or max(half, abs(middle), np.abs(y).max()) > 1 / LEAST:
        raise ValueError(
            f"x spans {half:.3g} to both sides of {middle:.3g} and |y| reaches {np.abs(y).max():.3g}; use units in "
            f"which the span is at least {LEAST:g} and nothing exceeds {1 / LEAST:g}"
        )
    weight = float(w.mean())
    w = w / weight
    mean = float(y @ w / len(y))
    size = float(np.abs(y - mean).max()) or 1.0
    return SortedData(
        (x - middle) / half,
        (y - mean) / size,
        w,
        middle=(float(middle), mean),
        scale=(float(half), size),
        ends=(float(x[0]), float(x[-1])),
        unit=weight * size**2,
    )


def check_segments(pieces: int, distinct: int) -> int:
    """Return the number of segments; ValueError if it is not a positive integer, or too large for the data."""
    count = as_count("pieces", pieces, 1, np.inf)
    if count >= distinct:
        raise ValueError(f"pieces must be from 1 to {distinct - 1}, one less than the distinct x, got {count}")
    if count > _MANY and count < distinct - 1:
        raise ValueError(f"pieces must be at most {_MANY}, got {count}; divide the data, or simplify a curve")
    return count


class Parts(NamedTuple):
    """A, B, C, D and E of segments; arrays [...] or numbers."""

    a: Any
    b: Any
    c: Any
    d: Any
    e: Any

    def reverse(self) -> Parts:
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

    `below` is x with the largest x slightly lowered, so that below < t holds for all points at the last knot t.
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
        """The number added to the diagonal."""
        return RIDGE * float(self.running[0, -1])

    def up_to(self, t: Floats) -> Floats:
        """Return the sums over x < t, [5, ...]."""
        return self.running.take(self.below.searchsorted(t), axis=1)

    def between(self, p: Floats, q: Floats) -> Parts:
        """Return the parts of segments [p, q], whose shapes broadcast."""
        axes = max(p.ndim, q.ndim)
        p, q = (t.reshape((1,) * (axes - t.ndim) + t.shape) for t in (p, q))
        return combine(p, q, self.up_to(q) - self.up_to(p))

    def parts(self, knots: Floats) -> Parts:
        """Return the parts of the segments between knots [..., k + 1]."""
        ends = self.up_to(knots)
        return combine(knots[..., :-1], knots[..., 1:], ends[..., 1:] - ends[..., :-1])


def combine(p: Floats, q: Floats, sums: Floats) -> Parts:
    """Return the parts of segments [p, q] from the sums over their points, [5, ...]."""
    s0, s1, s2, y0, y1 = sums
    scale = 1 / (q - p)
    s, sy = (s1 - p * s0) * scale, (y1 - p * y0) * scale
    ss = np.maximum((s2 - p * (s1 + s1 - p * s0)) * (scale * scale), 0.0)
    return Parts(np.maximum(s0 - s - s + ss, 0.0), s - ss, ss, y0 - sy, sy)


def extend(parabola: Parabola, parts: Parts, ridge: float) -> Parabola:
    """Return the parabola at the other end of one more segment, with the optimal value at this end."""
    pivot, slope = 1 / (parabola.a + parts.a + ridge), parabola.b + parts.d
    turn = parts.b * pivot
    return Parabola(parts.c - parts.b * turn, parts.e - turn * slope, parabola.c - slope * slope * pivot)


def join_parabolas(left: Parabola, right: Parabola, ridge: float) -> Floats:
    """Return the least error, without sum w y^2, of curves whose two parts meet at a knot."""
    return np.asarray(left.c + right.c - (left.b + right.b) ** 2 / (left.a + right.a + ridge))


def chain_parabolas(sums: Sums, knots: Floats) -> tuple[Floats, float]:
    """Return the parabolas [3, k + 1] of the parts of a curve after its knots [k + 1], and the error of the curve."""
    # floats, because arrays without axes are ten times slower
    segments = [Parts(*numbers) for numbers in np.transpose(sums.parts(knots)).tolist()]
    ridge = sums.ridge
    before, after = Parabola(ridge, 0.0, 0.0), [Parabola(ridge, 0.0, 0.0)]
    for first, last in zip(segments, reversed(segments), strict=True):
        before = extend(before, first, ridge)
        after.append(extend(after[-1], last.reverse(), ridge))
    error = sums.total + before.c - before.b * before.b / (before.a + ridge)
    return np.array(after[::-1]).T, error
