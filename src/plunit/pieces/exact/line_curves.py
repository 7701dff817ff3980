"""f(x) = values[i] + slopes[i] (x - knots[i]) on [knots[i], knots[i + 1]]: exact piecewise-linear curves.

`curve`, `curves`, `counts` and `along` compute the curves of networks; `solve` and `curve_distance` work on curves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from plunit.base.ranges import as_count
from plunit.pieces.arrays import Bools, Floats, Ints, blocks
from plunit.pieces.boxes import interval
from plunit.pieces.exact.affine_maps import group_starts
from plunit.pieces.exact.agreement import check_agreement, check_line, raise_tolerance
from plunit.pieces.exact.limits import LIMIT, Report, Unlisted
from plunit.pieces.exact.polylines import Polyline, trace_line
from plunit.pieces.exact.tolerance import SAFETY
from plunit.pieces.networks import Ensemble, Network, as_ensemble, check_network
from plunit.pieces.rounding import EPS

_TOLERANCE = 512 * EPS
"""The default tolerance: numbers that differ by less, relative to the largest, are equal."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A continuous piecewise-linear function of one variable with any number of outputs.

    Args:
        knots: [n + 1], increasing; the first and the last are the ends of the domain.
        values: [n + 1, out], f at the knots.
        slopes: [n, out], f' between them; they must agree with the values.
        patterns: the number of activation patterns that the network passes through; n by default.
        tolerance: [n, out], two slopes are equal if they differ by at most the sum of their tolerances; by default
            512 eps max|slope|.

    `pieces` counts functionally distinct pieces: neighbours with equal slopes in every output are one. There are more
    patterns than pieces if a kink is dead, which means that it bends no output. `merge` removes dead kinks.

    >>> tent = Curve([0, 1, 2], [[0], [1], [0]], [[1], [-1]])
    >>> tent([0.5, 1.5]).ravel().tolist(), tent.integral(0, 2).tolist(), tent.maximum()
    ([0.5, 0.5], [1.0], (1.0, 1.0))
    """

    knots: Floats
    values: Floats
    slopes: Floats
    patterns: int = 0
    tolerance: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        arrays = (np.asarray(part, dtype=np.float64) for part in (self.knots, self.values, self.slopes, self.tolerance))
        knots, values, slopes, tolerance = arrays
        n, outputs = slopes.shape if slopes.ndim == 2 else (0, 0)
        if n * outputs == 0 or knots.shape != (n + 1,) or values.shape != (n + 1, outputs):
            shapes = knots.shape, values.shape, slopes.shape
            raise ValueError(f"a curve needs knots [n + 1], values [n + 1, out] and slopes [n, out], got {shapes}")
        if not tolerance.size:
            tolerance = _TOLERANCE * np.abs(slopes).max(axis=0, keepdims=True)
        try:
            tolerance = np.broadcast_to(tolerance, slopes.shape)
        except ValueError:
            raise ValueError(
                f"tolerance must have the shape of the slopes, {slopes.shape}, got {tolerance.shape}"
            ) from None
        patterns = as_count("patterns", self.patterns) or n
        vars(self).update(knots=knots, values=values, slopes=slopes, tolerance=tolerance, patterns=patterns)
        _check_numbers(self)
        check_agreement(knots, values, slopes, tolerance)

    @classmethod
    def assemble(cls, knots: Floats, values: Floats, slopes: Floats, patterns: int, tolerance: Floats) -> Curve:
        """Return a curve from parts that have been checked already."""
        curve = object.__new__(cls)
        vars(curve).update(knots=knots, values=values, slopes=slopes, patterns=patterns, tolerance=tolerance)
        return curve

    @property
    def low(self) -> float:
        """The left end of the domain."""
        return float(self.knots[0])

    @property
    def high(self) -> float:
        """The right end of the domain."""
        return float(self.knots[-1])

    @property
    def intercepts(self) -> Floats:
        """The b of each piece f(x) = slope x + b, [n, out]."""
        return self.values[:-1] - self.slopes * self.knots[:-1, None]

    @property
    def kinks(self) -> Bools:
        """Which of knots[1:-1] bend some output, [n - 1]."""
        return group_starts(self.slopes, self.tolerance, np.arange(len(self.slopes)) == 0)[1:]

    @property
    def pieces(self) -> int:
        """The number of functionally distinct pieces."""
        return 1 + int(self.kinks.sum())

    def merge(self) -> Curve:
        """Return the same function without the knots that bend no output."""
        keep = np.concatenate([[True], self.kinks, [True]])
        knots, values, slopes = self.knots[keep], self.values[keep], self.slopes[keep[:-1]]
        tolerance = raise_tolerance(knots, values, slopes, self.tolerance[keep[:-1]])
        return self.assemble(knots, values, slopes, self.patterns, tolerance)

    def output(self, index: int) -> Curve:
        """Return one output as a curve."""
        values, slopes, tolerance = (part[:, [index]] for part in (self.values, self.slopes, self.tolerance))
        return self.assemble(self.knots, values, slopes, self.patterns, tolerance)

    def __call__(self, x: Any) -> Floats:
        """f(x): [...] -> [..., out], for x in the domain."""
        x, i = self._find(x)
        s = ((x - self.knots[i]) / (self.knots[i + 1] - self.knots[i]))[..., None]
        return np.asarray((1 - s) * self.values[i] + s * self.values[i + 1])

    def derivative(self, x: Any) -> Floats:
        """f'(x): [...] -> [..., out]; at a knot the slope to its right, at the last knot the slope to its left."""
        return self.slopes[self.piece(x)]

    def piece(self, x: Any) -> Ints:
        """Return the index of the piece that holds x, [...]; at a knot the piece to its right, at the end the last."""
        x, i = self._find(x)
        if np.isnan(x).any():
            raise ValueError(f"x must be numbers in [{self.low}, {self.high}], got NaN; leave it out")
        return i

    def integral(self, a: float, b: float) -> Floats:
        """Return the integral of f from a to b, [out]; with a > b, minus the integral from b to a."""
        return np.asarray(self._primitive(b) - self._primitive(a))

    def maximum(self, output: int = 0) -> tuple[float, float]:
        """(x, f(x)) where an output is largest; the first such knot."""
        top = np.argmax(self.values[:, output])
        return float(self.knots[top]), float(self.values[top, output])

    def minimum(self, output: int = 0) -> tuple[float, float]:
        """(x, f(x)) where an output is smallest; the first such knot."""
        bottom = np.argmin(self.values[:, output])
        return float(self.knots[bottom]), float(self.values[bottom, output])

    def _primitive(self, x: float) -> Floats:
        at, i = self._find(x)
        widths = np.diff(self.knots[: i + 1])[:, None]
        whole = (0.5 * (self.values[:i] + self.values[1 : i + 1]) * widths).sum(axis=0)
        return np.asarray(whole + 0.5 * (at - self.knots[i]) * (self.values[i] + self(at)))

    def _find(self, x: Any) -> tuple[Floats, Ints]:
        """Return x as an array and the piece that holds it."""
        x = np.asarray(x, dtype=np.float64)
        outside = x[(x < self.low) | (x > self.high)]
        if outside.size:
            raise ValueError(f"x = {outside.flat[0]} is outside [{self.low}, {self.high}]; use a larger interval")
        return x, np.searchsorted(self.knots[1:-1], x, side="right")


