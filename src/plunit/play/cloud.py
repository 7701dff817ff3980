"""All members as one image: how many of them go through each pixel."""

from __future__ import annotations

import math

import numpy as np

from plunit.ensemble.arrays import Array
from plunit.ensemble.mlp import MLP, forward
from plunit.ensemble.native_steps import VECTOR, values
from plunit.programs.loading import why_not_native

WORK = 700_000
"""Products that one image may take; of larger ensembles some members are renewed in each, in turn."""


class Cloud:
    """How many members are in each pixel, for each of some inputs.

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
        (low, high), pixels = ends.T[..., None, None], np.array(size[-len(ends) :])[:, None, None]
        # place = factor z + offset for an output z; 0 and the one after the last are outside
        self._factors, self._last = (pixels / (high - low)).astype(np.float32), (pixels + 1).astype(np.float32)
        self._offsets = (1 - pixels * low / (high - low)).astype(np.float32)
        slow = bool(why_not_native())
        self._values = forward if slow else values
        parts = math.ceil(members * network.parameters * x.shape[1] / (WORK // 4 if slow else WORK))
        self._renewed = math.ceil(members / parts / VECTOR) * VECTOR
        # how many members of each part of the ensemble are in each pixel, [parts, columns * rows], and of all
        self._parts = np.zeros((math.ceil(members / self._renewed), (size[0] + 2) * (size[1] + 2)), dtype=np.int32)
        self._all, self._next = self._parts[0].copy(), 0
        self._bytes = np.rint(255 * np.log1p(np.arange(members + 1)) / np.log1p(members)).astype(np.uint8)

    def image(self, theta: Array) -> Array:
        """Return bytes [rows, columns], the top first: 0 where no member is, 255 where all are, by the logarithm."""
        (width, height), start = self._size, self._next * self._renewed
        with np.errstate(all="ignore"):
            z = self._values(self._network, theta[:, start : start + self._renewed], self._x, *self._shape)
            z *= self._factors
            z += self._offsets
            # fmax takes the number where the other one is NaN
            *columns, row = np.fmin(np.fmax(z, 0, out=z), self._last, out=z).astype(np.intp)
        column = columns[0] if columns else np.arange(1, width + 1)[:, None]
        counts = np.bincount((column * (height + 2) + row).ravel(), minlength=len(self._all))
        self._all += counts - self._parts[self._next]
        self._parts[self._next] = counts
        self._next = (self._next + 1) % len(self._parts)
        inside = self._all.reshape(width + 2, height + 2)[1:-1, -2:0:-1].T
        return np.asarray(self._bytes[np.minimum(inside, len(self._bytes) - 1)])
