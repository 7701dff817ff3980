"""One linear region: all x for which each unit is on a given piece. Its best corner, a point inside, its gradient.

A pattern is the piece of each unit, layer by layer: arrays [units] of indices into the activation's slopes. `search`
climbs from region to region to a good point, before a program is solved.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.networks import Network
from plunit.pieces.proofs.domain import Domain
from plunit.pieces.proofs.program import Form, Program
from plunit.pieces.rounding import gamma

Side = tuple[Form, Floats | float, Floats]
"""A form, and the least and the largest values that it may have."""

INSIDE = 1e-13
"""A region narrower than this part of the box is as narrow as the rounding of x, and has no inside."""


def pieces_at(net: Network, x: Floats) -> list[Ints]:
    """Return the pattern at x [..., in], arrays [..., units]; on a knot the lower piece."""
    pattern = []
    for layer, f in net.hidden:
        z = x @ layer.weight.T + layer.bias
        piece = (z[..., None] > f.knots).sum(axis=-1)
        x = _take(f.slopes, piece) * z + _take(f.intercepts, piece)
        pattern.append(piece)
    return pattern


def gradient_of(net: Network, pattern: Sequence[Ints]) -> Floats:
    """Return the gradient of the first output where units have this pattern, [..., in]."""
    found: Floats = net.layers[-1].weight[0]
    for (layer, f), piece in zip(net.hidden[::-1], pattern[::-1], strict=True):
        found = np.asarray((found * _take(f.slopes, piece)) @ layer.weight)
    return found


def gradient_error(net: Network, pattern: Sequence[Ints]) -> Floats:
    """Return a bound on the rounding error of `gradient_of`, [..., in]."""
    found: Floats = net.layers[-1].weight[0]
    error = np.zeros_like(found)
    for (layer, f), piece in zip(net.hidden[::-1], pattern[::-1], strict=True):
        slope, wide = _take(f.slopes, piece), np.abs(layer.weight)
        error = ((error + gamma(len(wide) + 3) * (np.abs(found) + error)) * np.abs(slope)) @ wide
        found = np.asarray((found * slope) @ layer.weight)
    return np.asarray(error * (1 + 1e-6))


def best_corner(net: Network, domain: Domain, pattern: Sequence[Ints], deadline: float = np.inf) -> Floats | None:
    """Return the point of the region with the largest first output; None if the region is empty, or time is over."""
    program = Program()
    x = _inputs(program, domain)
    for form, low, high in _sides(net, domain, pattern, x):
        program.limit(form, low, high)
    t = program.relaxation(deadline).maximum(list(_forms(net, pattern, x))[-1][:1]).t
    return None if t is None else domain.clip(_at(x, t))


def inner_point(net: Network, domain: Domain, pattern: Sequence[Ints], deadline: float = np.inf) -> Floats | None:
    """Return the point of the region that is farthest from its sides; None if it has no inside, or time is over."""
    program = Program()
    x = _inputs(program, domain)
    found = _ball(domain, program, x, _sides(net, domain, pattern, x), deadline)
    return None if found is None or found[1] <= INSIDE else found[0]


def domain_ball(domain: Domain) -> tuple[Floats, float] | None:
    """Return center and radius of the largest ball in the domain, for a box of width 1; None if the domain is empty."""
    program = Program()
    x = _inputs(program, domain)
    return _ball(domain, program, x, [_constraints(domain, x)])


def _ball(
    domain: Domain, program: Program, x: Form, sides: Iterable[Side], deadline: float = np.inf
) -> tuple[Floats, float] | None:
    distance = program.columns(1)
    for form, low, high in ((x, *domain.box.T), *sides):
        away = program.padded(form)
        away.matrix[:, distance] = np.linalg.norm(form.matrix, axis=1)[:, None]
        program.limit(away, -np.inf, high)
        away.matrix[:, distance] *= -1
        program.limit(away, low, np.inf)
    goal = program.form(1)
    goal.matrix[0, distance] = 1.0
    t = program.relaxation(deadline).maximum(goal).t
    return None if t is None else (domain.clip(_at(x, t)), float(t[distance][0]))


def _inputs(program: Program, domain: Domain) -> Form:
    program.columns(len(domain.box))
    return Form(np.diag(domain.box[:, 1] - domain.box[:, 0]), domain.box[:, 0])


def _constraints(domain: Domain, x: Form) -> Side:
    return x.map(domain.rows, np.zeros(len(domain.rows))), -np.inf, domain.limits


def _sides(net: Network, domain: Domain, pattern: Sequence[Ints], x: Form) -> Iterator[Side]:
    """Yield forms with the bounds that they have in the region."""
    yield _constraints(domain, x)
    for z, (_, f), piece in zip(_forms(net, pattern, x), net.hidden, pattern, strict=False):
        ends = np.pad(f.knots, ((0, 0), (1, 1)), constant_values=((0, 0), (-np.inf, np.inf)))
        yield z, _take(ends, piece), _take(ends, piece + 1)


def _forms(net: Network, pattern: Sequence[Ints], x: Form) -> Iterator[Form]:
    """Yield z of each layer, and then the outputs."""
    for (layer, f), piece in zip(net.hidden, pattern, strict=True):
        z = x.map(layer.weight, layer.bias)
        yield z
        slope = _take(f.slopes, piece)
        x = Form(slope[:, None] * z.matrix, slope * z.constant + _take(f.intercepts, piece))
    yield x.map(net.layers[-1].weight, net.layers[-1].bias)


def _at(x: Form, t: Floats) -> Floats:
    return np.asarray(x.matrix @ t[: x.matrix.shape[1]] + x.constant)


def _take(table: Floats, piece: Ints) -> Floats:
    """Return table[i, piece[..., i]] for each unit i."""
    return np.asarray(table[np.arange(len(table)), piece])


STARTS = 1000
STEPS = 60
CLIMBS = 8
"""The number of best points that climb along regions."""


def starts(domain: Domain, count: int) -> Floats:
    """Return random points of the domain, [n, in], n from 1 to `count`; ValueError if the domain is empty."""
    rng, (low, high) = np.random.default_rng(0), domain.box.T
    points = rng.uniform(low, high, (count, len(low)))
    points = points[domain.holds(points)]
    if len(points):
        return points
    ball = domain_ball(domain)
    if ball is None:
        raise ValueError("no x in the box meets the constraints; take a larger box or fewer constraints")
    center, radius = ball  # the radius of a flat domain is 0, or a little less by rounding
    return domain.clip(center + radius * (high - low) * rng.uniform(-1, 1, (count, len(low))) / np.sqrt(len(low)))


def search(net: Network, domain: Domain, deadline: float) -> tuple[Floats, float]:
    """Return a point x [in] where the network's first output is large, and the largest |f| seen.

    The deadline is a time of time.monotonic().
    """
    begin = starts(domain, STARTS)
    points = _ascend(net, domain, begin, deadline)
    values = net(points)[:, 0]
    best = points[np.argsort(-values)[:CLIMBS]]
    climbed = np.stack([climb(net, domain, x, deadline) if time.monotonic() < deadline else x for x in best])
    tops = net(climbed)[:, 0]
    seen = np.concatenate([net(begin)[:, 0], values, tops])
    return np.asarray(climbed[np.argmax(tops)]), float(np.abs(seen).max())


def climb(net: Network, domain: Domain, x: Floats, deadline: float) -> Floats:
    """Go from x to the best corner of its linear region, a little beyond, and on, while the value grows."""
    best = float(net(x)[0])
    for _ in range(100):
        corner = best_corner(net, domain, pieces_at(net, x), deadline)
        if corner is None:
            return x
        beyond = domain.clip(corner + (corner - x) * np.array([0, 1e-7, 1e-5, 1e-3, 1e-1])[:, None])
        beyond = beyond[domain.holds(beyond)]
        values = net(beyond)[:, 0] if len(beyond) else np.full(1, -np.inf)
        if not values.max() > best + 1e-13 * abs(best):
            return x
        x, best = beyond[values.argmax()], float(values.max())
    return x


def _ascend(net: Network, domain: Domain, x: Floats, deadline: float) -> Floats:
    """Move each x [n, in] along the sign of its gradient by steps that shrink; a step out of the domain is not made."""
    width = domain.box[:, 1] - domain.box[:, 0]
    best, top = x, net(x)[:, 0]
    for step in np.geomspace(0.1, 1e-3, STEPS):
        if time.monotonic() > deadline:
            break
        moved = domain.clip(x + step * width * np.sign(gradient_of(net, pieces_at(net, x))))
        x = np.where(domain.holds(moved)[:, None], moved, x)
        value = net(x)[:, 0]
        best, top = np.where((value > top)[:, None], x, best), np.maximum(value, top)
    return best
