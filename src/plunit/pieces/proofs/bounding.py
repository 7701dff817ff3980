"""Bounds of a network on many parts of its domain at once: the step of the branch and bound, and the parts themselves.

A `Query` is a network, a domain, and goals: linear functions of the outputs, which are bounded from above. Goals that
must reach their floors together form a condition. `Nodes` are parts of the domain: each has a box, ranges of the units,
and splits, which put units on one side of a knot. `bound_nodes` narrows the boxes and ranges, bounds the goals, and
chooses where to branch. It runs in the compiled program csrc/prove.cpp, or in NumPy (`numpy_bounds`). In both, the
bounds hold for the network in exact arithmetic.
"""

from __future__ import annotations

import ctypes
import itertools
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from plunit.base.machine import processors
from plunit.pieces.activation import Functions, at_pieces
from plunit.pieces.arrays import Floats, Ints
from plunit.pieces.merging import merge_units
from plunit.pieces.networks import Layer, Network, exact_outputs
from plunit.pieces.proofs.numpy_bounds import bound_in_numpy
from plunit.pieces.proofs.properties import Condition, Domain
from plunit.pieces.rewriting import without_clip
from plunit.pieces.rounding import FLOOR, outward, roundings
from plunit.programs.interface import ProofNodes, ProofTask, call_program, run_on_threads
from plunit.programs.libraries import library, why_not_native

EXACT = 10_000
"""Up to this many weights, the ranges of the first layer are computed in exact arithmetic."""


