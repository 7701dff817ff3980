"""g(x) = output_shift + output_scale f((x - shift) / scale): scaling that becomes part of a network's weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from plunit.pieces import activation
from plunit.pieces.activation import Activation, identity
from plunit.pieces.arrays import Floats
from plunit.pieces.exact.layer import Units
from plunit.pieces.networks import Network, network, single


def rescaled(
    net: Network, *, shift: Any = 0.0, scale: Any = 1.0, output_shift: Any = 0.0, output_scale: Any = 1.0
) -> Network:
    """Return the network x -> output_shift + output_scale f((x - shift) / scale), for raw inputs and raw outputs.

    Each argument is a number or an array with one number for each input (output). The new weights and biases are the
    exact ones, rounded once.

    >>> from plunit.pieces import activation, network
    >>> net = network([([[1.0]], [0.0]), activation.relu(), ([[2.0]], [0.0])])
    >>> rescaled(net, shift=20.0, scale=5.0, output_scale=10.0)([30.0]).tolist()
    [40.0]
    """
    single(net)
    down, width = _numbers(shift, net.inputs, "shift"), _numbers(scale, net.inputs, "scale")
    up, height = (
        _numbers(output_shift, net.outputs, "output_shift"),
        _numbers(output_scale, net.outputs, "output_scale"),
    )
    for name, numbers in (("scale", width), ("output_scale", height)):
        if any(number == 0 for number in numbers):
            raise ValueError(f"{name} must not be 0, got {[float(number) for number in numbers]}")
    weights, biases = [_exact(w[0]) for w in net.weights], [_exact(b[0]) for b in net.biases]
    weights[0] = weights[0] / width
    biases[0] = biases[0] - weights[0] @ down
    weights[-1], biases[-1] = weights[-1] * height[:, None], biases[-1] * height + up
    return Network(
        tuple(_rounded(w, "weight")[None] for w in weights),
        tuple(_rounded(b, "bias")[None] for b in biases),
        net.activations,
    )


def _numbers(values: Any, count: int, name: str) -> Any:
    array = np.asarray(values, dtype=np.float64)
    if array.shape not in ((), (1,), (count,)) or not np.isfinite(array).all():
        raise ValueError(f"{name} must be a finite number or {count} of them, got {values!r}")
    return _exact(np.broadcast_to(array, (count,)))


def _exact(array: Floats) -> Any:
    """Return the numbers as Fractions, in an array of objects."""
    return np.vectorize(Fraction, otypes=[object])(array)


def _rounded(array: Any, name: str) -> Floats:
    try:
        return np.asarray(array.astype(np.float64))
    except OverflowError:
        raise ValueError(f"a {name} becomes larger than 1e308 with this scale; take another scale") from None


def combination(net: Network, rows: Any, offset: Any = 0.0) -> Network:
    """X -> rows f(x) + offset: linear combinations of the outputs; rows [new out, out], offset [new out].

    >>> from plunit.pieces import network
    >>> both = network([([[1.0], [2.0]], [0.0, 1.0])])
    >>> combination(both, [[1.0, -1.0]])([3.0]).tolist()
    [-4.0]
    """
    rows = np.asarray(rows, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != net.outputs:
        raise ValueError(f"rows must be [new outputs, {net.outputs}], one list for each new output, got {rows.shape}")
    bias = net.biases[-1] @ rows.T + np.broadcast_to(np.asarray(offset, dtype=np.float64), len(rows))
    return Network((*net.weights[:-1], rows @ net.weights[-1]), (*net.biases[:-1], bias), net.activations)


def difference(one: Network, other: Network) -> Network:
    """X -> one(x) - other(x), as one network."""
    for net in (one, other):
        single(net)
    if (one.inputs, one.outputs) != (other.inputs, other.outputs):
        raise ValueError(
            f"a difference needs networks of the same inputs and outputs, got {one.inputs} -> {one.outputs} and "
            f"{other.inputs} -> {other.outputs}"
        )
    depth = max(len(one.activations), len(other.activations))
    one, other = _lengthened(one, depth), _lengthened(other, depth)
    weights = [np.concatenate([one.weights[0], other.weights[0]], axis=1)]
    weights += [_diagonal(a, b) for a, b in zip(one.weights[1:-1], other.weights[1:-1], strict=True)]
    biases = [np.concatenate(pair, axis=1) for pair in zip(one.biases[:-1], other.biases[:-1], strict=True)]
    if not depth:
        return Network((one.weights[0] - other.weights[0],), (one.biases[0] - other.biases[0],), ())
    weights.append(np.concatenate([one.weights[-1], -other.weights[-1]], axis=2))
    biases.append(one.biases[-1] - other.biases[-1])
    activations = [beside(f, g) for f, g in zip(one.activations, other.activations, strict=True)]
    return Network(tuple(weights), tuple(biases), tuple(activations))


def _lengthened(net: Network, depth: int) -> Network:
    """Return the same function with `depth` activations: identities are added at the end."""
    more = depth - len(net.activations)
    eye, zero, f = np.eye(net.outputs)[None], np.zeros((1, net.outputs)), identity().spread(net.outputs, 1)
    return Network(net.weights + (eye,) * more, net.biases + (zero,) * more, net.activations + (f,) * more)


def _diagonal(a: Floats, b: Floats) -> Floats:
    """Return the matrix [1, out, in] with blocks a and b."""
    top = np.pad(a, ((0, 0), (0, 0), (0, b.shape[2])))
    return np.concatenate([top, np.pad(b, ((0, 0), (0, 0), (a.shape[2], 0)))], axis=1)


def beside(*parts: Activation) -> Activation:
    """Return the activation of the units of all parts, [1, units] each; missing knots are at infinity."""
    knots = max(f.knots.shape[-1] for f in parts)
    padded = [_widened(f, knots) for f in parts]
    return Activation(*(np.concatenate(pair, axis=1) for pair in zip(*padded, strict=True)))


def _widened(f: Activation, knots: int) -> tuple[Floats, Floats, Floats]:
    more = ((0, 0), (0, 0), (0, knots - f.knots.shape[-1]))
    return np.pad(f.knots, more, constant_values=np.inf), np.pad(f.slopes, more, mode="edge"), f.at_zero


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
