"""What many narrow networks do at many points: values for pictures, and units that no point moves."""

from __future__ import annotations

import numpy as np

from plunit.ensemble.arrays import Array
from plunit.ensemble.network import MLP, preactivations, spread

_BLOCK = 16  # points at once: what is between two layers stays in the cache


def values(network: MLP, theta: Array, x: Array, alpha: float = 0.1, c: float = 1.0) -> Array:
    """F(x), [out, batch, S], in float32 for inputs [in, batch]: `forward` up to rounding, and faster for narrow layers.

    Members stay on the last axis, and a layer is a sum over its inputs.
    """
    layers = [(np.ascontiguousarray(weight), bias[:, None]) for weight, bias in network.layers(theta)]
    shapes: list[tuple[Array | float, Array | float]] = [(alpha, c)] * (network.depth - 1)
    if network.learned:
        shapes = list(zip(*network.alphas_and_cs(theta, theta[:0], theta[:0]), strict=True))
    result = np.empty((network.widths[-1], x.shape[1], theta.shape[1]), np.float32)
    with np.errstate(all="ignore"):  # members that diverge
        for first in range(0, x.shape[1], _BLOCK):
            h = x[:, first : first + _BLOCK, None]
            for depth, (weight, bias) in enumerate(layers):
                z = h[0] * weight[:, 0, None] + bias
                for j in range(1, len(h)):
                    z += h[j] * weight[:, j, None]
                h = z if depth == network.depth - 1 else network.function.value(z, *shapes[depth])
            result[:, first : first + _BLOCK] = h
    return result


def dead_share(network: MLP, theta: Array, x: Array, alpha: float = 0.1, c: float = 1.0) -> float:
    """Return the share of hidden units with slope 0 at every point of x [in, batch]: nothing moves their weights."""
    with np.errstate(all="ignore"):
        *hidden, _ = preactivations(network, theta, x, alpha, c)
        shapes = network.alphas_and_cs(theta, *(spread(network, theta, value) for value in (alpha, c)))
        slopes = [network.function.slope(z, a, b) for z, a, b in zip(hidden, *shapes, strict=True)]
    return float(np.mean(np.concatenate([(slope == 0).all(axis=1) for slope in slopes])))
