"""z_1 = W_1 x + b_1, y_i = f_i(z_i), z_{i+1} = W_{i+1} y_i + b_{i+1}: layers, networks of them, and ensembles.

`network` and `ensemble` build them from arrays and check them, and `plane` restricts a network to a plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

import numpy as np

from plunit.pieces.activation import Activation, Functions, evaluate, identity
from plunit.pieces.arrays import Floats, Ints, read_only
from plunit.pieces.rounding import exact_affine, exact_product, fractions, outward

LayerLike = Activation | tuple[Any, Any]
"""An activation, or (weight [out, in], bias [out])."""

Nets = TypeVar("Nets", "Network", "Ensemble")


@dataclass(frozen=True, eq=False)
class Layer:
    """z = weight x + bias, and y = f(z) unless the activation f is None.

    weight: [out, in]; bias: [out]; the activation has leading shape [out]. An ensemble has the members on a first axis.
    """

    weight: Floats
    bias: Floats
    activation: Activation | None = None

    def __post_init__(self) -> None:
        for name in ("weight", "bias"):
            numbers = getattr(self, name)
            if not isinstance(numbers, np.ndarray) or numbers.dtype.kind not in "fiu":
                kind = getattr(numbers, "dtype", type(numbers).__name__)
                raise TypeError(f"the {name} of a layer must be an array of real numbers, got {kind}")
            if not np.isfinite(numbers).all():
                raise ValueError(f"the {name} of a layer must be finite, got NaN or inf; check the training run")
            object.__setattr__(self, name, read_only(numbers))  # tables and proofs of a network stay true
        if self.weight.ndim not in (2, 3) or self.bias.shape != self.weight.shape[:-1]:
            raise ValueError(f"weight must be [out, in] and bias [out], got {self.weight.shape} and {self.bias.shape}")
        if self.activation is not None and self.activation.at_zero.shape != self.bias.shape:
            raise ValueError(f"the activation needs leading shape {self.bias.shape}; use .broadcast(units)")

    @property
    def functions(self) -> Functions | None:
        """The distinct functions of the units, None without an activation."""
        return None if self.activation is None else self.activation.functions

    def part(self, pick: slice | int | None) -> Layer:
        """Return this layer for some members or for one; None adds the axis of the members."""
        return Layer(self.weight[pick], self.bias[pick], self.activation and self.activation.part(pick))


@dataclass(frozen=True, eq=False)
class _Layers:
    """Layers whose sizes match; each but the last has an activation."""

    layers: tuple[Layer, ...]
    axes: ClassVar[int]

    def __post_init__(self) -> None:
        if not self.layers or [f.activation is None for f in self.layers] != [False] * (len(self.layers) - 1) + [True]:
            raise ValueError("a network needs one or more layers, all with an activation except the last")
        if any(layer.weight.ndim != self.axes for layer in self.layers):
            raise ValueError(f"the weights of {type(self).__name__} need {self.axes} axes; members are the first of 3")
        for i, (before, layer) in enumerate(pairwise(self.layers), 1):
            if (*layer.weight.shape[:-2], layer.weight.shape[-1]) != before.bias.shape:
                raise ValueError(f"layer {i} needs weights for {before.bias.shape} outputs, got {layer.weight.shape}")

    @property
    def hidden(self) -> tuple[tuple[Layer, Activation], ...]:
        """All layers but the last, each with its activation."""
        return tuple((layer, layer.activation) for layer in self.layers if layer.activation is not None)

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of inputs, and then of the units of each layer."""
        return (self.layers[0].weight.shape[-1], *(layer.bias.shape[-1] for layer in self.layers))

    @property
    def inputs(self) -> int:
        """The dimension of x."""
        return self.widths[0]

    @property
    def outputs(self) -> int:
        """The dimension of f(x)."""
        return self.widths[-1]


class Network(_Layers):
    """Affine layers with elementwise piecewise-linear activations between them; build one with `network`."""

    axes = 2

    def __repr__(self) -> str:
        return f"Network({' - '.join(map(str, self.widths))})"

    def __call__(self, x: Any) -> Floats:
        """f(x): [..., in] -> [..., out]."""
        x = np.asarray(x, dtype=np.float64)
        if x.ndim == 0 or x.shape[-1] != self.inputs:
            raise ValueError(f"this network expects x of shape [..., {self.inputs}], got {x.shape}")
        no_members, last = np.zeros(0, dtype=np.int64), self.layers[-1]
        rows = _last_hidden(self.alone, x.reshape(-1, self.inputs), no_members)
        return np.asarray(rows @ last.weight.T + last.bias).reshape(*x.shape[:-1], self.outputs)

    @cached_property
    def tables(self) -> UnitTables:
        """All hidden units, layer after layer, with intercepts rounded outward."""
        return UnitTables.of([f.functions for _, f in self.hidden])

    @cached_property
    def rest(self) -> Network:
        """The network after the first layer."""
        return Network(self.layers[1:])

    @cached_property
    def alone(self) -> Ensemble:
        """The ensemble of this one member."""
        return Ensemble(tuple(layer.part(None) for layer in self.layers))


