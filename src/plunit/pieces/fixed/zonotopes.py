"""center + sum_i coefficient_i s_i +- slack, all s_i in [-1, 1]: linear forms for many boxes at once.

Each layer adds symbols, one for each rounding error and each bend, and errors that share a symbol cancel. The forms of
`plunit.expressions.forms` have only the variables as symbols, and also follow functions such as sin.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plunit.base.machine import processors
from plunit.pieces.activation import Functions
from plunit.pieces.arrays import Floats
from plunit.pieces.fixed.integers import FixedNetwork
from plunit.pieces.rounding import EPS
from plunit.programs.interface import SignTask, call_program, run_on_threads
from plunit.programs.libraries import library, why_not_native

DECIDED = 8
"""The number of signs that are tried if there is no compiled program."""


@dataclass(frozen=True, eq=False)
class BoxForm:
    """center [boxes, units] + coefficients [boxes, units, symbols] s, all symbols in [-1, 1], +- slack [boxes, units].

    size: [boxes, units], a bound on the absolute value that costs less than `radius` and may be larger.
    """

    center: Floats
    coefficients: Floats
    slack: Floats
    size: Floats

    @cached_property
    def radius(self) -> Floats:
        """The largest distance from the center."""
        return np.asarray(np.abs(self.coefficients).sum(axis=2) * (1 + 1e-12) + self.slack)

    @cached_property
    def largest(self) -> Floats:
        """The largest absolute value."""
        return np.asarray(np.abs(self.center) + self.radius)

    @property
    def low(self) -> Floats:
        """The smallest value."""
        return self.center - self.radius

    @property
    def high(self) -> Floats:
        """The largest value."""
        return self.center + self.radius

    def __add__(self, other: BoxForm) -> BoxForm:
        size = self.size + other.size
        slack = self.slack + other.slack + 4 * EPS * size
        return BoxForm(self.center + other.center, self.coefficients + other.coefficients, slack, size)

    def times(self, factor: Floats, plus: Floats) -> BoxForm:
        """Return factor * form + plus, for factor and plus [boxes, units]."""
        size = np.abs(factor) * self.size + np.abs(plus)
        slack = np.abs(factor) * self.slack + 4 * EPS * size
        return BoxForm(factor * self.center + plus, factor[..., None] * self.coefficients, slack, size)

    def map(self, weight: Floats, bias: Floats) -> BoxForm:
        """Return weight @ form + bias."""
        steep = np.abs(weight).T
        size = self.size @ steep + np.abs(bias)
        slack = self.slack @ steep + (weight.shape[1] + 4) * EPS * size
        return BoxForm(self.center @ weight.T + bias, np.matmul(weight, self.coefficients), slack, size)

    def widen(self, before: int, radius: Floats, after: int) -> BoxForm:
        """Return the form +- radius [boxes, units]: a new symbol for each unit, and others before and after them."""
        boxes, units, count = self.coefficients.shape
        coefficients = np.zeros((boxes, units, count + before + units + after))
        coefficients[..., :count] = self.coefficients
        own = np.arange(units)
        coefficients[:, own, count + before + own] = radius
        return BoxForm(self.center, coefficients, self.slack, self.size + radius)


@dataclass(frozen=True, eq=False)
class Pair:
    """A layer of the network and of its fixed-point version, both in real numbers; f is None in the last layer."""

    weight: Floats
    bias: Floats
    fixed_weight: Floats
    fixed_bias: Floats
    f: Functions | None
    fixed_f: Functions | None
    rounding: Floats
    bias_error: Floats


def pairs(fixed: FixedNetwork) -> list[Pair]:
    """Return the layers of the network and of its fixed-point version, for inputs relative to `offset`."""
    found = []
    for i, (layer, real) in enumerate(zip(fixed.layers, fixed.net.layers, strict=False)):
        weight, bias = real.weight, real.bias
        fixed_real, rounding = layer.real(fixed.fraction if i == 0 else 0)
        error = np.zeros(len(bias))
        if i == 0:
            terms = np.abs(bias) + np.abs(weight) @ np.abs(fixed.offset)
            bias, error = bias + weight @ fixed.offset, (weight.shape[1] + 2) * EPS * terms
        found.append(
            Pair(
                weight,
                bias,
                fixed_real.weight,
                fixed_real.bias,
                real.functions,
                None if real.activation is None else fixed_real.functions,
                rounding,
                error,
            )
        )
    return found


def start(boxes: Floats, rounding: Floats) -> tuple[BoxForm, BoxForm]:
    """Return the inputs y and the rounding d of each, for boxes [boxes, inputs, 2] that count from `offset`."""
    middle, reach = boxes.mean(axis=2), (boxes[..., 1] - boxes[..., 0]) / 2
    none, zero = np.zeros((*middle.shape, 0)), np.zeros_like(middle)
    y, d = BoxForm(middle, none, 4 * EPS * np.abs(boxes).max(axis=2), np.abs(middle)), BoxForm(zero, none, zero, zero)
    inputs = len(rounding)
    return y.widen(0, reach, inputs), d.widen(inputs, np.broadcast_to(rounding, middle.shape), 0)


def affine(pair: Pair, y: BoxForm, d: BoxForm) -> tuple[BoxForm, BoxForm]:
    """Return z = W y + b, and fixed z - z = (fixed W - W) y + fixed W d + fixed b - b."""
    z = y.map(pair.weight, pair.bias)
    gap = y.map(pair.fixed_weight - pair.weight, pair.fixed_bias - pair.bias)
    moved = gap + d.map(pair.fixed_weight, np.zeros_like(pair.bias))
    return (
        BoxForm(z.center, z.coefficients, z.slack + pair.bias_error, z.size + pair.bias_error),
        BoxForm(moved.center, moved.coefficients, moved.slack + pair.bias_error, moved.size + pair.bias_error),
    )


@dataclass(frozen=True, eq=False)
class Bend:
    """What is known and what is unknown about an activation: z, fixed z - z, and two bounds.

    half: [boxes, units], the slopes of f between z and fixed z are within this of their mean; other: [boxes, units], a
    bound on rounding and on the difference of the two functions.
    """

    z: BoxForm
    d: BoxForm
    half: Floats
    other: Floats

    @property
    def loose(self) -> Floats:
        """A bound on the part of the difference that comes from unknown slopes."""
        return np.asarray(self.half * self.d.largest * (1 + 1e-12))


def activation(pair: Pair, z: BoxForm, d: BoxForm) -> tuple[BoxForm, BoxForm, Bend]:
    """Return y = f(z), fixed y - y, and what is unknown about the latter.

    There are two new symbols for each unit: first one for y, then one for the difference.
    """
    assert pair.f is not None
    assert pair.fixed_f is not None
    units = len(pair.bias)
    slope, middle, reach = _chord([(1.0, pair.f)], z)
    moved = z + d
    factor, plus, gap = _chord([(1.0, pair.fixed_f), (-1.0, pair.f)], moved)
    low, high = _slopes(pair.f, np.minimum(z.low, moved.low), np.maximum(z.high, moved.high))
    bend = Bend(z, d, (high - low) / 2, gap + pair.rounding)
    kept = d.times((low + high) / 2, plus) + moved.times(factor, np.zeros_like(plus))
    return z.times(slope, middle).widen(0, reach, units), kept.widen(units, bend.loose + bend.other, 0), bend


def largest_with_signs(base: Floats, rows: Floats, floor: Floats) -> Floats:
    """Return a bound on sum_s |base_s + sum_u sign_u row_us| for any signs; exact above the floor, up to rounding.

    base: [cases, symbols]; rows: [cases, units, symbols]; floor: [cases]. NumPy tries only the signs of the largest
    `DECIDED` rows; the compiled program tries those of all rows, within a limit on its work.
    """
    base, rows, bound = np.ascontiguousarray(base), np.ascontiguousarray(rows), np.empty(len(base))
    if why_not_native("prove"):
        return _signs_in_numpy(base, rows, floor)
    (cases, count, columns), counter = rows.shape, ctypes.c_int64(0)
    task = SignTask(cases=cases, count=count, columns=columns, base=base, rows=rows, floor=floor, bound=bound)
    call = library("prove").plunit_signs, ctypes.byref(task), ctypes.byref(counter)
    run_on_threads(lambda: call_program(*call), min(processors(), cases))
    return bound


def _signs_in_numpy(base: Floats, rows: Floats, floor: Floats) -> Floats:
    order = np.argsort(-np.abs(rows).sum(axis=2), axis=1, kind="stable")
    rows = np.take_along_axis(rows, order[..., None], axis=1)
    sizes = np.abs(rows).sum(axis=2)
    left = np.concatenate([np.cumsum(sizes[:, ::-1], axis=1)[:, ::-1], np.zeros((len(base), 1))], axis=1)
    case, sums = np.arange(len(base)), base
    start = most = np.abs(base).sum(axis=1) + left[:, 0]
    for depth in range(min(DECIDED, rows.shape[1])):
        matters = most > floor[case]
        case, sums = case[matters], sums[matters]
        sums = np.concatenate([sums + rows[case, depth], sums - rows[case, depth]])
        case = np.concatenate([case, case])
        most = np.abs(sums).sum(axis=1) + left[case, depth + 1]
    bound = floor.copy()
    np.maximum.at(bound, case, most)
    return np.asarray(bound + 1e-12 * start)


def _chord(parts: list[tuple[float, Functions]], z: BoxForm) -> tuple[Floats, Floats, Floats]:
    """Return (lambda, mu, r) with g(z) = lambda z + mu +- r on the range of z, for g = sum of sign * f."""
    low, high = z.low, z.high
    at = np.concatenate([f.turns(low, high) for _, f in parts])
    values, terms, limit = np.zeros(at.shape), np.zeros(low.shape), np.zeros(low.shape)
    reach = np.maximum(np.abs(low), np.abs(high))
    for sign, f in parts:
        values += sign * f(at)
        steep = np.maximum(*np.abs(_slopes(f, low, high)))
        limit += steep
        terms += steep * reach + _largest_intercept(f, low, high)
    width = high - low
    slope = np.clip(np.divide(values[1] - values[0], width, out=np.zeros_like(width), where=width > 0), -limit, limit)
    rest = values - slope * at
    top, bottom = rest.max(axis=0), rest.min(axis=0)
    return slope, (top + bottom) / 2, (top - bottom) / 2 + 16 * EPS * terms


def _slopes(f: Functions, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the smallest and the largest slope that f has between low and high, [boxes, units]."""
    met, slopes = f.meets(low, high), f.units[1]
    return np.where(met, slopes, np.inf).min(axis=-1), np.where(met, slopes, -np.inf).max(axis=-1)


def _largest_intercept(f: Functions, low: Floats, high: Floats) -> Floats:
    return np.asarray(np.where(f.meets(low, high), np.abs(f.units[2]), 0.0).max(axis=-1))
