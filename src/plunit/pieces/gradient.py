"""df/dx = W_n D_{n-1} W_{n-1} ... D_1 W_1 on every cell, from its activation pattern, with D_i = diag f_i'.

Gradients by the chain rule are exact to rounding on the thinnest cell; differences of values are not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plunit.pieces.arrays import Floats, Ints, Words, blocks
from plunit.pieces.layer import EPS, SAFETY, TINY, Layer
from plunit.pieces.networks import Network

BLOCK = 2**12


def gradients(net: Network, patterns: Sequence[Words], member: Ints) -> tuple[Floats, Floats]:
    """Return df/dx of cells with these patterns [cells, out, in], and the tolerance within which two are equal.

    The tolerance [members, out, in] is 512 times the rounding error, by the rule of `layer` from the last layer back.
    """
    layers = net.layers()
    sizes = [np.zeros((net.members, net.outputs, len(layer.bias[0]))) for layer in layers]
    found = np.empty((len(member), net.outputs, net.inputs))
    for block in blocks(len(member), BLOCK):
        who = member[block]
        gradient = np.broadcast_to(_of(net.weights[-1], who), (len(who), *net.weights[-1].shape[1:]))
        for layer, above, size in zip(reversed(layers), reversed(patterns), reversed(sizes), strict=True):
            gradient = gradient * layer.slope(above[:, block], who)[:, None, :]
            _raise(size, who, gradient)
            gradient = _times(gradient, layer.weight, who)
        found[block] = gradient
    return found, SAFETY * _error(net, layers, sizes) + TINY


def _error(net: Network, layers: Sequence[Layer], sizes: Sequence[Floats]) -> Floats:
    """Return the rounding error of the gradients, given the largest entries [members, out, units] after each D."""
    error = EPS * np.abs(net.weights[-1])
    for layer, size in zip(reversed(layers), reversed(sizes), strict=True):
        carried = (error * layer.steepest[:, None, :]) ** 2 @ layer.weight**2
        error = np.sqrt(carried + (EPS * size @ np.abs(layer.weight)) ** 2)
    return error


def _of(array: Floats, member: Ints) -> Floats:
    return array if len(array) == 1 else array[member]


def _times(gradient: Floats, weight: Floats, member: Ints) -> Floats:
    """Return the product gradient [cells, out, units] W [units, in] of each cell."""
    if len(weight) > 1:
        return np.asarray(gradient @ weight[member])
    cells, out, units = gradient.shape
    return np.asarray(gradient.reshape(cells * out, units) @ weight[0]).reshape(cells, out, -1)


def _raise(size: Floats, member: Ints, gradient: Floats) -> None:
    """Raise size to the largest entries of the gradients of each member."""
    if len(size) == 1:
        np.maximum(size[0], np.abs(gradient).max(axis=0, initial=0.0), out=size[0])
    else:
        np.maximum.at(size, member, np.abs(gradient))
