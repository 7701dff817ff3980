"""The exact curves of a network on an interval, or along a line or polyline through its inputs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plunit.pieces.arrays import Floats, Ints, blocks
from plunit.pieces.curve import Curve
from plunit.pieces.networks import Network, single
from plunit.pieces.tracing import Trace, trace

LIMIT = 2_000_000


class Counts(NamedTuple):
    """How many activation patterns each member has, and how many functionally distinct pieces; both [members]."""

    patterns: Ints
    pieces: Ints


def curve(net: Network, low: float, high: float, *, limit: int = LIMIT) -> Curve:
    """Return f on [low, high] as a Curve: all its knots, slopes and intercepts; for a network of one input.

    >>> from plunit.pieces import activation, network
    >>> net = network([([[2.0]], [0.0]), activation.plu(), ([[3.0]], [1.0])])
    >>> f = curve(net, -1, 2)
    >>> f.knots.tolist(), f.slopes.round(9).ravel().tolist(), f.intercepts.round(9).ravel().tolist()
    ([-1.0, -0.5, 0.5, 2.0], [0.6, 6.0, 0.6], [-1.7, 1.0, 3.7])
    """
    single(net)
    return curves(net, low, high, limit=limit)[0]


def curves(net: Network, low: float, high: float, *, limit: int = LIMIT) -> list[Curve]:
    """Return the curve of every member of an ensemble of one-input networks on [low, high]."""
    t = _interval(net, low, high)
    return [each for part in _parts(net) for each in _curves(trace(part, t, t[:, None], limit))]


def counts(net: Network, low: float, high: float, *, limit: int = LIMIT) -> Counts:
    """Count patterns and pieces on [low, high] in every member of an ensemble of one-input networks.

    >>> from plunit.pieces import activation, network
    >>> counts(network([([[1.0], [1.0]], [0.0, 0.5]), activation.relu(), ([[1.0, 0.0]], [0.0])]), -1, 1)
    Counts(patterns=array([3]), pieces=array([2]))
    """
    t = _interval(net, low, high)
    parts = [_counts(trace(part, t, t[:, None], limit)) for part in _parts(net)]
    return Counts(*(np.concatenate(numbers) for numbers in zip(*parts, strict=True)))


def along(net: Network, *points: Any, limit: int = LIMIT) -> Curve:
    """Return g(t) = f(a + t (b - a)), t in [0, 1], as a Curve; with more points a polyline, [i, i + 1] its leg i.

    >>> from plunit.pieces import activation, network
    >>> net = network([([[1.0, 1.0]], [0.0]), activation.relu()])
    >>> along(net, [-1, 0], [3, 0]).knots.tolist()
    [0.0, 0.25, 1.0]
    """
    single(net)
    corners = [np.asarray(point, dtype=np.float64) for point in points]
    if len(corners) < 2 or any(corner.shape != (net.inputs,) for corner in corners):
        shapes = [corner.shape for corner in corners]
        raise ValueError(f"along needs two or more points with {net.inputs} coordinates each, got shapes {shapes}")
    path = np.stack(corners)
    if not np.isfinite(path).all():
        raise ValueError(f"the points of a line must be finite, got {path.tolist()}")
    return _curves(trace(net, np.arange(len(path), dtype=np.float64), path, limit))[0]


def _interval(net: Network, low: float, high: float) -> Floats:
    if net.inputs != 1:
        raise ValueError(f"this network has {net.inputs} inputs, a curve on an interval needs 1; use along(net, a, b)")
    if not -np.inf < low < high < np.inf:
        raise ValueError(f"an interval needs finite low < high, got [{low}, {high}]")
    return np.array([low, high], dtype=np.float64)


def _parts(net: Network) -> list[Network]:
    """Split a large ensemble so that the weights of all its points stay within the caches."""
    return [net.part(block) for block in blocks(net.members, 512)]


def _counts(lines: Trace) -> Counts:
    members = len(lines.tolerance)
    bend = np.zeros(len(lines.t), dtype=np.bool_)
    jump = np.abs(np.diff(lines.slope, axis=0)) > lines.tolerance[lines.member[1:]]
    bend[1:] = jump.any(axis=1) & ~lines.last[1:] & ~lines.last[:-1]
    return Counts(*(1 + np.bincount(lines.member[flag], minlength=members) for flag in (lines.turn, bend)))


def _curves(lines: Trace) -> list[Curve]:
    patterns = _counts(lines).patterns
    ends = np.flatnonzero(lines.last) + 1
    result = []
    for member, (start, end) in enumerate(zip(np.append(0, ends[:-1]), ends, strict=True)):
        knots, values, slopes = lines.t[start:end], lines.value[start:end], lines.slope[start : end - 1]
        result.append(Curve(knots, values, slopes, int(patterns[member]), lines.tolerance[member]))
    return result
