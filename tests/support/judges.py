"""Is the curve, or are the polygons, of a random network right? Rational arithmetic decides.

Right means, for every x that is looked at:

- the value is off by at most 1e-6 of the largest |f|, or of the largest term in the sum that f is, beyond what f does
  within four units in the last place of x; where the network itself, in floating point, is off by more than 1e-9
  anywhere, by at most 32 times that;
- slopes are right and no clear kink is missing, as far as values can show it: a kink that moves f by less than 32
  roundings of the largest term in the sum that f is shows in no value, neither in the curve's nor in the network's
  (1 - 1 - 1e-17 x is 0 or 2e-16 in floating point);
- for networks of ordinary scales, the numbers of patterns and pieces are the exact ones, not counting what is shorter
  than 1e-12 or bends less than that; for wild ones, no piece is too many.
"""

import bisect
from fractions import Fraction
from itertools import pairwise

import numpy as np
import rational_networks
from random_networks import scaled_network

from plunit.pieces import curve, polygons

LOW, HIGH = -3.0, 3.0
BOX = ((-2.0, 2.0), (-1.5, 2.5))
EPS = 2.0**-52
NEAR = 4 * EPS
WRONG = 1e-6
SHORT = 1e-12


def judge_curve(seed):
    """Return "right", "refused: ..." or "wrong: ..." for the curve of one network."""
    net = scaled_network(seed, inputs=1, width=5, depth=3)
    try:
        found = curve(net, LOW, HIGH)
    except ValueError as error:
        return f"refused: {error}"
    exact = rational_networks.intervals(net, LOW, HIGH)
    layers = rational_networks.rational(net)
    starts = [low for low, _, _ in exact]

    def at(x):
        maps = exact[max(bisect.bisect_right(starts, x) - 1, 0)][2]
        return [rational_networks.value(affine, [x]) for affine in maps]

    ends = np.array([float(low) for low in starts])
    middles = np.array([float((low + high) / 2) for low, high, _ in exact])
    own = (found.knots[1:] + found.knots[:-1]) / 2
    x = np.concatenate([[LOW, HIGH], ends, np.nextafter(ends, 9), np.nextafter(ends, -9), middles, found.knots, own])
    x = np.unique(np.clip(x, LOW, HIGH))
    fault = _values(
        net, layers, x[:, None], {"curve": found(x), "merged": found.merge()(x)}, lambda point: at(point[0])
    )
    return fault or _slopes(layers, exact, found) or _curve_counts(seed, exact, found) or "right"


def judge_polygons(seed):
    """Return "right", "refused: ..." or "wrong: ..." for the polygons of one network."""
    net = scaled_network(seed, inputs=2, width=3, depth=2 if seed % 8 else 3)
    try:
        found = polygons(net, BOX)
    except ValueError as error:
        return f"refused: {error}"
    exact = rational_networks.polygons(net, BOX)
    layers = rational_networks.rational(net)
    corners = [corner for polygon, _ in exact for corner in polygon]
    points = [rational_networks.center(polygon) for polygon, _ in exact] + corners
    x = np.array([[float(number) for number in point] for point in points])
    x = np.unique(np.clip(np.concatenate([x, found.vertices]), *np.transpose(BOX)), axis=0)
    fault = _values(net, layers, x, {"polygons": found(x)}, lambda point: rational_networks.forward(layers, point))
    if fault:
        return fault
    area = float(found.areas.sum())
    if abs(area - 16) > 1e-9 or found.areas.min() < -1e-9:
        return f"wrong: areas add up to {area}, the smallest is {found.areas.min()}"
    large = [polygon for polygon in exact if rational_networks.area(polygon[0]) > SHORT]
    pieces = rational_networks.merged_polygons(large, _same)
    if seed % 2 == 0 and (found.patterns, found.pieces) != (len(large), pieces):
        return f"wrong: {found.patterns} polygons and {found.pieces} pieces, not {len(large)} and {pieces}"
    return "right"


