"""The aims of `aims` for a program: `ProgramGoal` for values, and `ProgramMargin` for properties.

Bounds are those of the real-number network of the program, and values are those of the program itself. The two differ
by at most an error (`plunit.pieces.c_programs`), by which limits and floors are moved. If the inputs of the program are
evenly spaced, the search ends in boxes with few of them, and runs the program on all of these: then no error is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from plunit.pieces.arrays import Bools, Floats, Ints
from plunit.pieces.boxes import box_array, check_size
from plunit.pieces.c_programs import Program
from plunit.pieces.proofs.aims import LargestGoal, Margin
from plunit.pieces.proofs.bounding import Answer, Nodes, ReducedNetwork
from plunit.pieces.proofs.branching import BestPoint
from plunit.pieces.proofs.linear import NEVER
from plunit.pieces.proofs.properties import Case, Condition, Constraints, Domain, constraint_rows
from plunit.pieces.rounding import EPS, FLOOR, UNIT, fractions

NEAR = 1e-12
"""Sums are compared with their limits in double precision where they differ by this fraction of their terms."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs of a program in the boxes of some cases, whose constraints have the same rows."""

    program: Program
    cases: list[Case]

    @classmethod
    def of(cls, program: Program, box: Any, constraints: Constraints) -> Inputs:
        """Return all inputs in a box that meet the constraints."""
        sides = box_array(program.net, box, fixed=True)
        anything = Condition(np.zeros((1, program.net.outputs)), np.ones(1))
        return cls(program, [Case(sides, *constraint_rows(constraints, len(sides)), (anything,))])

    @cached_property
    def sides(self) -> Floats:
        """The first and the last place of each case, [cases, in, 2]."""
        found = np.stack([self.program.sides(case.box) for case in self.cases])
        check_size(self.program.real, np.abs(found).max(axis=(0, 2)))
        return found

    @property
    def step(self) -> Floats:
        """The distance between neighbouring places of each input, if they are evenly spaced."""
        return np.asarray(self.program.step)

    @cached_property
    def error(self) -> Floats:
        """A bound on the distance between the program and its real-number network, in all cases."""
        outer = np.stack([self.sides[..., 0].min(axis=0), self.sides[..., 1].max(axis=0)], axis=1)
        return self.program.error(outer)

    def nearest(self, places: Floats, case: Ints) -> Floats:
        """Return the places of inputs, each within its case, that are nearest to places [n, in]."""
        return np.clip(self.program.nearest(places), self.sides[case, :, 0], self.sides[case, :, 1])

    def real_case(self, number: int) -> Case:
        """Return a case of the real-number network that contains every input in a case of the program."""
        case = self.cases[number]
        offset, step = self.program.offset, self.program.step
        reach = np.zeros(len(case.box)) if step is None else 0.51 * step + 4 * EPS * np.abs(case.box).max(axis=1)
        size, limits = np.abs(case.rows), case.limits
        if step is not None:
            slack = size @ reach + 2 * len(offset) * EPS * (size @ np.abs(offset) + np.abs(limits))
            limits = limits - case.rows @ offset + slack
        return Case(self.sides[number], case.rows, limits, tuple(map(self._relax, case.conditions)))

    @cached_property
    def real_question(self) -> tuple[ReducedNetwork, Domain]:
        """The real-number network and its domain, if there is only one case."""
        case = self.real_case(0)
        return ReducedNetwork.of(self.program.real, case.box), Domain(case.box, case.rows, case.limits)

    def _relax(self, condition: Condition) -> Condition:
        """Return a condition that the real-number network meets wherever the program meets this one."""
        if not len(condition.rows):
            return Condition(np.zeros((1, condition.rows.shape[1])), np.ones(1), condition.strict)
        slack = np.abs(condition.rows) @ self.error * (1 + 2 * len(self.error) * EPS)
        limits = condition.limits + slack
        return Condition(condition.rows, limits + 2 * UNIT * np.abs(limits) * (slack > 0), condition.strict)

    def x(self, places: Floats, case: int) -> Floats:
        """Return the inputs x at places."""
        return self.program.x(places, self.cases[case].box)

    def are_in(self, places: Floats, case: int) -> Bools:
        """Return which places [n, in] of inputs meet the constraints of their case, in exact arithmetic."""
        one, x = self.cases[case], self.x(places, case)
        found = np.ones(len(x), dtype=np.bool_) if not len(one.limits) else one.holds(x, NEAR)
        unsure = found if one.exact else found & ~one.holds(x, -NEAR) if len(one.limits) else ~found
        for i in np.flatnonzero(unsure):
            found[i] = one.contains(x[i])
        return found

    def first_witness(self, places: Floats, case: int) -> Floats | None:
        """Return the first of places [n, in] that, with the program's output, is in the case; None if there is none."""
        y = self.program.run(places)
        meets = np.zeros(len(y), dtype=np.bool_)
        for condition in self.cases[case].conditions:
            size = np.abs(y) @ np.abs(condition.rows).T + np.abs(condition.limits)
            near = np.flatnonzero((y @ condition.rows.T - condition.limits <= NEAR * size + FLOOR).all(axis=1))
            values, owner = np.unique(y[near], axis=0, return_inverse=True)
            certain = np.array([condition.contains(fractions(one)) for one in values], dtype=np.bool_)
            meets[near] |= certain[owner.reshape(-1)]
        found = places[meets]
        found = found[self.are_in(found, case)]
        return found[0] if len(found) else None

    def meets(self, y: Floats, case: int) -> bool:
        """Whether y [out] meets a condition, in exact arithmetic."""
        exact = fractions(y)
        return any(condition.contains(exact) for condition in self.cases[case].conditions)

    def places(self, box: Floats) -> Floats:
        """Return all places [n, in] in a box [in, 2]."""
        ends = np.rint(box / self.step[:, None]).astype(np.int64)
        axes = [np.arange(low, high + 1) for low, high in ends]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(box)) * self.step


