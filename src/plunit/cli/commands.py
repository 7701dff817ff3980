"""All commands of `plunit`, one file for each group; the file of a command is imported when it is called."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer

import plunit
from plunit.cli import Stopped

UsageError: Any = typer.BadParameter.__base__
"""What typer raises for options and arguments that it cannot take; it exports the class's child only."""

_STORING = ("reproduce", "run", "compare")
_KEPT = "finished work is stored; the same command continues from there"
_GROUPS = {"fit": "fit", "play": "play", **dict.fromkeys(_STORING, "lab"), "report": "lab"}
_GROUPS |= {"pieces": "pieces", "prove": "prove", "data": "lab", "list": "lab"}
"""The file of each command, in the order of the help."""

_FUNCTIONS = {"fit": "fit_", "play": "play_", "pieces": "pieces_of", "prove": "prove_", "list": "list_"}
"""The functions that do not have the names of their commands, which are those of files, or of Python."""


_CLASSES = {"pieces": "BoxCommand", "fit": "FormulaCommand"}
"""The commands that read their words in a way of their own."""


def application(word: str = "") -> typer.Typer:
    """Return the command line: with the command of this name alone, or with all commands."""
    app = typer.Typer(
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name in [word] if word in _GROUPS else _GROUPS:
        group = import_module(f"plunit.cli.{_GROUPS[name]}")
        command = _stoppable(getattr(group, _FUNCTIONS.get(name, name)), name)
        app.command(name, cls=getattr(group, _CLASSES.get(name, ""), None))(command)
    app.callback()(plunit_)
    return app


def _stoppable(command: Callable[..., None], name: str) -> Callable[..., None]:
    """Return a command whose Ctrl-C reaches `main`: typer alone would end without a message."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except KeyboardInterrupt:
            raise Stopped(f"stopped; {_KEPT}" if name in _STORING else "stopped") from None

    return run


def _version(wanted: bool) -> None:
    if wanted:
        print(plunit.__version__)
        raise typer.Exit


def plunit_(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """PLU, the Piecewise Linear Unit: fit data, compare activations, know a network exactly, check the paper."""
