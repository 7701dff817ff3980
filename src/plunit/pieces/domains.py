"""Boxes [low_1, high_1] x ... x [low_n, high_n]: where a network of n inputs is asked about."""

from __future__ import annotations

from typing import Any

import numpy as np

from plunit.pieces.networks import Network, interval

Box = tuple[tuple[float, float], ...]


def box_of(net: Network, box: Any) -> Box:
    """Return low and high of every input; ValueError if the box does not fit the network.

    >>> from plunit.pieces import network
    >>> box_of(network([([[1.0, 2.0]], [0.0])]), [(-1, 1), (0, 3)])
    ((-1.0, 1.0), (0.0, 3.0))
    """
    sides = np.asarray(box, dtype=object)
    if sides.shape != (net.inputs, 2):
        raise ValueError(
            f"a box for {net.inputs} inputs must have low and high of each, shape ({net.inputs}, 2), got {sides.shape}"
        )
    return tuple(interval(side, "a box", f" for input {i}") for i, side in enumerate(sides))
