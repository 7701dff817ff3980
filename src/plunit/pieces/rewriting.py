"""Networks made from networks: the same function, or a combination, as one network.

rescale         output_shift + output_scale f((x - shift) / scale), for raw inputs and outputs
join_networks   (f(x), g(x)), where each network has its own inputs
difference      f(x) - g(x)
without_clip    f without a first layer that changes nothing on a box
to_relu         f with ReLU as its only activation
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from plunit.pieces import activation
from plunit.pieces.activation import Activation, identity, stack
from plunit.pieces.arrays import Affine, Floats
from plunit.pieces.networks import Layer, Network, check_network

_FAR = 1024.0
"""A sum that starts at a knot this large loses three digits of a z near 1."""


def rescale(
    net: Network, *, shift: Any = 0.0, scale: Any = 1.0, output_shift: Any = 0.0, output_scale: Any = 1.0
) -> Network:
    """Return the network x -> output_shift + output_scale f((x - shift) / scale), for raw inputs and raw outputs.

    Each argument is a number or an array with one number for each input (output). The new weights and biases are
    computed exactly and rounded once.

    >>> from plunit.pieces import activation, network
    >>> net = network([([[1.0]], [0.0]), activation.relu(), ([[2.0]], [0.0])])
    >>> rescale(net, shift=20.0, scale=5.0, output_scale=10.0)([30.0]).tolist()
    [40.0]
    """
    check_network(net)
    down, width = _numbers(shift, net.inputs, "shift"), _numbers(scale, net.inputs, "scale")
    up, height = _numbers(output_shift, net.outputs, "shift"), _numbers(output_scale, net.outputs, "scale")
    parts = [(_exact(layer.weight), _exact(layer.bias)) for layer in net.layers]
    weight = parts[0][0] / width
    parts[0] = weight, parts[0][1] - weight @ down
    weight, bias = parts[-1]
    parts[-1] = weight * height[:, None], bias * height + up
    rounded = ((_round(weight, "weight"), _round(bias, "bias")) for weight, bias in parts)
    return Network(tuple(Layer(*part, layer.activation) for part, layer in zip(rounded, net.layers, strict=True)))


def _numbers(values: Any, count: int, name: str) -> Any:
    array = np.asarray(values, dtype=np.float64)
    if array.shape not in ((), (1,), (count,)) or not np.isfinite(array).all():
        raise ValueError(f"a {name} must be a finite number or {count} of them, got {values!r}")
    if name == "scale" and not array.all():
        raise ValueError(f"a scale must not be 0, got {values!r}")
    return _exact(np.broadcast_to(array, (count,)))


def _exact(array: Floats) -> Any:
    """Return the numbers as Fractions, in an array of objects."""
    return np.vectorize(Fraction, otypes=[object])(array)


def _round(array: Any, name: str) -> Floats:
    try:
        return np.asarray(array.astype(np.float64))
    except OverflowError:
        raise ValueError(f"a {name} would exceed 1e308 with this scale; use another scale") from None


def difference(one: Network, other: Network) -> Network:
    """X -> one(x) - other(x), as one network."""
    for net in (one, other):
        check_network(net)
    if (one.inputs, one.outputs) != (other.inputs, other.outputs):
        sizes = " and ".join(f"{net.inputs} -> {net.outputs}" for net in (one, other))
        raise ValueError(f"a difference needs networks with equal numbers of inputs and of outputs, got {sizes}")
    every, eye = list(range(one.inputs)), np.eye(one.outputs)
    rows = np.concatenate([eye, -eye], axis=1)
    *hidden, last = join_networks([one, other], [every, every], one.inputs).layers
    return Network((*hidden, Layer(rows @ last.weight, last.bias @ rows.T)))


def join_networks(nets: Sequence[Network], inputs: Sequence[Sequence[int]], count: int) -> Network:
    """Return x -> (f(x), g(x), ...) for x of `count` numbers, where each network reads those at its own places.

    >>> from plunit.pieces import network
    >>> line = network([([[1.0, 10.0]], [0.0])])
    >>> join_networks([line, line], [[0, 1], [2, 0]], 3)([1.0, 2.0, 3.0]).tolist()
    [21.0, 13.0]
    """
    depth = max(len(net.layers) for net in nets)
    layers: list[Layer] = []
    places = [list(each) for each in inputs]
    for level in zip(*(_lengthen(net, depth) for net in nets), strict=True):
        weight, bias = np.zeros((0, count)), np.zeros(0)
        for layer, place in zip(level, places, strict=True):
            rows = np.zeros((len(layer.bias), count))
            rows[:, place] = layer.weight
            place[:] = range(len(bias), len(bias) + len(rows))
            weight, bias = np.concatenate([weight, rows]), np.concatenate([bias, layer.bias])
        functions = [layer.activation for layer in level if layer.activation is not None]
        layers.append(Layer(weight, bias, stack(functions) if functions else None))
        count = len(bias)
    return Network(tuple(layers))


def without_clip(net: Network, box: Floats) -> Network:
    """Return the same function on a box [in, 2], without its first layer if that is x -> x there.

    >>> from plunit.pieces import network
    >>> net = network([(np.eye(1), [0.0]), activation.hardtanh(), ([[2.0]], [0.0])])
    >>> without_clip(net, np.array([[-1.0, 0.5]])), without_clip(net, np.array([[-1.0, 1.5]]))
    (Network(1 - 1), Network(1 - 1 - 1))
    """
    first = net.layers[0]
    if first.activation is None or first.bias.any() or not np.array_equal(first.weight, np.eye(net.inputs)):
        return net
    f = first.activation.functions
    knots, (low, high) = f.knots[f.kinds], box.T[..., None]
    last = (knots < high).sum(axis=1, keepdims=True)
    on, pieces = np.minimum((knots <= low).sum(axis=1, keepdims=True), last), np.arange(knots.shape[1] + 1)
    same = ((f.slopes == 1) & (f.intercepts == 0))[f.kinds]
    return net.rest if same[(on <= pieces) & (pieces <= last)].all() else net


def _lengthen(net: Network, depth: int) -> tuple[Layer, ...]:
    """Return the layers of a network, extended by identities to `depth` layers."""
    more = depth - len(net.layers)
    if not more:
        return net.layers
    *hidden, last = net.layers
    f, eye, zero = identity().broadcast(net.outputs), np.eye(net.outputs), np.zeros(net.outputs)
    return (*hidden, Layer(last.weight, last.bias, f), *[Layer(eye, zero, f)] * (more - 1), Layer(eye, zero))


def to_relu(net: Network) -> Network:
    """PLU(z) = -c - alpha relu(-z - c) + relu(z + c) - (1 - alpha) relu(z - c): the same function with ReLU only.

    A unit with slopes s_0, ..., s_k between knots t_1 < ... < t_k is

        f(z) = f(t_1) - s_0 relu(t_1 - z) + s_1 relu(z - t_1) + sum_{j > 1} (s_j - s_{j-1}) relu(z - t_j),

    so PLU needs three. A unit without knots needs two, relu(z) and relu(-z), and a layer of such units none. Units
    whose factor is 0 are left out: ReLU stays one ReLU. Starting the sum at a knot of size above 1024 would lose
    digits, so it starts at the first knot of size at most 1024, or at 0. Bends left of this start are
    (s_j - s_{j-1}) relu(t_j - z). These factors are multiplied into the weights and rounded, so the two networks differ
    by rounding errors.

    >>> from plunit.pieces import network
    >>> net = network([([[1.0]], [0.0]), activation.plu(0.5), ([[2.0]], [0.0])])
    >>> plain = to_relu(net)
    >>> plain.widths[1], plain([[-3.0], [0.5], [3.0]]).ravel().tolist()
    (3, [-4.0, 1.0, 4.0])
    """
    check_network(net)
    layers, before = list[Layer](), None
    for layer in net.layers:
        affine, f = (layer.weight, layer.bias), layer.activation
        affine = affine if before is None else _product(affine, before)
        if f is None:
            return Network((*layers, Layer(*affine)))
        if (f.slopes == f.slopes[:, :1]).all():
            before = _product((np.diag(f.slopes[:, 0]), f.at_zero), affine)
            continue
        shifts, before = _sums(f)
        weight, bias = _product(shifts, affine)
        layers.append(Layer(weight, bias, activation.relu().broadcast(len(bias))))
    raise AssertionError("the last layer has no activation")


def _product(after: Affine, before: Affine) -> Affine:
    """Return (W, b) of W2 (W1 x + b1) + b2, in double precision."""
    (outer, shift), (inner, start) = after, before
    return outer @ inner, (outer @ start[:, None])[:, 0] + shift


def _sums(f: Activation) -> tuple[Affine, Affine]:
    """Return f_u(z) = constant + sum of factor relu(sign z - shift) as the affine maps before and after the ReLUs."""
    constants, terms = np.zeros(len(f.knots)), []
    for unit in range(len(f.knots)):
        constants[unit], found = _terms(f, unit)
        terms += [(unit, *term) for term in found if term[0] != 0]
    # a layer without terms is constant, but a layer needs a unit
    terms = terms or [(0, 0.0, 1.0, 0.0)]
    before, after = np.zeros((len(terms), len(constants))), np.zeros((len(constants), len(terms)))
    for row, (unit, factor, sign, _) in enumerate(terms):
        before[row, unit], after[unit, row] = sign, factor
    return (before, -np.array(terms)[:, -1]), (after, constants)


def _terms(f: Activation, unit: int) -> tuple[float, list[tuple[float, float, float]]]:
    """Return the constant of one unit, and (factor, sign, shift) of its terms."""
    knots = np.unique(f.knots[unit])
    knots = knots[np.isfinite(knots)]
    # of several knots at one place, the slope after the last counts
    pieces = [np.sum(f.knots[unit] <= knot) for knot in knots]
    slopes = f.slopes[unit][[0, *pieces]]
    near = np.flatnonzero(np.abs(knots) <= _FAR)
    start = float(knots[near[0]]) if len(near) else 0.0
    constant = float(f.part(unit)(start))
    left, right = np.sum(knots < start), np.sum(knots <= start)
    terms = [(-slopes[left], -1.0, -start), (slopes[right], 1.0, start)]
    for knot, bend in zip(knots, np.diff(slopes), strict=True):
        # a bend left of the start of the sum changes f only for z left of the bend
        sign = -1.0 if knot < start else 1.0
        if knot != start:
            terms.append((bend, sign, sign * knot))
    return constant, terms
