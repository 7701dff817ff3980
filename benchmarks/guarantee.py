"""Proved errors against formulas: bound / largest error on a million points, seconds, a header from a cold start."""

from __future__ import annotations

import math
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import lookup
from benchmarks.timing import Bar, has_one_core, show
from plunit.ensemble import MLP
from plunit.expressions import parse, sup_error
from plunit.fitting.problems import of_expression
from plunit.fitting.solving import FitSettings, fit_problem
from plunit.sklearn import PLURegressor

FRANKE = (
    "0.75*exp(-((9*x-2)**2+(9*y-2)**2)/4) + 0.75*exp(-(9*x+1)**2/49-(9*y+1)/10) + "
    "0.5*exp(-((9*x-7)**2+(9*y-3)**2)/4) - 0.2*exp(-(9*x-4)**2-(9*y-7)**2)"
)
PLANE = [
    ("sqrt(x**2 + y**2) * sin(3*x)", 2.0),
    ("x * y", 1.0),
    ("sin(x) * cos(y)", 3.0),
    ("exp(-(x**2 + y**2))", 2.0),
    (FRANKE, 1.0),
    ("(1 - x)**2 + 100*(y - x**2)**2", 1.0),
    ("log(1 + x**2 + y**2) / (1 + exp(-x))", 4.0),
    ("abs(x - y) + maximum(x, y**2)", 1.0),
    ("arctan2(y, x + 3) * hypot(x, y)", 2.0),
    ("tanh(4*x*y) + x / (1.5 + y)", 1.0),
]
SPACE = [
    ("x * y * z", 1.0),
    ("sin(x + y) * exp(-z**2)", 2.0),
    ("sqrt(1 + x**2 + y**2 + z**2)", 2.0),
    ("x*y + z*w", 1.0),
    ("cos(a) + c*cos(a + b) - d", 1.5),
    ("exp(-(x**2 + y**2 + z**2 + w**2))", 1.0),
]
"""Each formula with the end of every variable; they begin at minus that, Franke's at 0."""

FIXED = ((8, 8), (16, 16), (24, 24), (32, 32))
"""Shapes that are tried one after another by somebody who does not search."""

SMALL = [
    ("x * exp(-x**2 - y**2)", 2.0, 0.02),
    ("sin(x) * cos(y)", 3.0, 0.05),
    ("x * y", 1.0, 0.03),
    ("exp(-(x**2 + y**2))", 2.0, 0.03),
    ("log(1 + x**2 + y**2) / (1 + exp(-x))", 4.0, 0.1),
    ("x * y * z", 1.0, 0.1),
]
"""Formulas with the end of every variable and an error that 8 x 8 units or a little more reach."""

HEADER = 'plunit fit "sqrt(x**2 + y**2) * sin(3*x)" --low -2 --high 2 --bits 16 --save f.h'


def measured(text: str, end: float, steps: int) -> tuple[float, float, float, float, str]:
    """Return the largest error seen and found, the bound, seconds, and what is said of it; networks of 16, 16."""
    problem = of_expression(text, 0.0 if text == FRANKE else -end, end)
    model = PLURegressor((16, 16), "plu", n_init=64, n_best=1, max_iter=steps, weight_decay=0.0, random_state=0)
    net = model.fit(problem.x, problem.y).network_
    start = time.process_time()
    found = sup_error(parse(text), net, problem.box)
    seconds = time.process_time() - start
    low, high = problem.box.T
    x = np.random.default_rng(1).uniform(low, high, (10**6, len(low)))
    seen = float(np.abs(problem.expression(*x.T) - net(x)[:, 0]).max())  # type: ignore[misc]
    return seen, found.value, found.bound or np.inf, seconds, found.note or f"{found.parts:,} boxes"


def table(formulas: list[tuple[str, float]], steps: int = 12_000) -> list[tuple[float, float]]:
    """Print a row for each formula, and return bound / largest error seen, and seconds."""
    print(f"{'formula':40} {'seen':>9} {'found':>9} {'bound':>9} {'bound/seen':>10} {'bound/found':>11} {'seconds':>8}")
    rows = []
    for text, end in formulas:
        seen, value, bound, seconds, said = measured(text, end, steps)
        rows.append((bound / seen, seconds))
        name = "Franke's function" if text == FRANKE else text
        numbers = f"{seen:9.4g} {value:9.4g} {bound:9.4g} {bound / seen:10.4f} {bound / value:11.4f} {seconds:8.2f}"
        print(f"{name:40} {numbers}  {said}", flush=True)
    return rows


