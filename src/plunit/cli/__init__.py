"""The `plunit` command. A missing package, or an error that the user can correct, is one line and never a traceback.

Arguments enter; lines, files and an exit code leave. Open `commands.py` first, the list of all commands. `main`, here,
turns a UserError into exit code 2 and Ctrl-C into 130, whatever the standard streams and the current folder are.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys

_EXTRAS = {"play": "play", **dict.fromkeys(("fit", "pieces", "prove"), "fit")}
"""The extra that a command needs, if it is not `lab`."""

NOT_SHOWN = 30
"""The exit code if what was asked for is not proved: of `prove` without an answer, of `fit` beyond its --error."""

_STORING = ("reproduce", "run", "compare")
_KEPT = "; finished work is stored; the same command continues from there"


class Stopped(Exception):
    """Ctrl-C was pressed; the text is the message."""


def main() -> None:
    """Run the command line; a user's error is one line and exit code 2, Ctrl-C one line and 130."""
    _repair_streams()
    try:
        _run_command()
    finally:
        _drop_unwritten()
        # Ctrl-C from here on ends the process at once: what Python runs at exit would answer with a traceback
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, lambda *_: os._exit(130))


def _drop_unwritten() -> None:
    """Flush the output; unwritable output goes to the null device, so that the flush at exit keeps the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with contextlib.suppress(OSError, ValueError):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, stream.fileno())
                os.close(null)


def _repair_streams() -> None:
    """Open each standard stream that is closed as the null device, and escape letters that the others cannot encode.

    Otherwise the next file that is opened would get the number of the stream, and whatever a library prints.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, stream := open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # until the end
            os.set_inheritable(stream.fileno(), True)
        elif mode == "w" and isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _run_command() -> None:
    command = "".join(sys.argv[1:2])
    try:
        with contextlib.suppress(BrokenPipeError):
            _call(command)
    except ModuleNotFoundError as missing:
        from plunit.base.errors import EXTRAS, describe_missing

        package = str(missing.name).removeprefix("plunit.").partition(".")[0]
        if package not in EXTRAS:
            raise
        extra = f"pip install 'plunit[{_EXTRAS.get(command, 'lab')}]'"
        _end(describe_missing("this command", package, command=extra))
    except (KeyboardInterrupt, Stopped) as stop:
        _end(str(stop) or f"stopped{_KEPT if command in _STORING else ''}", 130)
    except MemoryError:
        _end("out of memory; reduce the size of the task, or the number of seeds at once")


def _call(name: str) -> None:
    from plunit.base.errors import UserError
    from plunit.cli.commands import UsageError, application

    try:
        _check_folder()
        code = application(name)(standalone_mode=False, prog_name="plunit")
        sys.stdout.flush()  # here a full disk is one line
        if code == 130:  # what typer makes of Ctrl-C
            raise Stopped
        if code:
            raise SystemExit(code)
    except UsageError as error:
        if not name:  # its text is the list of commands
            error.show()
            raise SystemExit(2) from None
        hint = f"; see {error.ctx.command_path} --help" if error.ctx else ""
        _end(error.format_message().rstrip(".") + hint)
    except UserError as error:
        _end(str(error))
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            where = f" ({error.filename})" if error.filename else ""
            _end(f"the disk is full{where}; free some space and run the same command again: finished work is kept")
        if error.strerror is None:
            raise
        where = error.filename or "standard output, or a file"  # a write that fails does not name its file
        _end(f"{where}: {error.strerror}; correct that, or choose another path")


def _check_folder() -> None:
    """Raise UserError if the current folder was removed: names of files mean nothing there, and PyTorch cannot load."""
    from plunit.base.errors import UserError

    try:
        os.getcwd()
    except FileNotFoundError:
        raise UserError("the current folder has been removed; change to another folder with cd") from None


def _end(line: str, code: int = 2) -> None:
    """Print one line, in which what a terminal would obey is escaped, and end."""
    from plunit.base.errors import escape

    with contextlib.suppress(OSError):  # nothing can be said where nothing can be written
        print(f"plunit: {escape(' '.join(line.split()))}", file=sys.stderr)
    raise SystemExit(code)
