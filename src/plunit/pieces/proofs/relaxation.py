"""Linear functions above and below the units and the layers of a network.

A unit that may cross a knot on its range lies between two lines, the edges of the upper and of the lower hull of its
graph. Later layers are bounded by forms a x + b, by substitution backwards from layer to layer (DeepPoly, Singh et al.
2019; CROWN, Zhang et al. 2018; docs/glossary.md).

Rounding: if B holds the computed coefficients of a layer's units, each off by at most gamma |B_i|, then the form is off
by at most gamma sum |B_i| v_i, where v >= |W| |y| + |b| bounds the terms of each unit. These sums are kept, and gamma
times their total is added to the constant. gamma_k = 1.01 k u with the unit roundoff u counts all operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from plunit.pieces.activation import at_pieces
from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.networks import Layer, UnitTables
from plunit.pieces.rounding import FLOOR, UNIT


@dataclass(frozen=True, eq=False)
class Lines:
    """slope z + constant above and below the units of a layer, [2, ..., units], the upper lines first.

    gap: the largest distance of a unit from its lines; knot: where that is, -1 for nowhere; size [..., units]: a bound
    on |f(z)|.
    """

    slope: Floats
    constant: Floats
    gap: Floats
    knot: Ints
    size: Floats

    @classmethod
    def of(cls, units: UnitTables, low: Floats, high: Floats, touch: Floats) -> Lines:
        """Return the edges of the hulls over z = touch, for units whose z lie between low and high, [..., units]."""
        number = np.arange(low.shape[-1])
        on, last = ((units.knots <= low[..., None]).sum(axis=-1), (units.knots < high[..., None]).sum(axis=-1))
        found = cls(
            np.stack([units.slopes[number, on]] * 2),
            np.stack([units.high[number, on], units.low[number, on]]),
            np.zeros((2, *low.shape)),
            np.full((2, *low.shape), -1),
            np.maximum(_sizes(units, number, on, low), _sizes(units, number, last, high)),
        )
        crossing = np.nonzero(last > on)
        if len(crossing[-1]):
            _bend(found, units, crossing, low[crossing], high[crossing], touch[crossing], last[crossing])
        return found


def _sizes(units: UnitTables, unit: Ints, piece: Ints, z: Floats) -> Floats:
    """Return a bound on |f(z)| on this piece."""
    low, high = units.low[unit, piece], units.high[unit, piece]
    size = np.abs(units.slopes[unit, piece] * z) + np.abs(high) + (high - low)
    return np.asarray(size * (1 + 8 * UNIT) + FLOOR)


def _bend(
    found: Lines, units: UnitTables, at: tuple[Ints, ...], low: Floats, high: Floats, touch: Floats, last: Ints
) -> None:
    """Write the lines of units that cross a knot: edges of the hulls of the points (z, value) at ends and knots."""
    knots = units.knots[at[-1]]
    inside = (knots > low[:, None]) & (knots < high[:, None])
    z = np.concatenate([low[:, None], np.clip(knots, low[:, None], high[:, None]), high[:, None]], axis=1)
    tables = (table[at[-1]][:, None] for table in (units.slopes, units.low, units.high))
    slopes, start, end = at_pieces(z, knots[:, None], *tables)
    product = slopes * z
    value = product + end
    error = end - start + 4 * UNIT * (np.abs(product) + np.abs(end)) + FLOOR
    found.size[at] = ((np.abs(value) + error) * (1 + 4 * UNIT)).max(axis=1)
    for side, sign in enumerate((1.0, -1.0)):
        slope = _hull_edge(z, sign * value, touch, sign * units.slopes[at[-1], last])[:, None]
        drop = sign * value - slope * z + error + 4 * UNIT * (np.abs(value) + np.abs(slope * z)) + FLOOR
        constant = drop.max(axis=1, keepdims=True)
        gaps = np.where(inside, (slope * z + constant - sign * value)[:, 1:-1], -np.inf)
        found.slope[side][at], found.constant[side][at] = sign * slope[:, 0], sign * constant[:, 0]
        found.gap[side][at], found.knot[side][at] = gaps.max(axis=1), gaps.argmax(axis=1)


def _hull_edge(z: Floats, value: Floats, touch: Floats, default: Floats) -> Floats:
    """Return the slope of the edge of the upper hull of points (z, value), [m, points], that lies over `touch`."""
    best, slope = np.full(len(z), -np.inf), default
    for i, j in combinations(range(z.shape[1]), 2):
        run = z[:, j] - z[:, i]
        rise = np.divide(value[:, j] - value[:, i], run, out=np.zeros_like(run), where=run > 0)
        at = value[:, i] + rise * (touch - z[:, i])
        better = (run > 0) & (z[:, i] <= touch) & (touch <= z[:, j]) & (at > best)
        best, slope = np.where(better, at, best), np.where(better, rise, slope)
    return slope


def terms_of(layer: Layer, size: Floats) -> Floats:
    """Return v >= |W| |y| + |b| of a layer's units, [..., units], for |y| <= size [..., inputs]."""
    lost = FLOOR * (size.sum(axis=-1, keepdims=True) + 1)
    return np.asarray(size @ np.abs(layer.weight).T + np.abs(layer.bias) + lost)


Step = tuple[Layer, Floats, Floats, Floats]
"""A layer, the slope and the constant of its lines, [2, n, units], and a bound on its terms, [n, units]."""


def substitute(
    steps: Sequence[Step], rows: Floats, constant: Any, size: Any, reach: Floats, error: float
) -> tuple[Floats, Floats, list[Floats]]:
    """Bound rows y + constant, with y the values after the last step, by forms in x: backwards, in n boxes at once.

    Args:
        steps: the layers from the first to the last.
        rows: [n, rows, units], or [1, rows, units] for all boxes.
        constant: [n, rows], or [rows].
        size: [n, rows], the sizes of the terms so far, for the rounding error.
        reach: [n, in], |x| in each box.
        error: the relative error of all operations.

    Returns:
        a [n, rows, in] and b [n, rows] with rows y + constant <= a x + b, and the rows at each layer, first to last.
    """
    felt: list[Floats] = []
    for layer, (upper, lower), (above, below), terms in reversed(steps):
        felt.insert(0, rows)
        plus, minus = np.maximum(rows, 0.0), np.minimum(rows, 0.0)
        constant = constant + (dot(plus, above + upper * layer.bias) + dot(minus, below + lower * layer.bias))
        size = size + dot(plus, np.abs(upper) * terms + np.abs(above))
        size += dot(-minus, np.abs(lower) * terms + np.abs(below))
        size += FLOOR * (terms.sum(axis=1, keepdims=True) + 1)
        if len(rows) == 1 < len(reach):  # the same rows for all boxes: one product of matrices
            through = [
                (part[0][:, :, None] * layer.weight).transpose(1, 0, 2).reshape(len(layer.bias), -1)
                for part in (plus, minus)
            ]
            rows = (upper @ through[0] + lower @ through[1]).reshape(len(reach), rows.shape[1], -1)
        else:
            rows = (plus * upper[:, None] + minus * lower[:, None]) @ layer.weight
    rows = np.broadcast_to(rows, (len(reach), *rows.shape[1:]))
    return rows, constant + error * (size + dot(np.abs(rows), reach)), felt


def dot(rows: Floats, vector: Floats) -> Floats:
    """Return rows [n or 1, rows, k] times vector [n, k]: [n, rows]."""
    if len(rows) == 1:
        return np.asarray(vector @ rows[0].T)
    return np.asarray(np.einsum("nrk,nk->nr", rows, vector))
