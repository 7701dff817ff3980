"""`quantize`: weights to int8 or int16, with formats from proved bounds on all values over a box."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from plunit.pieces.activation import Functions
from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.boxes import box_array
from plunit.pieces.fixed.error_bounds import sum_ranges
from plunit.pieces.fixed.integers import FixedLayer, FixedNetwork, rounding_shift
from plunit.pieces.networks import Network, check_network
from plunit.pieces.rewriting import rescale

LARGEST = 2**15 - 1
"""The largest value and the largest slope."""

WIDEST = 2**44
"""Sums stay below this, so that slope * sum + intercept stays below 2^62."""


def quantize(net: Network, box: Any, bits: int = 16, **scaling: Any) -> FixedNetwork:
    r"""Return the network in fixed point for all x in the box ((low, high), ...), with weights of 8 or 16 bits.

    All numbers are integers with a fixed binary point; each layer has its own formats, which `.formats` lists. The
    formats come from proved bounds on all values over the box, so nothing overflows or saturates. Inputs outside the
    box are clipped to it. `error_bound(fixed)` bounds |fixed(x) - net(x)|.

    Args:
        net: the network.
        box: one pair (low, high) for each input.
        bits: 8 or 16, the size of weights. Values between layers have 16 bits, outputs 32.
        **scaling: `shift`, `scale`, `output_shift` and `output_scale`, as in `rescale`.

    >>> from plunit.pieces import activation, error_bound, network
    >>> net = network([([[1.0], [0.5]], [0.0, 1.0]), activation.plu(), ([[1.0, -1.0]], [0.5])])
    >>> fixed = quantize(net, [(-4, 4)])
    >>> print(*fixed.formats, sep="\n")
    q[0] = round(x[0] * 2^12)
    y[0] = r[0] * 2^-28
    layer 0: weights int16 2^-26, sums int32 2^-26, values int16 2^-14
    layer 1: weights int16 2^-14, sums int32 2^-28, outputs int32 2^-28
    >>> bool(abs(fixed([0.3]) - net([0.3])) <= error_bound(fixed))
    True
    """
    check_network(net)
    if not isinstance(bits, int) or bits not in (8, 16):
        raise ValueError(f"bits must be 8 or 16, got {bits!r}")
    sides = box_array(net, box)
    net = rescale(net, **scaling) if scaling else net
    offset, fraction = _input_format(sides)
    if np.abs(fraction).max() > 1000:
        raise ValueError(f"the sides of the box must be between 1e-290 and 1e290 long, got {box!r}; scale the inputs")
    if (np.ldexp(1.0, -fraction) < np.spacing(np.abs(sides).max(axis=1))).any():
        raise ValueError(
            f"a side of the box is too narrow for 16 bits of double precision, got {box!r}; "
            "use a wider box, or shift the inputs towards 0 in the network"
        )
    fixed = FixedNetwork(net, sides, bits, offset, fraction, ())
    low, high = fixed.ends
    before = 0
    for i, part in enumerate(net.layers):
        w, b = part.weight, part.bias
        if i == 0:
            w, b = np.ldexp(w, -fraction), b + w @ offset
        layer = _layer(fixed, w, b, part.functions, low, high, before)
        low, high, before = layer.low, layer.high, layer.fraction
        fixed = FixedNetwork(net, sides, bits, offset, fraction, (*fixed.layers, layer))
    return fixed


def _input_format(box: Floats) -> tuple[Floats, Ints]:
    """Return offset and fraction of each input: the middle of the box, and 16 bits for the distance from it."""
    offset = box.mean(axis=1)
    reach = np.maximum(box[:, 1] - offset, offset - box[:, 0])
    return offset, np.array([_fraction(LARGEST, number) for number in reach])


def _fraction(largest: int, size: float) -> int:
    """Return the largest f with round(size 2^f) <= largest."""
    f = int(np.floor(np.log2(largest) - np.log2(size))) + 1
    while np.floor(np.ldexp(size, f) + 0.5) > largest:
        f -= 1
    return f


def _layer(
    fixed: FixedNetwork, w: Floats, b: Floats, f: Functions | None, low: Ints, high: Ints, before: int
) -> FixedLayer:
    """Return the next layer, for values between low and high of fraction `before`."""
    weight, bias, weight_fraction = _affine(w, b, np.maximum(np.abs(low), np.abs(high)), before, fixed.bits)
    total = weight_fraction + before
    ends = np.sort(np.stack([weight * low, weight * high]), axis=0).sum(axis=2) + bias
    if fixed.layers:
        proved = sum_ranges(fixed, np.ldexp(weight, -weight_fraction), np.ldexp(bias, -total))
        outward = np.stack([np.floor(np.ldexp(proved[0], total)), np.ceil(np.ldexp(proved[1], total))])
        ends = np.clip(outward, ends[0], ends[1]).astype(np.int64)
    knots, slopes, intercepts, kinds, slope_fraction = _activation(f, len(bias), ends, total)
    tables = {"knots": knots, "slopes": slopes, "intercepts": intercepts, "kinds": kinds}
    layer = FixedLayer(
        weight,
        bias,
        **tables,
        weight_fraction=weight_fraction,
        sum_fraction=total,
        slope_fraction=slope_fraction,
        shift=0,
        wide=bool(max(-ends[0].min(), ends[1].max(), np.abs(bias).max()) >= 2**31 - 1),
        low=ends[0],
        high=ends[1],
    )
    return _with_shift(layer, 2**31 - 1 if f is None else LARGEST)


def _affine(w: Floats, b: Floats, size: Ints, before: int, bits: int) -> tuple[Ints, Ints, int]:
    """Return weights, biases and the fraction of the weights: the most bits that fit, with sums below WIDEST."""
    largest = float(np.abs(w).max())
    fraction = _fraction(2 ** (bits - 1) - 1, largest) if largest > 0 else 30 - before
    reach = np.ldexp(np.abs(w) @ size, -before) + np.abs(b)
    if reach.max() > 0:
        fraction = min(fraction, _fraction(WIDEST // 2, float(reach.max())) - before)
    weight, bias = np.ldexp(w, fraction), np.ldexp(b, fraction + before)
    return np.floor(weight + 0.5).astype(np.int64), np.floor(bias + 0.5).astype(np.int64), fraction


def _activation(f: Functions | None, units: int, ends: Ints, total: int) -> tuple[Ints, Ints, Ints, Ints, int]:
    """Return knots, slopes, intercepts, kinds and the slopes' fraction, for sums between `ends` of fraction `total`."""
    if f is None:
        identity = np.zeros((1, 1), dtype=np.int64), np.ones((1, 2), dtype=np.int64), np.zeros((1, 2), dtype=np.int64)
        return *identity, np.zeros(units, dtype=np.int64), 0
    low, high = int(ends[0].min()), int(ends[1].max())
    # a knot that no sum reaches may be anywhere beyond the sums
    knots = np.clip(np.floor(np.ldexp(f.knots, total) + 0.5), low - 1, high + 1).astype(np.int64)
    steepest = float(np.abs(f.slopes).max())
    fraction = min(_fraction(LARGEST, steepest), 15) if steepest > 0 else 15
    # all functions are exact up to rounding at one sum: 0, or the sum nearest to 0 that occurs
    anchor = min(max(0, low), high)
    each = Functions(f.knots, f.slopes, f.intercepts, np.arange(len(f.knots)))
    value = each(np.full(len(f.knots), np.ldexp(float(anchor), -total)))
    if value.any():
        fraction = min(fraction, _fraction(2**59, float(np.abs(value).max())) - total)
    slopes = np.floor(np.ldexp(f.slopes, fraction) + 0.5).astype(np.int64)
    climb = np.concatenate(
        [np.zeros((len(knots), 1), dtype=np.int64), -np.cumsum(np.diff(slopes) * knots, axis=1)], axis=1
    )
    home = np.sum(anchor > knots, axis=1)[:, None]
    start = np.floor(np.ldexp(value, total + fraction) + 0.5).astype(np.int64)[:, None]
    start = start - np.take_along_axis(slopes, home, axis=1) * anchor - np.take_along_axis(climb, home, axis=1)
    return knots, slopes, climb + start, f.kinds, fraction


def _with_shift(layer: FixedLayer, largest: int) -> FixedLayer:
    """Return the layer with the smallest shift that makes all values at most `largest`, and with their range."""
    knots = np.clip(layer.knots[layer.kinds].T, layer.low, layer.high)
    values = layer.activate(np.stack([layer.low, layer.high, *knots]))
    low, high = values.min(axis=0), values.max(axis=0)
    size = int(np.abs(values).max())
    shift = max(size.bit_length() - largest.bit_length(), 0)
    shift += int(rounding_shift(size, shift) > largest)
    return replace(layer, shift=shift, low=rounding_shift(low, shift), high=rounding_shift(high, shift))
