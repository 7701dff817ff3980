"""The command `plunit fit`: a small network for a table or a function, its error, its pieces, its files."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperCommand

from plunit.base.errors import UserError, escape
from plunit.base.fields import match_name
from plunit.base.files import ending
from plunit.base.progress import bars
from plunit.cli import NOT_SHOWN, Stopped
from plunit.ensemble.nonlinearities import ACTIVATIONS

if TYPE_CHECKING:
    from plunit.fitting.problems import Problem


class FormulaCommand(TyperCommand):
    """A command whose first word is its argument even if it begins with a minus: -x is a function."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Move such a word to the end, after the separator of options and arguments."""
        if args and args[0] != "-h" and args[0].startswith("-") and not args[0].startswith("--"):
            args = [*args[1:], "--", args[0]]
        return super().parse_args(ctx, args)


def fit_(
    source: Annotated[
        str, typer.Argument(metavar="DATA.csv|FUNCTION", help="A table, or a function such as 'sin(x) + x/3'.")
    ],
    target: Annotated[
        str, typer.Option(help="Column to predict (tables): its name, or its number from 1; -1 is the last.")
    ] = "",
    inputs: Annotated[str, typer.Option(help="Columns to learn from, separated by commas (default: all others).")] = "",
    exclude: Annotated[
        str, typer.Option(help="Columns to leave out, such as dates and row numbers, separated by commas.")
    ] = "",
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Drop rows with missing values instead of filling them (tables).")
    ] = False,
    low: Annotated[float | None, typer.Option(help="Lower end of every variable (functions; default: -6).")] = None,
    high: Annotated[float | None, typer.Option(help="Upper end of every variable (functions; default: 6).")] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option("--range", metavar="NAME=LOW:HIGH", help="Range of one variable, as in x=-1:1; repeatable."),
    ] = None,
    pieces: Annotated[int | None, typer.Option(min=1, help="Maximum number of pieces (one input).")] = None,
    error: Annotated[
        float | None,
        typer.Option(
            help="Largest error allowed. One input: use the fewest pieces that stay within it. A function of two to "
            "four variables: find a small network that is proved to stay within it; n x n units with n up to 32, "
            "then n x m with m < n, and one layer of fewer weights are tried."
        ),
    ] = None,
    hidden: Annotated[
        str, typer.Option(help="Units per hidden layer (default: 8,8 for one input, 16,16 for more).")
    ] = "",
    starts: Annotated[
        int | None, typer.Option(min=1, help="Number of random starts; the best is kept.", show_default="256")
    ] = None,
    best: Annotated[int, typer.Option(min=1, help="Number of the best networks to average, up to --starts.")] = 1,
    splits: Annotated[
        int | None,
        typer.Option(
            min=0, max=100, help="Number of random train/test splits that measure the error (tables).", show_default="5"
        ),
    ] = None,
    activation: Annotated[
        str, typer.Option(help=f"Activation of the hidden layers: {', '.join(ACTIVATIONS)}.")
    ] = "plu",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random starts and splits.")] = 0,
    minimax: Annotated[
        bool,
        typer.Option(
            "--minimax/--no-minimax",
            help="Lower the largest error, which is proved, or the mean square error, which is faster (functions of "
            "up to four variables).",
        ),
    ] = True,
    quick: Annotated[
        bool, typer.Option("--quick", help="Take a first look with 32 starts and 2 splits, unless given.")
    ] = False,
    save: Annotated[
        list[Path] | None,
        typer.Option(help="Write the model to a file: .h (C), .onnx, .json or .csv; repeatable."),
    ] = None,
    bits: Annotated[
        int | None,
        typer.Option(help="Write fixed-point C with weights of 8 or 16 bits and a proved error bound."),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Write the plot to a file: .png, .svg or .pdf.")] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            help="Write the HTML page with plot and pieces here (default: fit.html, or fit-2.html, ... if that exists)."
        ),
    ] = None,
) -> None:
    """Fit a small network to a table or a function, say how good it is, and write it as C, ONNX or JSON.

    Trains many random starts and keeps the best. With --pieces or --error and one input, the files hold a curve with at
    most that many pieces, or with the fewest. The largest error against a function of up to four variables is proved.
    Files that you name are overwritten. Press Ctrl-C to stop early and keep the best network so far.

    Exit code 30: the files are written, but not proved to be within --error. 2: invalid options or table. 130: Ctrl-C.
    """
    console, widths = Console(stderr=True), _widths(hidden)
    match_name("activation", activation, ACTIVATIONS)
    problem = _problem(source, target, inputs, exclude, drop_missing, low, high, _ranges(ranges or ()), splits, console)
    few = len(problem.inputs) == 1 and (pieces is not None or error is not None)
    _check(problem, pieces, error, activation, bits, save or (), few, minimax)
    # a wrong name or option is reported at once: these take half a second to import
    from plunit.fitting.output import OutputFiles, check_files, summarize, write_files
    from plunit.fitting.solving import FitSettings, fit_problem

    files = OutputFiles(save or (), few, plot, page)
    check_files(files, source, problem, activation)
    settings = FitSettings(
        widths,
        starts or (32 if quick else 256),
        best,
        splits if splits is not None else 2 if quick else 5,
        pieces,
        error,
        activation,
        seed,
        bits,
        minimax,
    )
    console.print(f"training {settings.starts} starts; Ctrl-C keeps the best so far", style="dim")
    try:
        with _watch(console) as progress:
            found = fit_problem(problem, settings, progress)
    except ValueError as wrong:
        raise UserError(f"{wrong} (n_init is --starts)" if "n_init" in str(wrong) else str(wrong)) from None
    except KeyboardInterrupt:
        raise Stopped("stopped; nothing was written") from None
    lines = summarize(problem, settings, found)
    hint = f"; --pieces {found.reduced.curve.pieces} saves the curve" if found.reduced and not files.few else ""
    try:  # files first: the output may be a pipe that nobody reads
        for line in write_files(files, problem, found, lines, shlex.join(map(escape, ["plunit", *sys.argv[1:]]))):
            lines.append(line + hint if line.endswith(", the network") else line)
    except KeyboardInterrupt:
        raise Stopped("stopped while files were written; run the command again for those that are missing") from None
    finally:
        print(*lines, sep="\n")
    if found.missed:
        raise typer.Exit(NOT_SHOWN)


