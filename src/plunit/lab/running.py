"""Run a plan: cells in this process, in workers or on a Dask cluster, stored as they finish and then published.

Ctrl-C, dead workers and full disks leave whole files; the same command continues from there.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Column, Table

from plunit import ensemble
from plunit.base.errors import UserError, missing
from plunit.base.machine import keep_freed_memory
from plunit.base.progress import bars
from plunit.ensemble.nonlinearities import title_of
from plunit.lab import plan, report, scratch, store
from plunit.lab.cell import Arrays, Cell
from plunit.lab.experiment import Experiment
from plunit.lab.intervals import FEW, HIGHER, LOWER, SAME, Matrix
from plunit.lab.pictures import number
from plunit.lab.plan import Plan
from plunit.lab.report import Losses
from plunit.lab.store import lock, sweep

PATIENCE = 5.0
"""Seconds in which a scheduler must answer."""

Have = dict[Cell, Arrays]
Show = Callable[[Cell, float], object]
"""Called with a cell and the fraction of it that is done, 1 when it is stored."""


def here() -> Executor:
    """One cell at a time in this process, on all its cores; the caller's thread stays free for Ctrl-C."""
    return futures.ThreadPoolExecutor(1)


@contextlib.contextmanager
def processes(workers: int) -> Iterator[Executor]:
    """Local processes of one thread each, which end when this one does."""
    context = multiprocessing.get_context("spawn")  # a fork would copy PyTorch's threads in an unknown state
    others = set(multiprocessing.active_children())
    executor = futures.ProcessPoolExecutor(workers, mp_context=context, initializer=_worker)
    try:
        yield executor
    except BaseException:  # a cell may need hours more; its checkpoint stays
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


@contextlib.contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """Connect to the Dask scheduler at an address such as tcp://host:8786; its workers need plunit installed."""
    try:
        from distributed import Client, KilledWorker
    except ModuleNotFoundError as error:
        raise UserError(str(missing(error, "distributed", user="a cluster"))) from None
    try:
        client: Any = Client(address, timeout=PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TypeError, TimeoutError) as error:
        raise UserError(
            f"no Dask scheduler answers at {address} ({error or type(error).__name__}); start one with `dask scheduler`"
        ) from error
    with client, client.get_executor(pure=False) as executor:
        try:
            yield executor
        except KilledWorker as error:
            raise UserError(f"a cell ended its worker several times: {error}") from error


@contextlib.contextmanager
def without_interrupts() -> Iterator[None]:
    """Delay Ctrl-C while processes start; they inherit the block, so that only this process handles Ctrl-C.

    A blocked signal may still reach another thread of this process, and Python would raise it in the main thread. So
    the handler waits as well.
    """
    if os.name != "posix" or threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[Any] = []
    handler = signal.signal(signal.SIGINT, lambda *details: pressed.append(details))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGINT, handler)
        if pressed and callable(handler):
            handler(*pressed[0])


