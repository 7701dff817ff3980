"""Runs of `plunit fit` in this process."""

import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from plunit.cli import main

COMMAND = [sys.executable, "-c", "from plunit.cli import main; main()", "fit"]


SHORT = ["--starts", "4", "--splits", "0", "--quick"]


def run(folder, *arguments):
    """Run the command in this process; return its exit code and what it printed."""
    out, err, before = io.StringIO(), io.StringIO(), Path.cwd()
    os.chdir(folder)
    try:
        with (
            redirect_stdout(out),
            redirect_stderr(err),
            pytest.MonkeyPatch.context() as patch,
        ):
            code = 0
            patch.setattr(sys, "argv", ["plunit", "fit", *arguments])
            try:
                main()
            except SystemExit as end:
                code = end.code or 0
    finally:
        os.chdir(before)
    return code, out.getvalue(), " ".join(err.getvalue().split())
