"""fixed(x) - net(x) as one network of x and of all rounding errors, for an optimiser to bound."""

from __future__ import annotations

import numpy as np

from plunit.pieces.activation import Activation, identity
from plunit.pieces.arrays import Floats
from plunit.pieces.combining import beside
from plunit.pieces.fixed.forms import EPS
from plunit.pieces.fixed.integers import FixedNetwork, check_fixed
from plunit.pieces.fixed.zonotopes import Pair, pairs
from plunit.pieces.functions import Functions
from plunit.pieces.networks import Network


def error_network(fixed: FixedNetwork) -> tuple[Network, Floats]:
    """Return the network D and a box with fixed(x) - net(x) = D(x, e) for rounding errors e in that box.

    The inputs of D are x, the errors of rounding x, and those of rounding the values of each layer that rounds, in
    order. Units without knots pass the errors on to the layer that they belong to. Any bound on |D| bounds the error of
    fixed point. The exact max |D| over the box is at least the error and at most `error_bound`.
    """
    check_fixed(fixed)
    layers = pairs(fixed)
    # the errors that enter each layer with its inputs, and those of the outputs
    groups = [fixed.net.inputs, *(len(pair.bias) if pair.rounding else 0 for pair in layers)]
    weights, biases, activations = [], [], []
    for i, pair in enumerate(layers):
        ours, theirs, passed = _rows(pair, i == 0, groups[i], sum(groups[i + 1 :]))
        back = fixed.offset if i == 0 else np.zeros(pair.weight.shape[1])
        own, other = pair.fixed_bias - pair.fixed_weight @ back, pair.bias - pair.weight @ back
        if pair.f is not None and pair.fixed_f is not None:
            weights.append(np.concatenate([ours, theirs, passed]))
            biases.append(np.concatenate([own, other, np.zeros(len(passed))]))
            both = _activation(pair.fixed_f), _activation(pair.f)
            activations.append(beside(*both, identity().spread(len(passed), 1)))
        else:
            weights.append(ours - theirs + (passed if len(passed) else 0.0))
            biases.append(own - other)
    net = Network(tuple(w[None] for w in weights), tuple(b[None] for b in biases), tuple(activations))
    return net, _error_box(fixed, layers)


def _rows(pair: Pair, first: bool, errors: int, rest: int) -> tuple[Floats, Floats, Floats]:
    """Return the weights of the fixed units, of the network's own, and of `rest` errors that are passed on.

    The columns: fixed inputs h, the network's inputs (both are x in the first layer), the errors of h, and the rest.
    """
    units, inputs = pair.weight.shape
    none = np.zeros((units, 0 if first else inputs))
    entering = pair.fixed_weight if errors else np.zeros((units, 0))
    ours = np.concatenate([pair.fixed_weight, none, entering, np.zeros((units, rest))], axis=1)
    theirs = np.concatenate([none, pair.weight, np.zeros((units, errors + rest))], axis=1)
    return ours, theirs, np.eye(ours.shape[1])[ours.shape[1] - rest :]


def _error_box(fixed: FixedNetwork, layers: list[Pair]) -> Floats:
    """Return the sides of x and of all rounding errors, [inputs of D, 2]."""
    reach = np.abs(fixed.box - fixed.offset[:, None]).max(axis=1)
    halves = [np.ldexp(0.5, -fixed.fraction) + EPS * reach]
    halves += [np.full(len(pair.bias), pair.rounding) for pair in layers if pair.rounding]
    half = np.concatenate(halves)
    return np.concatenate([fixed.box, np.stack([-half, half], axis=1)])


def _activation(f: Functions) -> Activation:
    knots, slopes, _ = f.of_units()
    return Activation(knots[None], slopes[None], f(np.zeros(len(f.kinds)))[None])
