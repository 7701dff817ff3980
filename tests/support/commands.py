"""The command line: a run in this process, and the words that start it in another."""

import contextlib
import io
import os
import signal
import sys
from pathlib import Path

import pytest

from plunit import cli

PROGRAM = [sys.executable, "-c", "from plunit.cli import main; main()"]
SHORT = ["--starts", "4", "--quick", "--no-minimax"]


def run(*words, folder=None):
    """Run `plunit` with these words in a folder; return its exit code and what it printed on both streams."""
    out, err, before, code = io.StringIO(), io.StringIO(), Path.cwd(), 0
    handler = signal.getsignal(signal.SIGINT)
    os.chdir(folder or before)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setattr(sys, "argv", ["plunit", *map(str, words)])
            cli.main()
    except SystemExit as end:
        code = end.code or 0
    finally:
        os.chdir(before)
        signal.signal(signal.SIGINT, handler)  # main() ends with one of its own
    return code, out.getvalue(), err.getvalue()


def fit(folder, *words):
    """Run `plunit fit`; its errors come as one line."""
    code, out, err = run("fit", *words, folder=folder)
    return code, out, " ".join(err.split())
