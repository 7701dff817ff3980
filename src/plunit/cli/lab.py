"""The commands of the lab, each a plain function."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from plunit.base.errors import UserError
from plunit.data.tables import check_exists

_console = Console(markup=False, highlight=False, soft_wrap=True)

Seeds = Annotated[
    int | None, typer.Option(help="Number N of seeds, 0 to N - 1; by default the usual number of the experiment.")
]
Out = Annotated[Path, typer.Option(help="Folder of results; a run that was stopped continues there.")]
Workers = Annotated[int, typer.Option(help="Number of local processes; 0 lets each experiment choose.")]
Cluster = Annotated[str, typer.Option(help="Address of a running Dask scheduler, such as tcp://host:8786.")]
Engine = Annotated[str, typer.Option(help="native or numpy; by default native if the compiled program is available.")]
Activations = Annotated[str, typer.Option(help="Names, separated by commas; by default the usual ones.")]
Names = Annotated[list[str] | None, typer.Option(help="Experiment to run, by default all; may be repeated.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="Another value for a field of the spec; may be repeated."),
]


def reproduce(
    seeds: Seeds = None,
    only: Names = None,
    out: Out = Path("runs"),
    workers: Workers = 0,
    cluster: Cluster = "",
    engine: Engine = "",
    full: Annotated[bool, typer.Option("--full", help="Long experiments in full: hours rather than minutes.")] = False,
) -> None:
    """Run the paper's experiments, judge its claims and write the report."""
    from plunit.lab import plan, running

    where = running.Where(workers, cluster)
    wanted = plan.for_reproduce(only or (), seeds=seeds, engine=engine, full=full)
    running.execute(out, wanted, where, _console, tolerant=True)


def run(
    name: Annotated[str, typer.Argument(help="One of `plunit list`.")],
    seeds: Seeds = None,
    activations: Activations = "",
    assignments: Settings = None,
    out: Out = Path("runs"),
    workers: Workers = 0,
    cluster: Cluster = "",
    engine: Engine = "",
) -> None:
    """Run one experiment, with activations and settings of your choice, and write the report.

    With --set the result is kept beside the usual one, as a variant. A long experiment (cifar10, warp, density) with
    other `steps` is no variant: its newest run is shown.
    """
    from plunit.lab import plan, running

    where = running.Where(workers, cluster)
    wanted = plan.for_run(out, name, seeds=seeds, activations=activations, engine=engine, assignments=assignments or ())
    running.execute(out, wanted, where, _console)


def compare(
    table: Annotated[
        Path, typer.Argument(metavar="DATA.csv", help="A table of numbers: CSV, or Parquet with pyarrow.")
    ],
    target: Annotated[str, typer.Option(help="The column to learn: its name, or its number counted from 1.")],
    inputs: Annotated[
        str, typer.Option(help="The columns to learn from, separated by commas; by default all others.")
    ] = "",
    activations: Activations = "",
    widths: Annotated[str, typer.Option(help="Units of the hidden layers.")] = "16,16",
    seeds: Seeds = None,
    test: Annotated[float, typer.Option(help="Share of the rows that is kept for tests.")] = 0.2,
    assignments: Settings = None,
    out: Out = Path("comparison"),
    workers: Workers = 0,
    cluster: Cluster = "",
    engine: Engine = "",
) -> None:
    """Compare activations on your own table, with the same splits, starts and batches for all; write a report."""
    check_exists(table)  # before a second of imports
    from plunit.lab import plan, running

    where = running.Where(workers, cluster)
    wanted = plan.for_compare(
        out,
        table,
        target,
        inputs,
        [f"widths={widths}", f"test={test}", *(assignments or ())],
        seeds=seeds,
        activations=activations,
        engine=engine,
        say=_console.print,
    )
    running.execute(out, wanted, where, _console)


def report(folder: Annotated[Path, typer.Argument(help="Folder of results.")] = Path("runs")) -> None:
    """Write tables, figures and report of stored results again; nothing is trained."""
    from plunit.lab import running

    running.publish(folder, _console)


def data(
    name: Annotated[str, typer.Argument(help="The data set: cifar10.")],
    to: Annotated[
        Path | None, typer.Option(help="Folder of data sets; by default $PLUNIT_DATA or the user's cache.")
    ] = None,
) -> None:
    """Download a data set, unless the folder has it, and verify it."""
    from plunit.data import cifar10
    from plunit.data.fetch import fetch_files

    if name != "cifar10":
        raise UserError(f"unknown data set {name!r}; there is cifar10")
    place = cifar10.folder(to)
    fetch_files(place, _console.print)
    hint = f"; set PLUNIT_DATA={to} so that plunit finds it" if to else ""
    _console.print(f"{name}: complete and verified in {place}{hint}")


def list_() -> None:
    """List the experiments, their activations, and the fields that --set can change."""
    import dataclasses

    from plunit.lab.experiment import catalogue

    for name, experiment in catalogue().items():
        if not experiment.by_itself:
            print(f"{name:18} {experiment.title}")
            print(f"{'':18} activations: {', '.join(experiment.choices)}")
            print(f"{'':18} fields: {', '.join(field.name for field in dataclasses.fields(experiment.spec))}")
