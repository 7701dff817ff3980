"""Gauss-Newton steps for the knots of least-squares segments, for many sets of knots at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plunit.pieces.arrays import Bools, Floats
from plunit.pieces.segment_sums import Parts, Sums

CLOSEST = 1e-6
"""Knots stay at least that far apart, as a part of half the interval."""

STEPS = 20
ENOUGH = 1e-7
"""The steps end when they lower no error by more than this part."""


class Fit(NamedTuple):
    """Least-squares fits with given knots: values [..., k + 1], squared errors [...], and what they came from."""

    values: Floats
    error: Floats
    parts: Parts
    inverse: Floats

    def replaced(self, better: Bools, other: Fit) -> Fit:
        """Return another fit where it is better."""
        parts = Parts(*(np.where(better[:, None], new, old) for new, old in zip(other.parts, self.parts, strict=True)))
        values = np.where(better[:, None], other.values, self.values)
        inverse = np.where(better[:, None, None], other.inverse, self.inverse)
        return Fit(values, np.where(better, other.error, self.error), parts, inverse)


def fit_values(sums: Sums, knots: Floats) -> Fit:
    """Return the best values at knots [..., k + 1]: the solution of a tridiagonal system."""
    parts = sums.parts(knots)
    size = knots.shape[-1]
    gram, right = np.zeros((*knots.shape, size)), np.zeros(knots.shape)
    flat = gram.reshape(*knots.shape[:-1], size * size)
    flat[..., :: size + 1] = sums.ridge
    flat[..., : -1 : size + 1] += parts.a
    flat[..., size + 1 :: size + 1] += parts.c
    flat[..., 1 :: size + 1] = flat[..., size :: size + 1] = parts.b
    right[..., :-1] = parts.d
    right[..., 1:] += parts.e
    inverse = np.linalg.inv(gram)
    values = (inverse @ right[..., None])[..., 0]
    error = sums.total - (values * right).sum(axis=-1)
    return Fit(values, np.maximum(error, 0.0), parts, inverse)


def slopes_of(knots: Floats, values: Floats) -> Floats:
    """Return the slopes [..., k] of curves with these values at their knots."""
    return (values[..., 1:] - values[..., :-1]) / (knots[..., 1:] - knots[..., :-1])


def knot_step(slope: Floats, fit: Fit, damping: Floats) -> Floats:
    """Return the Gauss-Newton step of the inner knots [..., k - 1], damped, with the values always at their best.

    The derivative of f by the knot j is -slope times its hat function, with the slope of each side. The values are
    eliminated from the equations (variable projection).

    Args:
        slope: [..., k], of the curve.
        fit: the best values of the curve for the data, or of a correction for what the curve leaves of them.
        damping: [..., k - 1], or a shape that can be broadcast.
    """
    a, b, c, d, e = fit.parts
    v, count = fit.values, slope.shape[-1] - 1
    left, right = slope[..., :-1], slope[..., 1:]
    cross = np.zeros((*v.shape, count))
    flat = cross.reshape(*v.shape[:-1], -1)
    flat[..., :: count + 1][..., :count] = -left * b[..., :-1]
    flat[..., count :: count + 1][..., :count] = -(left * c[..., :-1] + right * a[..., 1:])
    flat[..., 2 * count :: count + 1] = -right * b[..., 1:]
    own = np.zeros((*v.shape[:-1], count, count))
    row = own.reshape(*v.shape[:-1], -1)
    row[..., :: count + 1] = left * left * c[..., :-1] + right * right * a[..., 1:]
    if count > 1:
        shared = slope[..., 1:-1] ** 2 * b[..., 1:-1]
        row[..., 1 :: count + 1] = row[..., count :: count + 1] = shared
    before = e[..., :-1] - b[..., :-1] * v[..., :-2] - c[..., :-1] * v[..., 1:-1]
    behind = d[..., 1:] - a[..., 1:] * v[..., 1:-1] - b[..., 1:] * v[..., 2:]
    own -= np.swapaxes(cross, -1, -2) @ (fit.inverse @ cross)
    diagonal = row[..., :: count + 1]
    scale = np.maximum(diagonal, 1e-9 * diagonal.max(axis=-1, keepdims=True)) + np.finfo(np.float64).tiny
    row[..., :: count + 1] = diagonal + (damping + 1e-14) * scale
    return np.linalg.solve(own, -(left * before + right * behind)[..., None])[..., 0]


def rooms(knots: Floats) -> Floats:
    """Return how far the knots beside each segment may move into it, [..., k]."""
    return np.maximum(0.45 * (knots[..., 1:] - knots[..., :-1] - CLOSEST), 0.0)


def moved(knots: Floats, step: Floats) -> Floats:
    """Return knots with the inner ones moved, each by less than half the way to its neighbours."""
    room, result = rooms(knots), knots.copy()
    result[..., 1:-1] += np.minimum(np.maximum(step, -room[..., :-1]), room[..., 1:])
    return result


def refined(sums: Sums, knots: Floats, steps: int) -> tuple[Floats, Floats]:
    """Return better knots [sets, k + 1] and their squared errors [sets], by damped Gauss-Newton steps."""
    fit = fit_values(sums, knots)
    damping = np.full(len(knots), 1e-2)
    for _ in range(steps if knots.shape[-1] > 2 else 0):
        trial = moved(knots, knot_step(slopes_of(knots, fit.values), fit, damping[:, None]))
        new = fit_values(sums, trial)
        better = new.error < fit.error
        gained = fit.error - new.error > ENOUGH * fit.error
        knots, fit = np.where(better[:, None], trial, knots), fit.replaced(better, new)
        if not (gained | ~better & (damping < 1)).any():
            break
        damping = np.where(better, damping * 0.2, damping * 8)
    return knots, fit.error
