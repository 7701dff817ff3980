"""Write what was measured into README.md and two pages, from stored results; the text between marks is replaced.

python tools/readme.py            # after new results were stored, such as by `python -m benchmarks speed --store`
python tools/readme.py --run      # first runs the command of README.md, and stores what it prints

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
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plunit.lab.claims import CLAIMS, REFUTED, Claim, Judged, Ruling, answers, tally
from plunit.lab.intervals import Estimate
from plunit.lab.pictures import number

ROOT = Path(__file__).parents[1]
STORED = ROOT / "results" / "fit" / "claims.csv"
MEASURED = ROOT / "results" / "benchmarks.json"
SHELL = ROOT / "results" / "readme"
PAGES = ("README.md", "docs/paper.md", "docs/benchmarks.md")
END = "<!-- to here -->"
WIDTH = 116  # characters of a line of output that are shown

COMMAND = "plunit fit 'sqrt(x**2 + y**2) * sin(3*x)' --low -2 --high 2 --save f.h --save f.onnx"
"""What README.md shows of the command line."""


WORDS = {
    "best of 20": "best of 20 MLPs",
    "one": "one PLU",
    "relu": "ReLU",
    "gelu": "GELU",
    "plu_learned": "learned PLU",
}
"""Column names on a page, where they are not those of the stored results."""


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


def written(page: str, text: str, blocks: dict[str, Callable[[str], str]]) -> str:
    """Return the text of a page with what is known now in each of its blocks."""
    for name in re.findall(r"<!-- (\w+): python tools/readme.py", text):
        before, _, rest = text.partition(mark(name))
        _, end, after = rest.partition(END)
        if name not in blocks or not end:
            raise ValueError(f"{page} has the block {name!r}; known are {', '.join(blocks)}, and each ends in {END}")
        text = f"{before}{mark(name)}\n{blocks[name](page)}\n{END}{after}"
    return text


def verdicts(page: str) -> str:
    """Return the table of the paper's statements: all of them, or on README.md those that are refuted."""
    found = answers(read_claims(STORED))
    whole = page != "README.md"
    shown = [one for one in found if whole or one.verdict == REFUTED]
    some = "" if whole else " Those that are refuted:"
    measured = sum(not one.theorem for one in found)
    return f"Of {measured} statements that can be measured, {tally(found)}.{some}\n\n{_table(shown)}"


def shell(page: str) -> str:
    """Return the command and what it printed."""
    one = json.loads((SHELL / "shell.json").read_text(encoding="utf-8"))
    lines = [f"{line[:WIDTH]}..." if len(line) > WIDTH else line for line in one["output"]]
    return "\n".join(["```console", f"$ {one['command']}", *lines, "```"])


def uses(page: str) -> str:
    """Return the table of what plunit is for, with its numbers."""
    found = {(one.experiment, one.claim.statistic): one.estimate for one in read_claims(STORED)}
    loss, dead = found["sine", "relu/plu"], found["sine", "dead relu"]
    early, late = found["cifar10", "loss relu/plu 100"], found["cifar10", "accuracy plu - relu 20000"]
    others = _measured("rivals")
    tanh, gelu, cat, light = (others["error ratios"][name] for name in ("tanh", "GELU", "CatBoost", "LightGBM"))
    if early.value <= 1 or late.value >= 0 or not max(tanh, gelu, cat) < 1 < light:
        raise ValueError("the results have changed; write the sentences of `uses` again")
    died_share, points = f"{100 * dead.value:.0f} %", f"{-late.value:.1f}"
    rows = (
        f"small networks that fit a function: on a sine ReLU's loss is {number(loss.value)} times PLU's (median of the "
        f"ratios), and {died_share} of its units die, none of PLU's",
        "a better ReLU in an image classifier: on CIFAR-10 PLU learns faster at first, and after 20,000 steps its test "
        f"accuracy is {points} points lower (medians of {late.n} seeds)",
        f"tables of numbers, with the mean of 16 networks: LightGBM's error is {100 * light - 100:.0f} % higher, "
        f"CatBoost's {_less(cat)} % lower, all with their defaults (geometric mean of {len(others['errors'])} tables)",
        f"the last percent on tables: the same estimator with tanh has {_less(tanh)} % less error, with GELU "
        f"{_less(gelu)} %, but no exact pieces",
        "networks whose exact function you want; invertible networks; densities with few parameters",
        "smooth functions where straight lines do not matter: with more training, tanh goes far lower",
    )
    lines = [f"| {do} | {do_not} |" for do, do_not in zip(rows[::2], rows[1::2], strict=True)]
    return "\n".join(["| use it for | do not use it for |", "|---|---|", *lines])


