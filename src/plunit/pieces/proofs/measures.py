"""Numbers for how steep a gradient is, and the goals of a program that bound them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from plunit.pieces.activation import absolute, piecewise
from plunit.pieces.arrays import Floats
from plunit.pieces.proofs.encoding import NARROW, Encoding, Range, add_units
from plunit.pieces.proofs.program import Form

SPLITS = 8
"""The number of chords that bound a square at first."""

Measure = Callable[[Floats], Floats]
"""Turns gradients [..., in] into numbers [...]."""

Goals = Callable[[Encoding, Form, Range, list[Floats]], list[Form]]


@dataclass(frozen=True)
class Steepness:
    """A function of the gradient that is maximised, and the goals of a program that bound it.

    change: the most that errors of the gradient, all >= 0, can change the measure. goals: takes the encoding, the form
    and the range of the gradient, and the gradients found so far. It returns forms of one row each. Their largest
    maximum bounds the measure to this power.
    """

    measure: Measure
    change: Measure
    goals: Goals
    power: int = 1

    def back(self, bound: float) -> float:
        """Return the bound of the measure from that of the goals."""
        return bound if self.power == 1 else float(max(bound, 0.0) ** (1 / self.power))


def along(direction: Floats) -> Steepness:
    """Direction . gradient."""

    def goals(encoding: Encoding, gradient: Form, bounds: Range, seen: list[Floats]) -> list[Form]:
        return [gradient.map(direction[None], np.zeros(1))]

    return Steepness(lambda g: np.asarray(g @ direction), lambda g: np.asarray(g @ np.abs(direction)), goals)


def dual_norm(order: float) -> Steepness:
    """The norm of the gradient that is dual to the norm of x of order 1, 2 or inf."""
    return {1.0: _LARGEST, 2.0: _EUCLID, np.inf: _SUM}[order]


def _largest(encoding: Encoding, gradient: Form, bounds: Range, seen: list[Floats]) -> list[Form]:
    size = _sizes(encoding, gradient, bounds)
    return [size[i : i + 1] for i in range(len(bounds[0]))]


def _sum(encoding: Encoding, gradient: Form, bounds: Range, seen: list[Floats]) -> list[Form]:
    return [_sizes(encoding, gradient, bounds).map(np.ones((1, len(bounds[0]))), np.zeros(1))]


def _sizes(encoding: Encoding, gradient: Form, bounds: Range) -> Form:
    count = len(bounds[0])
    return add_units(encoding.program, absolute().spread(count, 1), gradient, bounds)[0]


def _squares(encoding: Encoding, gradient: Form, bounds: Range, seen: list[Floats]) -> list[Form]:
    """Sum g_i^2 from above, by chords: exact at the ends of the ranges, on a grid, and at the gradients seen so far."""
    total = encoding.program.form(1)
    for i, (low, high) in enumerate(zip(*bounds, strict=True)):
        places = np.array([*np.linspace(low, high, SPLITS + 1), *(g[i] for g in seen)])
        places = _apart(np.unique(np.clip(places, low, high)), 2 * NARROW * (high - low))
        if len(places) == 1:
            total.constant[0] += low**2
            continue
        chords = places[1:] + places[:-1]
        f = piecewise(places[1:-1], chords, _chord_at_zero(places))
        part = add_units(encoding.program, f.spread(1, 1), gradient[i : i + 1], (places[:1], places[-1:]))[0]
        total = encoding.program.padded(total)
        total = Form(total.matrix + part.matrix, total.constant + part.constant)
    return [total]


def _apart(places: Floats, distance: float) -> Floats:
    """Return places in order without those that follow another too closely; the ends stay."""
    kept = [places[0]]
    for place in places[1:-1]:
        if place - kept[-1] > distance and places[-1] - place > distance:
            kept.append(place)
    return np.array([*kept, *places[1:][-1:]])


def _chord_at_zero(places: Floats) -> float:
    """Return the value at 0 of the chords of g^2 between neighbouring places, continued beyond them."""
    j = int(np.clip(np.searchsorted(places, 0.0) - 1, 0, len(places) - 2))
    return float(-places[j] * places[j + 1])


def _norm(order: float, goals: Goals, power: int = 1) -> Steepness:
    def measure(gradient: Floats) -> Floats:
        return np.asarray(np.linalg.norm(gradient, order, axis=-1))

    return Steepness(measure, measure, goals, power)


_LARGEST, _SUM = _norm(np.inf, _largest), _norm(1, _sum)
_EUCLID = _norm(2, _squares, 2)