@dataclass(frozen=True, eq=False)
class ReducedNetwork:
    """A network as the step reads it: the same function with fewer units, and its tables, which are made once."""

    net: Network

    @classmethod
    def of(cls, net: Network, box: Floats) -> ReducedNetwork:
        """Return the network without the units and clips that have no effect on the box."""
        return cls(without_clip(merge_units(net), box))

    @cached_property
    def weight(self) -> Floats:
        """The weights of all layers, one after another."""
        return np.concatenate([layer.weight.ravel() for layer in self.net.layers]).astype(np.float64)

    @cached_property
    def bias(self) -> Floats:
        """The biases of all layers."""
        return np.concatenate([layer.bias for layer in self.net.layers]).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Query:
    """The quantities to bound: goals y, or the gradient of the first goal, for x in the domain.

    goals: [g, out]; the goals of condition c are those from first[c] to first[c + 1].
    """

    model: ReducedNetwork
    domain: Domain
    goals: Floats
    first: Ints
    gradient: bool = False

    @classmethod
    def of(
        cls, net: Network | ReducedNetwork, domain: Domain, conditions: Sequence[Floats], *, gradient: bool = False
    ) -> Query:
        """Return the query for the goals of each condition, [m, out]."""
        first = np.cumsum([0, *map(len, conditions)], dtype=np.int64)
        model = net if isinstance(net, ReducedNetwork) else ReducedNetwork.of(net, domain.box)
        return cls(model, domain, np.concatenate(conditions), first, gradient)

    @property
    def net(self) -> Network:
        """The network."""
        return self.model.net

    def forward(self, x: Floats) -> tuple[Floats, list[Floats]]:
        """Return f(x) [n, out] at x [n, in], and the slopes of each layer's units; at a knot, the slope below it."""
        y, slopes = x, list[Floats]()
        for weight, bias, f in self.layers:
            z = y @ weight.T + bias
            if f is None:
                return z, slopes
            slope, intercept = at_pieces(z, *f.units)
            slopes.append(slope)
            y = slope * z + intercept
        raise AssertionError("the last layer has no activation")

    def gradients(self, slopes: list[Floats], rows: Floats) -> Floats:
        """Return the gradients of rows f, rows [n, out], where the units have these slopes: [n, in]."""
        found = rows @ self.net.layers[-1].weight
        for layer, slope in zip(self.net.layers[-2::-1], slopes[::-1], strict=True):
            found = (found * slope) @ layer.weight
        return np.asarray(found)

    def enclosures(self, x: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Yield z [n, units] of each layer at x [n, in], f(x) last, and a bound on its rounding error."""
        y, error = x, np.zeros_like(x)
        for weight, bias, f in self.layers:
            size = np.abs(weight).T
            z = y @ weight.T + bias
            error = error @ size + roundings(len(size) + 8) * (np.abs(y) @ size + np.abs(bias)) + FLOOR
            yield z, error
            if f is None:
                return
            y, error = f.enclose(z, error)

    def meets(self, x: Floats, conditions: Sequence[Condition]) -> bool:
        """Whether f(x), x [in], meets a condition in exact arithmetic, which runs only where rounding could decide."""
        *_, (y, error) = self.enclosures(x[None])
        if any(condition.surely_contains(y[0], error[0]) for condition in conditions):
            return True
        possible = [condition for condition in conditions if not condition.surely_lacks(y[0], error[0])]
        exact = exact_outputs(self.net, x) if possible else []
        return any(condition.contains(exact) for condition in possible)

    @cached_property
    def task(self) -> Any:
        """The query as the compiled program reads it."""
        net, tables, domain = self.net, self.net.tables, self.domain
        return ProofTask(
            depth=len(net.layers),
            widths=np.array(net.widths, dtype=np.int64),
            weight=self.model.weight,
            bias=self.model.bias,
            knots=tables.knots.shape[1],
            knot=tables.knots,
            slope=tables.slopes,
            low=tables.low,
            high=tables.high,
            constraints=len(domain.limits),
            rows=domain.rows,
            limits=domain.limits,
            conditions=len(self.first) - 1,
            first=self.first,
            goals=self.goals,
            gradient=self.gradient,
        )

    @cached_property
    def layers(self) -> list[tuple[Floats, Floats, Functions | None]]:
        """Weight, bias, and the functions of the units, or None, of each layer."""
        return [(one.weight, one.bias, one.functions) for one in self.net.layers]

    @property
    def centre(self) -> Floats | None:
        """A point inside the domain, None without constraints."""
        return self.domain.centre[0] if len(self.domain.limits) else None

    @property
    def batch(self) -> int:
        """The number of nodes that are bounded together: about a tenth of a second of work, at most 256."""
        widths = self.net.widths
        products = [a * b for a, b in itertools.pairwise(widths)]
        work = sum(width * sum(products[:i]) for i, width in enumerate(widths[1:])) + sum(products)
        return int(np.clip(3e8 / work, 2, 256))


@dataclass(frozen=True, eq=False)
class Nodes:
    """Parts of a domain, on the first axis of every array.

    box: [n, in, 2]; ranges: [n, units, 2], of z; split_unit, split_low, split_high: [n, splits], a unit, -1 for none,
    and the interval that contains its z; floors: [n, g], the values that the goals must reach; case: [n], the question
    that a node belongs to; cuts: [n, g, in + 1], forms a x + b that are above the goals in the part, NaN for none;
    bounds: [n, conditions], by how much the goals may exceed their floors, or the 2-norm of the gradient; -inf if the
    condition is ruled out.
    """

    box: Floats
    ranges: Floats
    split_unit: Ints
    split_low: Floats
    split_high: Floats
    floors: Floats
    case: Ints
    cuts: Floats
    bounds: Floats

    @classmethod
    def roots(cls, query: Query, boxes: Floats) -> Nodes:
        """Return a node for each box [n, in, 2]."""
        n, inputs, units, goals = len(boxes), query.net.inputs, len(query.net.tables.knots), len(query.goals)
        ranges, first = np.broadcast_to([-np.inf, np.inf], (n, units, 2)).copy(), query.net.layers[0]
        if units and n * first.weight.size <= EXACT:
            ranges[:, : len(first.bias)] = [_exact_ranges(first, box) for box in boxes.tolist()]
        return cls(
            np.array(boxes, dtype=np.float64),
            ranges,
            np.zeros((n, 0), dtype=np.int64),
            np.zeros((n, 0)),
            np.zeros((n, 0)),
            np.zeros((n, goals)),
            np.arange(n),
            np.full((n, goals, inputs + 1), np.nan),
            np.full((n, len(query.first) - 1), np.inf),
        )

    def __len__(self) -> int:
        return len(self.box)

    def __getitem__(self, pick: Any) -> Nodes:
        return Nodes(*(np.ascontiguousarray(getattr(self, field.name)[pick]) for field in fields(self)))

    def with_splits(self, count: int) -> Nodes:
        """Return these nodes with room for this many splits."""
        more = ((0, 0), (0, count - self.split_unit.shape[1]))
        return replace(
            self,
            split_unit=np.pad(self.split_unit, more, constant_values=-1),
            split_low=np.pad(self.split_low, more, constant_values=-np.inf),
            split_high=np.pad(self.split_high, more, constant_values=np.inf),
        )

    def halves(self, branch: Ints, knots: Floats) -> Nodes:
        """Return two nodes for each node: halves of an input's side, or a unit's z below and above a knot.

        branch: [n, 2], an input, or the number of inputs plus a unit, and its knot; knots: [units, k].
        """
        inputs, used = self.box.shape[1], int((self.split_unit >= 0).sum(axis=1).max(initial=0))
        both = self[np.repeat(np.arange(len(self)), 2)].with_splits(max(used + 1, self.split_unit.shape[1]))
        branch, upper = np.repeat(branch, 2, axis=0), np.tile([False, True], len(self))
        by_input = np.flatnonzero(branch[:, 0] < inputs)
        axis = branch[by_input, 0]
        both.box[by_input, axis, np.where(upper[by_input], 0, 1)] = both.box[by_input, axis].sum(axis=1) / 2
        by_unit = np.flatnonzero(branch[:, 0] >= inputs)
        unit = branch[by_unit, 0] - inputs
        free = np.argmax(both.split_unit[by_unit] < 0, axis=1)
        place, above = knots[unit, branch[by_unit, 1]], upper[by_unit]
        both.split_unit[by_unit, free] = unit
        both.split_low[by_unit, free] = np.where(above, place, -np.inf)
        both.split_high[by_unit, free] = np.where(above, np.inf, place)
        return both


def _exact_ranges(layer: Layer, box: list[list[float]]) -> list[tuple[float, float]]:
    """Return the range of z of each unit of the first layer, exactly: a knot on the edge of the box is not inside."""
    found = []
    for row, bias in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True):
        ends = [
            sorted((Fraction(w) * Fraction(low), Fraction(w) * Fraction(high)))
            for w, (low, high) in zip(row, box, strict=True)
        ]
        low, high = (Fraction(bias) + sum(part[side] for part in ends) for side in (0, 1))
        found.append((outward(low)[0], outward(high)[1]))
    return found


@dataclass(frozen=True, eq=False)
class Answer:
    """What `bound_nodes` finds out about each node.

    x: [n, in], a promising point; branch: [n, 2] as in `Nodes.halves`, -1 if all units are on one piece; gradient:
    [n, in, 2], its range.
    """

    x: Floats
    branch: Ints
    gradient: Floats


def bound_nodes(query: Query, nodes: Nodes, engine: str, seconds: float = np.inf) -> Answer | None:
    """Narrow the nodes, in place, and return what is known about them; None if the time ran out first.

    After None, the nodes are invalid.
    """
    n, inputs = len(nodes), query.net.inputs
    found = Answer(np.zeros((n, inputs)), np.full((n, 2), -1, dtype=np.int64), np.zeros((n, inputs, 2)))
    if not (bound_in_numpy if engine == "numpy" else _bound_compiled)(query, nodes, found, seconds):
        return None
    nodes.bounds[np.isnan(nodes.bounds)] = np.inf  # overflow proves nothing
    found.gradient[np.isnan(found.gradient).any(axis=2)] = -np.inf, np.inf
    return found


def _bound_compiled(query: Query, nodes: Nodes, found: Answer, seconds: float) -> bool:
    n = len(nodes)
    parts = ProofNodes(
        nodes=n,
        splits=nodes.split_unit.shape[1],
        box=nodes.box,
        range=nodes.ranges,
        split_unit=nodes.split_unit,
        split_low=nodes.split_low,
        split_high=nodes.split_high,
        floor=nodes.floors,
        cut=nodes.cuts,
        bound=nodes.bounds,
        x=found.x,
        branch=found.branch,
        gradient=found.gradient,
        seconds=seconds,
    )
    return call_prover(library("prove").plunit_prove, query, parts)


def call_prover(program: Any, query: Query, nodes: Any) -> bool:
    """Call a function of the compiled program on several threads; return whether all nodes are done."""
    counter, results = ctypes.c_int64(0), list[int]()
    call = program, ctypes.byref(query.task), ctypes.byref(nodes), ctypes.byref(counter)
    run_on_threads(lambda: results.append(call_program(*call)), min(processors(), nodes.nodes))
    return not any(results)


def prover() -> str:
    """Return the engine, compiled or in NumPy; warn with the reason if it is NumPy."""
    if reason := why_not_native("prove"):
        warnings.warn(f"{reason}. Proofs run in NumPy: the same answers, 10 to 100 times slower.", stacklevel=4)
    return "numpy" if reason else "native"