def _check_numbers(curve: Curve) -> None:
    for name in ("knots", "values", "slopes", "tolerance"):
        wrong = ~np.isfinite(getattr(curve, name))
        if wrong.any():
            raise ValueError(f"{name} must be finite, got {getattr(curve, name)[wrong][0]}")
    if not (np.diff(curve.knots) > 0).all():
        at = int(np.argmin(np.diff(curve.knots) > 0))
        raise ValueError(f"knots must be increasing, got {curve.knots[at]} before {curve.knots[at + 1]}; sort them")
    if (curve.tolerance < 0).any():
        raise ValueError(f"tolerance must be >= 0, got {curve.tolerance.min()}")


def solve(f: Curve, y: float, output: int = 0) -> Floats:
    """Return all x with f(x) = y, in order, as intervals [n, 2]; a single solution is an interval [x, x].

    A knot with |f - y| <= 512 eps max(|f|, |y|) counts as a solution, so that a maximum at the height y is found.

    >>> solve(Curve([0, 1, 2, 3], [[0], [1], [1], [0]], [[1], [0], [-1]]), 1.0).tolist()
    [[1.0, 2.0]]
    """
    if not np.isfinite(y):
        raise ValueError(f"y must be finite, got {y}")
    gap = f.values[:, output] - y
    gap[np.abs(gap) <= _TOLERANCE * max(abs(y), np.abs(f.values[:, output]).max())] = 0.0
    crossing = np.flatnonzero(gap[:-1] * np.sign(gap[1:]) < 0)
    between = f.knots[crossing] + gap[crossing] / (gap[crossing] - gap[crossing + 1]) * np.diff(f.knots)[crossing]
    level = np.concatenate([[False], gap == 0, [False]])
    first, last = (np.flatnonzero(edge) for edge in (level[1:] & ~level[:-1], level[:-1] & ~level[1:]))
    flat = np.stack([f.knots[first[first < len(gap)]], f.knots[last - 1]], axis=1)
    found = np.concatenate([np.stack([between, between], axis=1), flat])
    return found[np.argsort(found[:, 0])]


