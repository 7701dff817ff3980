"""Linear functions above and below a network, on many boxes at once: f(x) <= y + a (x - m) in a box with middle m.

The bounds of `numpy_bounds`, by the same substitution backwards and with the same count of roundings, for boxes without
cuts: so all boxes are rows of the same arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.networks import Network
from plunit.pieces.proofs.bounding import Tables
from plunit.pieces.proofs.linear import FLOOR, UNIT, gamma


@dataclass(frozen=True, eq=False)
class _Lines:
    """slope z + constant above and below the units of a layer, [2, n, units], the upper ones first; size: of |f(z)|."""

    slope: Floats
    constant: Floats
    size: Floats


class BoxForms:
    """The first output of a network on boxes: a callable."""

    def __init__(self, net: Network) -> None:
        self.net, self.tables = net, Tables.of(net)
        self.error = gamma(4 * sum(net.widths) + 64) * 1.0001

    def __call__(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return y [n, 2] and a [n, 2, in] for the boxes low <= x <= high, [n, in]; the bound from above comes first.

        The middle is low / 2 + high / 2 as computed.
        """
        reach = np.maximum(np.abs(low), np.abs(high))
        lines, terms, size, start = list[_Lines](), list[Floats](), reach, 0
        for layer in self.net.layers:
            units = len(layer.bias) if layer.activation is not None else 1
            weight, bias = layer.weight[:units], layer.bias[:units]
            terms.append(size @ np.abs(weight).T + np.abs(bias) + FLOOR * (size.sum(axis=1, keepdims=True) + 1))
            both = np.concatenate([weight, -weight]), np.concatenate([bias, -bias])
            a, b = self._substituted(lines, terms, *both, reach)
            if layer.activation is None:
                middle = low / 2 + high / 2
                size = _dot(np.abs(a), np.abs(middle)) + np.abs(b)
                at = b + _dot(a, middle) + gamma(2 * a.shape[2] + 8) * size + FLOOR
                return at * [1.0, -1.0], a * [[1.0], [-1.0]]
            top = _largest(a, b, low, high)
            lines.append(self._lines(start, -top[:, units:], top[:, :units]))
            start, size = start + units, lines[-1].size
        raise AssertionError("the last layer has no activation")

    def _substituted(
        self, lines: list[_Lines], terms: list[Floats], a: Floats, bias: Floats, reach: Floats
    ) -> tuple[Floats, Floats]:
        """Go back to x from a y + bias, y the inputs of the layer behind these lines: [n, rows, in] and [n, rows]."""
        constant, size = bias, np.tile(terms[-1], 2)
        rows = a[None]
        for layer, own, own_terms in zip(
            self.net.layers[len(lines) - 1 :: -1], lines[::-1], terms[-2::-1], strict=False
        ):
            plus, minus = np.maximum(rows, 0.0), np.minimum(rows, 0.0)
            (upper, lower), (above, below) = own.slope, own.constant
            constant = constant + (_dot(plus, above + upper * layer.bias) + _dot(minus, below + lower * layer.bias))
            parts = (np.abs(line) * own_terms + np.abs(shift) for line, shift in ((upper, above), (lower, below)))
            size = (
                size
                + _dot(plus, next(parts))
                + _dot(-minus, next(parts))
                + FLOOR * (own_terms.sum(axis=1, keepdims=True) + 1)
            )
            if len(rows) == 1 < len(reach):  # the same rows for all boxes: one product of matrices
                through = [
                    (part[0][:, :, None] * layer.weight).transpose(1, 0, 2).reshape(len(layer.bias), -1)
                    for part in (plus, minus)
                ]
                rows = (upper @ through[0] + lower @ through[1]).reshape(len(reach), rows.shape[1], -1)
            else:
                rows = (plus * upper[:, None] + minus * lower[:, None]) @ layer.weight
        rows = np.broadcast_to(rows, (len(reach), *rows.shape[1:]))
        return rows, constant + self.error * (size + _dot(np.abs(rows), reach))

    def _lines(self, start: int, low: Floats, high: Floats) -> _Lines:
        """Return the lines of the units from `start` on, whose z lie between low and high, [n, units]."""
        own = slice(start, start + low.shape[1])
        knots, slopes = self.tables.knots[own], self.tables.slopes[own]
        below, above = self.tables.low[own], self.tables.high[own]
        units = np.arange(low.shape[1])
        on = (knots <= low[..., None]).sum(axis=2)
        last = (knots < high[..., None]).sum(axis=2)
        slope = np.stack([slopes[units, on]] * 2)
        constant = np.stack([above[units, on], below[units, on]])
        size = np.zeros_like(low)
        for z, piece in ((low, on), (high, last)):
            size = np.maximum(
                size, np.abs(slopes[units, piece] * z) + np.abs(above[units, piece]) + (above - below)[units, piece]
            )
        box, unit = np.nonzero(last > on)
        if len(box):
            z, piece = _turns(knots[unit], low[box, unit], high[box, unit])
            product, end = slopes[unit[:, None], piece] * z, above[unit[:, None], piece]
            value = product + end
            error = (above - below)[unit[:, None], piece] + 4 * UNIT * (np.abs(product) + np.abs(end)) + FLOOR
            size[box, unit] = (np.abs(product) + np.abs(end) + error).max(axis=1)
            for side, sign in enumerate((1.0, -1.0)):
                edge = _hull_edge(z, sign * value)
                drop = sign * value - edge[:, None] * z
                drop += error + 4 * UNIT * (np.abs(value) + np.abs(edge[:, None] * z)) + FLOOR
                slope[side, box, unit], constant[side, box, unit] = sign * edge, sign * drop.max(axis=1)
        return _Lines(slope, constant, size * (1 + 8 * UNIT) + FLOOR)


