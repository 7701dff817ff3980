"""The oracle: pieces of a network in exact rational arithmetic, one interval or polygon at a time.

A network is a list of layers, each (weight, bias, activation) with activation = (knots, slopes, at_zero) or None, the
numbers Fractions. An affine map of d variables is a tuple of d coefficients and a constant.
"""

from fractions import Fraction
from itertools import pairwise
from operator import eq


def rational(net):
    """Return the layers of a plunit.pieces network as Fractions; every float64 is one exactly."""
    layers = []
    for layer in net.layers:
        part = layer.activation
        f = part and [
            ([Fraction(k) for k in knots if k != float("inf")], [Fraction(s) for s in slopes], Fraction(zero))
            for knots, slopes, zero in zip(
                part.knots.tolist(), part.slopes.tolist(), part.at_zero.tolist(), strict=True
            )
        ]
        weight = [[Fraction(w) for w in row] for row in layer.weight.tolist()]
        layers.append((weight, [Fraction(b) for b in layer.bias.tolist()], f))
    return layers


def combine(weight, bias, maps):
    return [
        tuple(
            sum((w * m[j] for w, m in zip(row, maps, strict=True)), b if j == len(maps[0]) - 1 else Fraction(0))
            for j in range(len(maps[0]))
        )
        for row, b in zip(weight, bias, strict=True)
    ]


def activate(f, z):
    """Return f(z) and f'(z) for a number z."""
    knots, slopes, zero = f
    piece = sum(z > k for k in knots)
    path = sorted([Fraction(0), z])
    marks = [path[0], *(k for k in knots if path[0] < k < path[1]), path[1]]
    rise = sum(((b - a) * slopes[sum((a + b) / 2 > k for k in knots)] for a, b in pairwise(marks)), Fraction(0))
    return zero + (rise if z > 0 else -rise), slopes[piece]


def forward(layers, x):
    """Return f(x) for a point x, a list of Fractions."""
    for weight, bias, f in layers:
        z = [sum((w * y for w, y in zip(row, x, strict=True)), b) for row, b in zip(weight, bias, strict=True)]
        x = z if f is None else [activate(unit, number)[0] for unit, number in zip(f, z, strict=True)]
    return x


def terms(layers, x):
    """Return sum |w| |y| + |b| of the last layer at x: the size of the terms whose sum is f(x)."""
    *hidden, (weight, bias, _) = layers
    y = forward(hidden, x)
    return [
        sum((abs(w * number) for w, number in zip(row, y, strict=True)), abs(b))
        for row, b in zip(weight, bias, strict=True)
    ]


def slope_sizes(layers, x):
    """Return sum |w_n f' w_{n-1} ... w_1| over all paths: the size of the terms whose sum is f'(x), for one input."""
    y, sizes = [x], [Fraction(1)]
    for weight, bias, f in layers:
        z = [
            sum((w * number for w, number in zip(row, y, strict=True)), b) for row, b in zip(weight, bias, strict=True)
        ]
        sizes = [sum(abs(w) * size for w, size in zip(row, sizes, strict=True)) for row in weight]
        if f is not None:
            pairs = [activate(unit, number) for unit, number in zip(f, z, strict=True)]
            y, sizes = [p[0] for p in pairs], [abs(p[1]) * size for p, size in zip(pairs, sizes, strict=True)]
    return sizes


def through(f, affine, middle):
    """Return the map f(affine) near the point `middle`, inside one piece."""
    z = value(affine, middle)
    y, slope = activate(f, z)
    *coefficients, constant = (slope * a for a in affine)
    return (*coefficients, constant + y - slope * z)


def value(affine, point):
    return sum((a * x for a, x in zip(affine, point, strict=False)), affine[-1])


def intervals(net, low, high):
    """Return all intervals of [low, high] with the maps of the outputs, in order."""
    found = [(Fraction(low), Fraction(high), [(Fraction(1), Fraction(0))])]
    for weight, bias, f in rational(net):
        found = [(a, b, combine(weight, bias, maps)) for a, b, maps in found]
        if f is not None:
            found = [piece for interval in found for piece in cut_interval(f, *interval)]
    return found


def cut_interval(f, low, high, maps):
    marks = {low, high}
    for (knots, _, _), (slope, constant) in zip(f, maps, strict=True):
        marks |= {(k - constant) / slope for k in knots if slope != 0}
    for a, b in pairwise(sorted(x for x in marks if low <= x <= high)):
        yield a, b, [through(unit, m, [(a + b) / 2]) for unit, m in zip(f, maps, strict=True)]


def merged(found):
    """Count the pieces when neighbours with the same maps are one."""
    return 1 + sum(one[2] != two[2] for one, two in pairwise(found))


