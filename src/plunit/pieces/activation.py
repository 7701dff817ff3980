"""Piecewise-linear activations as data: f(0) = at_zero, f' = slopes[j] between knots[j - 1] and knots[j].

PLU has knots (-c, c), slopes (alpha, 1, alpha), f(0) = 0; ReLU has knot 0, slopes (0, 1). All code of this package
works with knots and slopes, and so with every piecewise-linear activation.

Only `at_pieces` chooses the piece of a unit, and `evaluate` computes its value: in double precision, in integers and in
Fractions.
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
from plunit.pieces.arrays import Bools, Floats, Ints, read_only
from plunit.pieces.rounding import roundings

_ERROR = roundings(8)
"""The relative error of the few roundings in the value of a unit."""


def evaluate(z: Any, knots: Any, slopes: Any, intercepts: Any) -> Any:
    """Slope z + intercept on the piece that holds each z [..., units]; tables as in `at_pieces`.

    The numbers are float64, int64, or Fractions in object arrays.

    >>> evaluate(np.array([-3, 0, 5]), np.array([0]), np.array([-1, 2]), np.array([0, 0])).tolist()
    [3, 0, 10]
    """
    slope, intercept = at_pieces(z, knots, slopes, intercepts)
    return slope * z + intercept


def at_pieces(z: Any, knots: Any, *tables: Any) -> list[Any]:
    """Return the entries of tables [..., k + 1] for the piece of each z: the number of its knots [..., k] below z."""
    found = [np.broadcast_to(table[..., 0], z.shape) for table in tables]
    for j in range(knots.shape[-1]):
        beyond = z > knots[..., j]
        found = [np.where(beyond, table[..., j + 1], part) for table, part in zip(tables, found, strict=True)]
    return found


@dataclass(frozen=True, eq=False)
class Activation:
    """f(0) = at_zero, f' = slopes[..., j] between knots[..., j - 1] and knots[..., j].

    Args:
        knots: [..., k], in order along the last axis; an infinite knot represents a missing one.
        slopes: [..., k + 1].
        at_zero: [...].

    The leading shape is () for one function for all units, [units] for one each, or [units, members] in an ensemble.

    >>> plu(0.5)(np.array([-3.0, 0.5, 3.0])).tolist()
    [-2.0, 0.5, 2.0]
    >>> plu(0.25)(np.array([Fraction(-3), Fraction(1, 3)])).tolist()
    [Fraction(-3, 2), Fraction(1, 3)]
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
        for name in ("knots", "slopes", "at_zero"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

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

    @cached_property
    def tables(self) -> tuple[Floats, Floats, Floats]:
        """Knots, slopes and intercepts for `evaluate` in double precision; a z on a knot is on its steeper side."""
        steeper = np.abs(self.slopes[..., 1:]) > np.abs(self.slopes[..., :-1])
        return np.where(steeper, np.nextafter(self.knots, -np.inf), self.knots), self.slopes, self.intercepts

    @cached_property
    def functions(self) -> Functions:
        """The distinct functions of the units, with exact intercepts."""
        return Functions.of(self)

    def __call__(self, z: Any) -> Any:
        """f(z) for z [..., units]: in double precision, or exactly if z is an array of Fractions."""
        z = np.asarray(z)
        if z.dtype == object:
            return evaluate(z, *self.functions.exact)
        return evaluate(z.astype(np.float64, copy=False), *self.tables)

    def part(self, pick: slice | int | None) -> Activation:
        """Return this activation for a selection along its first axis; None adds an axis."""
        return Activation(self.knots[pick], self.slopes[pick], self.at_zero[pick])

    def broadcast(self, units: int, members: int | None = None) -> Activation:
        """Return this activation with leading shape [units], or [members, units]."""
        if members is None:
            return self.broadcast(units, 1).part(0)
        shape = self.at_zero.shape + (1,) * (2 - self.at_zero.ndim)
        if len(shape) > 2 or shape[0] not in (1, units) or shape[1] not in (1, members):
            raise ValueError(f"an activation for {self.at_zero.shape} units does not fit ({units}, {members} members)")

        def fill(array: Floats, *tail: int) -> Floats:
            return np.broadcast_to(array.reshape(*shape, *tail), (units, members, *tail)).swapaxes(0, 1)

        k = self.knots.shape[-1]
        return Activation(fill(self.knots, k), fill(self.slopes, k + 1), fill(self.at_zero))


@dataclass(frozen=True, eq=False)
class Functions:
    """f_i(z) = slopes[i, j] z + intercepts[i, j] above j of the knots[i]; unit u has the function f of index kinds[u].

    knots: [functions, k], finite and in order, k >= 1; slopes and intercepts: [functions, k + 1]. A missing knot lies
    on another knot of its function, or at 0, with the same slope on both sides.
    """

    knots: Floats
    slopes: Floats
    intercepts: Any
    kinds: Ints

    @classmethod
    def of(cls, f: Activation) -> Functions:
        """Return the functions of all units; intercepts are Fractions in an object array."""
        k = f.knots.shape[-1]
        table = np.concatenate([f.knots, f.slopes, f.at_zero[..., None]], axis=-1).reshape(-1, 2 * k + 2) + 0.0
        rows, kinds = np.unique(table, axis=0, return_inverse=True)
        knots, slopes = _finite(rows[:, :k], rows[:, k:-1])
        exact = [
            exact_intercepts(*row) for row in zip(knots.tolist(), slopes.tolist(), rows[:, -1].tolist(), strict=True)
        ]
        return cls(knots, slopes, np.array(exact, dtype=object), kinds.reshape(f.at_zero.shape))

    @cached_property
    def units(self) -> tuple[Floats, Floats, Floats]:
        """Knots, slopes and intercepts of each unit, [units, ...], in double precision."""
        return self.knots[self.kinds], self.slopes[self.kinds], self.intercepts.astype(np.float64)[self.kinds]

    @cached_property
    def exact(self) -> tuple[Any, Any, Any]:
        """Knots, slopes and intercepts of each unit, [units, ...], as Fractions."""
        slopes = np.vectorize(Fraction, otypes=[object])(self.slopes)
        return self.knots[self.kinds], slopes[self.kinds], self.intercepts[self.kinds]

    def __call__(self, z: Floats) -> Floats:
        """f(z) for z [..., units], in double precision."""
        return np.asarray(evaluate(z, *self.units))

    def enclose(self, z: Floats, error: Floats) -> tuple[Floats, Floats]:
        """Return y = f(z) in double precision, and a bound on its distance from the exact f(z') if |z' - z| <= error.

        z, error: [..., units]. The bound includes the rounding of the intercepts.
        """
        knots, slopes, intercepts = self.units
        slope, intercept = at_pieces(z, knots, slopes, intercepts)
        error = np.abs(slopes).max(axis=-1) * error + _ERROR * (np.abs(slope * z) + np.abs(intercept))
        return slope * z + intercept, error + _ERROR * np.abs(intercepts).max(axis=-1)

    def meets(self, low: Floats, high: Floats, margin: Floats | float = 0.0) -> Bools:
        """Return which pieces [..., units, k + 1] meet [low, high], if knots may be off by the margin."""
        knots = self.units[0]
        ends = np.full((len(knots), 1), np.inf)
        starts, stops = np.concatenate([-ends, knots - margin], axis=1), np.concatenate([knots + margin, ends], axis=1)
        return np.asarray((starts <= high[..., None]) & (stops >= low[..., None]))

    def turns(self, low: Floats, high: Floats) -> Floats:
        """Return the ends and the knots between them, [k + 2, ..., units]: f has its extremes on [low, high] there."""
        return np.stack([low, high, *(np.clip(knot, low, high) for knot in self.units[0].T)])


def _finite(knots: Floats, slopes: Floats) -> tuple[Floats, Floats]:
    """Move missing knots to where they change nothing."""
    if knots.shape[1] == 0:
        return np.zeros((len(knots), 1)), np.repeat(slopes, 2, axis=1)
    count = np.isfinite(knots).sum(axis=1, keepdims=True)
    ranks = np.minimum(np.arange(knots.shape[1]), np.maximum(count - 1, 0))
    placed = np.take_along_axis(knots, ranks, axis=1)
    pieces = np.minimum(np.arange(slopes.shape[1]), count)
    return np.where(np.isfinite(placed), placed, 0.0), np.take_along_axis(slopes, pieces, axis=1)


def _outward(terms: Floats, knots: Floats) -> Floats:
    """Return for each piece the sum of the terms of the knots between 0 and the piece, negated left of 0."""
    left, right = np.where(knots < 0, -terms, 0.0), np.where(knots < 0, 0.0, terms)
    none = np.zeros((*knots.shape[:-1], 1))
    rising = np.concatenate([none, np.cumsum(right, axis=-1)], axis=-1)
    falling = np.concatenate([np.cumsum(left[..., ::-1], axis=-1)[..., ::-1], none], axis=-1)
    return np.asarray(falling + rising)


def exact_intercepts(knots: Sequence[float], slopes: Sequence[float], at_zero: float) -> list[Fraction]:
    """Return the exact b of each piece f(z) = slope z + b of one function; a knot at infinity adds nothing.

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


def stack(parts: Sequence[Activation]) -> Activation:
    """Return the activation of all units of these parts, each with one function for each unit."""
    most = max(part.knots.shape[-1] for part in parts)

    def pad(part: Activation) -> tuple[Floats, Floats, Floats]:
        more = ((0, 0), (0, most - part.knots.shape[-1]))
        return np.pad(part.knots, more, constant_values=np.inf), np.pad(part.slopes, more, mode="edge"), part.at_zero

    return Activation(*(np.concatenate(each) for each in zip(*map(pad, parts), strict=True)))


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
