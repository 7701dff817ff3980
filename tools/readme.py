"""Write stored results into README.md and two pages; the text between marks is replaced.

python tools/readme.py            # after new results were stored, such as by `python -m benchmarks speed --store`
python tools/readme.py --run      # first run the command of README.md, and store what it prints
python tools/readme.py --time     # first time `make reproduce` and `make test` in fresh clones

The verdicts on the paper are those of results/fit/claims.csv (`make reproduce`, then `cp runs/claims.csv runs/run.json
results/fit`); `tests/docs/test_readme.py` compares the pages with the files.
"""

import argparse
import csv
import datetime
import json
import math
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from plunit.ensemble.nonlinearities import title_of
from plunit.lab.claims import CLAIMS, REFUTED, WEAKER, Claim, Judged, Ruling, answers, tally
from plunit.lab.experiment import catalogue
from plunit.lab.intervals import Estimate
from plunit.lab.pictures import number
from plunit.lab.read.cifar10 import LossCurves

ROOT = Path(__file__).parents[1]
STORED = ROOT / "results" / "fit" / "claims.csv"
MEASURED = ROOT / "results" / "benchmarks.json"
SHELL = ROOT / "results" / "readme"
PAGES = ("README.md", "docs/paper.md", "docs/benchmarks.md")
END = "<!-- to here -->"
WIDTH = 124  # characters of a line of output that are shown

COMMANDS = SHELL / "commands.json"
FORMULA = "2*arcsin(sqrt(sin((a - b)/2)**2 + cos(a)*cos(b)*sin(c/2)**2))"
COMMAND = f"plunit fit '{FORMULA}' --low -1.2 --high 1.2 --hidden 8,8 --bits 16 --save angle.h"
"""The command that README.md shows: the angle between two directions, which is no sum or product of parts."""

SHOWN = ("sine-tanh", "curve-relu")
"""The statements in README.md's table besides those that are refuted or hold in a weaker form only."""


def mark(block: str) -> str:
    """Return the comment with which a block begins."""
    return f"<!-- {block}: python tools/readme.py writes this -->"


def read_claims(path: Path) -> list[Judged]:
    """Return what the lab measured: the claims of `plunit.lab.claims` with the estimates of a table that it wrote."""
    known = {(one.statement, one.experiment, one.statistic, one.setting): one for one in CLAIMS}
    with path.open(newline="") as file:
        return [_judged(known, row) for row in csv.DictReader(file)]


def _judged(known: dict[tuple[str, ...], Claim], row: dict[str, str]) -> Judged:
    key = tuple(row[name] for name in ("statement", "experiment", "statistic", "setting"))
    if key not in known:
        raise ValueError(f"{key} is not a claim of plunit.lab.claims; run `make reproduce`, and store its claims.csv")
    numbers = (float(row[name]) for name in ("value", "low", "high"))
    estimate = Estimate(*numbers, int(row["n"]))
    return Judged(known[key], row["experiment"], row["words"], estimate, int(row["needed"] or 0))


def fill(page: str, text: str, blocks: dict[str, Callable[[str], str]]) -> str:
    """Return the text of a page with the present results in each of its blocks."""
    for name in re.findall(r"<!-- (\w+): python tools/readme.py", text):
        before, _, rest = text.partition(mark(name))
        _, end, after = rest.partition(END)
        if name not in blocks or not end:
            raise ValueError(f"{page} has the block {name!r}; known are {', '.join(blocks)}, and each ends in {END}")
        text = f"{before}{mark(name)}\n{blocks[name](page)}\n{END}{after}"
    return text


def verdict(page: str) -> str:
    """Return the verdict on the paper in one line."""
    found = answers(read_claims(STORED))
    measured = sum(not one.theorem for one in found)
    seeds = max(each.estimate.n for one in found for each in one.primary)
    *others, last = tally(found).partition(";")[0].split(", ")
    return (
        f"**Is the paper true?** Of its {measured} statements that can be measured, tested over up to {seeds:,} seeds, "
        f"{', '.join(others)} and {last}."
    )


def verdicts(page: str) -> str:
    """Return the table of the paper's statements: all of them, or on README.md some and every one that fails."""
    found = answers(read_claims(STORED))
    whole = page != "README.md"
    shown = [one for one in found if whole or one.key in SHOWN or one.verdict in (WEAKER, REFUTED)]
    if whole:
        measured = sum(not one.theorem for one in found)
        return f"Of {measured} statements that can be measured, {tally(found)}.\n\n{_table(shown)}"
    return _short_table(shown)


