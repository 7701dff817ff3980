"""From a request to the report: plan, run what is missing, publish."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor
from contextlib import AbstractContextManager
from pathlib import Path

from rich.console import Console

from plunit import ensemble
from plunit.lab import console as display
from plunit.lab import executors, experiments, plan, report, scratch, store
from plunit.lab.cell import Cell
from plunit.lab.errors import UserError
from plunit.lab.plan import Part, Plan
from plunit.lab.run import missing, run

SEEDS, QUICK_SEEDS = 1024, 64

_Ready = AbstractContextManager[Executor]


def request(
    names: list[str],
    seeds: int | None,
    activations: tuple[str, ...],
    engine: str,
    steps: int | None = None,
    quick: bool = False,
) -> Plan:
    """Check what the user asks for and return it as a plan; None stands for the experiments' own seeds and steps."""
    _known(names, list(experiments.MODULES), "experiment", "plunit list shows them")
    for name in names:
        known = list(experiments.MODULES[name].CHOICES)
        _known(list(activations), known, "activation", f"{name} takes {', '.join(known)}")
        if steps is not None and not experiments.is_long(name):
            raise UserError(f"--steps is for {', '.join(_long())}; the length of {name} is fixed")
    _known([engine] if engine else [], list(ensemble.ENGINES), "engine", "choose native or eager")
    if seeds is not None and seeds < 1:
        raise UserError(f"--seeds must be 1 or more, got {seeds}")
    if steps is not None and steps < 1:
        raise UserError(f"--steps must be 1 or more, got {steps}")
    if engine == "native" and (reason := ensemble.why_not_native()):
        raise UserError(f"the native engine is not available: {reason}")
    engine = engine or ensemble.engine()
    parts: Plan = {}
    for name in names:
        package = experiments.MODULES[name]
        chosen = tuple(dict.fromkeys(activations)) or package.ACTIVATIONS
        if experiments.is_long(name):
            parts[name] = Part(seeds or package.SEEDS, chosen, "torch", steps or package.SPECS[name].steps)
        else:
            parts[name] = Part(seeds or (QUICK_SEEDS if quick else SEEDS), chosen, engine)
    return parts


def everything(folder: Path, names: list[str], seeds: int | None, engine: str, quick: bool, full: bool) -> Plan:
    """Return the plan of `plunit reproduce`, with the long experiments' own seeds.

    Unless `full` these are short. A finished run that the folder has is kept if it is no shorter and no narrower.
    """
    wanted = request(names, seeds, (), engine, quick=quick)
    stored = plan.load(folder)
    for name in filter(experiments.is_long, names):
        package = experiments.MODULES[name]
        part = dataclasses.replace(wanted[name], seeds=package.SEEDS)
        if not full:
            part = dataclasses.replace(part, steps=min(package.SHORT, part.steps))
        if name in stored and _covers(stored[name], part) and not missing(folder, plan.cells({name: stored[name]})):
            part = stored[name]
        wanted[name] = part
    return wanted


def _covers(stored: Part, part: Part) -> bool:
    enough = stored.steps >= part.steps and stored.seeds >= part.seeds
    return enough and set(stored.activations) >= set(part.activations)


def execute(
    folder: Path,
    wanted: Plan,
    workers: int,
    cluster: str,
    console: Console,
    *,
    fresh: bool = False,
    tolerant: bool = False,
) -> None:
    """Run what is missing of a plan, or all of it anew if `fresh`, and publish the folder.

    If `tolerant`, experiments whose data cannot be had are left out, which is said; otherwise that is an error.
    """
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
    absent = cells if fresh else missing(folder, cells, console.print)
    if len(absent) < len(cells):
        console.print(f"{len(cells) - len(absent)} of {len(cells)} cells are there already")
    absent = _prepared(absent, console, tolerant)
    if fresh:  # what is finished stays until it is replaced
        for cell in absent:
            scratch.clear(folder, cell)
    for group, executor in _executors(absent, workers, cluster):
        with executor as ready:
            _run(folder, group, ready, console)
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


def _prepared(cells: list[Cell], console: Console, tolerant: bool) -> list[Cell]:
    """Fetch what long experiments need; return the cells that can be computed."""
    for package in experiments.packages([cell.experiment for cell in cells if experiments.is_long(cell.experiment)]):
        try:
            package.prepare(console.print)
        except UserError as error:
            if not tolerant:
                raise
            console.print(f"{', '.join(package.SPECS)}: left out: {error}")
            cells = [cell for cell in cells if cell.experiment not in package.SPECS]
    return cells


def _executors(cells: list[Cell], workers: int, cluster: str) -> Iterator[tuple[list[Cell], _Ready]]:
    """Yield cells and where to compute them: by default ensembles here, on all cores, other cells on a process each."""
    if workers or cluster:
        groups = [(cells, executors.cluster(cluster) if cluster else executors.processes(workers))]
    else:
        single, ensembles = ([cell for cell in cells if (cell.engine == "torch") == torch] for torch in (True, False))
        processes = min(len(single), os.cpu_count() or 1)
        groups = [(ensembles, executors.here()), (single, executors.processes(max(processes, 1)))]
    yield from ((group, executor) for group, executor in groups if group)


def _run(folder: Path, cells: list[Cell], executor: Executor, console: Console) -> None:
    left, computed = len(cells), 0.0
    with display.progress(console) as bar:
        task = bar.add_task("training", total=sum(map(experiments.cost, cells)))

        def done(cell: Cell) -> None:
            nonlocal left, computed
            left -= 1
            computed += experiments.cost(cell)
            bar.update(task, completed=computed, description=f"{cell.experiment}, {cell.activation}")

        def watch(cells: list[Cell]) -> None:
            parts = (experiments.cost(cell) * scratch.done(scratch.path_of(folder, cell)) for cell in cells)
            bar.update(task, completed=computed + sum(parts))

        try:
            run(folder, cells, executor, done, watch)
        except KeyboardInterrupt:
            bar.stop()
            console.print(
                f"stopped with {left} cells to go; what is done is stored, the same command goes on from there"
            )
            raise SystemExit(130) from None
        except (BrokenExecutor, CancelledError):
            raise UserError(f"the workers died with {left} cells to go; the same command goes on from there") from None


def _long() -> list[str]:
    return [name for name in experiments.MODULES if experiments.is_long(name)]


def _known(names: list[str], known: list[str], noun: str, remedy: str) -> None:
    if unknown := [name for name in names if name not in known]:
        raise UserError(f"unknown {noun} {', '.join(map(repr, unknown))}; {remedy}")
