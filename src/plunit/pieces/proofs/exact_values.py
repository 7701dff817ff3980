"""What a network is at one point, for certain: its outputs as fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.functions import Functions
from plunit.pieces.networks import Network


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


def exceeds_zero(net: Network, x: Floats, goal: Floats) -> bool:
    """Whether goal f(x) > 0, in exact arithmetic; far below 0 it is not computed."""
    y = net(x)
    if y @ goal < -1e-9 * float(np.abs(goal) @ np.abs(y)):
        return False
    terms = zip(goal.tolist(), exact_outputs(net, x), strict=True)
    return sum((Fraction(g) * value for g, value in terms), Fraction(0)) > 0