def cifar10(page: str) -> str:
    """Return the table of the records of CIFAR-10, and how far PLU's test accuracy is from ReLU's.

    The sentences on CIFAR-10 in README.md and docs/paper.md rest on the signs that are compared here.
    """
    found = {one.claim.statistic: one.estimate for one in read_claims(STORED) if one.experiment == "cifar10"}
    faster = [found[f"loss {pair} 100"].value > 1 for pair in ("relu/plu", "relu/tanh")]
    faster.append(found["loss identity/relu 100"].value < 1)
    overtaken = found["loss relu/plu 100000"].value < 1
    ahead = {step: found[f"accuracy plu - relu {step}"] for step in (20_000, 100_000)}
    if not all((*faster, overtaken, *(one.value < 0 for one in ahead.values()))):
        raise ValueError("the results on CIFAR-10 have changed; write the sentences about them again")
    one = catalogue()["cifar10"]
    lines = [
        f"| median | seeds | {' | '.join(map(title_of, one.activations))} |",
        "|---" * (2 + len(one.activations)) + "|",
    ]
    measures = {"training loss": (LossCurves.at, 1), "test accuracy, %": (LossCurves.accuracy, 100)}
    for noun, (value, unit) in measures.items():
        for step in (1000, *ahead):
            for each in one.evidence({}, one.activations, step):
                numbers = [number(unit * float(np.median(value(curves, step)))) for curves in each.curves.values()]
                lines.append(f"| {noun}, after {step:,} steps | {each.seeds} | {' | '.join(numbers)} |")
    points = (f"{one.value:.1f} points after {step:,} steps (n = {one.n})" for step, one in ahead.items())
    compared = f"Test accuracy of PLU minus that of ReLU, median over paired seeds: {', '.join(points)}."
    return "\n".join([*lines, "", compared])


def commands(page: str) -> str:
    """Return the two commands of a newcomer, with their durations."""
    minutes = json.loads(COMMANDS.read_text(encoding="utf-8"))["minutes"]
    done = {
        "reproduce": "sets up .venv, downloads CIFAR-10, tests the paper, writes a report",
        "test": "sets up .venv, runs all tests",
    }
    lines = [f"make {name:<10} # {minutes[name]:.0f} minutes: {words}" for name, words in done.items()]
    return "\n".join(["```console", *lines, "```"])


def shell(page: str) -> str:
    """Return the command and its output; the list of starts is cut, other long lines are wrapped."""
    one = json.loads((SHELL / "shell.json").read_text(encoding="utf-8"))
    if not any(line.endswith("The network is smaller") for line in one["output"]):
        raise ValueError("a lookup table is smaller than the network; choose another command")
    lines = []
    for line in one["output"]:
        wrapped = textwrap.wrap(line, WIDTH, subsequent_indent="  ")
        lines += [f"{line[:WIDTH]}..."] if line.startswith("validation") else wrapped
    return "\n".join(["```console", f"$ {one['command']}", *lines, "```"])


def uses(page: str) -> str:
    """Return the table of what plunit is for, with its numbers."""
    found = {(one.experiment, one.claim.statistic): one.estimate for one in read_claims(STORED)}
    loss, dead = found["sine", "relu/plu"], found["sine", "dead relu"]
    late = found["cifar10", "accuracy plu - relu 100000"]
    others = _measured("rivals")
    tanh, gelu, cat, light = (others["error ratios"][name] for name in ("tanh", "GELU", "CatBoost", "LightGBM"))
    if not max(tanh, gelu, cat) < 1 < light:
        raise ValueError("the results have changed; write the sentences of `uses` again")
    rows = (
        "some functions of three or more inputs on a small processor, as above; `plunit fit` says whether a lookup "
        "table would be smaller",
        "smooth functions of one or two inputs, and sums and products of such: a lookup table is usually smaller",
        f"small networks that fit a function: on a sine, ReLU's loss is {number(loss.value)} times PLU's (median of "
        f"the ratios), and {100 * dead.value:.0f} % of ReLU's units die but none of PLU's",
        "a better ReLU in an image classifier: on CIFAR-10, PLU learns faster at first, but after 100,000 steps its "
        f"test accuracy is {-late.value:.1f} points lower (median of {late.n} seeds)",
        "predictions from tables of data: compared with our mean of 16 networks, LightGBM's error is "
        f"{100 * light - 100:.0f} % higher and CatBoost's {_less(cat)} % lower, all with their defaults (geometric "
        f"mean of {len(others['errors'])} tables)",
        f"the last percent on tables of data: the same estimator has {_less(tanh)} % less error with tanh and "
        f"{_less(gelu)} % less with GELU, but no exact pieces",
        "networks whose exact function you need; invertible networks; densities with few parameters",
        "fits that need no straight pieces: on a sine, tanh's error is far lower than PLU's after more training",
    )
    lines = [f"| {do} | {do_not} |" for do, do_not in zip(rows[::2], rows[1::2], strict=True)]
    return "\n".join(["| use it for | do not use it for |", "|---|---|", *lines])


