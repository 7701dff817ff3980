"""Equations, distance, composition and inverse of exact curves."""

from __future__ import annotations

import numpy as np

from plunit.pieces.arrays import Floats, runs
from plunit.pieces.curve_data import NEAR, Curve


def solve(f: Curve, y: float, output: int = 0) -> Floats:
    """Return all x with f(x) = y, in order, as intervals [n, 2]; a single solution is an interval [x, x].

    A knot with |f - y| <= 512 eps max(|f|, |y|) counts as a solution, so that a maximum that touches y is found.

    >>> solve(Curve([0, 1, 2, 3], [[0], [1], [1], [0]], [[1], [0], [-1]]), 1.0).tolist()
    [[1.0, 2.0]]
    """
    if not np.isfinite(y):
        raise ValueError(f"y must be finite, got {y}")
    gap = f.values[:, output] - y
    gap[np.abs(gap) <= NEAR * max(abs(y), np.abs(f.values[:, output]).max())] = 0.0
    crossing = np.flatnonzero(gap[:-1] * np.sign(gap[1:]) < 0)
    between = f.knots[crossing] + gap[crossing] / (gap[crossing] - gap[crossing + 1]) * np.diff(f.knots)[crossing]
    level = np.concatenate([[False], gap == 0, [False]])
    first, last = (np.flatnonzero(edge) for edge in (level[1:] & ~level[:-1], level[:-1] & ~level[1:]))
    flat = np.stack([f.knots[first[first < len(gap)]], f.knots[last - 1]], axis=1)
    found = np.concatenate([np.stack([between, between], axis=1), flat])
    return found[np.argsort(found[:, 0])]


def distance(f: Curve, g: Curve) -> float:
    """Return sup |f(x) - g(x)| over the domain and all outputs; it is reached at a knot of one of them."""
    if (f.low, f.high) != (g.low, g.high) or f.values.shape[1] != g.values.shape[1]:
        raise ValueError(
            f"curves need the same domain and outputs, got [{f.low}, {f.high}] with {f.values.shape[1]} and "
            f"[{g.low}, {g.high}] with {g.values.shape[1]}"
        )
    x = np.union1d(f.knots, g.knots)
    return float(np.abs(f(x) - g(x)).max())


def compose(f: Curve, g: Curve) -> Curve:
    """Return x -> f(g(x)), for g with one output and its range in the domain of f.

    >>> double = Curve([-1, 1], [[-2], [2]], [[2]])
    >>> fold = Curve([-2, 0, 2], [[2], [0], [2]], [[-1], [1]])
    >>> compose(fold, double).knots.tolist()
    [-1.0, 0.0, 1.0]
    """
    if g.values.shape[1] != 1:
        raise ValueError(f"the inner curve must have one output, got {g.values.shape[1]}; pick one with .output(i)")
    low, high = g.minimum()[1], g.maximum()[1]
    if low < f.low or high > f.high:
        raise ValueError(f"the inner curve reaches [{low}, {high}], outside [{f.low}, {f.high}] of the outer one")
    levels = f.knots[1:-1]
    bounds = np.sort(np.stack([g.values[:-1, 0], g.values[1:, 0]]), axis=0)
    start, stop = np.searchsorted(levels, bounds[0], side="right"), np.searchsorted(levels, bounds[1], side="left")
    piece, rank = runs(np.maximum(stop - start, 0))
    level = levels[start[piece] + rank]
    x = g.knots[piece] + (level - g.values[piece, 0]) / g.slopes[piece, 0]
    x = np.clip(x, g.knots[piece], g.knots[piece + 1])
    knots, pick = np.unique(np.concatenate([g.knots, x]), return_index=True)
    middle = np.concatenate([g.values[:, 0], level])[pick]
    # on each new piece g stays within one piece of f; the middle value determines which
    outer = f.piece(np.clip(0.5 * (middle[1:] + middle[:-1]), low, high))
    inner = g.piece(knots[:-1])
    slopes = f.slopes[outer] * g.slopes[inner]
    tolerance = np.abs(f.slopes[outer]) * g.tolerance[inner] + f.tolerance[outer] * np.abs(g.slopes[inner])
    return Curve(knots, f(middle), slopes, tolerance=tolerance)


def inverse(f: Curve) -> Curve:
    """Return y -> x with f(x) = y, for a strictly monotone curve of one output.

    >>> inverse(Curve([0, 1, 2], [[0], [1], [3]], [[1], [2]])).knots.tolist()
    [0.0, 1.0, 3.0]
    """
    if f.values.shape[1] != 1:
        raise ValueError(f"the inverse needs one output, got {f.values.shape[1]}; pick one with .output(i)")
    rise = np.diff(f.values[:, 0])
    order = slice(None, None, -1) if rise[0] < 0 else slice(None)
    wrong = np.flatnonzero(rise * np.sign(rise[0]) <= 0)
    if len(wrong):
        x = f.knots[wrong[0]]
        raise ValueError(f"not monotone: the curve turns or is flat at x = {x}; invert it on another interval")
    tolerance = f.tolerance[order] / f.slopes[order] ** 2
    return Curve(f.values[order, 0], f.knots[order, None], 1 / f.slopes[order], tolerance=tolerance)
