"""Piecewise-linear activations as data: f(0) = at_zero, f' = slopes[j] between knots[j - 1] and knots[j].

PLU is knots (-c, c), slopes (alpha, 1, alpha), f(0) = 0; ReLU is knot 0, slopes (0, 1). All code of this package works
with knots and slopes, and so with every piecewise-linear activation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from plunit import functional
from plunit.pieces.arrays import Floats


@dataclass(frozen=True, eq=False)
class Activation:
    """f(0) = at_zero, f' = slopes[..., j] between knots[..., j - 1] and knots[..., j].

    Args:
        knots: [..., k], in order along the last axis; an infinite knot stands for a missing one.
        slopes: [..., k + 1].
        at_zero: [...].

    The leading shape is () for one function for all units, [units] for one each, or [units, members] in an ensemble.
    """

    knots: Floats
    slopes: Floats
    at_zero: Floats

    def __post_init__(self) -> None:
        if self.slopes.shape != (*self.knots.shape[:-1], self.knots.shape[-1] + 1):
            raise ValueError(f"k knots need k + 1 slopes, got knots {self.knots.shape} and slopes {self.slopes.shape}")
        if self.at_zero.shape != self.knots.shape[:-1]:
            raise ValueError(f"at_zero must have shape {self.knots.shape[:-1]}, got {self.at_zero.shape}")
        finite = np.isfinite(self.slopes).all() and np.isfinite(self.at_zero).all()
        if not finite or np.isnan(self.knots).any() or (self.knots == -np.inf).any():
            raise ValueError("slopes and at_zero must be finite and knots numbers or +inf; look for NaN")
        if (self.knots[..., 1:] < self.knots[..., :-1]).any():
            raise ValueError(f"knots must be in order along the last axis, got {self.knots}; sort them")

    @cached_property
    def intercepts(self) -> Floats:
        """The b of each piece f(z) = slope z + b, from continuity: f(0) plus one term for each knot between 0 and z.

        A single term is a product in double precision. A sum of several is exact and rounded once: terms may cancel.
        """
        knots = np.where(np.isfinite(self.knots), self.knots, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            bends = (self.slopes[..., :-1] - self.slopes[..., 1:]) * knots
            found = _outward(bends, knots) + self.at_zero[..., None]
            terms = np.abs(_outward((bends != 0).astype(np.float64), knots)) + (self.at_zero != 0)[..., None]
        if not (terms > 1).any():
            return np.asarray(found)
        k = self.knots.shape[-1]
        table = np.concatenate([self.knots, self.slopes, self.at_zero[..., None]], axis=-1).reshape(-1, 2 * k + 2)
        rows, kinds = np.unique(table, axis=0, return_inverse=True)
        exact = [[_nearest(b) for b in exact_intercepts(row[:k], row[k:-1], row[-1])] for row in rows.tolist()]
        return np.where(terms > 1, np.array(exact)[kinds.reshape(-1)].reshape(found.shape), found)

    def part(self, pick: slice | int | None) -> Activation:
        """Return this activation for a part of its first axis; None adds an axis."""
        return Activation(self.knots[pick], self.slopes[pick], self.at_zero[pick])

    def spread(self, units: int, members: int | None = None) -> Activation:
        """Return this activation with leading shape [units], or [members, units]."""
        if members is None:
            return self.spread(units, 1).part(0)
        shape = self.at_zero.shape + (1,) * (2 - self.at_zero.ndim)
        if len(shape) > 2 or shape[0] not in (1, units) or shape[1] not in (1, members):
            raise ValueError(f"an activation for {self.at_zero.shape} units does not fit ({units}, {members} members)")

        def spread(array: Floats, *tail: int) -> Floats:
            return np.broadcast_to(array.reshape(*shape, *tail), (units, members, *tail)).swapaxes(0, 1)

        k = self.knots.shape[-1]
        return Activation(spread(self.knots, k), spread(self.slopes, k + 1), spread(self.at_zero))


def _outward(terms: Floats, knots: Floats) -> Floats:
    """Return for each piece the sum of the terms of the knots between 0 and the piece; those left of 0 count as -1."""
    left, right = np.where(knots < 0, -terms, 0.0), np.where(knots < 0, 0.0, terms)
    none = np.zeros((*knots.shape[:-1], 1))
    rising = np.concatenate([none, np.cumsum(right, axis=-1)], axis=-1)
    falling = np.concatenate([np.cumsum(left[..., ::-1], axis=-1)[..., ::-1], none], axis=-1)
    return np.asarray(falling + rising)


def exact_intercepts(knots: Sequence[float], slopes: Sequence[float], at_zero: float) -> list[Fraction]:
    """Return the b of each piece f(z) = slope z + b of one function, exactly; a knot at infinity adds nothing.

    >>> [str(b) for b in exact_intercepts([-2.0, 4.0], [0.5, 1.0, 0.25], 0.0)]
    ['-1', '0', '3']
    """
    climb = [Fraction(0)]
    for knot, left, right in zip(knots, slopes[:-1], slopes[1:], strict=True):
        bend = (Fraction(left) - Fraction(right)) * Fraction(knot) if math.isfinite(knot) else Fraction(0)
        climb.append(climb[-1] + bend)
    home = sum(knot < 0 for knot in knots)
    return [number - climb[home] + Fraction(at_zero) for number in climb]


def _nearest(number: Fraction) -> float:
    """Return the nearest floating-point number; infinity beyond the largest one."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def piecewise(knots: Any, slopes: Any, at_zero: Any = 0.0) -> Activation:
    """Build f' = slopes[j] between knots[j - 1] and knots[j], f(0) = at_zero; each entry a number or an array [units].

    >>> piecewise([-1, 1], [0.1, 1, 0.1]).intercepts.tolist()
    [-0.9, 0.0, 0.9]
    """
    parts = np.broadcast_arrays(*(np.asarray(part, dtype=np.float64) for part in (*knots, *slopes, at_zero)))
    stacked, k = np.stack(parts, axis=-1), len(knots)
    return Activation(stacked[..., :k], stacked[..., k:-1], stacked[..., -1])


