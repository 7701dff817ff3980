"""Standard streams that are closed, cannot be written or cannot encode; a current folder that is gone."""

import os
import shlex
import subprocess
import sys

import pytest
from commands import PROGRAM, SHORT

from plunit.pieces import load, network, save_json

PROPERTY = (
    "(declare-const X_0 Real) (declare-const Y_0 Real) (assert (>= X_0 0)) (assert (<= X_0 1)) (assert (>= Y_0 {}))"
)
CODES = {
    "--version": 0,
    "list": 0,
    "pieces net.json --save copy.json": 0,
    "prove net.json holds.vnnlib --witness witness": 0,
    "prove net.json fails.vnnlib": 10,
    f"fit x --save fitted.json --page page.html {shlex.join(SHORT)}": 0,
    "report nowhere": 2,
    "nonsense": 2,
}
"""Command lines and their exit codes."""

FILES = ("copy.json", "witness", "fitted.json", "page.html")
"""The files that commands of CODES write."""


@pytest.fixture
def folder(tmp_path):
    """Write a network and properties of it."""
    save_json(network([([[2.0]], [0.0])]), tmp_path / "net.json")
    (tmp_path / "holds.vnnlib").write_text(PROPERTY.format(3))
    (tmp_path / "fails.vnnlib").write_text(PROPERTY.format(1))
    return tmp_path


def shell(command, redirect, folder, **environment):
    """Run `plunit` in a shell with these redirections."""
    line = f"{shlex.join(PROGRAM)} {command} {redirect}"
    environment = {**os.environ, **environment}
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, cwd=folder, env=environment)


def is_written(command, folder):
    return all((folder / name).stat().st_size for name in FILES if name in command)


@pytest.mark.parametrize("command", CODES)
def test_closed_streams_change_neither_exit_code_nor_files(command, folder):
    done = shell(command, "0<&- 1>&-", folder)
    assert (done.returncode, done.stdout) == (CODES[command], "")
    assert "Traceback" not in done.stderr
    assert is_written(command, folder)


def test_an_error_is_not_printed_among_the_results_if_the_stream_of_errors_is_closed(folder):
    assert shell("nonsense", "2>&-", folder).stdout == ""


@pytest.mark.parametrize("command", [command for command, code in CODES.items() if code != 2])
def test_an_output_that_cannot_be_written_is_one_line_and_files_are_kept(command, folder):
    done = shell(command, "1</dev/null", folder)
    assert done.returncode == 2
    *before, last = done.stderr.splitlines()
    assert last.startswith("plunit: ")
    assert len(before) == command.startswith("fit")  # which says that it trains
    assert is_written(command, folder)


@pytest.mark.parametrize("command", ["nonsense", f"fit x --page page.html {shlex.join(SHORT)}"])
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_errors_that_cannot_be_written_keep_their_exit_code(command, folder):
    assert shell(command, "2>/dev/full", folder).returncode == 2


@pytest.mark.parametrize(
    "command", [f"fit x --save é.json --page page.html {shlex.join(SHORT)}", "pieces net.json --save é.json"]
)
def test_letters_that_the_output_cannot_encode_are_escaped(command, folder):
    done = shell(command, "", folder, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "\\xe9.json" in done.stdout
    assert load(folder / "é.json").inputs == 1


@pytest.mark.parametrize("command", ["fit x", "list", "run depth"])
def test_a_current_folder_that_is_gone_is_one_line(command, tmp_path):
    (tmp_path / "gone").mkdir()
    line = f"cd gone && rmdir ../gone && {shlex.join(PROGRAM)} {command}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("plunit: ")


def test_workers_inherit_a_stream_that_was_closed(tmp_path):
    """So that no file of theirs gets its number."""
    program = (
        "import subprocess, sys; from plunit.cli import _repair_streams; _repair_streams();"
        "child = [sys.executable, '-c', 'import os; os.fstat(1)'];"
        "sys.exit(subprocess.run(child).returncode)"
    )
    line = f"{shlex.join([sys.executable, '-c', program])} 1>&-"
    assert subprocess.run(["sh", "-c", line], capture_output=True).returncode == 0