@dataclass(frozen=True, eq=False)
class UnitTables:
    """Knots [units, k], slopes [units, k + 1], and both ends of the intercepts; tables[i:j] selects units."""

    knots: Floats
    slopes: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, layers: Sequence[Functions]) -> UnitTables:
        """Return the tables of all units, intercepts rounded outward; units with fewer knots repeat their last one."""
        count = max((f.knots.shape[1] for f in layers), default=1)
        parts = [_layer_tables(f, count) for f in layers] or [(np.zeros((0, count)), *[np.zeros((0, count + 1))] * 3)]
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def __getitem__(self, units: slice) -> UnitTables:
        return UnitTables(self.knots[units], self.slopes[units], self.low[units], self.high[units])


def _layer_tables(f: Functions, count: int) -> tuple[Floats, ...]:
    wider = ((0, 0), (0, count - f.knots.shape[1]))
    ends = np.array([[outward(number) for number in row] for row in f.intercepts])
    tables = (f.knots, f.slopes, ends[..., 0], ends[..., 1])
    return tuple(np.pad(table, wider, mode="edge")[f.kinds] for table in tables)


class Ensemble(_Layers):
    """Networks of equal widths, with the members on the first axis; build one with `ensemble`."""

    axes = 3

    @property
    def members(self) -> int:
        """The number of networks."""
        return len(self.layers[0].weight)

    def __repr__(self) -> str:
        return f"Ensemble({' - '.join(map(str, self.widths))}, {self.members} members)"

    def member(self, index: int) -> Network:
        """Return one network of the ensemble."""
        if not 0 <= index < self.members:
            raise IndexError(f"member {index} of an ensemble of {self.members}; count from 0")
        return Network(tuple(layer.part(index) for layer in self.layers))

    def part(self, pick: slice) -> Ensemble:
        """Return the ensemble of the selected members."""
        return Ensemble(tuple(layer.part(pick) for layer in self.layers))


def affine(weight: Floats, bias: Floats, rows: Floats, member: Ints) -> Floats:
    """W x + b for rows x [n, in], with weight [members, out, in] and bias [members, out] of the member of each row."""
    return times(weight, rows, member) + of_members(bias, member)


def times(weight: Floats, rows: Floats, member: Ints) -> Floats:
    """W x for rows x [n, in], with weight [members, out, in] of the member of each row."""
    if len(weight) == 1:
        return np.asarray(rows @ weight[0].T)
    return np.asarray(np.einsum("noi,ni->no", weight[member], rows))


def of_members(array: Floats, member: Ints) -> Floats:
    """Return an array [members, units] for rows of these members, so that it broadcasts with [rows, units]."""
    return array[0] if len(array) == 1 else array[member]


def _last_hidden(nets: Ensemble, rows: Floats, member: Ints) -> Floats:
    """Return the input of the last layer for x = rows [n, in]."""
    for layer, f in nets.hidden:
        z = affine(layer.weight, layer.bias, rows, member)
        rows = evaluate(z, *(of_members(table, member) for table in f.tables))
    return rows


def terms(nets: Ensemble, rows: Floats, member: Ints) -> Floats:
    """Return sum |w| |y| + |b| of the last layer, [n, out]: the sizes of the terms that add up to f(x)."""
    last, hidden = nets.layers[-1], np.abs(_last_hidden(nets, rows, member))
    return affine(np.abs(last.weight), np.abs(last.bias), hidden, member)


def exact_outputs(net: Network, x: Floats) -> list[Fraction]:
    """Return the exact f(x) of the real-number network, for x [in].

    >>> from plunit.pieces import activation, network
    >>> exact_outputs(network([([[0.5]], [0.0]), activation.plu(0.25), ([[1.0]], [0.0])]), np.array([6.0]))
    [Fraction(3, 2)]
    """
    values = fractions(x)
    for layer in net.layers:
        values = exact_affine(layer.weight, layer.bias, values)
        if layer.activation is not None:
            values = layer.activation(np.array(values, dtype=object)).tolist()
    return values


def network(layers: Sequence[LayerLike]) -> Network:
    """Build a network from its layers in order: (weight [out, in], bias [out]) or an activation.

    >>> from plunit.pieces import activation
    >>> tent = network([([[1.0], [1.0]], [0.0, -1.0]), activation.relu(), ([[1.0, -2.0]], [0.0])])
    >>> tent([[0.5], [1.0], [2.0]]).ravel().tolist()
    [0.5, 1.0, 0.0]
    """
    parts = [layer if isinstance(layer, Activation) else _one_member(i, layer) for i, layer in enumerate(layers)]
    return ensemble(parts).member(0)