def command(text: str, end: float, *options: str) -> tuple[float, float]:
    """Return the proved error that `plunit fit` prints for 8 x 8 units, and the processor seconds of the command."""
    words = [sys.executable, "-m", "plunit.cli", "fit", text, "--low", str(0.0 if text == FRANKE else -end)]
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        options = ("--high", str(end), "--hidden", "8,8", *options)
        shown = subprocess.run([*words, *options], cwd=folder, check=True, capture_output=True, text=True).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    proved = re.search(r"proved: at most (\S+)", shown)
    assert proved is not None
    return float(proved[1]), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def minimax(formulas: list[tuple[str, float]]) -> tuple[float, float]:
    """Print a row for each formula; return the geometric means of both ratios, of errors and of times."""
    print(f"\n{'formula':40} {'squares':>9} {'minimax':>9} {'ratio':>7} {'seconds':>9} {'ratio':>7}")
    errors, times = [], []
    for text, end in formulas:
        (before, short), (after, long) = command(text, end, "--no-minimax"), command(text, end)
        errors.append(after / before)
        times.append(long / short)
        name = "Franke's function" if text == FRANKE else text
        numbers = f"{before:9.4g} {after:9.4g} {errors[-1]:7.3f} {long:9.1f} {times[-1]:7.2f}"
        print(f"{name:40} {numbers}", flush=True)
    return statistics.geometric_mean(errors), statistics.geometric_mean(times)


def smallest(formulas: list[tuple[str, float, float]]) -> float:
    """Print the smallest network within each error, and the first of three fixed shapes; return the mean ratio."""
    print(f"\n{'formula':40} {'error':>9} {'fixed':>12} {'smallest':>12} {'weights':>9} {'ratio':>7}")
    ratios = []
    for text, end, error in formulas:
        problem = of_expression(text, -end, end)
        found = fit_problem(problem, FitSettings(error=error))
        for fixed in FIXED:  # without minimax, as a user without a search would
            if fit_problem(problem, FitSettings(hidden=fixed, minimax=False)).proved <= error:
                break
        names = [" x ".join(map(str, shape)) for shape in (fixed, found.model.hidden_layer_sizes)]
        sizes = [MLP((len(problem.inputs), *shape, 1)).parameters for shape in (fixed, found.model.hidden_layer_sizes)]
        ratios.append(sizes[1] / sizes[0] if not found.missed else math.inf)
        weights = f"{sizes[1]} / {sizes[0]}"
        print(f"{text:40} {error:9.4g} {names[0]:>12} {names[1]:>12} {weights:>9} {ratios[-1]:7.3f}", flush=True)
    return statistics.geometric_mean(ratios)


def header() -> float:
    """Print and return the seconds of a header in fixed point with a proved error, in a new process."""
    words = [sys.executable, "-c", "from plunit.cli import main; main()", "fit", "sqrt(x**2 + y**2) * sin(3*x)"]
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        options = ["--low", "-2", "--high", "2", "--bits", "16", "--save", "f.h"]
        subprocess.run([*words, *options], cwd=folder, check=True, capture_output=True)
        seconds = time.perf_counter() - start
        text = " ".join((Path(folder) / "f.h").read_text().split())
    said = re.search(r"Against the formula above: at most \S+, the sum of both bounds", text)
    print(f"\n{HEADER}\n{seconds:.1f} s; {said[0] if said else 'no bound'}")
    return seconds


def main() -> None:
    """Print the tables and the bars."""
    if not has_one_core("benchmarks.guarantee"):
        return
    print("networks 2 - 16 - 16 - 1, processor seconds on one core")
    rows = table(PLANE)
    print("\nthree and four inputs, the same hidden layers")
    table(SPACE)
    closer, longer = minimax([*PLANE, *SPACE])
    show("proved error, minimax / mean square, geometric mean", closer, Bar(0.65))
    show("time of plunit fit, minimax / mean square, geometric mean", longer, Bar(6))
    show("weights of the smallest network / of fixed shapes, geometric mean", smallest(SMALL), Bar(0.6))
    print("\nint16 networks of 8 x 8 units and lookup tables of the same error, bytes of tables and code")
    lookup.compare([*PLANE, *SPACE], (8, 8))
    ratios, seconds = zip(*rows, strict=True)
    show("bound / largest error on 10^6 points, median of 10", statistics.median(ratios), Bar(1.1))
    show("the least of them", min(ratios), Bar(1.0, at_least=True))
    show("seconds, the longest", max(seconds), Bar(60))
    show("int16 header, seconds from a cold start", header(), Bar(90))


if __name__ == "__main__":
    main()