def polygons(net, box, corners=None):
    """Return all polygons of the box, or of the polygon with these corners, with the maps of the outputs."""
    one, zero = Fraction(1), Fraction(0)
    found = [(clipped(box) if corners is None else corners, [(one, zero, zero), (zero, one, zero)])]
    for weight, bias, f in rational(net):
        found = [(corners, combine(weight, bias, maps)) for corners, maps in found]
        for unit, (knots, _, _) in enumerate(f or []):
            for knot in knots:
                found = [part for polygon in found for part in cut_polygon(*polygon, unit, knot)]
        if f is not None:
            found = [
                (corners, [through(g, m, center(corners)) for g, m in zip(f, maps, strict=True)])
                for corners, maps in found
            ]
    return found


def cut_polygon(corners, maps, unit, knot):
    z = [value(maps[unit], corner) - knot for corner in corners]
    if max(z) <= 0 or min(z) >= 0:
        return [(corners, maps)]
    parts = []
    for sign in (-1, 1):
        part = []
        for i, corner in enumerate(corners):
            j = (i + 1) % len(corners)
            if sign * z[i] >= 0:
                part.append(corner)
            if z[i] * z[j] < 0:
                s = z[i] / (z[i] - z[j])
                part.append(tuple(p + s * (q - p) for p, q in zip(corner, corners[j], strict=True)))
        parts.append((part, maps))
    return parts


def center(corners):
    return tuple(sum(axis) / len(corners) for axis in zip(*corners, strict=True))


def area(corners):
    return sum(p[0] * q[1] - p[1] * q[0] for p, q in zip(corners, corners[1:] + corners[:1], strict=True)) / 2


def merged_polygons(found, same=eq):
    """Count the pieces when polygons with a common edge and the same maps are one."""
    root = list(range(len(found)))

    def find(i):
        while root[i] != i:
            i = root[i]
        return i

    on_line = {}
    for i, (corners, _) in enumerate(found):
        for p, q in zip(corners, corners[1:] + corners[:1], strict=True):
            a, b = q[1] - p[1], p[0] - q[0]
            if a == 0 and b == 0:
                continue
            norm = a if a != 0 else b
            axis = 0 if b != 0 else 1
            line = (a / norm, b / norm, (a * p[0] + b * p[1]) / norm)
            on_line.setdefault(line, []).append((*sorted((p[axis], q[axis])), i))
    for edges in on_line.values():
        for low, high, i in edges:
            for low2, high2, j in edges:
                if i < j and min(high, high2) > max(low, low2) and same(found[i][1], found[j][1]):
                    root[find(i)] = find(j)
    return sum(find(i) == i for i in range(len(found)))


def clipped(box, constraints=None):
    """Return the corners of a box of two inputs with rows x <= limits; empty if no x is left."""
    (a, b), (c, d) = (tuple(Fraction(x) for x in side) for side in box)
    corners = [(a, c), (b, c), (b, d), (a, d)]
    for row, limit in zip(*(constraints or ((), ())), strict=True):
        line = [(*(Fraction(float(number)) for number in row), Fraction(0))]
        limit = Fraction(float(limit))
        if min(value(line[0], corner) for corner in corners) > limit:
            return []
        if max(value(line[0], corner) for corner in corners) > limit:
            touching = [corner for corner in corners if value(line[0], corner) <= limit]
            crossing = min(value(line[0], corner) for corner in corners) < limit
            corners = cut_polygon(corners, line, 0, limit)[0][0] if crossing else touching
    return corners


def pieces(net, box, constraints=None):
    """Return all (corners, maps) of a network of one or two inputs."""
    if net.inputs == 1 and box[0][0] == box[0][1]:
        x = Fraction(box[0][0])
        return [([(x,)], [(Fraction(0), number) for number in forward(rational(net), [x])])]
    if net.inputs == 1:
        return [([(low,), (high,)], maps) for low, high, maps in intervals(net, *box[0])]
    return polygons(net, box, clipped(box, constraints) if constraints else None)


def extremes(net, box, constraints=None):
    """Return the least and the largest value of each output over a box, [(low, high), ...], in Fractions."""
    found = pieces(net, box, constraints)
    values = [[value(affine, corner) for affine in maps] for corners, maps in found for corner in corners]
    return [(min(column), max(column)) for column in zip(*values, strict=True)]


def steepest(net, box):
    """Return the gradients of the outputs on all pieces of positive size, [(gradient of each output), ...]."""
    size = (lambda corners: corners[1][0] - corners[0][0]) if net.inputs == 1 else area
    return [[affine[:-1] for affine in maps] for corners, maps in pieces(net, box) if size(corners) > 0]
