"""Piecewise-linear activations as data: f(0) = at_zero, f' = slopes[j] between knots[j - 1] and knots[j].

PLU is knots (-c, c), slopes (alpha, 1, alpha), f(0) = 0; ReLU is knot 0, slopes (0, 1). All code of this package works
with knots and slopes, and so with every piecewise-linear activation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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

    @property
    def intercepts(self) -> Floats:
        """The b of each piece f(z) = slope z + b, from continuity; b = at_zero on the piece that holds 0."""
        knots = np.where(np.isfinite(self.knots), self.knots, 0.0)
        steps = (self.slopes[..., :-1] - self.slopes[..., 1:]) * knots
        climb = np.concatenate([np.zeros((*self.at_zero.shape, 1)), np.cumsum(steps, axis=-1)], axis=-1)
        home = np.sum(self.knots < 0, axis=-1, keepdims=True)
        return np.asarray(climb - np.take_along_axis(climb, home, axis=-1) + self.at_zero[..., None])

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
