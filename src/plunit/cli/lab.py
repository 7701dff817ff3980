"""The commands of the lab, each a plain function."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from plunit.base.errors import UserError
from plunit.data.tables import check_exists

_console = Console(markup=False, highlight=False, soft_wrap=True)

Folder = Annotated[Path, typer.Argument(help="Folder with results.")]
Seeds = Annotated[int | None, typer.Option(help="Number of seeds (default: that of the experiment).")]
Out = Annotated[Path, typer.Option(help="Folder for results; an interrupted run resumes there.")]
Workers = Annotated[int, typer.Option(min=0, max=1024, help="Number of local processes (0: each experiment chooses).")]
Cluster = Annotated[str, typer.Option(help="Use a running Dask scheduler at this address, such as tcp://host:8786.")]
EngineName = Annotated[str, typer.Option(help="native or numpy (default: native if a compiled program is available).")]
Activations = Annotated[str, typer.Option(help="Activations, separated by commas (default: those of the experiment).")]
Names = Annotated[list[str] | None, typer.Option(help="Run this experiment only; repeatable (default: all).")]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="Change a setting of the experiment; repeatable."),
]


def reproduce(
    seeds: Seeds = None,
    only: Names = None,
    out: Out = Path("runs"),
    workers: Workers = 0,
    cluster: Cluster = "",
    engine: EngineName = "",
    full: Annotated[
        bool, typer.Option("--full", help="Run long experiments in full: hours instead of minutes.")
    ] = False,
) -> None:
    """Run the paper's experiments, check its claims and write a report."""
    from plunit.lab import plan, running

    wanted = plan.for_reproduce(only or (), seeds=seeds, engine=engine, full=full)
    running.execute(out, wanted, _console, workers=workers, cluster=cluster, tolerant=True)


def run(
    name: Annotated[str, typer.Argument(help="Name of the experiment; see `plunit list`.")],
    seeds: Seeds = None,
    activations: Activations = "",
    assignments: Assignments = None,
    out: Out = Path("runs"),
    workers: Workers = 0,
    cluster: Cluster = "",
    engine: EngineName = "",
) -> None:
    """Run one experiment with activations and settings of your choice, and write a report.

    With --set the result is stored as a variant, next to the default one. Changing `steps` of cifar10 makes no
    variant: the report shows its newest run.
    """
    from plunit.lab import plan, running

    wanted = plan.for_run(out, name, seeds=seeds, activations=activations, engine=engine, assignments=assignments or ())
    running.execute(out, wanted, _console, workers=workers, cluster=cluster)


def compare(
    table: Annotated[Path, typer.Argument(metavar="DATA.csv", help="A table: CSV, or Parquet with pyarrow.")],
    target: Annotated[str, typer.Option(help="Column to predict: its name, or its number from 1; -1 is the last.")],
    inputs: Annotated[str, typer.Option(help="Columns to learn from, separated by commas (default: all others).")] = "",
    activations: Activations = "",
    widths: Annotated[str, typer.Option(help="Units per hidden layer.")] = "16,16",
    seeds: Seeds = None,
    test: Annotated[float, typer.Option(help="Fraction of the rows held out for testing.")] = 0.2,
    assignments: Assignments = None,
    out: Out = Path("comparison"),
    workers: Workers = 0,
    cluster: Cluster = "",
    engine: EngineName = "",
) -> None:
    """Compare activations on your own table, with the same splits, starts and batches for all; write a report."""
    check_exists(table)  # before a second of imports
    from plunit.lab import plan, running

    wanted = plan.for_run(
        out,
        "compare",
        seeds=seeds,
        activations=activations,
        engine=engine,
        assignments=[f"widths={widths}", f"test={test}", *(assignments or ())],
        table=plan.for_table(table, target, inputs, _console.print),
    )
    running.execute(out, wanted, _console, workers=workers, cluster=cluster)


def report(folder: Folder = Path("runs")) -> None:
    """Write tables, figures and report again from stored results, without training."""
    from plunit.lab import running

    running.publish(folder, _console)


def clean(folder: Folder = Path("runs")) -> None:
    """Remove stored cells and checkpoints that the folder's report does not use.

    They are of settings that later runs have replaced, or of an earlier source of an experiment. `plunit list` says how
    much space they take.
    """
    from plunit.lab import running

    running.clean(folder, _console)


def data(
    name: Annotated[str, typer.Argument(help="Name of the data set: cifar10.")],
    to: Annotated[
        Path | None, typer.Option(help="Folder for data sets (default: $PLUNIT_DATA, or the user cache).")
    ] = None,
) -> None:
    """Download a data set, unless it is there already, and verify it."""
    from plunit.lab import cifar10_data
    from plunit.lab.cifar10_fetch import fetch_files

    if name != "cifar10":
        raise UserError(f"unknown data set {name!r}; the only one is cifar10")
    place = cifar10_data.folder(to)
    fetch_files(place, _console.print)
    hint = f"; set PLUNIT_DATA={to} so that plunit finds it" if to else ""
    _console.print(f"{name}: complete and verified in {place}{hint}")


def list_(folder: Folder = Path("runs")) -> None:
    """List the experiments, their activations and the settings that --set can change, with their values.

    If the folder with results holds files that its report does not use, the last line says how much space they take.
    """
    from plunit.lab.experiment import catalogue, texts

    for name, experiment in catalogue().items():
        if not experiment.by_itself:
            print(f"{name:18} {experiment.title}")
            print(f"{'':18} activations: {', '.join(experiment.choices)}")
            settings = texts(vars(experiment.spec), ",").items()
            print(f"{'':18} settings: {'; '.join(f'{field}={text}' for field, text in settings)}")
    if (folder / "run.json").exists():
        print(_describe_unused(folder), end="")


def _describe_unused(folder: Path) -> str:
    """Return a line on the files that the report of a folder does not use; nothing if there are none."""
    from plunit.lab import plan, store

    try:
        found = store.find_unused(folder, plan.load(folder))
    except UserError as error:
        return f"{error}\n"
    command = shlex.join(["plunit", "clean", str(folder)])
    text = f"{folder}: {store.size_text(found)} of earlier settings or sources; `{command}` removes them\n"
    return text if found else ""
