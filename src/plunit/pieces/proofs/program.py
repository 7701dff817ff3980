"""Mixed-integer linear programs over columns t in [0, 1], and affine forms in these columns."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plunit.pieces.arrays import Bools, Floats
from plunit.pieces.limits import MEMORY
from plunit.pieces.proofs.highs import OPTIONS, Listener, Solution, Solver


@dataclass(frozen=True, eq=False)
class Form:
    """matrix t + constant: numbers that are affine in the columns t; matrix [n, columns so far], constant [n]."""

    matrix: Floats
    constant: Floats

    def map(self, weight: Floats, bias: Floats) -> Form:
        """Return weight y + bias of this form y."""
        return Form(weight @ self.matrix, weight @ self.constant + bias)

    def range(self) -> tuple[Floats, Floats]:
        """Return bounds of the form from t in [0, 1] alone, (low, high), widened by their rounding errors."""
        low = self.constant + np.minimum(self.matrix, 0).sum(axis=1)
        high = self.constant + np.maximum(self.matrix, 0).sum(axis=1)
        slack = 1e-12 * (np.abs(self.matrix).sum(axis=1) + np.abs(self.constant))
        return low - slack, high + slack

    def __getitem__(self, rows: Any) -> Form:
        return Form(self.matrix[rows], self.constant[rows])


class Program:
    """low <= A t <= high with t in [0, 1], some t integers; it grows by columns and rows."""

    def __init__(self) -> None:
        self.count = 0
        self._integer: list[Bools] = []
        self._rows: list[tuple[Floats, Floats, Floats]] = []

    def columns(self, count: int, *, integer: bool = False) -> slice:
        """Add columns; return where they are."""
        self._integer.append(np.full(count, integer))
        self.count += count
        return slice(self.count - count, self.count)

    def form(self, count: int) -> Form:
        """Return a form of zeros with room for all columns so far."""
        _check_memory(count, self.count)
        return Form(np.zeros((count, self.count)), np.zeros(count))

    def padded(self, form: Form) -> Form:
        """Return the form with zeros for the columns that came after it."""
        _check_memory(len(form.constant), self.count)
        missing = self.count - form.matrix.shape[1]
        return Form(np.pad(form.matrix, ((0, 0), (0, missing))), form.constant)

    def limit(self, form: Form, low: Floats | float, high: Floats | float) -> None:
        """Ask for low <= form <= high. Each row is scaled by its largest coefficient."""
        scale = np.abs(form.matrix).max(axis=1, initial=0.0)
        scale = np.where(scale > 0, scale, 1.0)
        shift = form.constant
        self._rows.append((form.matrix / scale[:, None], (low - shift) / scale, (high - shift) / scale))

    @property
    def binaries(self) -> int:
        """The number of integer columns."""
        return int(sum(part.sum() for part in self._integer))

    def maximise(
        self,
        goal: Form,
        *,
        seconds: float = np.inf,
        target: float = np.inf,
        listener: Listener | None = None,
        options: Mapping[str, Any] = OPTIONS,
    ) -> Solution:
        """Maximise a form of one row, until the time is over or a value reaches the target."""
        goal = self.padded(goal)
        scale, offset = _scale(goal), float(goal.constant[0])
        solver = self._solver(np.concatenate([np.zeros(0, dtype=np.bool_), *self._integer]))
        solver.set(options)
        if np.isfinite(target):
            solver.set({"objective_target": (target - offset) / scale})
        told = listener and (lambda best, bound: listener(best * scale + offset, bound * scale + offset))
        found = solver.maximise(goal.matrix[0] / scale, seconds, told)
        return replace(found, bound=found.bound * scale + offset)

    def relaxation(self, deadline: float = np.inf) -> Relaxation:
        """Return the linear program without integrality, for many goals, one after the other, until the deadline."""
        return Relaxation(self._solver(None), self, deadline)

    def _solver(self, integer: Bools | None) -> Solver:
        _check_memory(sum(len(low) for _, low, _ in self._rows), self.count)
        matrix = np.concatenate([np.zeros((0, self.count)), *(_widened(rows, self.count) for rows, _, _ in self._rows)])
        low = np.concatenate([np.zeros(0), *(low for _, low, _ in self._rows)])
        high = np.concatenate([np.zeros(0), *(high for _, _, high in self._rows)])
        return Solver(matrix, low, high, integer)


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The linear program of a `Program`; the deadline is a time of time.monotonic()."""

    solver: Solver
    program: Program
    deadline: float

    def maximum(self, goal: Form) -> Solution:
        """Maximise a form of one row."""
        goal = self.program.padded(goal)
        scale = _scale(goal)
        found = self.solver.maximise(goal.matrix[0] / scale, self.deadline - time.monotonic())
        return replace(found, bound=found.bound * scale + float(goal.constant[0]))


def _scale(goal: Form) -> float:
    """Return the size of a goal's numbers: the solver gets them near 1."""
    return max(float(np.abs(goal.matrix).max(initial=0.0)), 1e-300)


def _check_memory(rows: int, columns: int) -> None:
    if 8 * rows * columns > MEMORY:
        raise ValueError(
            f"the program of this network has {rows:,} x {columns:,} numbers or more, {8e-9 * rows * columns:.1f} GB, "
            f"and {1e-9 * MEMORY:.1f} GB are allowed; take a smaller network or a smaller box"
        )


def _widened(rows: Floats, count: int) -> Floats:
    return np.pad(rows, ((0, 0), (0, count - rows.shape[1])))
