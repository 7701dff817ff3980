"""A network on a box as a mixed-integer program: the tight (incremental) form of a piecewise-linear unit.

A unit y = f(z) with z in [l, u] and the knots k_1 < ... < k_m inside has a column t_j in [0, 1] for each piece, of
width w_j = k_{j+1} - k_j (k_0 = l, k_{m+1} = u) and slope s_j, and a binary b_j for each knot, 1 if z is beyond it:

    z = l + sum_j w_j t_j,        y = f(l) + sum_j s_j w_j t_j,        t_{j-1} >= b_j >= t_j.

So a piece is entered only when the one before it is full. Without the integrality of b this is the convex hull of the
graph of f on [l, u]. A unit with no knot inside [l, u] is affine and has no column of its own. z and y are affine forms
of the columns, and are not columns themselves. The form is that of Vielma, Ahmed and Nemhauser (2010), in place of
big-M (Tjeng, Xiao and Tedrake, 2019); docs/literature.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plunit.pieces.activation import Activation
from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.exact.layer import Units
from plunit.pieces.networks import Network
from plunit.pieces.proofs.program import Form, Program

NARROW = 1e-8
"""The solver drops coefficients below 1e-9."""

Range = tuple[Floats, Floats]
"""The lowest and the highest values of a layer's units, each [units]."""


@dataclass(frozen=True, eq=False)
class Unit:
    """The pieces that a unit can be on: their slopes, [m + 1], and the columns of its binaries, m of them."""

    first: int
    slopes: Floats
    binaries: slice


@dataclass(frozen=True, eq=False)
class Encoding:
    """x, z of each layer and the outputs as forms, the ranges of z, and the units of each layer."""

    program: Program
    x: Form
    z: tuple[Form, ...]
    ranges: tuple[Range, ...]
    units: tuple[tuple[Unit, ...], ...]
    output: Form

    @property
    def inside(self) -> int:
        """The number of knots that units can cross."""
        return sum(len(unit.slopes) - 1 for layer in self.units for unit in layer)

    def pattern(self, t: Floats) -> list[Ints]:
        """Return the piece of each unit, layer by layer."""
        return [
            np.array([unit.first + round(float(t[unit.binaries].sum())) for unit in layer], dtype=np.int64)
            for layer in self.units
        ]


def encode(net: Network, box: Floats, known: Sequence[Range] = ()) -> Encoding:
    """Encode a network on a box [in, 2]; `known` are further ranges of z, beside those from intervals."""
    program = Program()
    program.columns(len(box))
    x = Form(np.diag(box[:, 1] - box[:, 0]), box[:, 0])
    y, (low, high) = x, (box[:, 0], box[:, 1])
    forms, ranges, layers = [], [], []
    for i, (layer, f) in enumerate(net.hidden):
        z = y.map(layer.weight, layer.bias)
        bounds = _meet(interval_of(layer.weight, layer.bias, low, high), z.range())
        bounds = _meet(bounds, known[i]) if known else bounds
        y, units = add_units(program, f, z, bounds)
        low, high = _images(f, *bounds)
        forms.append(z)
        ranges.append(bounds)
        layers.append(units)
    output = y.map(net.layers[-1].weight, net.layers[-1].bias)
    return Encoding(program, x, tuple(forms), tuple(ranges), tuple(layers), output)


def add_units(program: Program, f: Activation, z: Form, bounds: Range) -> tuple[Form, tuple[Unit, ...]]:
    """Add the columns and rows of a layer; return y = f(z) and the units."""
    low, high = bounds
    count = len(low)
    parts = [_inside(f.knots[i], low[i], high[i]) for i in range(count)]
    start = program.count
    columns = [
        (program.columns(len(knots) + 1), program.columns(len(knots), integer=True)) if len(knots) else None
        for _, knots in parts
    ]
    y, units = program.form(count), []
    z = program.padded(z)
    bottom = _values(f, low)
    for i, ((first, knots), place) in enumerate(zip(parts, columns, strict=True)):
        slopes = f.slopes[i, first : first + len(knots) + 1]
        if place is None:
            y.matrix[i], y.constant[i] = slopes[0] * z.matrix[i], bottom[i] + slopes[0] * (z.constant[i] - low[i])
            units.append(Unit(first, slopes, slice(start, start)))
            continue
        t, b = place
        widths = np.diff([low[i], *knots, high[i]])
        _check_widths(widths[1:-1], high[i] - low[i])
        y.matrix[i, t], y.constant[i] = slopes * widths, bottom[i]
        whole = -z.matrix[i : i + 1]
        whole[0, t] += widths
        program.limit(Form(whole, np.array([low[i] - z.constant[i]])), 0.0, 0.0)
        order = program.form(2 * len(knots))
        for j in range(len(knots)):
            order.matrix[2 * j, [t.start + j, b.start + j]] = 1, -1
            order.matrix[2 * j + 1, [b.start + j, t.start + j + 1]] = 1, -1
        program.limit(order, 0.0, np.inf)
        units.append(Unit(first, slopes, b))
    return y, tuple(units)


def _check_widths(widths: Floats, whole: float) -> None:
    """Raise ValueError if a piece between two knots is too narrow for the solver to see."""
    narrow = (widths > 0) & (widths < NARROW * whole)
    if narrow.any():
        raise ValueError(
            f"a unit has a piece of width {widths[narrow].min():.1e} in a range of {whole:.1e}, which the solver "
            f"cannot see; pieces must be at least {NARROW:g} of the range: take a smaller box"
        )


def _inside(knots: Floats, low: float, high: float) -> tuple[int, Floats]:
    """Return the piece that holds low, and the knots inside (low, high)."""
    inside = knots[(knots > low) & (knots < high)]
    return int((knots <= low).sum()), inside


def interval_of(weight: Floats, bias: Floats, low: Floats, high: Floats) -> Range:
    """Return the range of W y + b for y in [low, high], widened by its rounding errors."""
    up, down = np.maximum(weight, 0), np.minimum(weight, 0)
    slack = 1e-12 * (np.abs(weight) @ np.maximum(np.abs(low), np.abs(high)) + np.abs(bias))
    return up @ low + down @ high + bias - slack, up @ high + down @ low + bias + slack


def _meet(one: Range, two: Range) -> Range:
    """Return the common part of two ranges; a point if rounding makes the common part empty."""
    low, high = np.maximum(one[0], two[0]), np.minimum(one[1], two[1])
    return np.minimum(low, high), np.maximum(low, high)


def _images(f: Activation, low: Floats, high: Floats) -> Range:
    """Return the range of f(z) for z in [low, high], [units] each."""
    ends = np.concatenate([[low, high], np.clip(f.knots, low[:, None], high[:, None]).T])
    values = np.stack([_values(f, end) for end in ends])
    return values.min(axis=0), values.max(axis=0)


def _values(f: Activation, z: Floats) -> Floats:
    """Return f(z), [units]."""
    return np.asarray(Units.of(f).values(z[None], np.zeros(1, dtype=np.int64))[0])
