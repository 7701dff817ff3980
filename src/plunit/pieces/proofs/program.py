"""Mixed-integer linear programs over columns t in [0, 1], solved by HiGHS (`highspy`, extra `exact`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit.pieces.arrays import Bools, Floats
from plunit.pieces.limits import MEMORY

FEASIBLE = 1e-9
"""HiGHS may break rows, bounds and integrality by so much. Columns and rows are scaled to sizes near 1."""

OPTIONS = {
    "mip_rel_gap": 0.0,
    "mip_abs_gap": FEASIBLE,
    "mip_feasibility_tolerance": FEASIBLE,
    # a good point is known before; and these programs have little that presolve could remove
    "mip_heuristic_effort": 0.0,
    "presolve": "off",
}

Listener = Callable[[float, float], None]
"""Is called with the best value and the bound so far."""


class Contradiction(RuntimeError):
    """The solver's answer contradicts the network."""


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


@dataclass(frozen=True, eq=False)
class Solution:
    """status: optimal, infeasible, or limit; t: the best columns found, or None; bound: no value is larger."""

    status: str
    t: Floats | None
    bound: float


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
        """Maximise a form of one row, for at most so many seconds or until a value reaches the target."""
        highspy = _highspy()
        goal = self.padded(goal)
        scale = max(float(np.abs(goal.matrix).max(initial=0.0)), 1e-300)
        offset = float(goal.constant[0])
        solver = self._solver(np.concatenate([np.zeros(0, dtype=np.bool_), *self._integer]))
        for name, value in options.items():
            solver.setOptionValue(name, value)
        if np.isfinite(seconds):
            solver.setOptionValue("time_limit", solver.getRunTime() + max(seconds, 0.01))
        if np.isfinite(target):
            solver.setOptionValue("objective_target", (target - offset) / scale)
        _set_costs(solver, goal.matrix[0] / scale)
        solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
        if listener is not None:
            _listen(solver, lambda best, bound: listener(best * scale + offset, bound * scale + offset))
        solver.HandleKeyboardInterrupt = True
        solver.run()
        return _solution(solver, lambda number: number * scale + offset)

    def relaxation(self) -> Relaxation:
        """Return the linear program without integrality, for many goals one after the other."""
        return Relaxation(self._solver(None), self)

    def _solver(self, integer: Bools | None) -> Any:
        highspy = _highspy()
        _check_memory(sum(len(low) for _, low, _ in self._rows), self.count)
        model = highspy.HighsLp()
        matrix = np.concatenate([np.zeros((0, self.count)), *(_widened(rows, self.count) for rows, _, _ in self._rows)])
        low = np.concatenate([np.zeros(0), *(low for _, low, _ in self._rows)])
        high = np.concatenate([np.zeros(0), *(high for _, _, high in self._rows)])
        model.num_col_, model.num_row_ = self.count, len(matrix)
        model.col_cost_, model.col_lower_, model.col_upper_ = (
            np.zeros(self.count),
            np.zeros(self.count),
            np.ones(self.count),
        )
        model.row_lower_, model.row_upper_ = low, high
        row, column = np.nonzero(matrix)
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.searchsorted(row, np.arange(len(matrix) + 1)).astype(np.int32)
        model.a_matrix_.index_ = column.astype(np.int32)
        model.a_matrix_.value_ = matrix[row, column]
        if integer is not None and integer.any():
            kinds = highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger
            model.integrality_ = [kinds[int(flag)] for flag in integer]
        solver = highspy.Highs()
        solver.silent()
        solver.setOptionValue("primal_feasibility_tolerance", FEASIBLE)
        solver.setOptionValue("dual_feasibility_tolerance", FEASIBLE)
        solver.passModel(model)
        return solver


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The linear program of a `Program`."""

    solver: Any
    program: Program

    def maximum(self, goal: Form) -> Solution:
        """Maximise a form of one row."""
        highspy = _highspy()
        goal = self.program.padded(goal)
        scale = max(float(np.abs(goal.matrix).max(initial=0.0)), 1e-300)
        _set_costs(self.solver, goal.matrix[0] / scale)
        self.solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self.solver.run()
        return _solution(self.solver, lambda number: number * scale + float(goal.constant[0]))


def _set_costs(solver: Any, costs: Floats) -> None:
    solver.changeColsCost(len(costs), np.arange(len(costs), dtype=np.int32), np.ascontiguousarray(costs))


def _listen(solver: Any, listener: Listener) -> None:
    def tell(event: Any) -> None:
        listener(event.data_out.mip_primal_bound, event.data_out.mip_dual_bound)

    solver.cbMipInterrupt.subscribe(tell)


def _solution(solver: Any, value: Callable[[float], float]) -> Solution:
    """Read what HiGHS found; anything unexpected is an error and never an answer."""
    highspy = _highspy()
    status, info = solver.getModelStatus(), solver.getInfo()
    kinds = highspy.HighsModelStatus
    if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
        return Solution("infeasible", None, -np.inf)
    if status == kinds.kInterrupt:
        raise KeyboardInterrupt
    ended = {kinds.kOptimal: "optimal", kinds.kTimeLimit: "limit", kinds.kObjectiveTarget: "limit"}
    if status not in ended:
        raise Contradiction(f"HiGHS ended with {solver.modelStatusToString(status)!r}; scale the network's weights")
    integer = info.mip_node_count >= 0
    found = info.primal_solution_status == highspy.kSolutionStatusFeasible
    bound = value(info.mip_dual_bound if integer else info.objective_function_value)
    t = np.array(solver.getSolution().col_value) if found else None
    return Solution(ended[status], t, bound if integer or ended[status] == "optimal" else np.inf)


def _check_memory(rows: int, columns: int) -> None:
    if 8 * rows * columns > MEMORY:
        raise ValueError(
            f"the program of this network has {rows:,} x {columns:,} numbers or more, {8e-9 * rows * columns:.1f} GB, "
            f"and {1e-9 * MEMORY:.1f} GB are allowed; take a smaller network or a smaller box"
        )


def _widened(rows: Floats, count: int) -> Floats:
    return np.pad(rows, ((0, 0), (0, count - rows.shape[1])))


def _highspy() -> Any:
    try:
        import highspy
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "this question about three or more inputs, or with constraints, needs the solver HiGHS, which is not "
            "installed; pip install 'plunit[exact]'",
            name="highspy",
        ) from None
    return highspy
