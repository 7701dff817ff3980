"""What an experiment is, and the list of all of them."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from plunit.base.errors import load_plugins
from plunit.lab import settings
from plunit.lab.cell import Arrays, Cell, program_of
from plunit.lab.claims import Claim
from plunit.lab.paper import SECTIONS
from plunit.programs.loading import is_fused

if TYPE_CHECKING:
    from plunit.lab.style import Picture

__all__ = ["Experiment", "catalogue"]

MODULES = (
    "plunit.lab.read.fit",
    "plunit.lab.read.shape",
    "plunit.lab.read.depth",
    "plunit.lab.read.cifar10",
    "plunit.lab.read.inverse",
    "plunit.lab.read.warp",
    "plunit.lab.read.density",
    "plunit.lab.read.compare",
)
"""The modules with experiments, each with a tuple EXPERIMENTS."""

Runs = dict[str, Arrays]
"""Activation to the arrays of all its seeds."""

Results = dict[str, Runs]
"""Name of an experiment to its runs."""


@dataclasses.dataclass(frozen=True)
class Experiment(ABC):
    """A question that many seeds answer. Subclass it to ask your own.

    1. A frozen dataclass of plain values, the spec, holds all that can be chosen; its docstring explains every field.
       `Annotated[float, Range(0, 1)]` says what a field may be; `plunit run NAME --set field=value` checks it.
    2. `compute(cell, scratch)` trains the seeds of one cell and returns its arrays, seeds on the last axis, with `seed`
       among them. It is a plain function of a module. This module and all that it imports from plunit are hashed into
       the name of every stored cell, so keep the rest apart. `scratch` is a path for checkpoints (see `lab.scratch`).
    3. `rows`, `claims`, `figures` and `finding` read stored arrays and never train.
    4. A module with EXPERIMENTS = (YourExperiment("name", "Title", spec),) is named by an entry point of your package,
       in the group "plunit.experiments". Those of plunit have spec and `compute` in train/NAME.py, the rest in
       read/NAME.py, a line in `MODULES`, and a small spec in tests/lab/conftest.py.

    Seed s must give every activation the same start and the same batches: claims compare seed by seed. A claim of your
    own has the statement "". One about a statement of the paper has a `setting`, unless it is the one that decides.

    Attributes:
        name: on the command line and in tables.
        title: in the report.
        spec: what can be chosen.
        section: of the paper, one of `plunit.lab.paper.SECTIONS`; "" for a question of ours, or of yours.
        variant: how the spec differs from the usual one; "" if it does not.
        activations: those run by default.
        choices: all it can be run with.
        seeds: the usual number.
        chunk: seeds of a cell.
        engines: of `plunit.ensemble`, if the cells are trained by it.
        short: steps of a short run, for `plunit reproduce`; 0 if every run is in full. The spec then has `steps`, and
            a run with other steps is not a variant.
        side_by_side: cells run on one thread each, several at once, rather than one after the other on all cores.
        by_itself: it has a command of its own and is not part of `plunit reproduce`.
    """

    name: str
    title: str
    spec: Any
    section: str = ""
    variant: str = dataclasses.field(default="", kw_only=True)

    activations: ClassVar[tuple[str, ...]]
    choices: ClassVar[Collection[str]]
    seeds: ClassVar[int] = 1024
    chunk: ClassVar[int] = 256
    engines: ClassVar[tuple[str, ...]] = ()
    short: ClassVar[int] = 0
    side_by_side: ClassVar[bool] = False
    by_itself: ClassVar[bool] = False

    @staticmethod
    @abstractmethod
    def compute(cell: Cell, scratch: Path) -> Arrays:
        """Compute the arrays of a cell; a plain function of the module that is hashed."""

    @staticmethod  # noqa: B027
    def prepare(say: Callable[[str], object]) -> None:
        """Fetch data once on each machine, before cells need it; `say` prints one."""

    @abstractmethod
    def cost(self, cell: Cell) -> float:
        """Estimate the work in a cell, in updates of one parameter of an ensemble, for the time left."""

    @abstractmethod
    def rows(self, runs: Runs) -> Iterable[dict[str, Any]]:
        """Return the rows of summary.csv; experiment and the columns of `first_columns` come first."""

    @abstractmethod
    def claims(self, runs: Runs, results: Results) -> Iterable[Claim]:
        """Return the claims that the runs can judge; `results` holds those of all experiments."""

    @abstractmethod
    def figures(self, runs: Runs) -> Iterable[Picture]:
        """Draw the runs; the first picture is the one to be shown at once."""

    def finding(self, runs: Runs) -> str:
        """Return one sentence with numbers of what was found; every experiment of plunit has one."""
        return ""

    def seeds_within(self, seeds: int) -> int:
        """Return the seeds to run where the whole of `plunit reproduce` takes `seeds`."""
        return self.seeds if self.short else seeds

    def cells(self, activations: Iterable[str], seeds: int, engine: str) -> list[Cell]:
        """Return the cells that cover seeds 0, ..., seeds - 1."""
        program = program_of(self.compute)
        if engine == "native" and not is_fused():  # other bits from the same source
            program += "-unfused"
        return [
            Cell(self.name, self.spec, activation, first, min(first + self.chunk, seeds), engine, program)
            for activation in activations
            for first in range(0, seeds, self.chunk)
        ]

    def varied(self, changes: settings.Changes) -> Experiment:
        """Return the experiment with another spec, under a name of its own unless only a long one's steps differ."""
        texts = settings.texts({name: value for name, value in changes.items() if not (self.short and name == "steps")})
        name = "+".join([self.name, *(f"{field}={text}" for field, text in texts.items())])
        variant = ", ".join(f"{field} = {text}" for field, text in texts.items())
        return dataclasses.replace(self, name=name, variant=variant, spec=settings.changed(self.spec, changes))

    def command(self, activations: Iterable[str], seeds: int, engine: str, changes: settings.Changes) -> str:
        """Return the command that runs the experiment, with changes of its spec, without the folder of results."""
        words = ["plunit", "run", self.name, "--seeds", str(seeds), "--activations", ",".join(activations)]
        words += ["--engine", engine] if engine else []
        return shlex.join([*words, *(word for text in settings.assignments(changes) for word in ("--set", text))])

    def first_columns(self, activation: str, seed: int) -> dict[str, Any]:
        """Return the first columns of a row of summary.csv."""
        return {"experiment": self.name, "activation": activation, "seed": int(seed)}


@functools.cache
def catalogue() -> dict[str, Experiment]:
    """Return all experiments by name, in the order of the paper, then those of other packages."""
    found = {one.name: one for module in map(importlib.import_module, MODULES) for one in module.EXPERIMENTS}

    def add(module: Any) -> None:
        for one in module.EXPERIMENTS:
            if not isinstance(one, Experiment):
                raise TypeError(f"{one!r} is not an Experiment")
            if one.name in found or not re.fullmatch(r"[a-z0-9][\w-]*", one.name, re.ASCII | re.IGNORECASE):
                raise ValueError(f"the name {one.name!r} is taken, or has other letters than a to z, digits, - and _")
            if one.section not in SECTIONS:
                own = ", ".join(filter(None, SECTIONS))
                raise ValueError(f"{one.name} has section {one.section!r}; those of the paper are {own}, yours is ''")
            found[one.name] = one

    load_plugins("plunit.experiments", add)
    return found
