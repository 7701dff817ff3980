"""The command `plunit play`: the playground in a browser."""

from __future__ import annotations

import errno
import re
import threading
import webbrowser
from typing import Annotated, Any

import typer

from plunit.base.errors import UserError
from plunit.base.machine import return_freed_memory


def play_(
    link: Annotated[
        str, typer.Argument(metavar="LINK", help="A link copied from the page; restores its settings.")
    ] = "",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port (0 picks a free one).")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the address without opening a browser.")] = False,
) -> None:
    """Open a local page and watch networks learn a function that you type, draw or drop. Press Ctrl-C to quit."""
    settings = _settings(link)
    return_freed_memory()
    try:
        server = _server(port)
        address = server.address + settings
        print(f"plunit play: {address}", "Press Ctrl-C to quit.", sep="\n", flush=True)
        if not no_open:  # some browsers return when they are closed
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        try:
            server.serve_forever(poll_interval=0.1)
        finally:
            server.server_close()
    except KeyboardInterrupt:
        print("\nplunit play: ended")


def _settings(link: str) -> str:
    """Return the settings of a link for an address, as they are: percent-encoded."""
    found = re.search(r"[#&]settings=([\w%.+*~-]+)", link, flags=re.ASCII)
    if link and not found:
        raise UserError(f"{link[:100]!r} has no settings; copy the link from the page, with #settings= in it")
    return f"&settings={found[1]}" if found else ""


def _server(port: int) -> Any:
    from plunit.play.server import Server

    try:
        return Server(port)
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        why = "is taken" if error.errno == errno.EADDRINUSE else "may not be used"
        raise UserError(f"port {port} {why}; choose another with --port, or any free one with --port 0") from None
