"""Ratios of two timings taken in alternation, so that a noisy machine slows both alike; shortest times; one core.

What README.md and docs/benchmarks.md show is stored in results/benchmarks.json.
"""

import datetime
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plunit.base.machine import describe_machine

STORED = Path(__file__).parents[1] / "results" / "benchmarks.json"
ONE_CORE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def has_one_core(module: str, *options: str) -> bool:
    """Return whether this process uses one core; if not, run the module in one that does, and return False.

    NumPy reads the number of threads when it is imported.
    """
    if ONE_CORE.items() <= os.environ.items():
        return True
    subprocess.run([sys.executable, "-m", module, *options], env={**os.environ, **ONE_CORE}, check=True)
    return False


def best(call: Callable[[], Any], repeat: int = 5) -> tuple[float, Any]:
    """Return the shortest of some times in seconds, and the last result."""
    times, result = [], None
    for _ in range(repeat):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return min(times), result


def ratio(ours: Callable[[], object], theirs: Callable[[], object], rounds: int = 41, seconds: float = 0.01) -> float:
    """Median over rounds of time(ours) / time(theirs), their order alternating; a timing lasts about `seconds`."""
    repeat = max(1, round(seconds / _time(theirs, 3)))
    _time(ours, 3)
    ratios = []
    for index in range(rounds):
        if index % 2:
            mine, other = _time(ours, repeat), _time(theirs, repeat)
        else:
            other, mine = _time(theirs, repeat), _time(ours, repeat)
        ratios.append(mine / other)
    return statistics.median(ratios)


def _time(work: Callable[[], object], repeat: int) -> float:
    """Seconds for one call, over `repeat` calls."""
    start = time.perf_counter()
    for _ in range(repeat):
        work()
    return (time.perf_counter() - start) / repeat


@dataclass(frozen=True)
class Bar:
    """What a ratio should be: at most, or at least, a number."""

    limit: float
    at_least: bool = False

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.limit:.3g}"

    def verdict(self, value: float) -> str:
        """Say whether the value meets the bar."""
        return "met" if (value >= self.limit if self.at_least else value <= self.limit) else "MISSED"


Row = dict[str, str | float]


def show(work: str, value: float, bar: Bar | None = None) -> Row:
    """Print and return one row: the work, the measured ratio, and the bar, if there is one, with whether it was met."""
    print(f"{work:<76} {value:>8.2f}   {f'{bar!s:<8} {bar.verdict(value)}' if bar else ''}".rstrip(), flush=True)
    return {"work": work, "measured": value, "bar": f"{bar}, {bar.verdict(value)}" if bar else ""}


def store(path: Path, name: str, options: Sequence[str], found: dict[str, Any]) -> None:
    """Write the section of a benchmark in a file of results, with date, command and machine; other sections stay."""
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    command = " ".join(["python -m benchmarks", name, *options]).removesuffix(" --store")
    machine = {key: str(value) for key, value in describe_machine().items()}
    stored[name] = {"date": f"{datetime.date.today()}", "command": command, "machine": machine, **found}
    path.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
