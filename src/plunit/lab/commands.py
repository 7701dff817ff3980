"""The commands of `plunit`, each a plain function."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import plunit
from plunit.lab.errors import UserError

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)
_console = Console(markup=False, highlight=False, soft_wrap=True)

Seeds = Annotated[
    int | None, typer.Option(help="Number of seeds: 1024 by default, 64 with --quick, few in long experiments.")
]
Out = Annotated[Path, typer.Option(help="Folder of results; a run that was stopped goes on from there.")]
Workers = Annotated[int, typer.Option(help="Local processes; 0 computes in this one, on all cores.")]
Cluster = Annotated[str, typer.Option(help="Address of a running Dask scheduler, such as tcp://host:8786.")]
Engine = Annotated[str, typer.Option(help="native or eager; by default native where a C++ compiler is found.")]
Names = Annotated[list[str] | None, typer.Option(help="Experiments to run, all by default; may be repeated.")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer seeds, for a first look.")]


def _version(wanted: bool) -> None:
    if wanted:
        print(plunit.__version__)
        raise typer.Exit


@app.callback()
def plunit_(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """PLU, the Piecewise Linear Unit: its paper's experiments over many seeds."""


@app.command()
def reproduce(
    seeds: Seeds = None,
    only: Names = None,
    out: Out = Path("runs"),
    workers: Workers = 0,
    cluster: Cluster = "",
    engine: Engine = "",
    quick: Quick = False,
    full: Annotated[bool, typer.Option("--full", help="Long experiments in full: hours rather than minutes.")] = False,
) -> None:
    """Run the paper's experiments, judge its claims and write the report."""
    from plunit.lab import experiments, session

    names = [name for text in only or experiments.MODULES for name in text.split(",")]
    wanted = session.everything(out, names, seeds, engine, quick, full)
    session.execute(out, wanted, workers, cluster, _console, tolerant=True)


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="One of `plunit list`.")],
    seeds: Seeds = None,
    steps: Annotated[int | None, typer.Option(help="Steps of a long experiment, its full length by default.")] = None,
    activations: Annotated[str, typer.Option(help="Names with commas, the paper's by default.")] = "",
    out: Out = Path("runs"),
    workers: Workers = 0,
    cluster: Cluster = "",
    engine: Engine = "",
    quick: Quick = False,
    resume: Annotated[
        bool, typer.Option("--resume/--fresh", help="Go on from what is stored, or compute everything anew.")
    ] = True,
) -> None:
    """Run one experiment, with activations of your choice, and write the report."""
    from plunit.lab import session

    chosen = tuple(activations.split(",")) if activations else ()
    wanted = session.request([name], seeds, chosen, engine, steps, quick)
    session.execute(out, wanted, workers, cluster, _console, fresh=not resume)


@app.command()
def report(folder: Annotated[Path, typer.Argument(help="Folder of results.")] = Path("runs")) -> None:
    """Write tables, figures and report of stored results again; nothing is trained."""
    from plunit.lab import session

    session.publish(folder, _console)


@app.command()
def pieces(
    model: Annotated[Path, typer.Argument(help="An nn.Sequential of one or two inputs, saved by torch.save.")],
    low: Annotated[float, typer.Option(help="Lower end of the domain of every input.")] = -math.tau,
    high: Annotated[float, typer.Option(help="Upper end.")] = math.tau,
    box: Annotated[
        tuple[float, float, float, float] | None,
        typer.Option(metavar="X0 X1 Y0 Y1", help="Both ends for each of two inputs, rather than --low and --high."),
    ] = None,
) -> None:
    """Print the linear pieces of a saved model, exactly: knots, slopes and intercepts, or its cells."""
    from plunit.lab.pieces import table
    from plunit.torch import saved

    lines = table.table(saved.load(model), (low, high), (box[:2], box[2:]) if box else None)
    print(*lines, sep="\n")


@app.command()
def data(
    name: Annotated[str, typer.Argument(help="The data set: cifar10.")],
    to: Annotated[
        Path | None, typer.Option(help="Folder of data sets, $PLUNIT_DATA or the user's cache by default.")
    ] = None,
) -> None:
    """Fetch a data set, unless it is there, and verify it."""
    from plunit.lab.data import SETS

    if name not in SETS:
        raise UserError(f"unknown data set {name!r}; there is {', '.join(SETS)}")
    place = SETS[name].folder(to)
    SETS[name].fetch(place, _console.print)
    hint = f"; with PLUNIT_DATA={to} it is found there" if to else ""
    _console.print(f"{name}: complete and verified in {place}{hint}")


@app.command("list")
def list_() -> None:
    """List the experiments and the activations."""
    from plunit.ensemble import ACTIVATIONS
    from plunit.lab import experiments

    for name, package in experiments.MODULES.items():
        print(f"{name:18} {package.TITLES[name]}")
        if list(package.CHOICES) != list(ACTIVATIONS):
            print(f"{'':18} with {', '.join(package.CHOICES)}")
    print(f"\nactivations of the others: {', '.join(ACTIVATIONS)}")


def main() -> None:
    """Run the command line; a user's error is one line and exit code 2."""
    with contextlib.suppress(BrokenPipeError):
        try:
            app()
        except UserError as error:
            Console(stderr=True, highlight=False, soft_wrap=True).print(f"plunit: {error}", markup=False)
            raise SystemExit(2) from None
