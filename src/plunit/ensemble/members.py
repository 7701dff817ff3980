"""The exact functions of an ensemble's members, for `plunit.pieces`."""

from __future__ import annotations

from torch import Tensor

from plunit.ensemble.network import Network, spread
from plunit.pieces import Network as Exact
from plunit.pieces.activation import hardtanh, identity, leaky_relu, plu, relu
from plunit.torch.network import to_ensemble

_PLAIN = {"relu": relu(), "leaky_relu": leaky_relu(), "hardtanh": hardtanh(), "identity": identity()}

PIECEWISE = (*_PLAIN, "plu", "plu_learned")
"""The activations that are piecewise linear."""


def exact(network: Network, theta: Tensor, alpha: Tensor | float = 0.1, c: Tensor | float = 1.0) -> Exact:
    """Return the members theta [rows, S] of a piecewise-linear network as an ensemble for `plunit.pieces`."""
    shapes = network.shapes(theta, *(spread(network, theta.double(), value) for value in (alpha, c)))
    plain = _PLAIN.get(network.activation)
    # [1, S]: the same for all units, each member's own
    between = [plain or plu(a[None].double(), b[None].double()) for a, b in zip(*shapes, strict=True)]
    return to_ensemble(network.layers(theta), between)