def beside(parts: Sequence[Activation]) -> Activation:
    """Return the activation of all units of these parts, each with one function for each unit."""
    most = max(part.knots.shape[-1] for part in parts)

    def padded(part: Activation) -> tuple[Floats, Floats, Floats]:
        more = ((0, 0), (0, most - part.knots.shape[-1]))
        return np.pad(part.knots, more, constant_values=np.inf), np.pad(part.slopes, more, mode="edge"), part.at_zero

    return Activation(*(np.concatenate(each) for each in zip(*map(padded, parts), strict=True)))


def plu(alpha: Any = 0.1, c: Any = 1.0) -> Activation:
    """PLU(z) = m + alpha (z - m), m = clip(z, -c, c): knots -c and c, slopes alpha, 1, alpha; or arrays [units]."""
    alpha, c = np.asarray(alpha, dtype=np.float64), np.asarray(c, dtype=np.float64)
    functional.check(alpha, c)
    return piecewise([-c, c], [alpha, 1.0, alpha])


def relu() -> Activation:
    """max(0, z): knot 0, slopes 0, 1."""
    return piecewise([0.0], [0.0, 1.0])


def leaky_relu(slope: Any = 0.01) -> Activation:
    """max(0, z) + slope min(0, z): knot 0, slopes `slope`, 1; an array [units] of slopes makes it PReLU."""
    return piecewise([0.0], [slope, 1.0])


def hardtanh(low: float = -1.0, high: float = 1.0) -> Activation:
    """clip(z, low, high): knots low and high, slopes 0, 1, 0."""
    return piecewise([low, high], [0.0, 1.0, 0.0], min(max(low, 0.0), high))


def relu6() -> Activation:
    """clip(z, 0, 6): knots 0 and 6, slopes 0, 1, 0."""
    return hardtanh(0.0, 6.0)


def hardsigmoid() -> Activation:
    """clip(z / 6 + 1/2, 0, 1): knots -3 and 3, slopes 0, 1/6, 0."""
    return piecewise([-3.0, 3.0], [0.0, 1 / 6, 0.0], 0.5)


def absolute() -> Activation:
    """|z|: knot 0, slopes -1, 1."""
    return piecewise([0.0], [-1.0, 1.0])


def identity() -> Activation:
    """z: no knots, slope 1."""
    return piecewise([], [1.0])
