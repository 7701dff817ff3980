"""Windows that slide over the axes of a tensor: the numbers in each, and its maximum by rounds of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from plunit.pieces.arrays import Ints

__all__ = ["Slide", "find_windows", "pair_maxima"]


@dataclass(frozen=True)
class Slide:
    """How windows slide along one axis: `count` windows, the first of which begins `padding` before the axis."""

    count: int
    kernel: int
    stride: int = 1
    padding: int = 0
    dilation: int = 1

    @property
    def places(self) -> Ints:
        """The places on the axis in each window, [count, kernel]; places outside the axis are padding."""
        first = np.arange(self.count)[:, None] * self.stride - self.padding
        return np.asarray(first + self.dilation * np.arange(self.kernel))


def find_windows(shape: Sequence[int], slides: Sequence[Slide]) -> Ints:
    """Return the indices of a flattened tensor in each window, [windows, taps], -1 where a tap is padding.

    Windows slide over the last axes; the axes before them are channels.
    """
    before = len(shape) - len(slides)
    index = np.arange(prod(shape)).reshape(shape)
    for axis, slide in enumerate(slides, start=before):
        places = slide.places
        inside = (places >= 0) & (places < shape[axis])
        # [channels, windows along the axes so far, other axes, taps so far]
        index = np.moveaxis(index.take(np.where(inside, places, 0), axis), axis + 1, -1)
        ends = inside.reshape(-1, *[1] * (index.ndim - axis - 2), slide.kernel)
        index = np.where(ends, index, -1)
    return index.reshape(prod(index.shape[: len(shape)]), -1)


def pair_maxima(windows: Ints) -> tuple[list[Ints], Ints]:
    """Return log2(taps) rounds of pairs that reduce each window to its maximum, and the places of the maxima.

    windows: [windows, taps], indices of numbers; -1 where a window has fewer. A round is [pairs, 2]: max(x[a], x[b]),
    or x[a] where b is -1; the next round indexes these pairs. A pair that several windows share is compared once.
    """
    # missing taps come last
    windows = np.take_along_axis(windows, np.argsort(windows < 0, axis=1, kind="stable"), axis=1)
    if (windows[:, 0] < 0).any():
        raise ValueError("a window holds only padding, where the maximum is -inf; use less padding")
    rounds = []
    while (windows := windows[:, (windows >= 0).any(axis=0)]).shape[1] > 1:
        pairs = np.pad(windows, ((0, 0), (0, windows.shape[1] % 2)), constant_values=-1).reshape(len(windows), -1, 2)
        # the maximum of two equal numbers is the first
        pairs[pairs[..., 0] == pairs[..., 1], 1] = -1
        both, index = np.unique(pairs.reshape(-1, 2), axis=0, return_inverse=True)
        absent = int((both[:, 0] < 0).sum())
        windows = np.maximum(index.reshape(pairs.shape[:2]) - absent, -1)
        rounds.append(both[absent:])
    return rounds, windows[:, 0]
