"""g(x) = output_shift + output_scale f((x - shift) / scale): scaling that becomes part of a network's weights."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.networks import Network, single


def rescaled(
    net: Network, *, shift: Any = 0.0, scale: Any = 1.0, output_shift: Any = 0.0, output_scale: Any = 1.0
) -> Network:
    """Return the network x -> output_shift + output_scale f((x - shift) / scale), for raw inputs and raw outputs.

    Each argument is a number or an array with one number for each input (output). The new weights and biases are the
    exact ones, rounded once.

    >>> from plunit.pieces import activation, network
    >>> net = network([([[1.0]], [0.0]), activation.relu(), ([[2.0]], [0.0])])
    >>> rescaled(net, shift=20.0, scale=5.0, output_scale=10.0)([30.0]).tolist()
    [40.0]
    """
    single(net)
    down, width = _numbers(shift, net.inputs, "shift"), _numbers(scale, net.inputs, "scale")
    up, height = (
        _numbers(output_shift, net.outputs, "output_shift"),
        _numbers(output_scale, net.outputs, "output_scale"),
    )
    for name, numbers in (("scale", width), ("output_scale", height)):
        if any(number == 0 for number in numbers):
            raise ValueError(f"{name} must not be 0, got {[float(number) for number in numbers]}")
    weights, biases = [_exact(w[0]) for w in net.weights], [_exact(b[0]) for b in net.biases]
    weights[0] = weights[0] / width
    biases[0] = biases[0] - weights[0] @ down
    weights[-1], biases[-1] = weights[-1] * height[:, None], biases[-1] * height + up
    return Network(
        tuple(_rounded(w, "weight")[None] for w in weights),
        tuple(_rounded(b, "bias")[None] for b in biases),
        net.activations,
    )


def _numbers(values: Any, count: int, name: str) -> Any:
    array = np.asarray(values, dtype=np.float64)
    if array.shape not in ((), (1,), (count,)) or not np.isfinite(array).all():
        raise ValueError(f"{name} must be a finite number or {count} of them, got {values!r}")
    return _exact(np.broadcast_to(array, (count,)))


def _exact(array: Floats) -> Any:
    """Return the numbers as Fractions, in an array of objects."""
    return np.vectorize(Fraction, otypes=[object])(array)


def _rounded(array: Any, name: str) -> Floats:
    try:
        return np.asarray(array.astype(np.float64))
    except OverflowError:
        raise ValueError(f"a {name} becomes larger than 1e308 with this scale; take another scale") from None
