"""f(x) = G x + b on every polygon, by its pattern: G = W_n D_{n-1} W_{n-1} ... D_1 W_1 with D_i = diag f_i'.

Maps by the chain rule are exact to rounding even on the thinnest polygon. Maps from differences of values are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from plunit.pieces.arrays import Floats, Ints, Words, blocks
from plunit.pieces.layer import EPS, SAFETY, TINY, Affine, Units, of_members
from plunit.pieces.networks import Network

BLOCK = 2**12


class Maps(NamedTuple):
    """gradient [polygons, out, in], intercept [polygons, out], and the gradient's tolerance [polygons, out, in]."""

    gradient: Floats
    intercept: Floats
    tolerance: Floats


def maps(net: Network, patterns: Sequence[Words], member: Ints) -> Maps:
    """Return the affine maps of polygons with these patterns and members [polygons].

    The tolerance is 32 times the rounding error of the gradient, by the rule of `layer` from the last layer back.
    """
    found = [_maps(net, [above[:, block] for above in patterns], member[block]) for block in blocks(len(member), BLOCK)]
    return Maps(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _maps(net: Network, patterns: Sequence[Words], member: Ints) -> Maps:
    outputs = net.outputs
    # a row for each output of each polygon
    who = np.repeat(member, outputs)
    rows = np.broadcast_to(of_members(net.weights[-1], member), (len(member), *net.weights[-1].shape[1:]))
    rows = rows.reshape(len(who), -1)
    state = np.stack([rows, EPS * np.abs(rows)], axis=1)
    constant = np.broadcast_to(of_members(net.biases[-1], member), (len(member), outputs)).reshape(-1).copy()
    for i in reversed(range(len(patterns))):
        units = Units.of(net.activations[i])
        slope, shift = (
            np.repeat(units.chosen(part, patterns[i], member), outputs, axis=0)
            for part in (units.slopes, units.intercepts)
        )
        constant += (state[:, 0] * shift).sum(axis=1)
        state[:, 0] *= slope
        state[:, 1] *= np.abs(slope)
        constant += (state[:, 0] * of_members(net.biases[i], who)).sum(axis=1)
        weight = net.weights[i].swapaxes(1, 2)
        state = Affine(weight, np.zeros(weight.shape[:2])).of(state, who)
    state = state.reshape(len(member), outputs, 2, net.inputs)
    return Maps(state[:, :, 0], constant.reshape(len(member), outputs), SAFETY * state[:, :, 1] + TINY)
