"""The largest of several features: max(a, b) = a + relu(b - a), in rounds."""

from __future__ import annotations

import numpy as np

from plunit.pieces import Activation, activation
from plunit.pieces.arrays import Bools, Ints
from plunit.torch.features import Layer, Place, numbers


def maxima(windows: Ints, inputs: int, place: Place) -> list[Layer]:
    """Return max over x[windows[i]] for each i as layers; a window of w features takes log2 w rounds.

    windows: [outputs, taps], indices of features; -1 where a window has fewer. A pair that several windows have is
    compared once.
    """
    # taps that are absent come last
    windows = np.take_along_axis(windows, np.argsort(windows < 0, axis=1, kind="stable"), axis=1)
    if (windows[:, 0] < 0).any():
        raise ValueError("one of its windows holds nothing but padding, where the maximum is -inf; take less padding")
    layers: list[Layer] = []
    while windows.shape[1] > 1:
        pairs = np.pad(windows, ((0, 0), (0, windows.shape[1] % 2)), constant_values=-1).reshape(len(windows), -1, 2)
        # the maximum of two equal features is the first
        pairs[pairs[..., 0] == pairs[..., 1], 1] = -1
        both, index = np.unique(pairs.reshape(-1, 2), axis=0, return_inverse=True)
        absent = int((both[:, 0] < 0).sum())
        windows = np.maximum(index.reshape(pairs.shape[:2]) - absent, -1)
        layers += _round(both[absent:], inputs, place._replace(room=place.room - numbers(layers)))
        inputs = len(both) - absent
    place.check(len(windows), inputs)
    chosen = np.zeros((len(windows), inputs))
    chosen[np.arange(len(windows)), windows[:, 0]] = 1.0
    return [*layers, (chosen, np.zeros(len(windows)))]


def _round(pairs: Ints, inputs: int, place: Place) -> list[Layer]:
    """Return max(x[a], x[b]) for each of the pairs (a, b), or x[a] where b is -1."""
    several = pairs[:, 1] >= 0
    first, source = np.unique(pairs[:, 0], return_inverse=True)
    units = len(first) + int(several.sum())
    place.check(units, inputs + len(pairs))
    split, sums = np.zeros((units, inputs)), np.zeros((len(pairs), units))
    split[np.arange(len(first)), first] = 1.0
    rest = np.arange(len(first), units)
    split[rest, pairs[several, 1]] = 1.0
    split[rest, pairs[several, 0]] = -1.0
    sums[np.arange(len(pairs)), source.reshape(-1)] = 1.0
    sums[np.flatnonzero(several), rest] = 1.0
    return [(split, np.zeros(units)), _mixed(np.arange(units) < len(first)), (sums, np.zeros(len(pairs)))]


def _mixed(passing: Bools) -> Activation:
    """Return z where `passing`, without a knot, and relu(z) elsewhere."""
    return activation.piecewise([np.where(passing, np.inf, 0.0)], [np.where(passing, 1.0, 0.0), 1.0])
