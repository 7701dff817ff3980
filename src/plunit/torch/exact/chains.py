"""Chains of layers: neighbouring affine maps made one, and sums x + body(x)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from plunit.pieces.activation import Activation, beside, identity
from plunit.pieces.arrays import Floats
from plunit.pieces.networks import LayerLike
from plunit.torch.exact.features import ROOM, Place


def joined(layers: Sequence[LayerLike]) -> list[LayerLike]:
    """Return the same function with neighbouring affine maps made one, and no diagonal left among them.

    >>> sum_of_two, diagonal = (np.ones((1, 2)), np.zeros(1)), (np.array([3.0]), np.ones(1))
    >>> [tuple(part.tolist() for part in layer) for layer in joined([sum_of_two, diagonal])]
    [([[3.0, 3.0]], [1.0])]
    """
    found: list[LayerLike] = []
    room = ROOM
    for layer in layers:
        before = found[-1] if found else None
        if isinstance(layer, tuple) and isinstance(before, tuple):
            # two thin matrices may have a large product
            if layer[0].ndim + before[0].ndim > 2:
                Place(None, room).check(len(layer[0]), before[0].shape[-1])
            found[-1] = _after(layer, before)
        else:
            room -= before[0].size if isinstance(before, tuple) else 0
            found.append(layer)
    return [_dense(*layer) if isinstance(layer, tuple) else layer for layer in found]


def _after(layer: tuple[Floats, Floats], before: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """W (V x + c) + b, where W or V may be diagonals."""
    (weight, bias), (inner, shift) = layer, before
    if weight.ndim == 1:
        return (inner.T * weight).T, weight * shift + bias
    return weight * inner if inner.ndim == 1 else weight @ inner, weight @ shift + bias


def _dense(weight: Floats, bias: Floats) -> tuple[Floats, Floats]:
    if weight.ndim > 1:
        return weight, bias
    Place(None, ROOM).check(len(weight), len(weight))
    return np.diag(weight), bias


def alternating(chain: Sequence[LayerLike], place: Place) -> list[LayerLike]:
    """Return `joined` layers with an affine map before, between and after activations: the identity if there is none.

    Without affine maps, the place determines the number of features.
    """
    units = inputs_of(chain) if place.shape is None else prod(place.shape)
    found: list[LayerLike] = []
    for layer in [*chain, None]:
        if not isinstance(layer, tuple) and (not found or isinstance(found[-1], Activation)):
            place.check(units, units)
            found.append((np.eye(units), np.zeros(units)))
        if layer is not None:
            found.append(layer)
        if isinstance(layer, tuple):
            units = len(layer[1])
    return found


def residual(chain: list[LayerLike], size: int, place: Place) -> list[LayerLike]:
    """Return x + body(x) as layers, for the `joined` layers of a body that keeps `size` features.

    Beside the units of the body, units without knots pass x on.
    """
    place.check(size, size)
    one, zero = np.eye(size), np.zeros(size)
    (first, start), *inner = alternating(chain, place._replace(shape=(size,)))  # type: ignore[misc]
    if not inner:
        return [(one + first, start)]
    *inner, (last, end) = inner  # type: ignore[misc]
    found: list[LayerLike] = [(np.vstack([one, first]), np.concatenate([zero, start]))]
    units = len(start)
    for layer in inner:
        units = len(layer[1]) if isinstance(layer, tuple) else units
        found.append(_beside(layer, size, units, place))
    return [*found, (np.hstack([one, last]), end)]


def inputs_of(chain: Sequence[LayerLike]) -> int:
    """Return the number of features that come into `joined` layers."""
    weight = next((layer[0] for layer in chain if isinstance(layer, tuple)), None)
    if weight is None:
        raise ValueError("the number of its features is unknown; give to_network(model, shape=(features,))")
    return int(weight.shape[1])


def _beside(layer: LayerLike, size: int, units: int, place: Place) -> LayerLike:
    """Return a layer whose first `size` units pass features on, before its own units."""
    if isinstance(layer, Activation):
        return beside([identity().spread(size), layer.spread(units)])
    weight, bias = layer
    place.check(size + weight.shape[0], size + weight.shape[1])
    found = np.zeros((size + weight.shape[0], size + weight.shape[1]))
    found[:size, :size] = np.eye(size)
    found[size:, size:] = weight
    return found, np.concatenate([np.zeros(size), bias])
