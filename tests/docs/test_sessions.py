"""The consoles of the pages print what they show: every command is run, in order, next to the files of the page."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx")
pytest.importorskip("sklearn")
ROOT = Path(__file__).parents[2]
NUMBER = r"-?\d[\d.,]*(e[+-]?\d+)?"


def files_and_commands(text):
    """Return the named files of a page, and its commands, each with the lines that it prints."""
    files = re.findall(r"```(?:c|python)\n(?:# |/\* )([\w.]+)(?: \*/)?\n(.*?)```", text, re.DOTALL)
    consoles = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    steps = [part.splitlines() for console in consoles for part in re.split(r"^\$ ", console, flags=re.M) if part]
    return files, [(command, lines) for command, *lines in steps]


@pytest.mark.skipif(not shutil.which("cc"), reason="the pages compile C with cc")
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("page", ["table_to_c", "formula_to_c"])
def test_the_commands_of_a_page_print_what_it_shows(page, tmp_path):
    """A line that ends in ... is shown in part. Numbers are not compared: they depend on the kernels of BLAS."""
    files, commands = files_and_commands((ROOT / f"docs/{page}.md").read_text())
    assert files
    assert commands
    for name, content in files:
        (tmp_path / name).write_text(content)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command, shown in commands:
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        found = [
            f"{' '.join(line.split()[: len(part.split()) - 1])} ..." if part.endswith(" ...") else line
            for line, part in zip(done.stdout.splitlines(), shown, strict=True)
        ]
        assert [re.sub(NUMBER, "#", line) for line in found] == [re.sub(NUMBER, "#", line) for line in shown]