def curve_distance(f: Curve, g: Curve) -> float:
    """Return sup |f(x) - g(x)| over the domain and all outputs; it is reached at a knot of one of them."""
    if (f.low, f.high) != (g.low, g.high) or f.values.shape[1] != g.values.shape[1]:
        raise ValueError(f"curves need the same domain and outputs, got [{f.low}, {f.high}] and [{g.low}, {g.high}]")
    x = np.union1d(f.knots, g.knots)
    return float(np.abs(f(x) - g(x)).max())


class Counts(NamedTuple):
    """The numbers of activation patterns and of functionally distinct pieces of each member; both [members].

    Both are 0 for a member whose pieces double precision cannot distinguish; `curve` or `polygons` says why.
    """

    patterns: Ints
    pieces: Ints


def curve(net: Network, low: float, high: float, *, limit: int = LIMIT, progress: Report | None = None) -> Curve:
    """Return a network of one input on [low, high] as a Curve, with all knots, slopes and intercepts.

    The curve is accurate to 1e-7 of the largest |f|, apart from the rounding of x. If that is not possible, an error
    says where and why.

    >>> from plunit.pieces import activation, network
    >>> net = network([([[2.0]], [0.0]), activation.plu(), ([[3.0]], [1.0])])
    >>> f = curve(net, -1, 2)
    >>> f.knots.tolist(), f.slopes.round(9).ravel().tolist(), f.intercepts.round(9).ravel().tolist()
    ([-1.0, -0.5, 0.5, 2.0], [0.6, 6.0, 0.6], [-1.7, 1.0, 3.7])
    """
    check_network(net)
    t = _interval(net, low, high)
    return _curves(net.alone, t, t[:, None], limit, progress)[0]


def curves(nets: Network | Ensemble, low: float, high: float, *, limit: int = LIMIT) -> list[Curve]:
    """Return the curve of each member of an ensemble of one-input networks on [low, high]."""
    nets = as_ensemble(nets)
    t = _interval(nets, low, high)
    return [each for part in _parts(nets) for each in _curves(part, t, t[:, None], limit)]


def counts(nets: Network | Ensemble, low: float, high: float, *, limit: int = LIMIT) -> Counts:
    """Return the numbers of patterns and pieces on [low, high] of each member of an ensemble of one-input networks.

    >>> from plunit.pieces import activation, network
    >>> counts(network([([[1.0], [1.0]], [0.0, 0.5]), activation.relu(), ([[1.0, 0.0]], [0.0])]), -1, 1)
    Counts(patterns=array([3]), pieces=array([2]))
    """
    nets = as_ensemble(nets)
    t = _interval(nets, low, high)
    parts = [_counts(part, t, limit) for part in _parts(nets)]
    return Counts(*(np.concatenate(numbers) for numbers in zip(*parts, strict=True)))


