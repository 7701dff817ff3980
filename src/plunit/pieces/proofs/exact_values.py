"""What a network is at one point, for certain: its outputs as fractions, or as a float with a bound on its error."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.functions import Functions
from plunit.pieces.networks import Network
from plunit.pieces.rounding import rounding_bound


def exact_outputs(net: Network, x: Floats) -> list[Fraction]:
    """Return f(x) of the real-number network, exactly, for x [in].

    >>> from plunit.pieces import activation, network
    >>> exact_outputs(network([([[0.5]], [0.0]), activation.plu(0.25), ([[1.0]], [0.0])]), np.array([6.0]))
    [Fraction(3, 2)]
    """
    values = [Fraction(number) for number in x.tolist()]
    for layer in net.layers:
        values = [
            sum((Fraction(w) * v for w, v in zip(row, values, strict=True) if w), Fraction(bias))
            for row, bias in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True)
        ]
        if layer.activation is not None:
            values = _applied(Functions.of(layer.activation), values)
    return values


def _applied(f: Functions, z: list[Fraction]) -> list[Fraction]:
    found = []
    for kind, value in zip(f.kinds.tolist(), z, strict=True):
        piece = sum(value > knot for knot in f.knots[kind].tolist())
        found.append(Fraction(f.slopes[kind, piece]) * value + f.intercepts[kind, piece])
    return found


def certain_value(net: Network, x: Floats, goal: Floats) -> float:
    """Return a number that goal f(x) is not below: quickly, and exactly where the quick one leaves its sign open."""
    value = float(net(x) @ goal)
    error = np.abs(goal) @ (rounding_bound(net, np.stack([x, x], axis=1)) + 1e-15 * len(goal) * np.abs(net(x)))
    if value - error > 0 or value + error < 0:
        return value - float(error)
    exact = sum((Fraction(g) * y for g, y in zip(goal.tolist(), exact_outputs(net, x), strict=True)), Fraction(0))
    return float(exact) if Fraction(float(exact)) <= exact else float(np.nextafter(float(exact), -np.inf))
