"""All commands of `plunit`, with the file of each, imported when its command is called; `plunit play` is here."""

from __future__ import annotations

import errno
import re
import threading
import webbrowser
from importlib import import_module
from typing import Annotated, Any

import typer

import plunit
from plunit.base.errors import UserError
from plunit.base.machine import return_freed_memory

UsageError: Any = typer.BadParameter.__base__
"""The exception that typer raises for invalid options and arguments; it exports only a subclass."""

_FILES = {"fit": "fit", "play": "commands", **dict.fromkeys(("reproduce", "run", "compare", "report"), "lab")}
_FILES |= {"pieces": "networks", "prove": "networks", "data": "lab", "list": "lab", "clean": "lab"}
"""The file of each command, in the order of the help."""

_FUNCTIONS = {"fit": "fit_", "play": "play_", "pieces": "pieces_of", "prove": "prove_", "list": "list_"}
"""The functions that do not have the names of their commands, which are those of modules, or of Python."""


_CLASSES = {"pieces": "BoxCommand", "prove": "BoxCommand", "fit": "FormulaCommand"}
"""The commands that parse their arguments themselves."""


def application(word: str = "") -> typer.Typer:
    """Return the command line: with only the command of this name, or with all."""
    app = typer.Typer(
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name in [word] if word in _FILES else _FILES:
        file = import_module(f"plunit.cli.{_FILES[name]}")
        command = getattr(file, _FUNCTIONS.get(name, name))
        app.command(name, cls=getattr(file, _CLASSES.get(name, ""), None))(command)
    app.callback()(plunit_)
    return app


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


def play_(
    link: Annotated[
        str, typer.Argument(metavar="LINK", help="A link copied from the page; restores its settings.")
    ] = "",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port (0 picks a free one).")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the address without opening a browser.")] = False,
) -> None:
    """Open a local page and watch networks learn a function that you type, draw or drop. Press Ctrl-C to quit."""
    settings = re.search(r"[#&]settings=([\w%.+*~-]+)", link, flags=re.ASCII)
    if link and not settings:
        raise UserError(f"{link[:100]!r} has no settings; copy the link from the page, with #settings= in it")
    return_freed_memory()
    try:
        with _server(port) as server:
            address = server.address + (f"&settings={settings[1]}" if settings else "")
            print(f"plunit play: {address}", "Press Ctrl-C to quit.", sep="\n", flush=True)
            if not no_open:  # some browsers return when they are closed
                threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
            server.serve_forever(poll_interval=0.1)
    except KeyboardInterrupt:
        print("\nplunit play: ended")


def _server(port: int) -> Any:
    from plunit.play.server import Server

    try:
        return Server(port)
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        why = "is taken" if error.errno == errno.EADDRINUSE else "may not be used"
        raise UserError(f"port {port} {why}; choose another with --port, or any free one with --port 0") from None
