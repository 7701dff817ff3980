"""z_1 = W_1 x + b_1, y_i = f_i(z_i), z_{i+1} = W_{i+1} y_i + b_{i+1}: a network as arrays, or an ensemble of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit.pieces.activation import Activation
from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.exact.layer import Units, affine


@dataclass(frozen=True, eq=False)
class Network:
    """Affine layers with elementwise piecewise-linear activations between them.

    Build one with `network` or `ensemble`. Members come first here, so that a member is a slice:
    weights[i]: [members, out, in]; biases[i]: [members, out]; activations[i] of leading shape [members, out], one less
    than there are affine layers.
    """

    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    activations: tuple[Activation, ...]

    def __post_init__(self) -> None:
        if not len(self.weights) == len(self.biases) == len(self.activations) + 1:
            raise ValueError(
                f"n weights need n biases and n - 1 activations, got {len(self.weights)}, {len(self.biases)} and "
                f"{len(self.activations)}"
            )
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            before = self.biases[i - 1].shape if i else weight.shape[::2]
            if weight.ndim != 3 or bias.shape != weight.shape[:2] or weight.shape[::2] != before:
                after = f" after {before[1]} units of {before[0]} member(s)" if i else ""
                raise ValueError(
                    f"affine layer {i} needs weight [members, out, in] and bias [members, out]{after}, got "
                    f"{weight.shape} and {bias.shape}"
                )
        for i, (f, bias) in enumerate(zip(self.activations, self.biases, strict=False)):
            if f.at_zero.shape != bias.shape:
                raise ValueError(
                    f"activation {i} needs leading shape [members, units] {bias.shape}, got {f.at_zero.shape}; use "
                    ".spread(units, members)"
                )

    @property
    def members(self) -> int:
        """The number of networks in the ensemble; 1 for a single one."""
        return len(self.weights[0])

    @property
    def inputs(self) -> int:
        """The dimension of x."""
        return len(self.weights[0][0, 0])

    @property
    def outputs(self) -> int:
        """The dimension of f(x)."""
        return len(self.weights[-1][0])

    def __repr__(self) -> str:
        units = " - ".join(str(count) for count in (self.inputs, *(len(bias[0]) for bias in self.biases)))
        return f"Network({units}{'' if self.members == 1 else f', {self.members} members'})"

    def member(self, index: int) -> Network:
        """Return one network of the ensemble."""
        if not 0 <= index < self.members:
            raise IndexError(f"member {index} of an ensemble of {self.members}; count from 0")
        return self.part(slice(index, index + 1))

    def part(self, pick: slice) -> Network:
        """Return the ensemble of these members."""
        return Network(
            tuple(weight[pick] for weight in self.weights),
            tuple(bias[pick] for bias in self.biases),
            tuple(f.part(pick) for f in self.activations),
        )

    def __call__(self, x: Any) -> Floats:
        """f(x): [..., in] -> [..., out]; for a single network."""
        single(self)
        x = np.asarray(x, dtype=np.float64)
        if x.ndim == 0 or x.shape[-1] != self.inputs:
            raise ValueError(f"this network takes x of shape [..., {self.inputs}], got {x.shape}")
        nobody = np.zeros(0, dtype=np.int64)
        rows = _last_hidden(self, x.reshape(-1, self.inputs), nobody)
        return affine(self.weights[-1], self.biases[-1], rows, nobody).reshape(*x.shape[:-1], self.outputs)


def _last_hidden(net: Network, rows: Floats, member: Ints) -> Floats:
    """Return the input of the last affine layer for x = rows [n, in]."""
    for weight, bias, f in zip(net.weights, net.biases, net.activations, strict=False):
        rows = Units.of(f).values(affine(weight, bias, rows, member), member)
    return rows


def terms(net: Network, rows: Floats, member: Ints) -> Floats:
    """Return sum |w| |y| + |b| of the last affine layer: the size of the terms whose sum is f(x), [n, out]."""
    hidden = np.abs(_last_hidden(net, rows, member))
    return affine(np.abs(net.weights[-1]), np.abs(net.biases[-1]), hidden, member)


def network(layers: Sequence[Activation | tuple[Any, Any]]) -> Network:
    """Build a network from its layers in order: (weight [out, in], bias [out]) or an activation.

    >>> from plunit.pieces import activation
    >>> tent = network([([[1.0], [1.0]], [0.0, -1.0]), activation.relu(), ([[1.0, -2.0]], [0.0])])
    >>> tent([[0.5], [1.0], [2.0]]).ravel().tolist()
    [0.5, 1.0, 0.0]
    """
    parts = [layer if isinstance(layer, Activation) else _one_member(i, layer) for i, layer in enumerate(layers)]
    return ensemble(parts)


def ensemble(layers: Sequence[Activation | tuple[Any, Any]]) -> Network:
    """Build an ensemble from its layers in order: (weight [out, in, members], bias [out, members]) or an activation.

    Neighbouring affine layers become one, and neighbouring activations get W = 1 between them.
    """
    chain = [layer if isinstance(layer, Activation) else _affine(i, *layer) for i, layer in enumerate(layers)]
    shapes = [part[0].shape for part in chain if not isinstance(part, Activation)]
    if not shapes:
        raise ValueError("a network needs at least one affine layer (weight, bias)")
    members, first = shapes[0][0], shapes[0][2]
    if any(shape[0] != members for shape in shapes):
        raise ValueError(f"all layers must have the same number of members, got {[shape[0] for shape in shapes]}")
    # None is the identity, which needs no product
    weights: list[Floats | None] = [None]
    biases, activations = [np.zeros((members, first))], []
    for i, part in enumerate(chain):
        units = biases[-1].shape[1]
        if isinstance(part, Activation):
            activations.append(part.spread(units, members))
            weights.append(None)
            biases.append(np.zeros((members, units)))
        elif part[0].shape[2] != units:
            raise ValueError(f"layer {i} takes {part[0].shape[2]} inputs, but {units} come before it")
        elif (before := weights[-1]) is None:
            weights[-1], biases[-1] = part
        else:
            weights[-1], biases[-1] = part[0] @ before, (part[0] @ biases[-1][..., None])[..., 0] + part[1]
    sizes = zip(weights, biases, strict=True)
    dense = (_identity(members, bias.shape[1]) if weight is None else weight for weight, bias in sizes)
    return Network(tuple(dense), tuple(biases), tuple(activations))


def plane(net: Network, origin: Any, u: Any, v: Any) -> Network:
    """g(s, t) = f(origin + s u + t v): the network on a plane through its input space, as a network of two inputs."""
    check_network(net)
    axes = np.stack([np.asarray(axis, dtype=np.float64) for axis in (u, v)], axis=-1)
    origin = np.asarray(origin, dtype=np.float64)
    if origin.shape != (net.inputs,) or axes.shape != (net.inputs, 2):
        raise ValueError(
            f"origin, u and v must be points with {net.inputs} coordinates, got {origin.shape}, {axes.shape}"
        )
    if not (np.isfinite(axes).all() and np.isfinite(origin).all()):
        raise ValueError("origin, u and v must be finite")
    bias = net.biases[0] + net.weights[0] @ origin
    return Network((net.weights[0] @ axes, *net.weights[1:]), (bias, *net.biases[1:]), net.activations)


def check_network(net: Network) -> None:
    """Raise TypeError if this is not a Network."""
    if not isinstance(net, Network):
        raise TypeError(
            f"this needs a plunit.pieces.Network, got {type(net).__name__}; plunit.torch.to_network makes one from a "
            "PyTorch model, plunit.pieces.network from arrays"
        )


def single(net: Network) -> None:
    """Raise TypeError if this is not a network, ValueError if it is an ensemble of several."""
    check_network(net)
    if net.members != 1:
        raise ValueError(f"this needs one network, got an ensemble of {net.members}; pick one with .member(i)")


def interval(ends: Any, name: str, side: str = "") -> tuple[float, float]:
    """Return (low, high) as floats; raise ValueError if they are not two finite numbers in order."""
    try:
        low, high = (float(end) for end in ends)
    except (TypeError, ValueError):
        raise ValueError(f"{name} needs two numbers, low and high, got {ends!r}{side}") from None
    if not -np.inf < low < high < np.inf:
        remedy = "; for a fixed input take a small interval around its value" if low == high else ""
        raise ValueError(f"{name} needs finite low < high, got [{low}, {high}]{side}{remedy}")
    return low, high


def check_size(net: Network, size: Floats) -> None:
    """Raise ValueError if values or slopes for |x| <= size might be too large for a number."""
    with np.errstate(over="ignore", invalid="ignore"):
        bound = np.broadcast_to(np.maximum(size, 1.0), (net.members, net.inputs))
        for weight, bias, f in zip(net.weights, net.biases, (*net.activations, None), strict=True):
            bound = np.einsum("moi,mi->mo", np.abs(weight), bound) + np.abs(bias)
            if f is not None:
                bound = np.abs(f.slopes).max(axis=-1) * bound + np.abs(f.at_zero)
            if not (bound < 1e300).all():
                raise ValueError(
                    f"values may reach {bound.max():.1e} on this domain, more than 1e300; scale the weights"
                )


def _one_member(i: int, layer: tuple[Any, Any]) -> tuple[Any, Any]:
    if not isinstance(layer, tuple) or len(layer) != 2:
        raise TypeError(
            f"layer {i} must be a pair (weight, bias) or an Activation, got {type(layer).__name__}; "
            "plunit.torch.to_network takes PyTorch models"
        )
    return np.asarray(layer[0])[..., None], np.asarray(layer[1])[..., None]


def _affine(i: int, weight: Any, bias: Any) -> tuple[Floats, Floats]:
    """Check (weight, bias) of layer i and put the members first."""
    weight, bias = np.asarray(weight, dtype=np.float64), np.asarray(bias, dtype=np.float64)
    if weight.ndim != 3 or bias.shape != (weight.shape[0], weight.shape[2]) or 0 in weight.shape:
        raise ValueError(
            f"layer {i}: weight must be [out, in] and bias [out] (an ensemble adds a last axis for its members), got "
            f"{weight.shape} and {bias.shape}"
        )
    if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
        raise ValueError(f"layer {i}: weight and bias must be finite, got NaN or inf; check the training run")
    return np.ascontiguousarray(np.moveaxis(weight, 2, 0)), np.ascontiguousarray(bias.T)


def _identity(members: int, units: int) -> Floats:
    return np.broadcast_to(np.eye(units), (members, units, units))
