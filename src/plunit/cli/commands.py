"""All commands of `plunit`, one file for each group."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any

import typer

import plunit
from plunit.cli import Stopped, fit, lab, pieces, play, prove

UsageError: Any = typer.BadParameter.__base__
"""What typer raises for options and arguments that it cannot take; it exports the class's child only."""

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _stoppable(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose Ctrl-C reaches `main`: typer alone would end without a message."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except KeyboardInterrupt:
            raise Stopped(f"stopped; {_KEPT}" if command in _STORING else "stopped") from None

    return run


_STORING = (lab.reproduce, lab.run, lab.compare)
_KEPT = "finished work is stored; the same command continues from there"
for _command in (fit.fit_, play.play_, *_STORING, lab.report, pieces.pieces_of, prove.prove_, lab.data, lab.list_):
    _kind = pieces.BoxCommand if _command is pieces.pieces_of else None
    app.command(_command.__name__.removesuffix("_of").removesuffix("_"), cls=_kind)(_stoppable(_command))


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
    """PLU, the Piecewise Linear Unit: fit data, compare activations, know a network exactly, check the paper."""
