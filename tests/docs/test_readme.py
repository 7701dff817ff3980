"""README.md and docs/paper.md say what is stored, and their commands work."""

import csv
import json
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from plunit.base.errors import EXTRAS
from plunit.base.ranges import Range
from plunit.lab.claims import STATEMENTS

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "readme.py"))
STORED = TOOL["read_claims"](TOOL["CLAIMS"])
README = (ROOT / "README.md").read_text()
BLOCK = r"(?s)<!-- \w+: python tools/readme.py writes this -->.*?<!-- to here -->"
ABSENT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
sys.meta_path.insert(0, Absent())
"""
COMMANDS = re.findall(r"^\$ (plunit .*)$", README, re.MULTILINE)


def rows_of(page):
    text = (ROOT / page).read_text().partition(TOOL["mark"]("verdicts"))[2].partition(TOOL["END"])[0]
    table = [line for line in text.splitlines() if line.startswith("|")][2:]
    return text, {line.split(" | ")[0].removeprefix("| "): line for line in table}


def verdicts():
    """The verdicts of primary claims, as the table has them."""
    with (ROOT / "results" / "fit" / "claims.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["primary"] == "True"]
    return {row["statement"]: row["verdict"] for row in rows}


@pytest.mark.parametrize("page", TOOL["PAGES"])
def test_the_pages_are_as_the_tool_writes_them(page):
    text = (ROOT / page).read_text()
    assert TOOL["written"](page, text, TOOL["BLOCKS"]) == text


@pytest.mark.parametrize("page", TOOL["PAGES"])
def test_the_pages_count_and_show_the_verdicts_of_the_primary_claims(page):
    text, rows = rows_of(page)
    found = {key: verdict for key, verdict in verdicts().items() if not STATEMENTS[key].theorem}
    count = [*found.values()].count
    assert f"Of {len(found)} statements that can be measured, {count('holds')} hold, " in text
    assert f", {count('does not hold')} do not hold" in text
    for key, verdict in found.items():
        if page != "README.md" or verdict != "holds":
            assert rows[STATEMENTS[key].sentence.rstrip(".")].split(" | ")[-1].startswith(verdict)


def test_every_statement_is_decided_once_in_the_record():
    assert sorted(verdicts()) == sorted(STATEMENTS)


def test_claims_come_back_as_they_were_written():
    with (ROOT / "results" / "fit" / "claims.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [claim.verdict for claim in STORED] == [row["verdict"] for row in rows]
    assert [str(claim.primary) for claim in STORED] == [row["primary"] for row in rows]


@pytest.mark.parametrize("limits", [Range(low=100), Range(0.5, 2), Range(high=-1), Range(0, 0)])
def test_ranges_come_back_as_they_were_written(limits):
    assert TOOL["_range"](str(limits)) == limits


@pytest.mark.parametrize("text", [TOOL["mark"]("speed"), f"{TOOL['mark']('weather')}{TOOL['END']}"])
def test_a_block_that_is_open_or_unknown_is_refused(text):
    with pytest.raises(ValueError, match="has the block"):
        TOOL["written"]("README.md", text, TOOL["BLOCKS"])


def test_numbers_outside_of_blocks_are_no_measurements():
    left = re.sub(r"(?s)```.*?```", "", re.sub(BLOCK, "", README))
    left = re.sub(r"\]\([^)]*\)|CIFAR-10", "", left)
    assert set(re.findall(r"\d[\d.,]*\d|\d", left)) == {"3.10", "0.1", "1"}  # Python, alpha, c


def test_the_numbers_are_those_of_the_stored_files():
    speed = json.loads((ROOT / "results" / "speed.json").read_text())
    assert f"| {speed['op']['ratio']:.2f} |" in README
    assert speed["date"] in README
    shown = {name: float(f"{speed[name]['ratio']:.2g}") for name in ("ensemble", "proof")}
    assert all(f" {value:,.0f} |" in README for value in shown.values())
    with (ROOT / "results" / "fit" / "claims.csv").open() as file:
        late = next(row for row in csv.DictReader(file) if row["statistic"].startswith("percent correct"))
    assert f"ends {abs(float(late['value'])):.1f} points lower" in README


def test_the_command_is_the_one_whose_output_is_stored():
    stored = json.loads((ROOT / "results" / "readme" / "shell.json").read_text())
    assert [stored["command"]] == COMMANDS


@pytest.mark.parametrize("target", re.findall(r"`make (\w+)`", README))
def test_make_has_the_targets_of_the_page(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("command", [*COMMANDS, *re.findall(r"`(plunit fit .+?)`", README)])
def test_a_command_of_the_page_needs_nothing_but_what_its_install_line_has(command, tmp_path):
    """What plunit imports somewhere, and the extra of the page's first pip line does not install, is hidden."""
    tomllib = pytest.importorskip("tomllib")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.search(r"^pip install '\.\[(\w+)\]'", README, re.MULTILINE)[1]
    has = {re.match(r"[\w-]+", line)[0].replace("scikit-learn", "sklearn") for line in extras[named]}
    hidden = sorted({*EXTRAS, "pandas", "pyarrow"} - has - {"PIL"})  # matplotlib needs PIL
    assert "torch" in hidden
    (tmp_path / "data.csv").write_text("x,y\n" + "".join(f"{i},{i % 7}\n" for i in range(40)))
    quick = [*shlex.split(command)[1:], "--quick", "--starts", "4", "--hidden", "4"]
    program = ABSENT.format(hidden=hidden) + f"sys.argv[1:] = {quick!r}\nfrom plunit.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    saved = re.findall(r"--save (\S+)", command)
    assert {*saved, "fit.html", "data.csv"} == {path.name for path in tmp_path.iterdir()}
    assert ("(proved)" if saved else "(seen, no bound)") in done.stdout
