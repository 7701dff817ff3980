"""A cell: one (spec, activation, chunk of seeds), the unit of work, storage and resumption."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import plunit


@dataclasses.dataclass(frozen=True)
class Cell:
    """What determines a result.

    Attributes:
        experiment: its name in `plunit.lab.experiments`.
        spec: a frozen dataclass of plain values.
        activation: one of the CHOICES of its experiment.
        first: the first seed.
        last: the seed after the last.
        engine: "native" or "eager" for an ensemble (they agree to rounding only), "torch" for any other program.
    """

    experiment: str
    spec: Any
    activation: str
    first: int
    last: int
    engine: str

    def describe(self) -> dict[str, Any]:
        """Return all that determines the result, as plain values."""
        return {
            **dataclasses.asdict(self),
            "plunit": plunit.__version__,
            "program": _program(type(self.spec).__module__),
        }

    @property
    def key(self) -> str:
        """A hash of all that determines the result."""
        text = json.dumps(self.describe(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def chunks(experiment: str, spec: Any, activations: tuple[str, ...], seeds: int, width: int, engine: str) -> list[Cell]:
    """Return the cells that cover seeds 0, ..., seeds - 1 for each activation, `width` seeds to a cell."""
    return [
        Cell(experiment, spec, activation, first, min(first + width, seeds), engine)
        for activation in activations
        for first in range(0, seeds, width)
    ]


@functools.cache
def _program(spec_module: str) -> str:
    """Hash the sources that compute a cell: the files and folders in SOURCES of the module of its spec."""
    package = Path(plunit.__file__).parent
    files: list[Path] = []
    for source in sys.modules[spec_module].SOURCES:
        path = package / source
        files += sorted(path.rglob("*")) if path.is_dir() else [path]
    suffixes = {".py", ".h", ".cpp"}
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files if file.suffix in suffixes)).hexdigest()[:16]
