"""Compare the functions read from a graph with its nodes, evaluated one by one by onnx's reference implementation.

`waves` represents functions by their pieces. Here the reference evaluates each operator on float64 numbers: at, next to
and between the kinks of each function, and for the whole network at random points. If they differ, the graph is
refused.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from plunit.pieces.activation import Activation, at_pieces
from plunit.pieces.arrays import Floats
from plunit.pieces.formats.onnx_graphs.operators import PICKED, compute
from plunit.pieces.graphs import check_bytes
from plunit.pieces.networks import Network, terms

_ROUNDING = 1e-12
_ROUGH = 1e-9  # rounding in several layers, whose terms may cancel
_LEAST = 1e-200  # smaller than all numbers of a graph, larger than intermediate values that underflow
_NUMBERS = 2**20
_PARTS = np.array([0.03, 0.29, 0.5, 0.83])

_Graph = tuple[dict[str, Any], int]
"""The arrays of a graph by name, and its opset version."""

Unit = tuple[Activation | None, Floats]
"""The function of units, None for the identity, and a bound on its difference from that of the graph, [units]."""


def probes(waves: Iterable[Floats], units: int) -> Floats:
    """Return points [n, units]: all of these knots [units, k], their neighbours, and points on both sides of each."""
    parts = [np.zeros((units, 1)), *(np.broadcast_to(knots, (units, knots.shape[1])) for knots in waves)]
    check_bytes("the list of points around the kinks", 8 * units * 7 * sum(part.shape[1] + 1 for part in parts))
    every = np.concatenate(parts, axis=1)
    knots = np.sort(np.where(np.isfinite(every), every, 0.0), axis=1)
    knots = knots[:, np.append(True, (np.diff(knots) > 0).any(axis=0))]
    reach = 1 + np.abs(knots).max(axis=1, keepdims=True)
    ends = [knots[:, :1] - 1000 * reach, knots[:, :1] - 2 * reach, knots[:, -1:] + 2 * reach]
    edges = np.concatenate([*ends[:2], knots, ends[2], knots[:, -1:] + 1000 * reach], axis=1)
    between = edges[:, :-1, None] + np.diff(edges)[:, :, None] * _PARTS
    sides = [np.nextafter(knots, end) for end in (-np.inf, np.inf)]
    return np.concatenate([edges, *sides, between.reshape(units, -1)], axis=1).T


class UnitNodes:
    """The nodes after a linear map, or after the input, that compute functions of each number."""

    def __init__(self, source: str, shape: tuple[int, ...], version: int) -> None:
        self.source, self.shape, self.version = source, shape, version
        self.steps: list[tuple[Any, tuple[int, ...], Floats]] = []

    def add(self, node: Any, shape: tuple[int, ...], knots: Floats) -> None:
        """Add a node, the shape of its result, and the knots of its result as a function of the source."""
        self.steps.append((node, shape, knots))

    def check(self, output: str, line: tuple[Floats, Floats], unit: Unit, constants: dict[str, Any]) -> None:
        """Raise ValueError if a value is not f(slope z + shift) of the source z, for a line (slope, shift)."""
        f, jump = unit
        steps: list[Any] = []
        needed = {output}
        for step in reversed(self.steps):
            if step[0].output[0] in needed:
                steps.insert(0, step)
                needed.update(step[0].input)
        points = probes((knots for *_, knots in steps), int(np.prod(self.shape)))
        many = points.shape[1] * max([len(steps) + 1, *(knots.shape[1] for *_, knots in steps)])
        check_bytes("the list of values at one point of each unit", 8 * many)
        rows = max(1, _NUMBERS // many)
        for start in range(0, len(points), rows):
            z = points[start : start + rows]
            with np.errstate(all="ignore"):
                graph, terms = self._values(steps, output, z, constants)
                found, size = _values(line, f, z)
            wrong = ~(np.abs(graph - found) <= jump + _ROUNDING * (size + terms) + _LEAST)
            if wrong.any():
                i = tuple(int(axis[0]) for axis in np.nonzero(wrong))
                raise ValueError(
                    f"a unit has the value {graph[i]:.6g} at {z[i]:.6g} in the graph, but {found[i]:.6g} on the pieces "
                    "found for it: its function jumps there, or rounding decides a comparison of equal values"
                )

    def _values(self, steps: Any, output: str, z: Floats, constants: dict[str, Any]) -> tuple[Floats, Floats]:
        """Return the value of a name for the source z [n, units], and the size of the largest intermediate value."""
        values: dict[str, Any] = {self.source: z.reshape(len(z), *self.shape)}
        terms = np.abs(z)
        for node, shape, _ in steps:
            # the first axis is for the points, so all signals need the same number of other axes
            axes = max(len(shape), *(np.ndim(constants[name]) for name in node.input if name and name not in values), 0)
            lifted = {
                name: value.reshape(len(z), *[1] * (axes + 1 - value.ndim), *value.shape[1:])
                for name, value in values.items()
                if name in node.input
            }
            if node.op_type in PICKED:
                result = next(iter(lifted.values()))
            else:
                result = compute(node, ChainMap(lifted, constants), self.version)[0]
            values[node.output[0]] = result.reshape(len(z), *shape)
            terms = np.maximum(terms, np.abs(result.astype(np.float64)).reshape(z.shape))
        return values[output].astype(np.float64).reshape(z.shape), terms


def _values(line: tuple[Floats, Floats], f: Activation | None, z: Floats) -> tuple[Floats, Floats]:
    """Return f(slope z + shift) for z [n, units], and the size of its terms."""
    slope, shift = line
    size = np.abs(slope * z) + np.abs(shift)
    z = slope * z + shift
    if f is None:
        return z, size
    slope, intercept = at_pieces(z, f.knots, f.slopes, f.intercepts)
    finite = np.where(np.isfinite(f.knots), f.knots, 0.0)
    ends = (np.abs(f.slopes[..., :-1] * finite) + np.abs(f.intercepts[..., :-1])).max(axis=-1, initial=0.0)
    return slope * z + intercept, np.abs(slope) * size + np.abs(intercept) + ends


def compare_network(
    net: Network, jump: Floats, nodes: Sequence[Any], ends: tuple[str, str], shape: tuple[int, ...], graph: _Graph
) -> None:
    """Raise ValueError if a network differs from its nodes by more than `jump` [out] and rounding, at random points.

    ends: the names of the input and the output.
    """
    rng = np.random.default_rng(0)
    source, output = ends
    constants, version = graph
    points = [scale * rng.normal(size=shape) for scale in (0.01, 0.1, 1.0, 1.0, 10.0, 100.0)]
    rows = np.stack([x.ravel() for x in points])
    sizes = terms(net.alone, rows, np.zeros(0, dtype=np.int64))
    for x, found, size in zip(points, net(rows), sizes, strict=True):
        values: dict[str, Any] = {source: x}
        with np.errstate(all="ignore"):
            for node in nodes:
                if any(name in values for name in node.input):
                    values.update(zip(node.output, compute(node, ChainMap(values, constants), version), strict=False))
        # large intermediate values may cancel
        most = max(float(np.abs(np.asarray(value, dtype=np.float64)).max(initial=0.0)) for value in values.values())
        if not (np.abs(found - np.ravel(values[output])) <= jump + _ROUGH * (size + most)).all():
            raise ValueError("the network differs from its graph; please report this file as a bug")
