"""Good points before the proof: ascent from many starts, then along the linear regions. Nothing here is proved."""

from __future__ import annotations

import time

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.networks import Network
from plunit.pieces.proofs.domain import Domain
from plunit.pieces.proofs.regions import best_corner, domain_ball, gradient_of, pieces_at

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
