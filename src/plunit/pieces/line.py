"""The exact curves of a network on an interval, or along a line or polyline through its inputs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plunit.pieces.arrays import Floats, Ints, blocks
from plunit.pieces.checking import checked_line
from plunit.pieces.curve_data import Curve
from plunit.pieces.layer import SAFETY
from plunit.pieces.limits import LIMIT, Progress, Unlisted, check_limit
from plunit.pieces.merging import group_starts
from plunit.pieces.networks import Network, check_network, interval, single
from plunit.pieces.tracing import Polyline, inputs, trace


class Counts(NamedTuple):
    """How many activation patterns each member has, and how many functionally distinct pieces; both [members].

    Both are 0 for a member whose pieces double precision cannot distinguish; `curve` or `cells` of it says why.
    """

    patterns: Ints
    pieces: Ints


def curve(net: Network, low: float, high: float, *, limit: int = LIMIT, progress: Progress | None = None) -> Curve:
    """Return f on [low, high] as a Curve: all its knots, slopes and intercepts; for a network of one input.

    The curve is right to 1e-7 of the largest |f|, beyond the rounding of x. If that is not possible, an error says
    where and why.

    >>> from plunit.pieces import activation, network
    >>> net = network([([[2.0]], [0.0]), activation.plu(), ([[3.0]], [1.0])])
    >>> f = curve(net, -1, 2)
    >>> f.knots.tolist(), f.slopes.round(9).ravel().tolist(), f.intercepts.round(9).ravel().tolist()
    ([-1.0, -0.5, 0.5, 2.0], [0.6, 6.0, 0.6], [-1.7, 1.0, 3.7])
    """
    single(net)
    t = _interval(net, low, high)
    return _curves(net, t, t[:, None], limit, progress)[0]


def curves(net: Network, low: float, high: float, *, limit: int = LIMIT) -> list[Curve]:
    """Return the curve of every member of an ensemble of one-input networks on [low, high]."""
    t = _interval(net, low, high)
    return [each for part in _parts(net) for each in _curves(part, t, t[:, None], limit)]


def counts(net: Network, low: float, high: float, *, limit: int = LIMIT) -> Counts:
    """Count patterns and pieces on [low, high] in every member of an ensemble of one-input networks.

    >>> from plunit.pieces import activation, network
    >>> counts(network([([[1.0], [1.0]], [0.0, 0.5]), activation.relu(), ([[1.0, 0.0]], [0.0])]), -1, 1)
    Counts(patterns=array([3]), pieces=array([2]))
    """
    t = _interval(net, low, high)
    check_limit(limit)
    parts = [_counts(part, t, limit) for part in _parts(net)]
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
    return _curves(net, np.arange(len(path), dtype=np.float64), path, limit)[0]


def _interval(net: Network, low: float, high: float) -> Floats:
    """Return low, 0 if it lies between, and high: cuts near 0 are found from there, where numbers are densest."""
    check_network(net)
    if net.inputs != 1:
        raise ValueError(f"this network has {net.inputs} inputs, a curve on an interval needs 1; use along(net, a, b)")
    low, high = interval((low, high), "an interval")
    return np.array([low, 0.0, high] if low < 0 < high else [low, high])


def _parts(net: Network) -> list[Network]:
    """Split a large ensemble so that the weights of all its points stay within the caches."""
    return [net.part(block) for block in blocks(net.members, 1024)]


def _counts(net: Network, t: Floats, limit: int) -> Counts:
    line = trace(net, t, t[:, None], limit)
    line, faults = checked_line(net, line, line.t[:, None])
    found = Counts(_patterns(line, net.members), _pieces(line, net.members))
    for member in faults:
        found.patterns[member] = found.pieces[member] = 0
    return found


def _patterns(line: Polyline, members: int) -> Ints:
    return np.asarray(1 + np.bincount(line.member[line.turn], minlength=members))


def _pieces(line: Polyline, members: int) -> Ints:
    pieces = np.flatnonzero(~line.last)
    fresh = np.concatenate([[True], line.last[pieces[1:] - 1]])
    first = group_starts(line.slope[pieces, 0], SAFETY * line.slope[pieces, 1], fresh)
    return np.bincount(line.member[pieces[first]], minlength=members)


def _curves(net: Network, t: Floats, points: Floats, limit: int, progress: Progress | None = None) -> list[Curve]:
    check_limit(limit)
    line = trace(net, t, points, limit, progress)
    line, faults = checked_line(net, line, inputs(line, t, points))
    for member, reason in faults.items():
        raise Unlisted(reason if net.members == 1 else f"member {member}: {reason}")
    patterns, ends = _patterns(line, net.members).tolist(), (np.flatnonzero(line.last) + 1).tolist()
    tolerance = SAFETY * line.slope[:, 1]
    result = []
    for count, start, end in zip(patterns, [0, *ends[:-1]], ends, strict=True):
        knots, values, slopes = line.t[start:end], line.value[start:end, 0], line.slope[start : end - 1, 0]
        result.append(Curve.traced(knots, values, slopes, count, tolerance[start : end - 1]))
    return result
