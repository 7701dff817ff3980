"""All fits of an ensemble as one image: how many networks go through each pixel."""

from __future__ import annotations

import numpy as np

from plunit.ensemble import Network
from plunit.ensemble.arrays import Array
from plunit.play.targets import Task

WIDTH, HEIGHT = 96, 80
"""Pixels of an image."""

WORK = 4_000_000
"""Products that one update may take; of larger ensembles some networks are renewed in each, in turn."""

_BLOCK = 16  # columns at once: what is between layers stays in the cache

View = tuple[tuple[float, float], tuple[float, float]]
"""The ends of the picture, from left to right and from bottom to top."""


class Cloud:
    """The pixel in which each network is, at each of `WIDTH` inputs."""

    def __init__(self, network: Network, members: int, task: Task, view: View, shape: tuple[float, float]) -> None:
        x_scale, y_scale = task.scales
        # of a parametric curve the two outputs are drawn, at twice as many places
        count = WIDTH if task.outputs == 1 else 2 * WIDTH
        self._x = x_scale(np.linspace(*task.box[0], count)[:, None]).astype(np.float32).T
        # pixel = offset + factor z for an output z; 0 and the last one are outside
        self._pixels = []
        for output, (low, high) in enumerate(view[2 - task.outputs :]):
            size = HEIGHT if output == task.outputs - 1 else WIDTH
            factor = size / (high - low)
            offset = 1 + factor * (y_scale.mean[output] - low)
            self._pixels.append((size, np.float32(factor * y_scale.spread[output]), np.float32(offset)))
        self._network, self._shape, self._next = network, shape, 0
        self._bins = np.zeros((count, members), dtype=np.int32)
        self._renewed = min(members, max(16, WORK // (network.rows * count)))
        self._bytes = np.rint(255 * np.log1p(np.arange(members * 2 + 1)) / np.log1p(members)).clip(0, 255)

    def update(self, theta: Array) -> None:
        """Renew the pixels of some networks, those after the last ones."""
        members = theta.shape[1]
        start = self._next if self._next < members else 0
        part = slice(start, min(start + self._renewed, members))
        self._next = part.stop
        found = values(self._network, theta[:, part], self._x, *self._shape)
        places = [self._place(found[i], *pixel) for i, pixel in enumerate(self._pixels)]
        if len(places) == 2:
            column, row = places
        else:
            column, row = np.arange(1, WIDTH + 1, dtype=np.int32)[:, None], places[0]
        self._bins[:, part] = (HEIGHT + 1 - row) * np.int32(WIDTH + 2) + column

    def image(self) -> Array:
        """Return bytes [HEIGHT, WIDTH], the top first: 0 where no network is, 255 where all are, by the logarithm."""
        counts = np.bincount(self._bins.ravel(), minlength=(HEIGHT + 2) * (WIDTH + 2))
        inside = counts.reshape(HEIGHT + 2, WIDTH + 2)[1:-1, 1:-1]
        shown: Array = self._bytes[np.minimum(inside, len(self._bytes) - 1)].astype(np.uint8)
        return shown

    def _place(self, z: Array, size: int, factor: np.float32, offset: np.float32) -> Array:
        z *= factor
        z += offset
        # fmax takes the number where the other one is NaN
        return np.fmin(np.fmax(z, 0, out=z), size + 1, out=z).astype(np.int32)


def values(network: Network, theta: Array, x: Array, alpha: float, c: float) -> Array:
    """F(x), [out, batch, S], for inputs [in, batch]: as `forward` but to rounding, and faster for narrow networks.

    Members stay on the last axis, and a layer is a sum over its inputs, a few inputs at a time.
    """
    layers = [(np.ascontiguousarray(weight), bias[:, None]) for weight, bias in network.layers(theta)]
    shapes: list[tuple[Array | float, Array | float]] = [(alpha, c)] * (network.depth - 1)
    if network.learned:
        shapes = list(zip(*network.shapes(theta, theta[:0], theta[:0]), strict=True))
    result = np.empty((network.widths[-1], x.shape[1], theta.shape[1]), np.float32)
    with np.errstate(all="ignore"):  # networks that diverge
        for first in range(0, x.shape[1], _BLOCK):
            h = x[:, first : first + _BLOCK, None]
            for depth, (weight, bias) in enumerate(layers):
                z = h[0] * weight[:, 0, None] + bias
                for j in range(1, len(h)):
                    z += h[j] * weight[:, j, None]
                h = z if depth == network.depth - 1 else network.function.value(z, *shapes[depth])
            result[:, first : first + _BLOCK] = h
    return result
