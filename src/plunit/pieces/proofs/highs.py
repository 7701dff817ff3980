"""The solver HiGHS (Huangfu and Hall, 2018; `highspy`, extra `exact`): matrices in, checked answers out."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit.pieces.arrays import Bools, Floats

FEASIBLE = 1e-9
"""HiGHS may violate rows, bounds and integrality by at most this. Columns and rows are scaled to sizes near 1."""

OPTIONS = {
    "mip_rel_gap": 0.0,
    "mip_abs_gap": FEASIBLE,
    "mip_feasibility_tolerance": FEASIBLE,
    # no heuristics, because a good point is already known; no presolve, because it finds little to remove here
    "mip_heuristic_effort": 0.0,
    "presolve": "off",
}

Listener = Callable[[float, float], None]
"""Is called with the best value and the bound so far."""

LOOK = 0.1
"""Seconds between two looks at a long search."""


class Contradiction(RuntimeError):
    """The solver's answer contradicts the network."""


@dataclass(frozen=True, eq=False)
class Solution:
    """status: optimal, infeasible, or limit; t: the best columns found, or None; bound: no value is larger."""

    status: str
    t: Floats | None
    bound: float


class Solver:
    """low <= matrix t <= high with t in [0, 1], some t integers if `integer` says which."""

    def __init__(self, matrix: Floats, low: Floats, high: Floats, integer: Bools | None = None) -> None:
        self._library = _highspy()
        model = self._library.HighsLp()
        count = matrix.shape[1]
        model.num_col_, model.num_row_ = count, len(matrix)
        model.col_cost_, model.col_lower_, model.col_upper_ = np.zeros(count), np.zeros(count), np.ones(count)
        model.row_lower_, model.row_upper_ = low, high
        row, column = np.nonzero(matrix)
        model.a_matrix_.format_ = self._library.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.searchsorted(row, np.arange(len(matrix) + 1)).astype(np.int32)
        model.a_matrix_.index_ = column.astype(np.int32)
        model.a_matrix_.value_ = matrix[row, column]
        self._long = integer is not None and bool(integer.any())
        if integer is not None and self._long:
            kinds = self._library.HighsVarType.kContinuous, self._library.HighsVarType.kInteger
            model.integrality_ = [kinds[int(flag)] for flag in integer]
        self._solver = self._library.Highs()
        self._solver.silent()
        self.set({"primal_feasibility_tolerance": FEASIBLE, "dual_feasibility_tolerance": FEASIBLE})
        self._solver.passModel(model)

    def set(self, options: Mapping[str, Any]) -> None:
        """Set options of HiGHS."""
        for name, value in options.items():
            self._solver.setOptionValue(name, value)

    def maximise(self, costs: Floats, seconds: float = np.inf, listener: Listener | None = None) -> Solution:
        """Maximise costs t until the time is over; a listener hears of a long search."""
        end = time.monotonic() + seconds
        if seconds <= 0:
            return Solution("limit", None, np.inf)
        columns = np.arange(len(costs), dtype=np.int32)
        self._solver.changeColsCost(len(costs), columns, np.ascontiguousarray(costs))
        self._solver.changeObjectiveSense(self._library.ObjSense.kMaximize)
        over = False
        if not self._long:  # most linear programs take milliseconds, and need no thread of their own
            self._limit_time(min(seconds, LOOK))
            self._solver.run()
            over = self._solver.getModelStatus() == self._library.HighsModelStatus.kTimeLimit
        if self._long or (over and time.monotonic() < end):
            self._limit_time(end - time.monotonic())
            self._search(listener)
        return self._solution()

    def _limit_time(self, seconds: float) -> None:
        self.set({"time_limit": self._solver.getRunTime() + max(seconds, 0.01)})

    def _search(self, listener: Listener | None) -> None:
        """Run in a thread of its own: Ctrl-C or an error of the listener stops it, and it has ended on return.

        highspy's own `HandleKeyboardInterrupt` can return while the search goes on, which ends the program with a
        segmentation fault.
        """
        stop = threading.Event()
        news: list[tuple[float, float]] = []

        def obey(event: Any) -> None:
            if stop.is_set():
                event.interrupt()

        def hear(event: Any) -> None:
            news[:] = [(event.data_out.mip_primal_bound, event.data_out.mip_dual_bound)]
            obey(event)

        def run() -> None:
            self._solver.run()
            self._solver.resetGlobalScheduler(False)  # without this the end of the thread can block on Windows

        self._solver.cbMipInterrupt.subscribe(hear)
        self._solver.cbSimplexInterrupt.subscribe(obey)
        with _deferred(stop.set), ThreadPoolExecutor(1) as pool:
            work = pool.submit(run)
            try:
                while wait([work], timeout=LOOK).not_done:
                    if listener is not None and news:
                        listener(*news[-1])
                work.result()
            finally:
                stop.set()
        self._solver.cbMipInterrupt.unsubscribe(hear)
        self._solver.cbSimplexInterrupt.unsubscribe(obey)

    def _solution(self) -> Solution:
        """Read what HiGHS found; anything unexpected is an error and never an answer."""
        kinds = self._library.HighsModelStatus
        status, info = self._solver.getModelStatus(), self._solver.getInfo()
        if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
            return Solution("infeasible", None, -np.inf)
        if status == kinds.kInterrupt:
            raise KeyboardInterrupt
        ended = {kinds.kOptimal: "optimal", kinds.kTimeLimit: "limit", kinds.kObjectiveTarget: "limit"}
        if status not in ended:
            text = self._solver.modelStatusToString(status)
            raise Contradiction(f"HiGHS ended with {text!r}; scale the network's weights")
        integer = info.mip_node_count >= 0
        found = info.primal_solution_status == self._library.kSolutionStatusFeasible
        t = np.array(self._solver.getSolution().col_value) if found else None
        if integer:
            return Solution(ended[status], t, info.mip_dual_bound)
        return Solution(ended[status], t, info.objective_function_value if ended[status] == "optimal" else np.inf)


@contextmanager
def _deferred(stop: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C call `stop` at once, and raise KeyboardInterrupt at the end; a handler of the caller's stays."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not ours or threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = threading.Event()

    def press(*_: Any) -> None:
        pressed.set()
        stop()

    signal.signal(signal.SIGINT, press)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if pressed.is_set():
            raise KeyboardInterrupt


def _highspy() -> Any:
    try:
        import highspy
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "this question needs the solver HiGHS, which is not installed; pip install 'plunit[exact]'. Networks of "
            "one or two inputs whose pieces can be listed do without it",
            name="highspy",
        ) from None
    return highspy
