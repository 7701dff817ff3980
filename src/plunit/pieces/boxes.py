"""Boxes [low_1, high_1] x ... x [low_n, high_n]: the domain of a question about a network of n inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.networks import Network, interval

Pairs = tuple[tuple[float, float], ...]
"""(low, high) of every input."""


def box_array(net: Network, box: Any) -> Floats:
    """Return a box with a pair (low, high) for each input as an array [in, 2]; ValueError if it does not fit.

    >>> from plunit.pieces import network
    >>> box_array(network([([[1.0, 2.0]], [0.0])]), [(-1, 1), (0, 3)]).tolist()
    [[-1.0, 1.0], [0.0, 3.0]]
    """
    form = f"a box of {net.inputs} input(s) is {net.inputs} pair(s) (low, high)"
    try:
        pairs = [tuple(pair) for pair in box]
    except TypeError:
        raise ValueError(f"{form}, got {box!r}") from None
    if len(pairs) != net.inputs:
        raise ValueError(f"{form}, got {len(pairs)}")
    return np.array([interval(pair, "a box", f" for input {i}") for i, pair in enumerate(pairs)])


def box_pairs(net: Network, box: Any) -> Pairs:
    """Return a box as pairs of floats."""
    return tuple((low, high) for low, high in box_array(net, box).tolist())
