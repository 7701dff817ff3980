"""The command `plunit play`: the playground in a browser."""

from __future__ import annotations

import errno
import webbrowser
from typing import Annotated

import typer

from plunit.errors import UserError


def play_(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of the local address; 0 takes any free one.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Only print the address.")] = False,
) -> None:
    """Open a local page on which networks fit a function that you type, draw or drop, live. Ctrl-C ends it."""
    from plunit.play.server import Server

    try:
        server = Server(port)
    except OSError as error:
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            why = "is taken" if error.errno == errno.EADDRINUSE else "may not be used"
            raise UserError(f"port {port} {why}; choose another with --port, or any free one with --port 0") from None
        raise
    print(f"plunit play: {server.address}", flush=True)
    print("Ctrl-C ends it.", flush=True)
    try:
        if not no_open:
            webbrowser.open(server.address)
        server.serve_forever(poll_interval=0.1)
    except KeyboardInterrupt:
        print("\nplunit play: ended")
    finally:
        server.server_close()
