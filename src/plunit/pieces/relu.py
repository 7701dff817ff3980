"""Any network as a plain ReLU network, exactly: a bend at a knot is one ReLU, PLU is three."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from plunit.pieces import activation
from plunit.pieces.activation import Activation
from plunit.pieces.arrays import Floats
from plunit.pieces.layer import Units
from plunit.pieces.networks import Network, network, single

FAR = 1024.0
"""A sum that starts at a knot of this size loses three digits of a z near 1."""


def to_relu(net: Network, *, only_relu: bool = False) -> Network:
    """PLU(z) = alpha z + (1 - alpha) (relu(z + c) - relu(z - c) - c): the same function with ReLU as only activation.

    Args:
        net: a network with any piecewise-linear activations.
        only_relu: every hidden unit is a ReLU. Otherwise a unit may also be the identity, which passes z through.

    A unit with slopes s_0, ..., s_k between knots t_1 < ... < t_k is

        f(z) = s_0 z + b + sum_j (s_j - s_{j-1}) relu(z - t_j),

    so that PLU takes two ReLU units and one that passes z through. With only_relu it is

        f(z) = f(t_1) - s_0 relu(t_1 - z) + s_1 relu(z - t_1) + sum_{j > 1} (s_j - s_{j-1}) relu(z - t_j),

    so that PLU takes three, whatever z is: -c - alpha relu(-z - c) + relu(z + c) - (1 - alpha) relu(z - c). A unit
    without knots takes two, relu(z) and relu(-z). Units whose factor is 0 are left out: ReLU stays one ReLU. A sum that
    starts at a knot above 1024 in size would lose digits. So the sum starts at the first knot of at most 1024 in size,
    or at 0. Bends left of this start are (s_j - s_{j-1}) relu(t_j - z).

    >>> net = network([([[1.0]], [0.0]), activation.plu(0.5), ([[2.0]], [0.0])])
    >>> plain = to_relu(net, only_relu=True)
    >>> plain.biases[0].shape[1], plain([[-3.0], [0.5], [3.0]]).ravel().tolist()
    (3, [-4.0, 1.0, 4.0])
    """
    single(net)
    layers: list[Activation | tuple[Floats, Floats]] = [(net.weights[0][0], net.biases[0][0])]
    for weight, bias, f in zip(net.weights[1:], net.biases[1:], net.activations, strict=True):
        terms = _Terms()
        for unit in range(weight.shape[2]):
            _expand(terms, unit, f.part(slice(0, 1)), only_relu)
        before, spread = terms.matrices(weight.shape[2])
        layers += [before, terms.activation(), spread, (weight[0], bias[0])]
    return network(layers)


@dataclass
class _Terms:
    """f_u(z_u) = constants[u] + sum of factor g(sign z_u - shift) over its terms; g is ReLU or the identity."""

    terms: list[tuple[int, float, float, float, bool]] = field(default_factory=list)
    constants: list[float] = field(default_factory=list)

    def add(self, unit: int, factor: float, sign: float, shift: float, passed: bool = False) -> None:
        """Add factor g(sign z - shift), unless the factor is 0."""
        if factor != 0:
            self.terms.append((unit, factor, sign, shift, passed))

    def matrices(self, units: int) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """Return the affine layers before and after the terms."""
        # a layer without terms is constant, but a layer needs a unit
        terms = self.terms or [(0, 0.0, 1.0, 0.0, False)]
        before, spread = np.zeros((len(terms), units)), np.zeros((units, len(terms)))
        for row, (unit, factor, sign, _, _) in enumerate(terms):
            before[row, unit], spread[unit, row] = sign, factor
        return (before, -np.array([shift for *_, shift, _ in terms])), (spread, np.array(self.constants))

    def activation(self) -> Activation:
        """Return ReLU, or ReLU and identity, unit by unit."""
        passed = np.array([passed for *_, passed in self.terms])
        if not passed.any():
            return activation.relu()
        return activation.piecewise([np.where(passed, np.inf, 0.0)], [passed.astype(float), 1.0])


def _expand(terms: _Terms, unit: int, f: Activation, only_relu: bool) -> None:
    """Add the terms of one unit."""
    knots = np.unique(f.knots[0, unit])
    knots = knots[np.isfinite(knots)]
    # if several knots are at one place, the slope after the last counts
    behind = [np.sum(f.knots[0, unit] <= knot) for knot in knots]
    slopes = f.slopes[0, unit][[0, *behind]]
    bends = slopes[1:] - slopes[:-1]
    first = _start(knots)
    rest = [j for j in range(len(knots)) if j != first]
    home = int((knots < 0).sum()) if first is None else first
    if first is None:
        terms.constants.append(float(f.at_zero[0, unit]))
        _line(terms, unit, slopes[home], only_relu)
    elif only_relu:
        terms.constants.append(_at(f, unit, knots[first]))
        terms.add(unit, -slopes[first], -1.0, -knots[first])
        terms.add(unit, slopes[first + 1], 1.0, knots[first])
    else:
        terms.constants.append(_at(f, unit, knots[first]) - float(slopes[first] * knots[first]))
        _line(terms, unit, slopes[first], only_relu)
        terms.add(unit, bends[first], 1.0, knots[first])
    for j in rest:
        # a bend left of the start of the sum changes f only for z on the left of the bend
        sign = -1.0 if j < home else 1.0
        terms.add(unit, bends[j], sign, sign * knots[j])


def _start(knots: Floats) -> int | None:
    """Return the knot at which the sum starts: the first of at most `FAR` in size; None if there is none."""
    near = np.flatnonzero(np.abs(knots) <= FAR)
    return int(near[0]) if len(near) else None


def _line(terms: _Terms, unit: int, slope: float, only_relu: bool) -> None:
    """Add slope z."""
    if only_relu:
        terms.add(unit, slope, 1.0, 0.0)
        terms.add(unit, -slope, -1.0, 0.0)
    else:
        terms.add(unit, slope, 1.0, 0.0, passed=True)


def _at(f: Activation, unit: int, z: float) -> float:
    """Return f(z) of one unit."""
    units = Units.of(f)
    return float(units.values(np.full((1, f.knots.shape[1]), z), np.zeros(1, dtype=np.int64))[0, unit])
