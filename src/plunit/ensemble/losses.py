"""The losses an ensemble can be trained on. A new one is one entry here and one in programs/csrc/losses.h.

A loss takes outputs z [S, units, points] and targets y [S or 1, units, points]; it returns the loss of each point
[S, points] and its gradient in z.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from plunit.ensemble.arrays import Array
from plunit.numpy import sigmoid

Loss = Callable[[Array, Array], tuple[Array, Array]]


def _square(z: Array, y: Array) -> tuple[Array, Array]:
    """Return the mean over units of (z - y)^2."""
    r = z - y
    return (r * r).mean(1), r * (2 / z.shape[1])


def _logistic(z: Array, y: Array) -> tuple[Array, Array]:
    """Return the mean over units of log(1 + exp(z)) - y z, for y in [0, 1]."""
    loss = np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z))) - y * z
    return loss.mean(1), (sigmoid(z) - y) / z.shape[1]


def _softmax(z: Array, y: Array) -> tuple[Array, Array]:
    """Return log(sum_u exp(z_u)) - sum_u y_u z_u, for y >= 0 with sum 1."""
    z = z - z.max(1, keepdims=True)
    e = np.exp(z)
    total = e.sum(1, keepdims=True)
    return np.log(total[:, 0]) - (y * z).sum(1), e / total - y


PROBABILITIES = {"logistic", "softmax"}
"""The losses whose targets are from 0 to 1."""

LOSSES: dict[str, Loss] = {"square": _square, "logistic": _logistic, "softmax": _softmax}
"""Name to function."""
