"""Run the benchmarks named on the command line, or all: `python -m benchmarks op ensemble`."""

import importlib
import sys
from pathlib import Path

from plunit.machine import describe_machine

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py") if path.stem != "timing")

if __name__ == "__main__":
    chosen = sys.argv[1:] or NAMES
    if unknown := set(chosen) - set(NAMES):
        sys.exit(f"no benchmark named {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    print(", ".join(f"{key} {value}" for key, value in describe_machine().items()), end="\n\n")
    for name in chosen:
        importlib.import_module(f"benchmarks.{name}").main()
        print()
