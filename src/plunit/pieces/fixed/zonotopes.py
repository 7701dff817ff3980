"""y and d = fixed y - y as linear forms in x and all rounding errors, for many boxes at once.

A value is center + sum_i coefficient_i s_i with all symbols s_i in [-1, 1]: one for each input (its place in the box),
one for each rounding, and two for each unit whose piece is not known in the box:

    y = f(z)                     = lambda z + mu +- r                      the chord, and the range of f(z) - lambda z
    fixed y - y = q(z + d) + s d,  q = fixed f - f,  s in [slopes that z and z + d meet]

So a box in which every unit keeps to one piece has the exact difference, and the bound needs no more than the signs of
its coefficients. What double precision may lose is added as a range of its own (`slack`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.fixed.integers import FixedLayer, FixedNetwork
from plunit.pieces.functions import Functions

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Form:
    """center [boxes, units] + coefficients [boxes, units, symbols] s, all symbols in [-1, 1], +- slack [boxes, units]."""

    center: Floats
    coefficients: Floats
    slack: Floats

    @cached_property
    def radius(self) -> Floats:
        """The largest distance from the center."""
        return np.asarray(np.abs(self.coefficients).sum(axis=2) * (1 + 1e-12) + self.slack)

    @property
    def size(self) -> Floats:
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

    def __add__(self, other: Form) -> Form:
        rounding = 4 * EPS * (self.size + other.size)
        return Form(
            self.center + other.center, self.coefficients + other.coefficients, self.slack + other.slack + rounding
        )

    def times(self, factor: Floats, plus: Floats) -> Form:
        """factor * form + plus, for factor and plus [boxes, units]."""
        rounding = 4 * EPS * (np.abs(factor) * self.size + np.abs(plus))
        return Form(
            factor * self.center + plus,
            factor[..., None] * self.coefficients,
            np.abs(factor) * self.slack + rounding,
        )

    def map(self, weight: Floats, bias: Floats) -> Form:
        """weight @ form + bias."""
        size = np.abs(weight)
        rounding = (weight.shape[1] + 4) * EPS * (self.size @ size.T + np.abs(bias))
        return Form(
            self.center @ weight.T + bias, np.matmul(weight, self.coefficients), self.slack @ size.T + rounding
        )

    def spread(self, first: int, radius: Floats) -> Form:
        """The form +- radius [boxes, units], with the symbols from `first` on, one for each unit."""
        coefficients = self.coefficients.copy()
        units = np.arange(radius.shape[1])
        coefficients[:, units, first + units] += radius
        return Form(self.center, coefficients, self.slack)


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
    """Return the layers that are there, for inputs that count from `offset`."""
    found = []
    for i, layer in enumerate(fixed.layers):
        weight, bias = fixed.net.weights[i][0], fixed.net.biases[i][0]
        scale = fixed.fraction if i == 0 else 0
        error = np.zeros(len(bias))
        if i == 0:
            terms = np.abs(bias) + np.abs(weight) @ np.abs(fixed.offset)
            bias, error = bias + weight @ fixed.offset, (weight.shape[1] + 2) * EPS * terms
        inner = i < len(fixed.net.activations)
        found.append(
            Pair(
                weight,
                bias,
                np.ldexp(layer.weight, scale - layer.weight_fraction),
                np.ldexp(layer.bias, -layer.sum_fraction),
                Functions.of(fixed.net.activations[i]) if inner else None,
                real_functions(layer) if inner else None,
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


def symbols(layers: list[Pair], inputs: int) -> int:
    """Return the number of symbols that `start` and `activation` need for these layers."""
    return 2 * inputs + 3 * sum(len(pair.bias) for pair in layers if pair.f is not None)


def start(boxes: Floats, rounding: Floats, count: int) -> tuple[Form, Form]:
    """Return the inputs y and the rounding d of each, for boxes [boxes, inputs, 2] that count from `offset`."""
    middle, reach = boxes.mean(axis=2), (boxes[..., 1] - boxes[..., 0]) / 2
    zero = np.zeros((*middle.shape, count))
    slack = 4 * EPS * np.abs(boxes).max(axis=2)
    y, d = Form(middle, zero, slack), Form(np.zeros_like(middle), zero, np.zeros_like(middle))
    return y.spread(0, reach), d.spread(len(rounding), np.broadcast_to(rounding, middle.shape))


def affine(pair: Pair, y: Form, d: Form) -> tuple[Form, Form]:
    """Return z = W y + b, and fixed z - z = (fixed W - W) y + fixed W d + fixed b - b."""
    z = y.map(pair.weight, pair.bias)
    gap = y.map(pair.fixed_weight - pair.weight, pair.fixed_bias - pair.bias)
    moved = gap + d.map(pair.fixed_weight, np.zeros_like(pair.bias))
    known = Form(z.center, z.coefficients, z.slack + pair.bias_error)
    return known, Form(moved.center, moved.coefficients, moved.slack + pair.bias_error)


def activation(pair: Pair, z: Form, d: Form, first: int) -> tuple[Form, Form]:
    """Return y = f(z) and fixed y - y, with three symbols for each unit from `first` on: rounding, y, and d."""
    assert pair.f is not None and pair.fixed_f is not None
    units = len(pair.bias)
    slope, middle, reach = _chord([(1.0, pair.f)], z)
    y = z.times(slope, middle).spread(first + units, reach)
    moved = z + d
    factor, plus, gap = _chord([(1.0, pair.fixed_f), (-1.0, pair.f)], moved)
    low, high = _slopes(pair.f, np.minimum(z.low, moved.low), np.maximum(z.high, moved.high))
    kept = d.times((low + high) / 2, np.zeros_like(low)) + moved.times(factor, plus)
    kept = kept.spread(first + 2 * units, (high - low) / 2 * d.size * (1 + 1e-12) + gap)
    return y, kept.spread(first, np.full_like(low, pair.rounding))


def _chord(parts: list[tuple[float, Functions]], z: Form) -> tuple[Floats, Floats, Floats]:
    """Return (lambda, mu, r) with g(z) = lambda z + mu +- r on the range of z, for g = sum of sign * f."""
    low, high = z.low, z.high
    ends = [low, high, *(np.clip(k, low, high) for _, f in parts for k in f.of_units()[0].T)]
    at = np.stack(ends)
    values, size, limit = np.zeros(at.shape), np.zeros(at.shape), np.zeros(low.shape)
    for sign, f in parts:
        value, (_, slopes, intercepts) = f(at), f.of_units()
        values += sign * value
        size += np.abs(slopes).max(axis=1) * np.abs(at) + np.abs(intercepts).max(axis=1)
        limit = limit + np.abs(slopes).max(axis=1)
    width = high - low
    slope = np.clip(np.divide(values[1] - values[0], width, out=np.zeros_like(width), where=width > 0), -limit, limit)
    rest = values - slope * at
    top, bottom = rest.max(axis=0), rest.min(axis=0)
    margin = 8 * EPS * (size.max(axis=0) + limit * np.abs(at).max(axis=0))
    return slope, (top + bottom) / 2, (top - bottom) / 2 + margin


def _slopes(f: Functions, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the smallest and the largest slope that f has between low and high, [boxes, units]."""
    knots, slopes, _ = f.of_units()
    edge = np.full((len(knots), 1), np.inf)
    met = (np.concatenate([-edge, knots], axis=1) <= high[..., None]) & (
        np.concatenate([knots, edge], axis=1) >= low[..., None]
    )
    all_slopes = np.broadcast_to(slopes, met.shape)
    return (
        all_slopes.min(axis=-1, where=met, initial=np.inf),
        all_slopes.max(axis=-1, where=met, initial=-np.inf),
    )