def speed(page: str) -> str:
    """Return the table of speeds."""
    found = _measured("speed")
    op, proof = found["op"], found["proof"]
    loop, vmap = (_two_digits(found[peer]["ratio"]) for peer in ("loop", "vmap"))
    return "\n".join(
        [
            f"| `{found['command']}`, {found['date']}, {found['machine']['processor']}; not benchmarked on a GPU | |",
            "|---|---|",
            f"| PLU / ReLU in PyTorch: time of forward and backward, {op['elements']:,} elements | "
            f"{op['float32']:.2f} in float32, {op['bfloat16']:.2f} in bfloat16 |",
            f"| others / plunit: time to train {found['networks']:,} small networks | {loop} (a plain loop in "
            f"PyTorch), {vmap} (`jax.vmap`) |",
            f"| HiGHS (a mixed-integer solver, stopped after {proof['patience']:.0f} s) / plunit: time to prove the "
            f"maximum of a network | at least {math.floor(proof['ratio'])} |",
        ]
    )


def rivals(page: str) -> str:
    """Return the table of other libraries and activations: ratios to the default estimator."""
    found = _measured("rivals")
    names = [*found["error ratios"]]
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    tables = f"{len(found['errors'])} tables, {found['splits']} splits of each"
    head = f"`{found['command']}`, {found['date']}, {tables}; {versions}."
    rows = {"error / default's": found["error ratios"], "processor seconds / default's": found["second ratios"]}
    lines = [f"| {key} | {' | '.join(f'{row[name]:.2f}' for name in names)} |" for key, row in rows.items()]
    corner = ["geometric mean, split by split", *names]
    return "\n".join([head, "", f"| {' | '.join(corner)} |", "|---" * len(corner) + "|", *lines])


def estimators(page: str) -> str:
    """Return the table of the estimators and scikit-learn's networks: ratios with their bars."""
    found = _measured("estimators")
    defaults = f", with the defaults of that day: {found['defaults']}" if "defaults" in found else ""
    head = f"`{found['command']}`, {found['date']}, medians over {found['splits']} splits{defaults}."
    bars = [f"| {row['work']} | {row['measured']:.2f} | {row['bar']} |" for row in found["bars"]]
    return "\n".join([head, "", "| ratio or fraction | measured | bar |", "|---|---|---|", *bars])


BLOCKS = {
    "verdict": verdict,
    "verdicts": verdicts,
    "cifar10": cifar10,
    "commands": commands,
    "shell": shell,
    "uses": uses,
    "speed": speed,
    "rivals": rivals,
    "estimators": estimators,
}


def _measured(section: str) -> dict[str, Any]:
    """Return what `python -m benchmarks NAME --store` wrote."""
    found: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))[section]
    return found


def _two_digits(value: float) -> str:
    return f"{float(f'{value:.2g}'):,.0f}"


def _less(ratio: float) -> str:
    return f"{100 * (1 - ratio):.0f}"


def run_command() -> None:
    """Run the command in an empty folder, and store its output."""
    with tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, "-m", "plunit.cli", *shlex.split(COMMAND)[1:]]
        done = subprocess.run(program, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    found = {"date": f"{datetime.date.today()}", "command": COMMAND, "output": done.stdout.splitlines()}
    (SHELL / "shell.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def time_commands() -> None:
    """Run `make reproduce` and `make test` in a fresh clone each, and store their minutes."""
    minutes = {}
    for name in ("reproduce", "test"):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["git", "clone", "--quiet", str(ROOT), folder], check=True)
            start = time.monotonic()
            subprocess.run(["make", name], cwd=folder, check=True)
            minutes[name] = (time.monotonic() - start) / 60
    found = {"date": f"{datetime.date.today()}", "minutes": minutes}
    COMMANDS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _short_table(found: list[Ruling]) -> str:
    lines = ["| the paper says | measured, with 95 % interval, over n seeds | verdict |", "|---|---|---|"]
    for one in found:
        first = one.deciding or one.primary[0]
        lines.append(_row(one.sentence.rstrip("."), f"{_number(first.estimate)}: {one.words(first)}", one.said))
    return "\n".join(lines)


def _table(found: list[Ruling]) -> str:
    lines = [
        "| the paper says | measured, with 95 % interval, over n seeds | holds if | verdict |",
        "|---|---|---|---|",
    ]
    for one in found:
        measured = "<br>".join(f"{_number(each.estimate)}: {one.words(each)}" for each in one.primary)
        claimed = "<br>".join(str(each.claim.claimed) for each in one.primary)
        empty = ("an exact check", "") if one.theorem else ("not run", "")
        cells = one.sentence.rstrip("."), measured or empty[0], claimed or empty[1], one.said
        lines.append(_row(*cells))
    return "\n".join(lines)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _number(estimate: Estimate) -> str:
    low, high = number(estimate.low), number(estimate.high)
    ends = ", no interval" if math.isnan(estimate.low) else f" [{low}, {high}]"
    return f"{number(estimate.value)}{ends}, n = {estimate.n:,}"


def main() -> None:
    """Write the pages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--run", action="store_true", help="run the command of README.md first")
    parser.add_argument("--time", action="store_true", help="time `make reproduce` and `make test` first")
    chosen = parser.parse_args()
    if chosen.run:
        run_command()
    if chosen.time:
        time_commands()
    for page in PAGES:
        path = ROOT / page
        path.write_text(fill(page, path.read_text(encoding="utf-8"), BLOCKS), encoding="utf-8")


if __name__ == "__main__":
    main()
