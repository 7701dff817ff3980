"""Write the verdicts on the paper into README.md and docs/paper.md, from results/fit/claims.csv.

python tools/paper_rows.py            # after `make reproduce` and `cp runs/claims.csv runs/run.json results/fit`

The text between the marks BEGIN and END is replaced; `tests/lab/test_paper_rows.py` compares it with the file.
"""

import csv
import math
import re
from pathlib import Path

from plunit.base.ranges import Range
from plunit.lab.claims import HOLDS, Claim
from plunit.lab.story import CHECKED, Judged, statements, tally
from plunit.lab.style import number

ROOT = Path(__file__).parents[1]
STORED = ROOT / "results" / "fit" / "claims.csv"
BEGIN, END = "<!-- python tools/paper_rows.py writes this -->", "<!-- to here -->"
PAGES = ("README.md", "docs/paper.md")

SHOWN = ("sine-tanh", "curve-relu", "dead")
"""What README.md shows beside the statements that do not hold fully."""


def read_claims(path: Path) -> list[Claim]:
    """Return the claims of a table that the lab wrote."""
    with path.open(newline="") as file:
        return [_claim(row) for row in csv.DictReader(file)]


def written(page: str, text: str, judged: list[Judged]) -> str:
    """Return the text of a page with the present verdicts between its marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} must have {BEGIN} and, after it, {END}")
    whole = page != "README.md"
    shown = [one for one in judged if whole or one.key in SHOWN or one.verdict not in (HOLDS, CHECKED)]
    some = "" if whole else "\nAll that do not hold fully, and three that do:"
    measured = sum(not one.theorem for one in judged)
    first = f"Of {measured} statements that can be measured, {tally(judged)}.{some}"
    return f"{before}{BEGIN}\n{first}\n\n{_table(shown)}\n{END}{after}"


def _table(judged: list[Judged]) -> str:
    lines = ["| the paper says | measured, with 95 % interval | holds if | verdict |", "|---|---|---|---|"]
    for one in judged:
        claim = one.claims[0]
        weaker = "" if claim.weaker == claim.claimed else f"; weakly if {claim.weaker}"
        ends = ", no interval" if math.isnan(claim.low) else f" [{number(claim.low)}, {number(claim.high)}]"
        value = f"{number(claim.value)}{ends}"
        cells = one.sentence.rstrip("."), f"{value}: {claim.statistic}", f"{claim.claimed}{weaker}", one.said
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)


def _claim(row: dict[str, str]) -> Claim:
    words = (row[name] for name in ("statement", "sentence", "statistic"))
    numbers = (float(row[name]) for name in ("value", "low", "high"))
    ranges = (_range(row[name]) for name in ("claimed", "weaker"))
    return Claim(*words, int(row["n"]), *numbers, *ranges, setting=row["setting"], experiment=row["experiment"])


def _range(text: str) -> Range:
    """Return the range that is written so; to six digits.

    >>> [_range(str(one)) for one in (Range(low=100), Range(0.5, 2), Range(high=-1), Range(0, 0))]
    [Range(low=100.0, high=inf), Range(low=0.5, high=2.0), Range(low=-inf, high=-1.0), Range(low=0.0, high=0.0)]
    """
    if found := re.fullmatch(r"([<>])= (\S+)", text):
        return Range(low=float(found[2])) if found[1] == ">" else Range(high=float(found[2]))
    low, _, high = text.partition(" to ")
    return Range(float(low), float(high or low))


def main() -> None:
    """Write both pages."""
    judged = statements(read_claims(STORED))
    for page in PAGES:
        path = ROOT / page
        path.write_text(written(page, path.read_text(), judged))


if __name__ == "__main__":
    main()
