"""All members as one image: how many of them go through each pixel."""

from __future__ import annotations

import numpy as np

from plunit.ensemble.arrays import Array
from plunit.ensemble.native import values
from plunit.ensemble.network import MLP, forward
from plunit.ensemble.training import why_not_native

WORK = 700_000
"""Products that one image may take; of larger ensembles some members are renewed in each, in turn."""


class Cloud:
    """The pixel in which each member is, for each of some inputs.

    Args:
        network: the form of the members, with one input.
        members: their number.
        x: inputs [1, n]. With one output they are the columns of the image; two outputs are the plane of the image.
        ends: the ends of the image for each output, [out, 2].
        size: columns and rows.
        alpha: the outer slope of PLU.
        c: the half-width of its inner piece.
    """

    def __init__(
        self, network: MLP, members: int, x: Array, ends: Array, size: tuple[int, int], alpha: float, c: float
    ) -> None:
        self._network, self._x, self._size, self._shape = network, x.astype(np.float32), size, (alpha, c)
        pixels = np.array(size[-len(ends) :])
        # pixel = factor z + offset for an output z; 0 and the one after the last are outside
        self._factors = (pixels / (ends[:, 1] - ends[:, 0])).astype(np.float32)
        self._offsets = (1 - pixels * ends[:, 0] / (ends[:, 1] - ends[:, 0])).astype(np.float32)
        self._bins = np.zeros((x.shape[1], members), dtype=np.intp)
        slow = bool(why_not_native())
        self._values = forward if slow else values
        self._renewed, self._next = max(16, (WORK // 4 if slow else WORK) // (network.rows * x.shape[1])), 0
        self._bytes = np.rint(255 * np.log1p(np.arange(members + 1)) / np.log1p(members)).astype(np.uint8)

    def image(self, theta: Array) -> Array:
        """Return bytes [rows, columns], the top first: 0 where no member is, 255 where all are, by the logarithm."""
        (width, height), members = self._size, theta.shape[1]
        start = self._next if self._next < members else 0
        part = slice(start, min(start + self._renewed, members))
        self._next = part.stop
        with np.errstate(all="ignore"):
            found = self._values(self._network, theta[:, part], self._x, *self._shape)
            sizes, parts = self._size[-len(found) :], (self._factors, self._offsets)
            *columns, row = [_place(*each) for each in zip(found, sizes, *parts, strict=True)]
        column = columns[0] if columns else np.arange(1, width + 1, dtype=np.int32)[:, None]
        self._bins[:, part] = (height + 1 - row) * np.int32(width + 2) + column
        counts = np.bincount(self._bins.ravel(), minlength=(height + 2) * (width + 2))
        inside = counts.reshape(height + 2, width + 2)[1:-1, 1:-1]
        return np.asarray(self._bytes[np.minimum(inside, members)])


def _place(z: Array, size: int, factor: np.float32, offset: np.float32) -> Array:
    z *= factor
    z += offset
    # fmax takes the number where the other one is NaN
    return np.fmin(np.fmax(z, 0, out=z), size + 1, out=z).astype(np.int32)