class _Stepped:
    """An aim for a program: it is a `Lattice` if the places of the program are evenly spaced."""

    inputs: Inputs

    @property
    def lattice(self) -> Any:
        """The aim itself, or None if the places of the program are not evenly spaced."""
        return None if self.inputs.program.step is None else self

    def snap(self, boxes: Floats) -> Floats:
        """Move the ends of boxes [n, in, 2] inwards to the nearest places, and return the number of places in each."""
        step = self.inputs.step
        low, high = np.ceil(boxes[..., 0] / step), np.floor(boxes[..., 1] / step)
        boxes[..., 0], boxes[..., 1] = low * step, np.maximum(low, high) * step
        return np.asarray(np.maximum(high - low + 1, 0.0).prod(axis=1))

    def widest(self, boxes: Floats) -> Ints:
        """Return, for each box, the index of the input with the most places."""
        return np.asarray(np.argmax((boxes[..., 1] - boxes[..., 0]) / self.inputs.step, axis=1))


@dataclass(frozen=True, eq=False)
class ProgramGoal(_Stepped, LargestGoal):
    """The aim of maximising an output of a program, or its negative; `net` and `domain` are the real network's."""

    inputs: Inputs

    @classmethod
    def of(cls, inputs: Inputs, goal: Floats) -> ProgramGoal:
        """Return the aim for inputs that are one case."""
        return cls(*inputs.real_question, goal, inputs)

    @property
    def _error(self) -> float:
        return float(np.abs(self.goal) @ self.inputs.error)

    def values_and_gradients(self, x: Floats, case: Ints) -> tuple[Floats, Floats]:
        """Return the values of the program at the inputs nearest to x, and gradients of the real-number network."""
        places, slopes = self.inputs.nearest(x, case), self.query.forward(x)[1]
        y = self.inputs.program.run(places)
        values = np.where(self.inputs.are_in(places, 0), y @ self.goal, NEVER)
        return values, self.query.gradients(slopes, np.broadcast_to(self.goal, y.shape))

    def floors(self, case: Ints, least: float) -> Floats:
        """Return a value that the real-number network reaches wherever the program reaches `least`."""
        return super().floors(case, np.nextafter(least - self._error, -np.inf))

    def bounds(self, nodes: Nodes, answer: Answer, least: float) -> Floats:
        """Return bounds on the values of the program, which its ranges may tighten."""
        found = super().bounds(nodes, answer, np.nextafter(least - self._error, -np.inf)) + self._error
        found = np.nextafter(found, np.inf)
        low, high = self.inputs.program.ranges(nodes.box[..., 0], nodes.box[..., 1])
        output = int(np.abs(self.goal).argmax())
        return np.fmin(found, high[:, output] if self.goal[output] > 0 else -low[:, output])

    def try_all(self, boxes: Floats, case: Ints) -> BestPoint:
        """Run the program on all places of the boxes, and return the best."""
        places = np.concatenate([self.inputs.places(box) for box in boxes])
        values = np.where(self.inputs.are_in(places, 0), self.inputs.program.run(places) @ self.goal, NEVER)
        best = int(values.argmax())
        return BestPoint(places[best], 0, float(values[best]), 0.0, found=False)


