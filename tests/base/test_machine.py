"""What bug reports and results say of the machine, and processes in a group of their own."""

import ast
import os
import re
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import plunit
from plunit.base.machine import run_group

TEMPLATES = Path(__file__).parents[2] / ".github" / "ISSUE_TEMPLATE"
SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.mark.parametrize("absent", ["torch", ""])
def test_the_command_of_a_bug_report_works_with_and_without_pytorch(monkeypatch, capsys, absent):
    version = metadata.version

    def installed(name):
        if name == absent:
            raise metadata.PackageNotFoundError(name)
        return "1.2.3" if name == "torch" else version(name)

    monkeypatch.setattr(metadata, "version", installed)
    (command,) = (
        found for file in TEMPLATES.glob("*.yml") for found in re.findall(r'python -c "(.*?)"', file.read_text())
    )
    exec(command, {})
    said = ast.literal_eval(capsys.readouterr().out)
    assert said["torch"] == ("not installed" if absent else "1.2.3")
    assert (said["numpy"], said["plunit"]) == (np.__version__, plunit.__version__)


def test_what_a_command_prints_is_kept():
    program = "import os, sys; print(os.environ['WORD']); sys.stderr.write('no'); sys.exit(3)"
    done = run_group([sys.executable, "-c", program], timeout=60, env={**os.environ, "WORD": "yes"})
    assert (done.stdout.split(), done.stderr, done.returncode) == ([b"yes"], b"no", 3)


@pytest.mark.parametrize("has_groups", [True, False])
def test_the_process_is_ended_also_on_a_system_without_groups(has_groups, monkeypatch):
    if not has_groups:
        monkeypatch.delattr(os, "killpg", raising=False)
    start = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        run_group(SLEEP, timeout=0.1, env=os.environ)
    assert time.monotonic() - start < 30