def _dot(rows: Floats, vector: Floats) -> Floats:
    """Return rows [n or 1, rows, k] times vector [n, k]: [n, rows]."""
    if len(rows) == 1:
        return np.asarray(vector @ rows[0].T)
    return np.asarray(np.einsum("nrk,nk->nr", rows, vector))


def _largest(a: Floats, b: Floats, low: Floats, high: Floats) -> Floats:
    """Return the largest a x + b over each box, rounded up."""
    middle, half = low / 2 + high / 2, (high - low) / 2 * (1 + 4 * UNIT) + FLOOR
    steep = np.abs(a)
    size = _dot(steep, np.abs(middle) + half) + np.abs(b)
    return np.asarray(b + _dot(a, middle) + _dot(steep, half) + gamma(4 * a.shape[2] + 16) * size + FLOOR)


def _turns(knots: Floats, low: Floats, high: Floats) -> tuple[Floats, Ints]:
    """Return the ends and the knots between, [m, k + 2], and the piece of each; knots outside move to an end."""
    z = np.concatenate([low[:, None], np.clip(knots, low[:, None], high[:, None]), high[:, None]], axis=1)
    return z, (knots[:, None, :] < z[:, :, None]).sum(axis=2)


def _hull_edge(z: Floats, value: Floats) -> Floats:
    """Return the slope of the edge of the upper hull of points (z, value), [m, points], over the middle."""
    middle = z[:, 0] / 2 + z[:, -1] / 2
    best, slope = np.full(len(z), np.inf), np.zeros(len(z))
    for i, j in combinations(range(z.shape[1]), 2):
        run = z[:, j] - z[:, i]
        rise = np.divide(value[:, j] - value[:, i], run, out=np.zeros_like(run), where=run > 0)
        at = (value + rise[:, None] * (middle[:, None] - z)).max(axis=1)
        better = (run > 0) & (at < best)
        best, slope = np.where(better, at, best), np.where(better, rise, slope)
    return slope
