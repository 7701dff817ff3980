"""Follow a polyline through a network, or through all members of an ensemble at once.

The state between layers is the broken line x -> y(x) in the space of that layer: its points in order, and the exact
slope of every segment, which is carried by the chain rule and never by differences. An affine layer moves the points;
an activation first adds the points where a unit crosses a knot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plunit.pieces.arrays import Bools, Floats, Ints, Words
from plunit.pieces.crossing import Points, cuts, joined, limited
from plunit.pieces.layer import EPS, SAFETY, TINY, Layer, affine, largest, rounding
from plunit.pieces.networks import Network, check_size


@dataclass(frozen=True, eq=False)
class Trace:
    """Points t in order, member after member, with what the network is there.

    t, member, turn: [n]; turn says that the activation pattern changes at t.
    value, slope: [n, out]; the slope is that of the segment that starts at t.
    last: [n], the end of a member's line. tolerance: [members, out], slopes closer than that are equal.
    """

    t: Floats
    member: Ints
    last: Bools
    turn: Bools
    value: Floats
    slope: Floats
    tolerance: Floats


@dataclass(frozen=True, eq=False)
class _Line:
    """The state before a layer: like Trace, with the rounding errors of values and slopes [members, in]."""

    t: Floats
    member: Ints
    last: Bools
    turn: Bools
    value: Floats
    slope: Floats
    value_error: Floats
    slope_error: Floats


def trace(net: Network, t: Floats, points: Floats, limit: int) -> Trace:
    """Return the pieces of f along the polyline through points [n, in] at parameters t [n], in every member."""
    check_size(net, np.abs(points).max(axis=0))
    line = _start(net.members, t, points)
    for weight, bias, activation in zip(net.weights, net.biases, net.activations, strict=False):
        slope = affine(weight, np.zeros_like(bias), line.slope, line.member)
        error = rounding(weight, bias, largest(line.value, line.member, net.members), line.value_error)
        # t itself is rounded: with this no two cuts have the same t
        error = np.hypot(error, EPS * np.abs(t).max() * largest(slope, line.member, net.members))
        slope_error = rounding(
            weight, np.zeros_like(bias), largest(line.slope, line.member, net.members), line.slope_error
        )
        layer = Layer.of(weight, bias, activation, error)
        with limited(limit):
            line = _through(layer, line, slope, error, slope_error, limit)
    return _finish(net, line)


def _start(members: int, t: Floats, points: Floats) -> _Line:
    slope = np.zeros_like(points)
    slope[:-1] = np.diff(points, axis=0) / np.diff(t)[:, None]
    last = np.arange(len(t)) == len(t) - 1
    return _Line(
        np.tile(t, members),
        np.repeat(np.arange(members), len(t)),
        np.tile(last, members),
        np.zeros(members * len(t), dtype=np.bool_),
        np.tile(points, (members, 1)),
        np.tile(slope, (members, 1)),
        np.tile(EPS * np.abs(points).max(axis=0), (members, 1)),
        np.tile(EPS * np.abs(slope).max(axis=0), (members, 1)),
    )


def _through(layer: Layer, line: _Line, slope: Floats, error: Floats, slope_error: Floats, limit: int) -> _Line:
    """Add the points where a unit crosses a knot, and apply the activation."""
    points = Points.at(layer, line.t[:, None], line.value, line.member)
    tail = np.flatnonzero(~line.last)
    parts, segment = cuts(layer, points, tail, tail + 1, limit - len(tail))
    after = tail[segment]
    source = np.zeros(len(points) + len(segment), dtype=np.int64)
    inserted = np.zeros(len(source), dtype=np.bool_)
    slots = np.arange(len(segment)) + after + 1
    inserted[slots] = True
    source[slots] = len(points) + np.arange(len(segment))
    source[~inserted] = np.arange(len(points))
    origin = np.cumsum(~inserted) - 1
    points, last = joined(points, *parts).take(source), line.last[origin] & ~inserted
    last[:-1] &= ~inserted[1:]
    above = points.above | points.above[:, np.where(last, np.arange(len(last)), np.arange(1, len(last) + 1))]
    return _Line(
        points.place[:, 0],
        points.member,
        last,
        line.turn[origin] | _turns(above, last),
        layer.forward(points.rows, points.member),
        slope[origin] * layer.slope(above, points.member),
        layer.steepest * error,
        layer.steepest * slope_error,
    )


def _turns(above: Words, last: Bools) -> Bools:
    """Return the points where the piece that ends and the piece that starts are above different knots."""
    turns = np.zeros(len(last), dtype=np.bool_)
    turns[1:] = (above[:, 1:] != above[:, :-1]).any(axis=0) & ~last[1:] & ~last[:-1]
    return turns


def _finish(net: Network, line: _Line) -> Trace:
    """Apply the last affine layer."""
    weight, none = net.weights[-1], np.zeros_like(net.biases[-1])
    value = affine(weight, net.biases[-1], line.value, line.member)
    slope = affine(weight, none, line.slope, line.member)
    error = rounding(weight, none, largest(line.slope, line.member, net.members), line.slope_error)
    return Trace(line.t, line.member, line.last, line.turn, value, slope, SAFETY * error + TINY)
