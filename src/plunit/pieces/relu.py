"""Any network as a plain ReLU network, exactly: a bend at a knot is one ReLU, PLU is three."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from plunit.pieces import activation
from plunit.pieces.activation import Activation
from plunit.pieces.arrays import Floats
from plunit.pieces.networks import Network, network, single


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
    without knots takes two, relu(z) and relu(-z). Units whose factor is 0 are left out: ReLU stays one ReLU.

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
        """Return the affine layers before and behind the terms."""
        # a layer without any term is constant, and still needs a unit
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
    # of several knots at one place, the slope behind the last counts
    behind = [np.sum(f.knots[0, unit] <= knot) for knot in knots]
    slopes = f.slopes[0, unit][[0, *behind]]
    intercepts = f.intercepts[0, unit][[0, *behind]]
    bends = slopes[1:] - slopes[:-1]
    if not only_relu:
        terms.constants.append(float(intercepts[0]))
        terms.add(unit, slopes[0], 1.0, 0.0, passed=True)
        for knot, bend in zip(knots, bends, strict=True):
            terms.add(unit, bend, 1.0, knot)
    elif not len(knots):
        terms.constants.append(float(intercepts[0]))
        terms.add(unit, slopes[0], 1.0, 0.0)
        terms.add(unit, -slopes[0], -1.0, 0.0)
    else:
        terms.constants.append(float(slopes[1] * knots[0] + intercepts[1]))
        terms.add(unit, -slopes[0], -1.0, -knots[0])
        terms.add(unit, slopes[1], 1.0, knots[0])
        for knot, bend in zip(knots[1:], bends[1:], strict=True):
            terms.add(unit, bend, 1.0, knot)
