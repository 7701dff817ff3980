"""The exact functions of an ensemble's members, for `plunit.pieces`."""

from __future__ import annotations

from typing import Any

import numpy as np

from plunit.ensemble.activation import ACTIVATIONS
from plunit.ensemble.arrays import as_array
from plunit.ensemble.network import MLP, spread
from plunit.pieces import Network as Exact
from plunit.pieces import ensemble

PIECEWISE = tuple(name for name, function in ACTIVATIONS.items() if function.exact)
"""The activations that are piecewise linear."""


def exact(network: MLP, theta: Any, alpha: Any = 0.1, c: Any = 1.0) -> Exact:
    """Return the members theta [rows, S] of a piecewise-linear network as an ensemble for `plunit.pieces`."""
    make = network.function.exact
    if make is None:
        raise ValueError(f"{network.activation} is not piecewise linear; choose one of {', '.join(PIECEWISE)}")
    theta = as_array(theta)
    # shapes in the dtype of training, then exactly as float64
    alphas, cs = network.alphas_and_cs(
        theta, *(spread(network, theta.astype(np.float64), value) for value in (alpha, c))
    )
    layers: list[Any] = []
    for depth, pair in enumerate(network.layers(theta.astype(np.float64))):
        # [1, S]: the same for all units, each member's own
        between = [make(*(part[depth - 1][None].astype(np.float64) for part in (alphas, cs)))] if depth else []
        layers += [*between, pair]
    return ensemble(layers)