def _problem(
    source: str,
    target: str,
    inputs: str,
    exclude: str,
    drop_missing: bool,
    low: float | None,
    high: float | None,
    ranges: dict[str, tuple[float, float]],
    splits: int | None,
    console: Console,
) -> Problem:
    from plunit.data.tables import check_exists
    from plunit.fitting.problems import looks_like_a_file, of_expression, of_table

    if not looks_like_a_file(source):
        if target or inputs or exclude or drop_missing or splits is not None:
            raise UserError(
                "--target, --inputs, --exclude, --drop-missing and --splits are for tables; "
                f"the file {source!r} does not exist, so it is read as a function"
            )
        return of_expression(source, -6.0 if low is None else low, 6.0 if high is None else high, ranges=ranges)
    check_exists(Path(source))
    if low is not None or high is not None or ranges:
        raise UserError("--low, --high and --range are for functions; a table has the range of its rows")
    if not target:
        raise UserError(f"{source} is a table: name the column to learn, as in --target y")
    if inputs and exclude:
        raise UserError("--inputs names all columns to learn from; leave out --exclude")
    chosen, excluded = _columns("--inputs", inputs), _columns("--exclude", exclude)

    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)  # a name may look like rich's markup

    return of_table(Path(source), target, chosen, say, exclude=excluded, drop_missing=drop_missing)


def _columns(option: str, text: str) -> list[str]:
    """Return the columns that an option names."""
    found = [part.strip() for part in text.split(",") if part.strip()]
    if text and not found:
        raise UserError(f"{option} must name columns, as in {option} a,b; got {text!r}")
    return found


def _check(
    problem: Problem,
    pieces: int | None,
    error: float | None,
    activation: str,
    bits: int | None,
    save: Sequence[Path],
    few: bool,
    minimax: bool,
) -> None:
    """Raise UserError if --pieces, --error or --bits do not fit the problem."""
    if pieces is None and error is None and bits is None:
        return
    from plunit.ensemble.mlp import PIECEWISE
    from plunit.expressions import MOST_VARIABLES

    names, is_table = problem.inputs, problem.expression is None
    count, listed, values = len(names), ", ".join(names[:8]), len(set(problem.x[:, 0].tolist()))
    curve = [
        (pieces is not None and error is not None, "give --pieces or --error, not both"),
        (
            problem.encoder is not None,
            "--pieces and --error are for one column of numbers; text and missing values make more inputs: "
            f"{listed}. Choose another column with --inputs, or add --drop-missing",
        ),
        (
            is_table and count > 1,
            f"--pieces and --error are for one input of a table, there are {count}; choose one with --inputs",
        ),
        (
            is_table and (pieces or 0) >= values,
            f"--pieces must be below the number of different values of {names[0]}, {values}; got {pieces}",
        ),
        (
            pieces is not None and count > 1,
            f"--pieces is for one input, there are {count}; write a function of one variable",
        ),
        (count > MOST_VARIABLES, f"--error is for up to {MOST_VARIABLES} variables, there are {count}; leave it out"),
        (
            activation not in PIECEWISE,
            f"--pieces and --error need a piecewise-linear activation: {', '.join(PIECEWISE)}",
        ),
        (error is not None and not 0 < error < float("inf"), f"--error must be positive, got {error}"),
        (error is not None and count > 1 and not minimax, "--error needs the largest error; leave out --no-minimax"),
    ]
    fixed_point = [
        (bits not in (8, 16), f"--bits must be 8 or 16, got {bits}"),
        (few, "--bits is for networks, and --pieces or --error of one input writes a curve; leave one of them out"),
        (all(ending(path) != ".h" for path in save), "--bits writes C; name the file, as in --save f.h"),
    ]
    asked = [*(curve if pieces is not None or error is not None else []), *(fixed_point if bits is not None else [])]
    for is_wrong, message in asked:
        if is_wrong:
            raise UserError(message)


def _ranges(texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the ends of each variable that has its own: x=-1:1."""
    found: dict[str, tuple[float, float]] = {}
    for text in texts:
        name, _, ends = (part.strip() for part in text.partition("="))
        low, colon, high = ends.partition(":")
        try:
            pair = float(low), float(high)
        except ValueError:
            colon = ""
        if not (name and colon):
            raise UserError(f"--range must be a variable with its ends, as in x=-1:1; got {text!r}")
        if name in found:
            raise UserError(f"--range gives two ranges of {name!r}; leave one out")
        found[name] = pair
    return found


def _widths(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")] if text else []
    if not all(re.fullmatch(r"\d{1,3}", part, re.ASCII) and 1 <= int(part) <= 256 for part in parts):
        raise UserError(f"--hidden must be numbers of units from 1 to 256 with commas, as in 8,8; got {text[:80]!r}")
    return tuple(map(int, parts))


@contextmanager
def _watch(console: Console) -> Iterator[Callable[[str, float, float], bool]]:
    """Show progress."""
    with bars(console) as bar:
        task = bar.add_task("fit", total=1.0)

        def show(what: str, done: float, best: float) -> bool:
            bar.update(task, completed=done, description=f"{what}, loss {best:.3g}")
            return False

        yield show