def ensemble(layers: Sequence[LayerLike]) -> Ensemble:
    """Build an ensemble from its layers in order: (weight [out, in, members], bias [out, members]) or an activation.

    Consecutive affine layers are joined if float64 holds their product exactly. Otherwise units f(z) = z keep them
    apart, so that the network is exactly the function of the given numbers. Consecutive activations get W = 1 between
    them.
    """
    chain = [layer if isinstance(layer, Activation) else _affine(i, *layer) for i, layer in enumerate(layers)]
    shapes = [part[0].shape for part in chain if not isinstance(part, Activation)]
    if not shapes:
        raise ValueError("a network needs at least one affine layer (weight, bias)")
    members, first = shapes[0][0], shapes[0][2]
    if any(shape[0] != members for shape in shapes):
        raise ValueError(f"all layers must have the same number of members, got {[shape[0] for shape in shapes]}")
    found: list[Layer] = []
    # None is the identity, which needs no product
    weight: Floats | None = None
    bias = np.zeros((members, first))
    for i, part in enumerate(chain):
        units = bias.shape[1]
        if isinstance(part, Activation):
            found.append(Layer(_fill(weight, bias), bias, part.broadcast(units, members)))
            weight, bias = None, np.zeros((members, units))
        elif part[0].shape[2] != units:
            raise ValueError(f"layer {i} expects {part[0].shape[2]} inputs, but the previous layer has {units} outputs")
        else:
            both = part if weight is None else exact_product(part, (weight, bias))
            if both is None:
                found.append(Layer(_fill(weight, bias), bias, identity().broadcast(units, members)))
            weight, bias = both or part
    return Ensemble((*found, Layer(_fill(weight, bias), bias)))


def _fill(weight: Floats | None, bias: Floats) -> Floats:
    return np.broadcast_to(np.eye(bias.shape[1]), (*bias.shape, bias.shape[1])) if weight is None else weight


def plane(net: Nets, origin: Any, u: Any, v: Any) -> Nets:
    """g(s, t) = f(origin + s u + t v): the network on a plane through its input space, as a network of two inputs.

    The weights of its first layer are products, rounded to float64.
    """
    as_ensemble(net)
    points = [np.asarray(point, dtype=np.float64) for point in (origin, u, v)]
    if any(point.shape != (net.inputs,) or not np.isfinite(point).all() for point in points):
        raise ValueError(f"origin, u and v must be points with {net.inputs} finite coordinates, got {points}")
    start, axes, first = points[0], np.stack(points[1:], axis=-1), net.layers[0]
    moved = Layer(first.weight @ axes, first.bias + first.weight @ start, first.activation)
    return type(net)((moved, *net.layers[1:]))


def check_network(net: Network) -> None:
    """Raise TypeError if this is not a Network."""
    if isinstance(net, Ensemble):
        raise TypeError(f"this needs one network, got an ensemble of {net.members}; pick one with .member(i)")
    if not isinstance(net, Network):
        raise TypeError(
            f"this needs a plunit.pieces.Network, got {type(net).__name__}; plunit.torch.to_network returns one"
        )


def as_ensemble(nets: Network | Ensemble) -> Ensemble:
    """Return an ensemble, that of one member for a network; TypeError for anything else."""
    if isinstance(nets, Ensemble):
        return nets
    check_network(nets)
    return nets.alone


def _one_member(i: int, layer: tuple[Any, Any]) -> tuple[Any, Any]:
    if not isinstance(layer, tuple) or len(layer) != 2:
        raise TypeError(f"layer {i} must be (weight, bias) or an Activation, got {type(layer).__name__}")
    return np.asarray(layer[0])[..., None], np.asarray(layer[1])[..., None]


def _affine(i: int, weight: Any, bias: Any) -> tuple[Floats, Floats]:
    """Return (weight, bias) of layer i, checked, with the members on the first axis."""
    kinds = {np.asarray(part).dtype for part in (weight, bias)}
    if odd := [kind for kind in kinds if kind.kind in "cUS"]:
        raise TypeError(f"layer {i}: weight and bias must be real numbers, got {odd[0]}")
    weight, bias = np.array(weight, dtype=np.float64), np.array(bias, dtype=np.float64)  # the caller may change its own
    if weight.ndim != 3 or bias.shape != (weight.shape[0], weight.shape[2]) or 0 in weight.shape:
        raise ValueError(f"layer {i}: weight must be [out, in] and bias [out], got {weight.shape} and {bias.shape}")
    if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
        raise ValueError(f"layer {i}: weight and bias must be finite, got NaN or inf; check the training run")
    return np.ascontiguousarray(np.moveaxis(weight, 2, 0)), np.ascontiguousarray(bias.T)