def speed(page: str) -> str:
    """Return the three rows of speed."""
    found = _measured("speed")
    machine, op, many, proof = (found[name] for name in ("machine", "op", "ensemble", "proof"))
    return "\n".join(
        [
            f"| `{found['command']}`, {found['date']}, {machine['processor']} | |",
            "|---|---|",
            f"| time of PLU / ReLU in PyTorch, forward and backward, {op['elements']:,} elements, CPU kernel | "
            f"{op['ratio']:.2f} |",
            f"| training {many['networks']:,} small networks: time of one after the other in PyTorch / all at once | "
            f"{_two_digits(many['ratio'])} |",
            f"| proving the maximum of a network: time of HiGHS (mixed-integer) / ours, geometric mean of "
            f"{proof['networks']}; {proof['stopped']} of them HiGHS had not proved after {proof['patience']:.0f} s | "
            f"at least {math.floor(proof['ratio'])} |",
        ]
    )


def rivals(page: str) -> str:
    """Return the tables of the default estimator beside others: errors, and ratios to the default."""
    found = _measured("rivals")
    errors, names = found["errors"], [*found["error ratios"]]
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    head = f"`{found['command']}`, {found['date']}, {len(errors)} tables, {found['splits']} splits of each; {versions}."
    ratios = {
        "error / default's": found["error ratios"],
        "processor seconds / default's": found["second ratios"],
    }
    tables = _grid("table", ["default", *names], errors, 3), _grid("geometric mean, split by split", names, ratios, 2)
    return "\n\n".join([head, *tables])


def estimators(page: str) -> str:
    """Return the tables of the estimators beside scikit-learn's networks: ratios with their bars, and accuracies."""
    found = _measured("estimators")
    defaults = f", with the defaults of that day: {found['defaults']}" if "defaults" in found else ""
    head = f"`{found['command']}`, {found['date']}, medians over {found['splits']} splits{defaults}."
    bars = [f"| {row['work']} | {row['measured']:.2f} | {row['bar']} |" for row in found["bars"]]
    table = "\n".join(["| ratio or part | measured | bar |", "|---|---|---|", *bars])
    accuracies = found["accuracies"]
    names = list(next(iter(accuracies.values())))
    return f"{head}\n\n{table}\n\n{_grid('accuracy', names, accuracies, 3)}"


BLOCKS = {
    "verdicts": verdicts,
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


def _grid(corner: str, names: list[str], rows: dict[str, dict[str, float]], digits: int) -> str:
    lines = [f"| {corner} | {' | '.join(WORDS.get(name, name) for name in names)} |", "|---" * (len(names) + 1) + "|"]
    lines += [f"| {key} | {' | '.join(f'{row[name]:.{digits}f}' for name in names)} |" for key, row in rows.items()]
    return "\n".join(lines)


def _two_digits(value: float) -> str:
    return f"{float(f'{value:.2g}'):,.0f}"


def _less(ratio: float) -> str:
    return f"{100 * (1 - ratio):.0f}"


def run_command() -> None:
    """Run the command in an empty folder, and store what it prints and the network."""
    with tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, "-m", "plunit.cli", *shlex.split(COMMAND)[1:]]
        done = subprocess.run(program, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
        (SHELL / "f.onnx").write_bytes((Path(folder) / "f.onnx").read_bytes())
    about = {"date": f"{datetime.date.today()}", "formula": shlex.split(COMMAND)[2], "command": COMMAND}
    found = {**about, "output": done.stdout.splitlines()}
    (SHELL / "shell.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _table(found: list[Ruling]) -> str:
    lines = ["| the paper says | measured, with 95 % interval | holds if | verdict |", "|---|---|---|---|"]
    for one in found:
        measured = "<br>".join(f"{_number(each.estimate)}: {each.words}" for each in one.primary)
        claimed = "<br>".join(str(each.claim.claimed) for each in one.primary)
        empty = ("an exact check", "") if one.theorem else ("not run", "")
        cells = one.sentence.rstrip("."), measured or empty[0], claimed or empty[1], one.said
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)


def _number(estimate: Estimate) -> str:
    low, high = number(estimate.low), number(estimate.high)
    return f"{number(estimate.value)}{', no interval' if math.isnan(estimate.low) else f' [{low}, {high}]'}"


def main() -> None:
    """Write the pages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--run", action="store_true", help="run the command of README.md first")
    if parser.parse_args().run:
        run_command()
    for page in PAGES:
        path = ROOT / page
        path.write_text(written(page, path.read_text(encoding="utf-8"), BLOCKS), encoding="utf-8")


if __name__ == "__main__":
    main()
