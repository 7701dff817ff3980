"""From a request to the report: plan, run what is missing, publish."""

from __future__ import annotations

import contextlib
from concurrent.futures import BrokenExecutor, CancelledError, Executor
from pathlib import Path

from rich.console import Console

from plunit import ensemble
from plunit.lab import console as display
from plunit.lab import executors, experiments, plan, report, store
from plunit.lab.cell import Cell
from plunit.lab.errors import UserError
from plunit.lab.plan import Part, Plan
from plunit.lab.run import missing, run


def request(names: list[str], seeds: int, activations: tuple[str, ...], engine: str) -> Plan:
    """Check what the user asks for and return it as a plan."""
    _known(names, list(experiments.MODULES), "experiment", "plunit list shows them")
    _known(list(activations), list(ensemble.ACTIVATIONS), "activation", "plunit list shows them")
    _known([engine] if engine else [], list(ensemble.ENGINES), "engine", "choose native or eager")
    if seeds < 1:
        raise UserError(f"--seeds must be 1 or more, got {seeds}")
    if engine == "native" and (reason := ensemble.why_not_native()):
        raise UserError(f"the native engine is not available: {reason}")
    engine = engine or ensemble.engine()
    return {name: Part(seeds, activations or experiments.MODULES[name].ACTIVATIONS, engine) for name in names}


def execute(folder: Path, wanted: Plan, workers: int, cluster: str, console: Console) -> None:
    """Run what is missing of a plan and publish the folder."""
    if workers < 0:
        raise UserError(f"--workers must be 0 or more, got {workers}")
    if workers and cluster:
        raise UserError("choose either --workers or --cluster")
    if "eager" in {part.engine for part in wanted.values()} and (reason := ensemble.why_not_native()):
        console.print(f"{reason}: training runs eagerly, slower, with the same result to rounding")
    # other experiments of the folder stay in its plan and in its report
    plan.save(folder, plan.load(folder) | wanted)
    store.sweep(folder)
    cells = plan.cells(wanted)
    absent = missing(folder, cells, console.print)
    if len(absent) < len(cells):
        console.print(f"{len(cells) - len(absent)} of {len(cells)} cells are there already")
    with contextlib.ExitStack() as stack:
        executor = stack.enter_context(_executor(workers, cluster)) if absent else None
        if executor:
            _run(folder, absent, executor, console)
    publish(folder, console)


def publish(folder: Path, console: Console) -> None:
    """Write tables, figures and report of a folder; print the verdicts and, last, the path of the report."""
    stored = plan.load(folder)
    if not stored:
        raise UserError(f"{folder} holds no results; `plunit reproduce --out {folder}` makes them")
    results = plan.collect(folder, stored, console.print)
    if not results.names():
        raise UserError(f"{folder} has no finished experiment; `plunit reproduce --out {folder}` goes on")
    plan.save(folder, stored)
    with display.progress(console) as bar:
        page, claims = report.build(
            folder, stored, results, lambda pictures: bar.track(pictures, description="figures")
        )
    if losses := report.losses(results):
        console.print(display.table(losses))
    if claims:
        console.print(display.tally(claims))
    console.print(f"report: {page}", markup=False)


def _run(folder: Path, cells: list[Cell], executor: Executor, console: Console) -> None:
    left = len(cells)
    with display.progress(console) as bar:
        task = bar.add_task("training", total=sum(map(experiments.cost, cells)))

        def done(cell: Cell) -> None:
            nonlocal left
            left -= 1
            bar.update(task, advance=experiments.cost(cell), description=f"{cell.experiment}, {cell.activation}")

        try:
            run(folder, cells, executor, done)
        except KeyboardInterrupt:
            bar.stop()
            console.print(
                f"stopped with {left} cells to go; what is done is stored, the same command goes on from there"
            )
            raise SystemExit(130) from None
        except (BrokenExecutor, CancelledError):
            raise UserError(f"the workers died with {left} cells to go; the same command goes on from there") from None


def _executor(workers: int, cluster: str) -> contextlib.AbstractContextManager[Executor]:
    if cluster:
        return executors.cluster(cluster)
    return executors.processes(workers) if workers else executors.here()


def _known(names: list[str], known: list[str], noun: str, remedy: str) -> None:
    if unknown := [name for name in names if name not in known]:
        raise UserError(f"unknown {noun} {', '.join(map(repr, unknown))}; {remedy}")