@dataclass(frozen=True, eq=False)
class ProgramMargin(_Stepped, Margin):
    """The aim of finding an input of a program that is in a case; `cases` are those of the real network."""

    inputs: Inputs

    @classmethod
    def of(cls, inputs: Inputs) -> ProgramMargin:
        """Return the aim, with cases relaxed by the distance between the program and its real-number network."""
        return cls(inputs.program.real, [inputs.real_case(i) for i in range(len(inputs.cases))], inputs)

    @cached_property
    def _own_limits(self) -> Floats:
        """The values that the program's goals must reach in each case; without rows, one that is always reached."""
        parts = [
            [one.limits if len(one.limits) else np.ones(1) for one in case.conditions] for case in self.inputs.cases
        ]
        return -np.stack([np.concatenate(part) for part in parts])

    def witness(self, x: Floats, case: int) -> Floats | None:
        """Return the nearest place if it is, with the program's output, in the case; else None."""
        return self.inputs.first_witness(self.inputs.nearest(x[None], np.array([case])), case)

    def bounds(self, nodes: Nodes, answer: Answer, least: float) -> Floats:
        """Return the largest bound of a condition, -inf where the program's ranges rule out all of them."""
        low, high = self.inputs.program.ranges(nodes.box[..., 0], nodes.box[..., 1])
        goals, limits = self.query.goals, self._own_limits[nodes.case]
        with np.errstate(invalid="ignore"):
            top = high @ np.maximum(goals, 0.0).T + low @ np.minimum(goals, 0.0).T
            size = np.maximum(np.abs(low), np.abs(high)) @ np.abs(goals).T + np.abs(limits)
        lacks = top - limits < -NEAR * size
        able: Bools = np.asarray(~np.logical_or.reduceat(lacks, self.query.first[:-1], axis=1).all(axis=1))
        for i in np.flatnonzero(able & (low == high).all(axis=1)):
            able[i] = self.inputs.meets(low[i], int(nodes.case[i]))
        return np.where(able, super().bounds(nodes, answer, least), NEVER)

    def try_all(self, boxes: Floats, case: Ints) -> BestPoint:
        """Run the program on all places of the boxes, and return the first witness."""
        for box, number in zip(boxes, case.tolist(), strict=True):
            place = self.inputs.first_witness(self.inputs.places(box), number)
            if place is not None:
                return BestPoint(place, number, np.inf, 0.0, found=True)
        return BestPoint(boxes[0, :, 0], int(case[0]), NEVER, 0.0, found=False)
