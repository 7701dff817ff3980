"""A network in integers: sum = b + sum_j w_j h_j, then (slope sum + intercept) 2^-shift, rounded half up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from plunit.pieces.activation import Activation, evaluate
from plunit.pieces.arrays import Floats, Ints, blocks, read_only
from plunit.pieces.c_programs import Program
from plunit.pieces.float_errors import REAL_NUMBERS, error_after
from plunit.pieces.networks import Layer, Network

CHUNK = 2**13
"""Rows at a time: they and all values computed from them fit into the processor's caches."""


@dataclass(frozen=True, eq=False)
class FixedLayer:
    """A layer in integers; an integer q with fraction f means q 2^-f.

    weight: [units, inputs] of int8 or int16, fraction `weight_fraction`.
    bias: [units], fraction `sum_fraction`, like the sum. The sum is int64 if `wide`, else int32.
    knots [functions, k], slopes and intercepts [functions, k + 1]: the activation of sums, one row for each distinct
    function; unit u has row kinds[u]. Knots have `sum_fraction`, slopes `slope_fraction`, intercepts both together.
    shift: the number of bits that the product of slope and sum loses; the values have the remaining `fraction`.
    low, high: [units], the proved range of the values.
    """

    weight: Ints
    bias: Ints
    knots: Ints
    slopes: Ints
    intercepts: Ints
    kinds: Ints
    weight_fraction: int
    sum_fraction: int
    slope_fraction: int
    shift: int
    wide: bool
    low: Ints
    high: Ints

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, read_only(value))

    @property
    def fraction(self) -> int:
        """The number of fractional bits of the values."""
        return self.sum_fraction + self.slope_fraction - self.shift

    def __call__(self, h: Ints) -> Ints:
        """Return the values [n, units] for h [n, inputs]."""
        # sums are integers below 2^44, so products and sums of doubles are exact in any order, and fast
        total = (h.astype(np.float64) @ self.weight.T.astype(np.float64)).astype(np.int64) + self.bias
        return np.asarray(rounding_shift(self.activate(total), self.shift))

    def activate(self, total: Ints) -> Ints:
        """Return slope * sum + intercept for sums [..., units]."""
        tables = (part[self.kinds] for part in (self.knots, self.slopes, self.intercepts))
        return np.asarray(evaluate(total, *tables))

    def ranges(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """Return the smallest and the largest value [n, units] for h between low and high [n, inputs]."""
        up, down = (part.T.astype(np.float64) for part in (np.maximum(self.weight, 0), np.minimum(self.weight, 0)))
        ends = [(one @ up + other @ down).astype(np.int64) + self.bias for one, other in ((low, high), (high, low))]
        values = self.activate(np.stack([*ends, *(np.clip(knot, *ends) for knot in self.knots[self.kinds].T)]))
        return rounding_shift(values.min(axis=0), self.shift), rounding_shift(values.max(axis=0), self.shift)

    def real(self, fraction: Ints | int = 0) -> tuple[Layer, Floats]:
        """Return the layer in real numbers, which does not round its values, and a bound on the difference that makes.

        fraction: [inputs], of integer inputs, or 0 if the inputs are real numbers as well.
        """
        total, both = self.sum_fraction, self.sum_fraction + self.slope_fraction
        weight = _scale(self.weight, fraction - self.weight_fraction)
        rounding = np.full(len(self.bias), np.ldexp(0.5, -self.fraction) if self.shift else 0.0)
        knots, slopes = self.knots[self.kinds], self.slopes[self.kinds]
        start = np.take_along_axis(self.intercepts[self.kinds], (knots < 0).sum(axis=1)[:, None], axis=1)[:, 0]
        nearest = start.astype(np.float64)
        f = Activation(_scale(knots, -total), _scale(slopes, -self.slope_fraction), _scale(nearest, -both))
        rounding = rounding + np.ldexp(np.abs(start - nearest.astype(np.int64)), -both)
        return Layer(weight, _scale(self.bias, -total), f), rounding


def _scale(numbers: Any, power: Any) -> Floats:
    """Return numbers * 2^power, exactly."""
    found = np.ldexp(numbers.astype(np.float64), power)
    if not np.array_equal(np.ldexp(found, -np.asarray(power)), numbers):
        raise ValueError("the numbers of the program are too small or too large for double precision; scale the inputs")
    return np.asarray(found)


def rounding_shift(number: Any, bits: int) -> Any:
    """Return floor(number / 2^bits + 1/2), for integers."""
    return (number + ((1 << bits) >> 1)) >> bits


@dataclass(frozen=True, eq=False)
class FixedNetwork(Program):
    """A network in integers, with inputs x = offset + q 2^-fraction; build one with `quantize`.

    fixed(x) is what the C program of `save_c` computes, bit by bit. x is clipped to the box first.

    Args:
        net: the network that was quantised.
        box: [inputs, 2], the inputs for which all formats are proved.
        bits: 8 or 16, the size of weights. Values have 16 bits, outputs 32.
        offset: [inputs], the x that the integer 0 stands for.
        fraction: [inputs], the fractional bits of each input.
        layers: the layers, in order.
    """

    net: Network
    box: Floats
    bits: int
    offset: Floats
    fraction: Ints
    layers: tuple[FixedLayer, ...]

    def __call__(self, x: Any) -> Floats:
        """f(x): [..., in] -> [..., out], as floating-point numbers."""
        x = np.asarray(x, dtype=np.float64)
        if x.ndim == 0 or x.shape[-1] != self.net.inputs:
            raise ValueError(f"this network takes x of shape [..., {self.net.inputs}], got {x.shape}")
        rows = x.reshape(-1, self.net.inputs)
        found = np.empty((len(rows), self.net.outputs))
        for block in blocks(len(rows), CHUNK):
            found[block] = np.ldexp(self.integers(self.to_integers(rows[block])), -self.layers[-1].fraction)
        return found.reshape(*x.shape[:-1], self.net.outputs)

    def to_integers(self, x: Any) -> Ints:
        """Return the integers q [..., in] for x, rounded half up; x is clipped to the box, with NaN as its low end."""
        low, high = self.box.T
        x = np.where(x > low, x, low)
        x = np.where(x < high, x, high)
        exact = np.ldexp(x - self.offset, self.fraction)
        whole = np.trunc(exact)
        rest = exact - whole
        return np.asarray(whole + (rest >= 0.5) - (rest < -0.5)).astype(np.int64)

    @property
    def ends(self) -> tuple[Ints, Ints]:
        """The smallest and the largest integer of each input."""
        return self.to_integers(self.box[:, 0]), self.to_integers(self.box[:, 1])

    @property
    def step(self) -> Floats:
        """The distance between two neighbouring places: integer q of an input has the place q * step."""
        return np.ldexp(1.0, -self.fraction)

    @cached_property
    def _parts(self) -> list[tuple[Layer, Floats]]:
        """The layers in real numbers, and the errors that rounding adds in each."""
        last = len(self.layers) - 1
        found = []
        for i, layer in enumerate(self.layers):
            real, added = layer.real(self.fraction if i == 0 else 0)
            found.append((real if i < last else Layer(real.weight, real.bias), added))
        return found

    @cached_property
    def real(self) -> Network:
        """The network in real numbers with the weights and functions of the integers; it does not round values."""
        return Network(tuple(layer for layer, _ in self._parts))

    def sides(self, box: Floats) -> Floats:
        """Return the places of the first and the last integer that x in a box become, [in, 2]."""
        if not ((self.box[:, 0] <= box[:, 0]) & (box[:, 1] <= self.box[:, 1])).all():
            raise ValueError(
                f"the program is for x in {self.box.tolist()}, got {box.tolist()}; ask about a box inside the first one"
            )
        return np.stack([self.to_integers(side) * self.step for side in box.T], axis=1)

    def nearest(self, places: Floats) -> Floats:
        """Return the places of the nearest integers."""
        return np.asarray(np.rint(places / self.step) * self.step)

    def x(self, places: Floats, box: Floats) -> Floats:
        """Return x in the box that become these integers: offset + place, clipped, as rounding may leave the box."""
        return np.clip(self.offset + places, box[:, 0], box[:, 1])

    def run(self, places: Floats) -> Floats:
        """Return the outputs of the program at places of integers."""
        return np.ldexp(self.integers(self.integers_at(places)), -self.layers[-1].fraction)

    def error(self, sides: Floats) -> Floats:
        """Return a bound on the error of each output that comes from rounding values."""
        return error_after(self.real, sides, REAL_NUMBERS, [added for _, added in self._parts])

    def ranges(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return the ranges of the outputs, by interval arithmetic on the integers."""
        both = self.integers_at(low), self.integers_at(high)
        for layer in self.layers:
            both = layer.ranges(*both)
        return np.ldexp(both[0], -self.layers[-1].fraction), np.ldexp(both[1], -self.layers[-1].fraction)

    def integers_at(self, place: Floats) -> Ints:
        """Return the integers at places [..., in]."""
        return np.asarray(np.rint(place / self.step)).astype(np.int64)

    def integers(self, q: Any) -> Ints:
        """Return the integers of the outputs [n, out] for those of the inputs [n, in], clipped to `ends`."""
        h = np.clip(np.asarray(q, dtype=np.int64), *self.ends)
        for layer in self.layers:
            h = layer(h)
        return h

    @property
    def formats(self) -> list[str]:
        """The integers q of the inputs and r of the outputs, and a line for each layer, as the C header states them."""
        lines = _input_lines(self.offset.tolist(), self.fraction.tolist())
        several = f", i = 0..{self.net.outputs - 1}" if self.net.outputs > 1 else ""
        at = "i" if several else "0"
        lines.append(f"y[{at}] = r[{at}] * 2^{-self.layers[-1].fraction}{several}")
        for i, layer in enumerate(self.layers):
            values = "outputs int32" if i == len(self.layers) - 1 else "values int16"
            lines.append(
                f"layer {i}: weights int{self.bits} 2^{-layer.weight_fraction}, "
                f"sums int{64 if layer.wide else 32} 2^{-layer.sum_fraction}, {values} 2^{-layer.fraction}"
            )
        return lines


def _input_lines(offset: list[float], fraction: list[int]) -> list[str]:
    """Return how the integer of each input is computed, in one line if it is the same for all."""

    def line(at: object, offset: float, fraction: int) -> str:
        moved = f"(x[{at}] {'-' if offset > 0 else '+'} {abs(offset)!r})" if offset else f"x[{at}]"
        return f"q[{at}] = round({moved} * 2^{fraction})"

    if len(fraction) > 1 and len(pairs := {*zip(offset, fraction, strict=True)}) == 1:
        return [f"{line('i', *pairs.pop())}, i = 0..{len(fraction) - 1}"]
    return [line(i, *pair) for i, pair in enumerate(zip(offset, fraction, strict=True))]


def check_fixed(fixed: FixedNetwork) -> None:
    """Raise TypeError if this is not a FixedNetwork."""
    if not isinstance(fixed, FixedNetwork):
        raise TypeError(f"this needs a FixedNetwork, got {type(fixed).__name__}; quantize(net, box) makes one")
