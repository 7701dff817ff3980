"""center + sum_i coefficient_i s_i +- slack, all s_i in [-1, 1]: linear forms for many boxes at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.fixed.integers import FixedLayer, FixedNetwork
from plunit.pieces.functions import Functions

EPS = float(np.finfo(np.float64).eps)


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

    def spread(self, before: int, radius: Floats, after: int) -> BoxForm:
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
    rounding: float
    bias_error: Floats


def pairs(fixed: FixedNetwork) -> list[Pair]:
    """Return the layers of the network and of its fixed-point version, for inputs that count from `offset`."""
    found = []
    for i, (layer, real) in enumerate(zip(fixed.layers, fixed.net.layers, strict=False)):
        weight, bias = real.weight, real.bias
        scale = fixed.fraction if i == 0 else 0
        error = np.zeros(len(bias))
        if i == 0:
            terms = np.abs(bias) + np.abs(weight) @ np.abs(fixed.offset)
            bias, error = bias + weight @ fixed.offset, (weight.shape[1] + 2) * EPS * terms
        found.append(
            Pair(
                weight,
                bias,
                np.ldexp(layer.weight, scale - layer.weight_fraction),
                np.ldexp(layer.bias, -layer.sum_fraction),
                None if real.activation is None else Functions.of(real.activation),
                None if real.activation is None else real_functions(layer),
                float(np.ldexp(0.5, -layer.fraction)) if layer.shift else 0.0,
                error,
            )
        )
    return found


def real_functions(layer: FixedLayer) -> Functions:
    """Return the activation of a layer in real numbers."""
    total, slope = layer.sum_fraction, layer.slope_fraction
    return Functions(
        np.ldexp(layer.knots, -total),
        np.ldexp(layer.slopes, -slope),
        np.ldexp(layer.intercepts, -total - slope),
        layer.kinds,
    )


def start(boxes: Floats, rounding: Floats) -> tuple[BoxForm, BoxForm]:
    """Return the inputs y and the rounding d of each, for boxes [boxes, inputs, 2] that count from `offset`."""
    middle, reach = boxes.mean(axis=2), (boxes[..., 1] - boxes[..., 0]) / 2
    none, zero = np.zeros((*middle.shape, 0)), np.zeros_like(middle)
    y, d = BoxForm(middle, none, 4 * EPS * np.abs(boxes).max(axis=2), np.abs(middle)), BoxForm(zero, none, zero, zero)
    inputs = len(rounding)
    return y.spread(0, reach, inputs), d.spread(inputs, np.broadcast_to(rounding, middle.shape), 0)


def affine(pair: Pair, y: BoxForm, d: BoxForm) -> tuple[BoxForm, BoxForm]:
    """Return z = W y + b, and fixed z - z = (fixed W - W) y + fixed W d + fixed b - b."""
    z = y.map(pair.weight, pair.bias)
    gap = y.map(pair.fixed_weight - pair.weight, pair.fixed_bias - pair.bias)
    moved = gap + d.map(pair.fixed_weight, np.zeros_like(pair.bias))
    return (
        BoxForm(z.center, z.coefficients, z.slack + pair.bias_error, z.size + pair.bias_error),
        BoxForm(moved.center, moved.coefficients, moved.slack + pair.bias_error, moved.size + pair.bias_error),
    )


def activation(pair: Pair, z: BoxForm, d: BoxForm) -> tuple[BoxForm, BoxForm, Floats]:
    """Return y = f(z), fixed y - y, and the part of the latter that is due to unknown pieces, [boxes, units].

    There are two new symbols for each unit: first one for y, then one for the difference.
    """
    assert pair.f is not None
    assert pair.fixed_f is not None
    units = len(pair.bias)
    slope, middle, reach = _chord([(1.0, pair.f)], z)
    moved = z + d
    factor, plus, gap = _chord([(1.0, pair.fixed_f), (-1.0, pair.f)], moved)
    low, high = _slopes(pair.f, np.minimum(z.low, moved.low), np.maximum(z.high, moved.high))
    loose = (high - low) / 2 * d.largest * (1 + 1e-12) + gap
    kept = d.times((low + high) / 2, plus) + moved.times(factor, np.zeros_like(plus))
    return z.times(slope, middle).spread(0, reach, units), kept.spread(units, loose + pair.rounding, 0), loose


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
    met, slopes = f.met(low, high), f.of_units()[1]
    return np.where(met, slopes, np.inf).min(axis=-1), np.where(met, slopes, -np.inf).max(axis=-1)


def _largest_intercept(f: Functions, low: Floats, high: Floats) -> Floats:
    return np.asarray(np.where(f.met(low, high), np.abs(f.of_units()[2]), 0.0).max(axis=-1))
