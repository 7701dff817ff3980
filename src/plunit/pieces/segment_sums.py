"""Squared errors of continuous piecewise-linear fits from running sums, without a look at the data.

On a segment [p, q] with the values u at p and v at q, and s = (x - p) / (q - p),

    sum w (y - (1 - s) u - s v)^2 = A u^2 + 2 B u v + C v^2 - 2 D u - 2 E v + F
    A = sum w (1 - s)^2,  B = sum w s (1 - s),  C = sum w s^2,  D = sum w (1 - s) y,  E = sum w s y,  F = sum w y^2.

Running sums of w, w x, w x^2, w y, w x y and w y^2 give them for any segment. So a fit costs the same for ten points
and for ten million, and many fits are computed at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from plunit.pieces.arrays import Floats

RIDGE = 1e-12
"""Added to the diagonal of the equations, as a part of the weight of all points: a segment may hold no point."""


class Parts(NamedTuple):
    """A, B, C, D, E of segments, [...]; see above."""

    a: Floats
    b: Floats
    c: Floats
    d: Floats
    e: Floats


@dataclass(frozen=True, eq=False)
class Sums:
    """Sorted x in [-1, 1] [n], and running sums [6, n + 1] of w, w x, w x^2, w y, w x y, w y^2."""

    x: Floats
    running: Floats

    @classmethod
    def of(cls, x: Floats, y: Floats, w: Floats) -> Sums:
        """Return the sums of sorted data."""
        terms = np.stack([w, w * x, w * x * x, w * y, w * x * y, w * y * y])
        return cls(x, np.concatenate([np.zeros((6, 1)), np.cumsum(terms, axis=1)], axis=1))

    @property
    def total(self) -> float:
        """sum w y^2."""
        return float(self.running[5, -1])

    @property
    def ridge(self) -> float:
        """What is added to the diagonal."""
        return RIDGE * float(self.running[0, -1])

    def up_to(self, t: Floats) -> Floats:
        """Return the sums over x <= t, [6, ...]."""
        return self.running[:, np.searchsorted(self.x, t, side="right")]

    def between(self, p: Floats, q: Floats, sums: Floats) -> Parts:
        """Return the parts of segments [p, q] from the sums over their points, [6, ...]."""
        s0, s1, s2, y0, y1, _ = sums
        width = q - p
        s, ss, sy = (s1 - p * s0) / width, (s2 - 2 * p * s1 + p * p * s0) / width**2, (y1 - p * y0) / width
        ss = np.maximum(ss, 0.0)
        return Parts(np.maximum(s0 - 2 * s + ss, 0.0), s - ss, ss, y0 - sy, sy)

    def parts(self, knots: Floats) -> Parts:
        """Return the parts of the segments between knots [..., k + 1]; the outer ones take all points beyond."""
        ends = self.up_to(knots)
        ends[..., 0], ends[..., -1] = 0.0, self.running[:, -1].reshape((6,) + (1,) * (knots.ndim - 1))
        return self.between(knots[..., :-1], knots[..., 1:], np.diff(ends, axis=-1))


class Fit(NamedTuple):
    """Least-squares fits with given knots: values [..., k + 1], squared errors [...], and what they came from."""

    values: Floats
    error: Floats
    parts: Parts
    gram: Floats


def fit_values(sums: Sums, knots: Floats) -> Fit:
    """Return the best values at knots [..., k + 1]: the solution of a tridiagonal system."""
    parts = sums.parts(knots)
    size = knots.shape[-1]
    gram, right = np.zeros((*knots.shape, size)), np.zeros(knots.shape)
    at = np.arange(size)
    gram[..., at[:-1], at[:-1]] = parts.a
    gram[..., at[1:], at[1:]] += parts.c
    gram[..., at[1:], at[:-1]] = gram[..., at[:-1], at[1:]] = parts.b
    gram[..., at, at] += sums.ridge
    right[..., :-1] = parts.d
    right[..., 1:] += parts.e
    values = np.linalg.solve(gram, right[..., None])[..., 0]
    error = sums.total - (values * right).sum(axis=-1)
    return Fit(values, np.maximum(error, 0.0), parts, gram)


def knot_step(knots: Floats, slope: Floats, fit: Fit, damping: Floats) -> Floats:
    """Return the Gauss-Newton step of the inner knots [..., k - 1], damped, with the values always at their best.

    The derivative of f by the knot j is -slope times its hat function, with the slope of each side. The values are
    eliminated from the equations (variable projection).

    Args:
        knots: [..., k + 1].
        slope: [..., k], of the curve.
        fit: the best values of the curve for the data, or of a correction for what the curve leaves of them.
        damping: [...].
    """
    a, b, c, d, e = fit.parts
    v, count = fit.values, knots.shape[-1] - 2
    left, right = slope[..., :-1], slope[..., 1:]
    cross = np.zeros((*knots.shape, count))
    inner = np.arange(count)
    cross[..., inner, inner] = -left * b[..., :-1]
    cross[..., inner + 1, inner] = -(left * c[..., :-1] + right * a[..., 1:])
    cross[..., inner + 2, inner] = -right * b[..., 1:]
    own = np.zeros((*knots.shape[:-1], count, count))
    own[..., inner, inner] = left**2 * c[..., :-1] + right**2 * a[..., 1:]
    shared = slope[..., 1:-1] ** 2 * b[..., 1:-1]
    own[..., inner[1:], inner[:-1]] = own[..., inner[:-1], inner[1:]] = shared
    residual_left = e[..., :-1] - b[..., :-1] * v[..., :-2] - c[..., :-1] * v[..., 1:-1]
    residual_right = d[..., 1:] - a[..., 1:] * v[..., 1:-1] - b[..., 1:] * v[..., 2:]
    toward = -(left * residual_left + right * residual_right)
    matrix = own - np.swapaxes(cross, -1, -2) @ np.linalg.solve(fit.gram, cross)
    diagonal = matrix[..., inner, inner]
    scale = np.maximum(diagonal, 1e-12 * diagonal.max(axis=-1, keepdims=True)) + np.finfo(np.float64).tiny
    matrix[..., inner, inner] = diagonal + damping[..., None] * scale + 1e-14 * scale
    return np.linalg.solve(matrix, toward[..., None])[..., 0]
