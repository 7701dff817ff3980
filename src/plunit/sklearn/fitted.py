"""The members of a fitted estimator as plain arrays, in the units of the data, and one network made of them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from plunit.ensemble import MLP
from plunit.ensemble.arrays import Array
from plunit.ensemble.members import PIECEWISE
from plunit.ensemble.network import spread
from plunit.pieces import Network as Exact
from plunit.pieces import network as build

Layer = tuple[Array, Array]


def member_mean(values: Array) -> Array:
    """Return the mean over the first axis: a sum in the order of the members, also of a single row."""
    return np.asarray(functools.reduce(np.add, values) / len(values))


def side_by_side(network: MLP, theta: Array) -> list[Layer]:
    """Return the mean of the members as layers (weight [out, in], bias [out]) of one network, member after member."""
    layers = [(np.moveaxis(weight, -1, 0), bias.T) for weight, bias in network.layers(theta)]
    members = theta.shape[1]
    if len(layers) == 1:
        return [(layers[0][0].mean(0), layers[0][1].mean(0))]
    first, *between, last = layers
    return [
        (first[0].reshape(-1, network.widths[0]), first[1].ravel()),
        *((_diagonal(weight), bias.ravel()) for weight, bias in between),
        (np.concatenate(list(last[0]), axis=1) / members, last[1].mean(0)),
    ]


def _diagonal(blocks: Array) -> Array:
    members, rows, columns = blocks.shape
    whole = np.zeros((members, rows, members, columns))
    whole[np.arange(members), :, np.arange(members), :] = blocks
    return whole.reshape(members * rows, members * columns)


def shapes_of_units(network: MLP, theta: Array, alpha: float, c: float) -> list[tuple[Array, Array]]:
    """Return alpha and c of every unit of each hidden layer of the members side by side."""
    alphas, cs = network.alphas_and_cs(theta, *(spread(network, theta, value) for value in (alpha, c)))
    return [
        (np.repeat(a, width), np.repeat(b, width)) for a, b, width in zip(alphas, cs, network.widths[1:-1], strict=True)
    ]


def exact_network(network: MLP, theta: Array, alpha: float, c: float) -> Exact:
    """Return the members side by side as one exact network."""
    make = network.function.exact
    if make is None:
        raise AttributeError(
            f"a network of {network.activation} is not piecewise linear and has no exact pieces; "
            f"fit with one of {', '.join(PIECEWISE)}"
        )
    first, *others = side_by_side(network, theta)
    layers: list[Any] = [first]
    for pair, shape in zip(others, shapes_of_units(network, theta, alpha, c), strict=True):
        layers += [make(*shape), pair]
    return build(layers)