def along(net: Network, *points: Any, limit: int = LIMIT) -> Curve:
    """Return g(t) = f(a + t (b - a)), t in [0, 1], as a Curve; more points give a polyline with leg i on [i, i + 1].

    >>> from plunit.pieces import activation, network
    >>> net = network([([[1.0, 1.0]], [0.0]), activation.relu()])
    >>> along(net, [-1, 0], [3, 0]).knots.tolist()
    [0.0, 0.25, 1.0]
    """
    check_network(net)
    corners = [np.asarray(point, dtype=np.float64) for point in points]
    if len(corners) < 2 or any(corner.shape != (net.inputs,) for corner in corners):
        shapes = [corner.shape for corner in corners]
        raise ValueError(f"along needs two or more points with {net.inputs} coordinates each, got shapes {shapes}")
    path = np.stack(corners)
    if not np.isfinite(path).all():
        raise ValueError(f"the points of a line must be finite, got {path.tolist()}")
    return _curves(net.alone, np.arange(len(path), dtype=np.float64), path, limit)[0]


def _interval(net: Network | Ensemble, low: float, high: float) -> Floats:
    """Return low, 0 if it lies between them, and high: cuts near 0 start from there, where numbers are densest."""
    if net.inputs != 1:
        raise ValueError(f"this network has {net.inputs} inputs, a curve on an interval needs 1; use along(net, a, b)")
    low, high = interval((low, high), "an interval")
    return np.array([low, 0.0, high] if low < 0 < high else [low, high])


def _parts(nets: Ensemble) -> list[Ensemble]:
    """Return a large ensemble in parts, so that the weights of all points fit into the processor's caches."""
    return [nets.part(block) for block in blocks(nets.members, 1024)]


def _trace(
    nets: Ensemble, t: Floats, points: Floats, limit: int, progress: Report | None = None
) -> tuple[Polyline, Ints, dict[int, str]]:
    """Return the pieces along a polyline, the number of patterns of each member, and its faults by member."""
    as_count("limit", limit, 1, np.inf)
    line = trace_line(nets, t, points, limit, progress)
    x = np.stack([np.interp(line.t, t, column) for column in points.T], axis=1)
    line, faults = check_line(nets, line, x)
    return line, 1 + np.bincount(line.member[line.turn], minlength=nets.members), faults


def _counts(nets: Ensemble, t: Floats, limit: int) -> Counts:
    line, patterns, faults = _trace(nets, t, t[:, None], limit)
    pieces = np.flatnonzero(~line.last)
    fresh = np.concatenate([[True], line.last[pieces[1:] - 1]])
    first = group_starts(line.slope[pieces, 0], SAFETY * line.slope[pieces, 1], fresh)
    found = Counts(patterns, np.bincount(line.member[pieces[first]], minlength=nets.members))
    for member in faults:
        found.patterns[member] = found.pieces[member] = 0
    return found


def _curves(nets: Ensemble, t: Floats, points: Floats, limit: int, progress: Report | None = None) -> list[Curve]:
    line, patterns, faults = _trace(nets, t, points, limit, progress)
    for member, reason in faults.items():
        raise Unlisted(reason if nets.members == 1 else f"member {member}: {reason}")
    ends = (np.flatnonzero(line.last) + 1).tolist()
    tolerance = SAFETY * line.slope[:, 1]
    result = []
    for count, start, end in zip(patterns.tolist(), [0, *ends[:-1]], ends, strict=True):
        knots, values, slopes = line.t[start:end], line.value[start:end, 0], line.slope[start : end - 1, 0]
        result.append(Curve.assemble(knots, values, slopes, count, tolerance[start : end - 1]))
    return result