def _worker() -> None:
    """Set up a worker process: it ends with its parent, whatever ended that, and leaves Ctrl-C to it."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ["OMP_NUM_THREADS"] = "1"  # what `processors` returns, and so the threads of compiled programs
    torch.set_num_threads(1)
    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


def execute(
    folder: Path, wanted: Plan, console: Console, *, workers: int = 0, cluster: str = "", tolerant: bool = False
) -> None:
    """Compute the missing cells of a plan and publish the folder.

    Cells are computed in local processes, if their number is given, or on a cluster; else each experiment chooses. An
    experiment whose data are not available is an error. If `tolerant`, it is left out, and a line says so.
    """
    if workers and cluster:
        raise UserError("choose either workers or a cluster")
    if cluster and not re.fullmatch(r"\w+://.+:\d+", cluster):
        raise UserError(f"a cluster is the address of a Dask scheduler, such as tcp://host:8786, got {cluster!r}")
    if "numpy" in {part.engine for part in wanted.values()} and (reason := ensemble.why_not_native()):
        console.print(
            f"{reason}: training runs in NumPy, which is slower; single seeds get other losses, and statistics agree"
        )
    with lock(folder, "run", console.print):
        whole = plan.merge_plans(plan.load(folder), wanted, console.print)
        plan.save(folder, whole)
        sweep(folder)
        todo = {cell: part.experiment() for part in wanted.values() for cell in part.cells()}
        have = store.read_all(folder, todo, console.print)
        if have:
            console.print(f"{len(have)} of {len(todo)} cells are already stored")
        absent = _prepare_all({cell: todo[cell] for cell in todo if cell not in have}, console, tolerant)
        for group, executor in _executors(absent, workers, cluster):
            with executor as ready:
                have |= _run_with_bar(folder, group, ready, console)
    publish(folder, console, whole, have)


def publish(folder: Path, console: Console, whole: Plan | None = None, have: Have | None = None) -> None:
    """Write tables, figures and report of a folder; print the verdicts and, last, the path of the report.

    After a run, its plan and its cells are given; otherwise they are read.
    """
    _check_results(folder)
    with lock(folder, "report", console.print):
        whole = plan.load(folder) if whole is None else whole
        results = store.collect(folder, whole, have or {}, console.print)
        if not results:
            raise UserError(f"{folder} has no finished experiment; `plunit reproduce` continues")
        with bars(console) as bar:
            track = partial(bar.track, description="figures")
            shown = report.write_report(folder, whole, results, track)
    for noun, losses in shown.losses.items():
        if losses:
            console.print(_loss_table(noun, losses))
    for matrix in shown.matrices.values():
        console.print(_pair_table(matrix))
    for line in shown.lines:
        console.print(line)
    console.print(f"report: {folder / 'report.html'}", markup=False)


def clean(folder: Path, console: Console) -> None:
    """Remove the cells and checkpoints that the plan of a folder does not use; a run that is going on is waited for."""
    _check_results(folder)
    with lock(folder, "run", console.print):
        found = store.find_unused(folder, plan.load(folder))
        size = store.size_text(found)
        for path in found:
            path.unlink(missing_ok=True)
    console.print(f"{folder}: {size} removed")


def _check_results(folder: Path) -> None:
    if not (folder / "run.json").exists():
        raise UserError(f"{folder} holds no results; `plunit reproduce` makes them")


def run(folder: Path, todo: dict[Cell, Experiment], executor: Executor, show: Show = lambda cell, part: None) -> Have:
    """Compute the cells, store each and return them; a run that stops at any moment leaves whole files only.

    `show` is called every second for each cell that is not done. Cells that are not started when an exception arrives
    (Ctrl-C among them) are cancelled.
    """
    computed: Have = {}
    with without_interrupts():
        pending = {
            executor.submit(_compute, one.compute, one.prepare, cell, store.scratch_of(folder, cell)): cell
            for cell, one in todo.items()
        }
    try:
        while pending:
            finished, _ = futures.wait(pending, timeout=1, return_when=futures.FIRST_COMPLETED)
            for future in sorted(finished, key=_failed):  # finished cells are stored before an exception is raised
                cell = pending.pop(future)
                computed[cell] = future.result()
                store.write(folder, cell, computed[cell])
                scratch.clear(store.scratch_of(folder, cell))
                show(cell, 1.0)
            for cell in pending.values():
                show(cell, scratch.read_progress(store.scratch_of(folder, cell)))
    finally:
        for future in pending:
            future.cancel()
    return computed


def _compute(compute: Callable[..., Arrays], prepare: Callable[..., None], cell: Cell, scratch: Path) -> Arrays:
    prepare(print)  # on another machine than the one that asked
    return compute(cell, scratch)


def _failed(future: futures.Future[Arrays]) -> bool:
    return future.cancelled() or future.exception() is not None


def _prepare_all(todo: dict[Cell, Experiment], console: Console, tolerant: bool) -> dict[Cell, Experiment]:
    """Fetch the data of experiments; return the cells that can be computed."""
    for experiment in {one.name: one for one in todo.values()}.values():
        try:
            experiment.prepare(console.print)
        except UserError as error:
            if not tolerant:
                raise
            console.print(f"{experiment.name}: left out: {error}")
            todo = {cell: one for cell, one in todo.items() if one.name != experiment.name}
    return todo


def _executors(
    todo: dict[Cell, Experiment], workers: int, address: str
) -> Iterator[tuple[dict[Cell, Experiment], contextlib.AbstractContextManager[Executor]]]:
    """Yield cells and where to compute them: by default ensembles here, on all cores, other cells on a process each."""
    parallel = {cell: one for cell, one in todo.items() if one.side_by_side or one.short}
    if workers or address:
        if todo:
            yield todo, cluster(address) if address else processes(workers)
        return
    if len(parallel) < len(todo):
        yield {cell: one for cell, one in todo.items() if cell not in parallel}, here()
    if parallel:
        yield parallel, processes(min(len(parallel), os.cpu_count() or 1))


def _run_with_bar(folder: Path, todo: dict[Cell, Experiment], executor: Executor, console: Console) -> Have:
    """Run the cells with a progress bar; count the cells that are left if it is stopped."""
    cost = {cell: one.cost(cell) for cell, one in todo.items()}
    parts = dict.fromkeys(cost, 0.0)
    with bars(console) as bar:
        task = bar.add_task("training", total=sum(cost.values()))

        def show(cell: Cell, part: float) -> None:
            parts[cell] = part
            completed = sum(cost[one] * parts[one] for one in cost)
            bar.update(task, completed=completed, description=f"{cell.experiment}, {cell.activation}")

        def left() -> str:
            return f"{sum(part < 1 for part in parts.values())} cells to go"

        try:
            return run(folder, todo, executor, show)
        except KeyboardInterrupt:
            bar.stop()
            console.print(f"stopped with {left()}; finished cells are stored; the same command continues from there")
            raise SystemExit(130) from None
        except (futures.BrokenExecutor, futures.CancelledError):
            raise UserError(f"the workers died with {left()}; the same command continues from there") from None


def _loss_table(noun: str, losses: Losses) -> Table:
    """Return the medians of a loss, a row for each experiment and a column for each activation."""
    activations = list(dict.fromkeys(activation for row in losses.values() for activation in row))
    shown = Table(Column(f"median {noun}", overflow="fold"), box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for activation in activations:
        shown.add_column(title_of(activation), justify="right")
    for name, row in losses.items():
        shown.add_row(name, *(number(row[activation][1]) if activation in row else "" for activation in activations))
    return shown


def _pair_table(matrix: Matrix) -> Table:
    """Return the medians of the ratios of all pairs, with < or > where the row has the lower or the higher loss."""
    marks = {LOWER: " <", HIGHER: " >", SAME: "  ", FEW: " ?"}
    shown = Table(Column("loss of row / column", overflow="fold"), box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for column in matrix:
        shown.add_column(title_of(column), justify="right")
    for row, pairs in matrix.items():
        cells = (pairs.get(column) for column in matrix)
        shown.add_row(title_of(row), *(number(one.estimate.value) + marks[one.verdict] if one else "" for one in cells))
    return shown
