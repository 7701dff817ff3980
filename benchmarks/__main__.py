"""Run the benchmarks named on the command line, or all: `python -m benchmarks op ensemble`.

Options are for one benchmark at a time: `python -m benchmarks estimators --full`.
"""

import importlib
import sys
from itertools import takewhile
from pathlib import Path

from plunit.base.machine import describe_machine

SHARED = {"flows", "peers", "scores", "stacked", "tables", "timing", "trainings"}
WITH_OPTIONS = {"densities", "density_tables", "estimators", "flow_methods", "functions", "proofs", "rivals", "speed"}
NAMES = sorted({path.stem for path in Path(__file__).parent.glob("[!_]*.py")} - SHARED)

if __name__ == "__main__":
    chosen = list(takewhile(lambda word: not word.startswith("-"), sys.argv[1:]))
    options = sys.argv[1 + len(chosen) :]
    if unknown := set(chosen) - set(NAMES):
        sys.exit(f"no benchmark named {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    if options and (len(chosen) != 1 or chosen[0] not in WITH_OPTIONS):
        names = " or ".join(sorted(WITH_OPTIONS))
        sys.exit(f"{options[0]} is an option of one benchmark, {names}: python -m benchmarks NAME {' '.join(options)}")
    print(", ".join(f"{key} {value}" for key, value in describe_machine().items()), end="\n\n")
    for name in chosen or NAMES:
        main = importlib.import_module(f"benchmarks.{name}").main
        main(options) if options else main()
        print()
