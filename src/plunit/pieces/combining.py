"""Networks made of networks: combinations of outputs, and two networks side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from plunit.pieces.activation import Activation, identity
from plunit.pieces.arrays import Floats
from plunit.pieces.networks import Network, single


def combination(net: Network, rows: Any, offset: Any = 0.0) -> Network:
    """X -> rows f(x) + offset: linear combinations of the outputs; rows [new out, out], offset [new out].

    >>> from plunit.pieces import network
    >>> both = network([([[1.0], [2.0]], [0.0, 1.0])])
    >>> combination(both, [[1.0, -1.0]])([3.0]).tolist()
    [-4.0]
    """
    rows = np.asarray(rows, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != net.outputs:
        raise ValueError(f"rows must be [new outputs, {net.outputs}], one list for each new output, got {rows.shape}")
    bias = net.biases[-1] @ rows.T + np.broadcast_to(np.asarray(offset, dtype=np.float64), len(rows))
    return Network((*net.weights[:-1], rows @ net.weights[-1]), (*net.biases[:-1], bias), net.activations)


def difference(one: Network, other: Network) -> Network:
    """X -> one(x) - other(x), as one network."""
    for net in (one, other):
        single(net)
    if (one.inputs, one.outputs) != (other.inputs, other.outputs):
        raise ValueError(
            f"a difference needs networks of the same inputs and outputs, got {one.inputs} -> {one.outputs} and "
            f"{other.inputs} -> {other.outputs}"
        )
    depth = max(len(one.activations), len(other.activations))
    one, other = _lengthened(one, depth), _lengthened(other, depth)
    weights = [np.concatenate([one.weights[0], other.weights[0]], axis=1)]
    weights += [_diagonal(a, b) for a, b in zip(one.weights[1:-1], other.weights[1:-1], strict=True)]
    biases = [np.concatenate(pair, axis=1) for pair in zip(one.biases[:-1], other.biases[:-1], strict=True)]
    if not depth:
        return Network((one.weights[0] - other.weights[0],), (one.biases[0] - other.biases[0],), ())
    weights.append(np.concatenate([one.weights[-1], -other.weights[-1]], axis=2))
    biases.append(one.biases[-1] - other.biases[-1])
    activations = [beside(f, g) for f, g in zip(one.activations, other.activations, strict=True)]
    return Network(tuple(weights), tuple(biases), tuple(activations))


def _lengthened(net: Network, depth: int) -> Network:
    """Return the same function with `depth` activations: identities are added at the end."""
    more = depth - len(net.activations)
    eye, zero, f = np.eye(net.outputs)[None], np.zeros((1, net.outputs)), identity().spread(net.outputs, 1)
    return Network(net.weights + (eye,) * more, net.biases + (zero,) * more, net.activations + (f,) * more)


def _diagonal(a: Floats, b: Floats) -> Floats:
    """Return the matrix [1, out, in] with blocks a and b."""
    top = np.pad(a, ((0, 0), (0, 0), (0, b.shape[2])))
    return np.concatenate([top, np.pad(b, ((0, 0), (0, 0), (a.shape[2], 0)))], axis=1)


def beside(*parts: Activation) -> Activation:
    """Return the activation of the units of all parts, [1, units] each; missing knots are at infinity."""
    knots = max(f.knots.shape[-1] for f in parts)
    padded = [_widened(f, knots) for f in parts]
    return Activation(*(np.concatenate(pair, axis=1) for pair in zip(*padded, strict=True)))


def _widened(f: Activation, knots: int) -> tuple[Floats, Floats, Floats]:
    more = ((0, 0), (0, 0), (0, knots - f.knots.shape[-1]))
    return np.pad(f.knots, more, constant_values=np.inf), np.pad(f.slopes, more, mode="edge"), f.at_zero
