"""README.md and docs/paper.md say of the paper what is stored."""

import csv
import runpy
from pathlib import Path

import pytest

from plunit.base.ranges import Range
from plunit.lab.claims import STATEMENTS
from plunit.lab.story import statements

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "paper_rows.py"))
STORED = TOOL["read_claims"](ROOT / "results" / "fit" / "claims.csv")


def rows_of(page):
    text = (ROOT / page).read_text().partition(TOOL["BEGIN"])[2].partition(TOOL["END"])[0]
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
    assert TOOL["written"](page, text, statements(STORED)) == text


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


@pytest.mark.parametrize("text", ["", "<!-- to here -->"])
def test_a_page_without_marks_is_refused(text):
    with pytest.raises(ValueError, match="must have"):
        TOOL["written"]("README.md", text, [])
