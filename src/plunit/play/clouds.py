"""All fits of an ensemble as one image: how many networks go through each pixel."""

from __future__ import annotations

import numpy as np

from plunit.ensemble import Network
from plunit.ensemble.arrays import Array
from plunit.ensemble.narrow import values
from plunit.play.targets import Task

WIDTH, HEIGHT = 96, 80  # pixels
WORK = 900_000  # products of an update; of larger ensembles some networks are renewed in each, in turn

View = tuple[tuple[float, float], tuple[float, float]]
"""The ends of the picture, from left to right and from bottom to top."""


class Cloud:
    """The pixel in which each network is at each of `WIDTH` inputs; of a parametric curve at twice as many."""

    def __init__(self, network: Network, members: int, task: Task, view: View, shape: tuple[float, float]) -> None:
        x_scale, y_scale = task.scales
        count = WIDTH * task.outputs
        self._x = x_scale(np.linspace(*task.box[0], count)[:, None]).astype(np.float32).T
        # pixel = factor z + offset for an output z; 0 and size + 1 are outside
        self._pixels = []
        for output, (size, (low, high)) in enumerate(list(zip((WIDTH, HEIGHT), view, strict=True))[-task.outputs :]):
            factor = size / (high - low)
            offset = 1 + factor * (y_scale.mean[output] - low)
            self._pixels.append((size, np.float32(factor * y_scale.spread[output]), np.float32(offset)))
        self._network, self._shape, self._next = network, shape, 0
        self._bins = np.zeros((count, members), dtype=np.intp)
        self._renewed = max(16, WORK // (network.rows * count))
        self._bytes = np.rint(255 * np.log1p(np.arange(members + 1)) / np.log1p(members)).astype(np.uint8)

    def image(self, theta: Array) -> Array:
        """Renew the pixels of networks; return bytes [HEIGHT, WIDTH], the top first: 0 for no network, 255 for all."""
        start = self._next if self._next < theta.shape[1] else 0
        part = slice(start, min(start + self._renewed, theta.shape[1]))
        self._next = part.stop
        found = values(self._network, theta[:, part], self._x, *self._shape)
        with np.errstate(all="ignore"):
            *columns, row = [_place(z, *pixel) for z, pixel in zip(found, self._pixels, strict=True)]
        column = columns[0] if columns else np.arange(1, WIDTH + 1, dtype=np.int32)[:, None]
        self._bins[:, part] = (HEIGHT + 1 - row) * np.int32(WIDTH + 2) + column
        counts = np.bincount(self._bins.ravel(), minlength=(HEIGHT + 2) * (WIDTH + 2))
        inside = counts.reshape(HEIGHT + 2, WIDTH + 2)[1:-1, 1:-1]
        return np.asarray(self._bytes[np.minimum(inside, theta.shape[1])])


def _place(z: Array, size: int, factor: np.float32, offset: np.float32) -> Array:
    z *= factor
    z += offset
    # fmax takes the number where the other one is NaN
    return np.fmin(np.fmax(z, 0, out=z), size + 1, out=z).astype(np.int32)