def _values(net, layers, points, answers, f):
    """Compare answers [n, out] at points [n, in] with the exact f."""
    own = net(points)
    points = [[Fraction(float(number)) for number in point] for point in points]
    exact = [f(point) for point in points]
    for i, want in enumerate(zip(*exact, strict=True)):
        size, allowed = max(float(abs(number)) for number in want), None
        for name, answer in answers.items():
            for point, got, number in zip(points, answer[:, i], want, strict=True):
                error = _gap(got, number)
                if error <= WRONG * size:
                    continue
                if allowed is None:
                    rounding = max(_gap(one, number) for one, number in zip(own[:, i], want, strict=True))
                    size = max(size, float(max(rational_networks.terms(layers, point)[i] for point in points)))
                    allowed = WRONG * size + (32 * rounding if rounding > 1e-9 * size else 0.0)
                if error > allowed + max(_gap(f(near)[i], number) for near in _around(point)):
                    place = [float(number) for number in point]
                    return f"wrong: {name}[{i}] at {place} is {got}, not {float(number)}; network: {net(place)[i]}"
    return None


def _gap(number, exact):
    return abs(float(Fraction(number) - exact))


def _around(point):
    """Yield the corners of the box of four units in the last place around a point, within the domain."""
    sides = [(LOW, HIGH)] if len(point) == 1 else BOX
    ends = [
        [min(max(x + sign * Fraction(NEAR) * abs(x), Fraction(low)), Fraction(high)) for sign in (-1, 1)]
        for x, (low, high) in zip(point, sides, strict=True)
    ]
    return [[x] for x in ends[0]] if len(point) == 1 else [[x, y] for x in ends[0] for y in ends[1]]


def _slopes(layers, exact, found):
    """Compare slopes, and look for clear kinks that are missing, on pieces where values can show it."""
    scale = 1e-12 * np.abs(found.values).max(axis=0)
    inner = found.merge().knots[1:-1]
    before = None
    for low, high, maps in exact:
        if high - low <= 1e-9 * max(1, abs(low)):
            before = None
            continue
        middle = (low + high) / 2
        size = [1e-9 * float(number) for number in rational_networks.slope_sizes(layers, middle)]
        length, slopes, piece = (
            float(high - low),
            [float(one[0]) for one in maps],
            np.searchsorted(inner, float(middle)),
        )
        for i, got in enumerate(found.derivative(float(middle))):
            error = abs(got - slopes[i])
            if error > size[i] and error * length > scale[i]:
                return f"wrong: slope {got} between {float(low)} and {float(high)}, output {i}, not {slopes[i]}"
        if before and before[3] == piece:
            jumps = np.abs(np.subtract(slopes, before[0]))
            effect = jumps * min(length, before[2])
            if (jumps > np.add(size, before[1])).any() and (effect > scale).any() and _shows(layers, exact, effect):
                return f"wrong: no kink at {float(low)}"
        before = slopes, size, length, piece
    return None


def _shows(layers, exact, effect):
    """Return whether a change of f [out] is more than the rounding of the terms whose sum is f."""
    sizes = [rational_networks.terms(layers, [end]) for low, high, _ in exact for end in (low, high)]
    return (effect > [32 * EPS * float(max(terms)) for terms in zip(*sizes, strict=True)]).any()


def _curve_counts(seed, exact, found):
    long = [piece for piece in exact if piece[1] - piece[0] > SHORT]
    patterns, pieces = len(long), 1 + sum(not _same(one[2], two[2]) for one, two in pairwise(long))
    if seed % 2 == 0 and (found.patterns, found.pieces) != (patterns, pieces):
        return f"wrong: {found.patterns} patterns and {found.pieces} pieces, not {patterns} and {pieces}"
    if found.pieces > rational_networks.merged(exact):
        return f"wrong: {found.pieces} pieces, but there are {rational_networks.merged(exact)}"
    return None


def _same(one, two):
    """Return whether maps have equal coefficients, but for 1e-12."""
    return all(
        abs(a - b) <= SHORT * max(1, abs(a)) for p, q in zip(one, two, strict=True) for a, b in zip(p, q, strict=True)
    )


JUDGES = {"curve": judge_curve, "polygons": judge_polygons}


def verdict(task):
    """Return the task (kind, seed) and its verdict; what is raised besides a refusal is wrong."""
    kind, seed = task
    try:
        return task, JUDGES[kind](seed)
    except Exception as error:
        return task, f"wrong: {type(error).__name__}: {error}"
