"""What bug reports and results say of the machine."""

import ast
import re
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import plunit

TEMPLATES = Path(__file__).parents[2] / ".github" / "ISSUE_TEMPLATE"


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
