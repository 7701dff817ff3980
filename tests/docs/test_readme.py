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
from plunit.lab.claims import CLAIMS, STATEMENTS, answers
from plunit.lab.experiment import catalogue
from plunit.lab.report import CLAIM_COLUMNS, claim_row

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "readme.py"))
STORED = TOOL["read_claims"](TOOL["STORED"])
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


def stored_rows():
    with (ROOT / "results" / "fit" / "claims.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("page", TOOL["PAGES"])
def test_the_pages_are_as_the_tool_writes_them(page):
    text = (ROOT / page).read_text()
    assert TOOL["fill"](page, text, TOOL["BLOCKS"]) == text


@pytest.mark.parametrize("page", ["README.md", "docs/paper.md"])
def test_the_pages_count_and_show_the_verdicts_on_the_statements(page):
    text, rows = rows_of(page)
    found = {one.key: one for one in answers(STORED)}
    measured = [one.verdict for one in found.values() if not one.theorem]
    head = TOOL["verdict"](page) if page == "README.md" else text
    assert f"{len(measured)} statements that can be measured, " in head
    assert f" {measured.count('holds')} hold, " in head
    assert re.search(rf" {measured.count('refuted')} (are|is) refuted", head)
    keys = [key for key, one in found.items() if one.verdict in ("refuted", "holds in a weaker form")]
    keys = [*keys, *TOOL["SHOWN"]] if page == "README.md" else [*found]
    shown = {STATEMENTS[key].sentence.rstrip("."): found[key].said for key in keys}
    assert {sentence: line.split(" | ")[-1].removesuffix(" |") for sentence, line in rows.items()} == shown


def test_the_stored_claims_are_those_that_the_code_writes_now():
    """Sentences, settings, names and words of statistics, ranges and verdicts; a stale file is found."""
    rows = stored_rows()
    assert list(rows[0]) == list(CLAIM_COLUMNS)
    written = [{key: str(value) for key, value in claim_row(one).items()} for one in STORED]
    assert written == rows
    assert len(rows) == len({(row["experiment"], row["statistic"], row["statement"], row["setting"]) for row in rows})


def test_the_stored_numbers_of_cifar10_are_those_of_the_records_of_the_package():
    found = {one.name: one for one in catalogue()["cifar10"].statistics({})}
    stored = [one for one in STORED if one.experiment == "cifar10"]
    assert len(stored) > 20
    for one in stored:
        now = found[one.claim.statistic]
        assert (one.words, one.estimate.n) == (now.words, now.estimate.n)
        ends = [(each.value, each.low, each.high) for each in (one.estimate, now.estimate)]
        assert ends[0] == pytest.approx(ends[1], rel=1e-12, nan_ok=True)


def test_every_claim_is_in_the_record():
    stored = {(one.claim.experiment, one.claim.statistic) for one in STORED}
    claimed = {(claim.experiment, claim.statistic) for claim in CLAIMS if claim.experiment in catalogue()}
    assert claimed - stored == set()


@pytest.mark.parametrize("text", [TOOL["mark"]("speed"), f"{TOOL['mark']('weather')}{TOOL['END']}"])
def test_a_block_that_is_open_or_unknown_is_refused(text):
    with pytest.raises(ValueError, match="has the block"):
        TOOL["fill"]("README.md", text, TOOL["BLOCKS"])


def test_numbers_outside_of_blocks_are_not_measurements():
    left = re.sub(r"(?s)```.*?```", "", re.sub(BLOCK, "", README))
    left = re.sub(r"\]\([^)]*\)|<(?:img|source)[^>]*>|CIFAR-10|2018", "", left)
    assert set(re.findall(r"\d[\d.,]*\d|\d", left)) == {"3.10", "0.1", "1", "0", "16"}  # Python, alpha, c, bits


def test_the_numbers_are_those_of_the_stored_files():
    stored = json.loads((ROOT / "results" / "benchmarks.json").read_text())
    speed, others = stored["speed"], stored["rivals"]["error ratios"]
    assert f"{speed['op']['float32']:.2f} in float32, {speed['op']['bfloat16']:.2f} in bfloat16" in README
    assert speed["date"] in README
    assert f" {float(format(speed['loop']['ratio'], '.2g')):,.0f} (a plain loop in PyTorch)" in README
    assert f" {float(format(speed['vmap']['ratio'], '.2g')):,.0f} (`jax.vmap`)" in README
    assert f"at least {int(speed['proof']['ratio'])} |" in README
    assert f"LightGBM's error is {round(100 * others['LightGBM'] - 100)} % higher" in README
    assert f"has {round(100 - 100 * others['tanh'])} % less error with tanh" in README
    late = next(row for row in stored_rows() if row["statistic"] == "accuracy plu - relu 100000")
    assert f"accuracy is {abs(float(late['value'])):.1f} points lower" in README


def test_what_rivals_stores_is_what_it_prints_and_what_the_page_shows(tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    path = tmp_path / "benchmarks.json"
    path.write_text('{"speed": {}}')
    command = ["-m", "benchmarks", "rivals", "--tables", "linnerud", "--splits", "1", "--store", str(path)]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [*json.loads(path.read_text())] == ["speed", "rivals"]
    monkeypatch.setitem(TOOL["rivals"].__globals__, "MEASURED", path)
    shown = [line.split(" | ") for line in TOOL["rivals"]("docs/benchmarks.md").splitlines() if line.startswith("| ")]
    printed = re.findall(r"([\d.]+) /", re.search(r"^linnerud .*$", done.stdout, re.MULTILINE)[0])
    stored = json.loads(path.read_text())["rivals"]["errors"]["linnerud"]
    assert [f"{value:.3f}" for value in stored.values()] == printed
    ratios = re.findall(r" / default, error, geometric mean +([\d.]+)", done.stdout)
    assert shown[1] == ["| error / default's", *ratios[:-1], f"{ratios[-1]} |"]


def test_what_estimators_stores_is_what_the_page_shows(tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import estimators
    from benchmarks.peers import Peers
    from benchmarks.scores import Result

    path = tmp_path / "benchmarks.json"
    ours = dict.fromkeys(estimators.VARIANTS, 0.25) | {"one": 0.5}
    peers = Peers([0.5, 1.0], [0.4, 0.9], chosen=0, boosting=1.0)
    monkeypatch.setattr(estimators, "judge", lambda *given: [Result(peers, ours, {})])
    monkeypatch.setattr(estimators, "TIMED", 0)
    estimators.main(["--tables", "autompg", "wine", "--splits", "1", "--store", str(path)])
    monkeypatch.setitem(TOOL["estimators"].__globals__, "MEASURED", path)
    text = TOOL["estimators"]("docs/benchmarks.md")
    assert "| one network / best of 20 MLPs, error, geometric mean | 1.00 | <= 0.95, MISSED |" in text
    assert "| default / gradient boosting, error, geometric mean | 0.25 | <= 1, met |" in text


def test_the_command_is_the_one_whose_output_is_stored():
    stored = json.loads((ROOT / "results" / "readme" / "shell.json").read_text())
    assert [stored["command"]] == COMMANDS


@pytest.mark.parametrize("target", re.findall(r"`make (\w+)`", README))
def test_make_has_the_targets_of_the_page(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("command", [*COMMANDS, *re.findall(r"`(plunit fit .+?)`", README)])
def test_a_command_of_the_page_needs_nothing_but_what_its_install_line_has(command, tmp_path):
    """What plunit imports somewhere, and the extra that the page names for the command does not install, is hidden."""
    tomllib = pytest.importorskip("tomllib")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.search(r"`pip install '\.\[(\w+)\]'`, no PyTorch", README)[1]
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
    assert ("; proved: at most " if saved else "(observed, not a bound)") in done.stdout
