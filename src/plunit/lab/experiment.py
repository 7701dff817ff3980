"""What an experiment is, changes of its spec, and the list of all experiments."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, get_type_hints

import numpy as np

from plunit.base.errors import UserError
from plunit.base.fields import check_value, match_name, parse_value
from plunit.ensemble.nonlinearities import title_of
from plunit.lab.cell import Arrays, Cell, program_of
from plunit.lab.claims import SECTIONS, Claim
from plunit.lab.intervals import Estimate, median, paired_ratios
from plunit.programs.libraries import is_fused

if TYPE_CHECKING:
    from plunit.lab.pictures import Picture

__all__ = ["Experiment", "Statistic", "catalogue"]

_NAMES = ("capacity_frequency", "sine_parametric_surface", "depth", "cifar10", "inverse", "cost", "compare")
MODULES = tuple(f"plunit.lab.read.{name}" for name in _NAMES)
"""The modules with experiments, each with a tuple EXPERIMENTS."""

Changes = dict[str, Any]
"""Field of a spec to its value."""

Runs = dict[str, Arrays]
"""Activation to the arrays of all its seeds."""

Results = dict[str, Runs]
"""Name of an experiment to its runs."""


class Statistic(NamedTuple):
    """A measured number: the name that claims refer to, the same in words, and the estimate with its interval."""

    name: str
    words: str
    estimate: Estimate


@dataclasses.dataclass(frozen=True)
class Experiment(ABC):
    """A question that many seeds answer. Subclass it to ask your own.

    1. A frozen dataclass of plain values, the spec, holds all that can be chosen; its docstring explains every field.
       `Annotated[float, Range(0, 1)]` says what a field may be; `plunit run NAME --set field=value` checks it.
    2. `compute(cell, scratch)` trains the seeds of one cell and returns its arrays, seeds on the last axis, with `seed`
       among them. It is a plain function of a module. This module and all that it imports from plunit are hashed into
       the name of every stored cell, so keep the rest apart. `scratch` is a path for checkpoints (see `lab.scratch`).
    3. `rows` (or only `columns`), `statistics`, `figures` and `finding` read stored arrays and never train. Claims name
       a statistic and the range in which it must lie; a verdict is made of them in `plunit.lab.claims`.
    4. A module with EXPERIMENTS = (YourExperiment("name", "Title", spec),) is named by an entry point of your package,
       in the group "plunit.experiments". Those of plunit have spec and `compute` in train/NAME.py, the rest in
       read/NAME.py, a name in `_NAMES`, and a small spec in tests/lab/conftest.py.

    Seed s must give every activation the same start and the same batches: statistics compare seed by seed. A claim of
    your own has the statement ""; one about a statement of the paper needs a `setting`.

    Attributes:
        name: on the command line and in tables.
        title: in the report.
        spec: the settings.
        section: of the paper, one of `plunit.lab.claims.SECTIONS`; "" for our questions and yours.
        variant: the settings that differ from the defaults; "" if none does.
        activations: those run by default.
        choices: all that it can be run with.
        claims: those of an experiment of another package; plunit's own are in `plunit.lab.claims.CLAIMS`.
        columns: arrays [..., seeds] that `rows` writes; `axes` says what is before the seeds.
        seeds: the default number.
        chunk: seeds of a cell.
        engines: of `plunit.ensemble`, if the cells are trained by it.
        short: steps of a short run, for `plunit reproduce`; 0 if every run is in full. The spec then has `steps`, and
            a run with other steps is not a variant.
        side_by_side: cells run on one thread each, several at once, rather than one after the other on all cores; so
            do those of an experiment with a short run.
        by_itself: it has its own command and is not part of `plunit reproduce`.
    """

    name: str
    title: str
    spec: Any
    section: str = ""
    variant: str = dataclasses.field(default="", kw_only=True)

    activations: ClassVar[tuple[str, ...]]
    choices: ClassVar[Collection[str]]
    claims: ClassVar[tuple[Claim, ...]] = ()
    columns: ClassVar[tuple[str, ...]] = ()
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
        """Fetch data once on each machine, before cells need it; `say` prints a line."""

    def axes(self) -> dict[str, Sequence[Any]]:
        """Return the axes that `columns` have before that of the seeds: the name of each, and its values."""
        return {}

    def rows(self, runs: Runs) -> Iterable[dict[str, Any]]:
        """Return the rows of summary.csv: the `columns` at each place of `axes`, for each activation and seed.

        An array [seeds] has the same value at every place.
        """
        axes = self.axes()
        for activation, arrays in runs.items():
            for place in np.ndindex(*map(len, axes.values())):
                values = {name: axes[name][at] for name, at in zip(axes, place, strict=True)}
                found = {key: arrays[key] if arrays[key].ndim == 1 else arrays[key][place] for key in self.columns}
                for i, seed in enumerate(arrays["seed"]):
                    row = self.first_columns(activation, seed) | values
                    yield row | {key: column[i].item() for key, column in found.items()}

    def statistics(self, runs: Runs) -> Iterable[Statistic]:
        """Return the statistics that can be computed from these runs; some activations may not be among them."""
        return ()

    def pairs(self, runs: Runs) -> tuple[Runs, str]:
        """Return the runs that are compared pair by pair, because nobody knows which is better, and by which array."""
        return {}, ""

    @abstractmethod
    def figures(self, runs: Runs) -> Iterable[Picture]:
        """Draw the runs; the first picture is the one to be shown at once."""

    def cost(self, cell: Cell) -> float:
        """Estimate the work in a cell compared with others, for the time left: seeds x steps."""
        return float(len(cell.seeds) * getattr(self.spec, "steps", 1000))

    def finding(self, runs: Runs) -> str:
        """Return the main result in one sentence with numbers; every experiment of plunit has one."""
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

    def vary(self, changes: Changes) -> Experiment:
        """Return the experiment with another spec and name; the name stays if only the steps of a long one differ."""
        told = texts({name: value for name, value in changes.items() if not (self.short and name == "steps")})
        name = "+".join([self.name, *(f"{field}={text}" for field, text in told.items())])
        variant = ", ".join(f"{field} = {text}" for field, text in told.items())
        title = f"{self.title}, {variant}" if variant else self.title  # of every figure and label
        return dataclasses.replace(self, name=name, title=title, variant=variant, spec=change(self.spec, changes))

    def command(self, changes: Changes) -> list[str]:
        """Return the command, as words, that runs the experiment with changes of its spec and the default seeds."""
        return ["plunit", "run", self.name, *options(changes)]

    def first_columns(self, activation: str, seed: int) -> dict[str, Any]:
        """Return the first columns of a row of summary.csv."""
        return {"experiment": self.name, "activation": activation, "seed": int(seed)}


def ratio(runs: Runs, above: str, below: str, key: str, noun: str, prefix: str = "") -> Iterator[Statistic]:
    """Yield the median of the ratio of two activations, seed by seed, if both were run; `noun` says what `key` is."""
    if runs.keys() >= {above, below}:
        words = f"median of {noun} {title_of(above)} / {title_of(below)}"
        yield Statistic(f"{prefix}{above}/{below}", words, median(paired_ratios(runs[above], runs[below], key)))


@functools.cache
def catalogue() -> dict[str, Experiment]:
    """Return all experiments by name, in the order of the paper, then those of other packages."""
    found = {one.name: one for module in map(importlib.import_module, MODULES) for one in module.EXPERIMENTS}

    def add(module: Any) -> None:
        for one in module.EXPERIMENTS:
            if not isinstance(one, Experiment):
                raise TypeError(f"{one!r} is not an Experiment")
            if one.name in found or not re.fullmatch(r"[a-z0-9][\w-]*", one.name, re.ASCII | re.IGNORECASE):
                raise ValueError(f"the name {one.name!r} is in use, or has characters besides a to z, digits, - and _")
            if one.section not in SECTIONS:
                own = ", ".join(filter(None, SECTIONS))
                raise ValueError(f"{one.name} has section {one.section!r}; those of the paper are {own}, yours is ''")
            for claim in one.claims:
                if claim.experiment != one.name or claim.primary:
                    rule = "must name it as its experiment, and a setting if it is about the paper"
                    raise ValueError(f"a claim of {one.name} {rule}")
            found[one.name] = one

    _load_plugins("plunit.experiments", add)
    return found


def _load_plugins(group: str, use: Callable[[Any], object]) -> None:
    """Load what the entry points of a group name, and use it. One that fails is left out with a warning."""
    for point in metadata.entry_points(group=group):
        try:
            use(point.load())
        except (Exception, SystemExit) as error:
            package = point.dist.name if point.dist else "a package"
            text = f"{package} is left out, because {point.value} fails: {type(error).__name__}: {error}"
            warnings.warn(f"{text}; repair the package, or uninstall it", stacklevel=2)


def parse_changes(spec: Any, assignments: Iterable[str]) -> Changes:
    """Return the changes that assignments such as "lr=0.003" or "widths=1,8,1" ask for."""
    changes: Changes = {}
    for text in assignments:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not value:
            raise UserError(f"a setting must be field=value, such as lr=0.003, got {text!r}")
        changes[name] = parse_value(name, value, _hint(spec, name))
    return changes


def check_changes(spec: Any, stored: Changes) -> Changes:
    """Return changes that were read from a file, lists as tuples; raise UserError unless all are valid."""
    return {name: check_value(name, value, _hint(spec, name)) for name, value in stored.items()}


def change(spec: Any, changes: Changes) -> Any:
    """Return a spec with other values in some fields; raise UserError if they do not go together."""
    try:
        return dataclasses.replace(spec, **changes)
    except ValueError as error:
        raise UserError(str(error)) from None


def texts(changes: Changes, between: str = "x") -> dict[str, str]:
    """Return the changes as texts such as 1x8x1, sorted by field, for names of files and titles."""
    values = {name: value if isinstance(value, tuple) else (value,) for name, value in sorted(changes.items())}
    return {name: between.join(map(str, value)) for name, value in values.items()}


def options(changes: Changes) -> list[str]:
    """Return the changes as options of a command, which `parse_changes` reads."""
    return [word for name, text in texts(changes, ",").items() for word in ("--set", f"{name}={text}")]


def _hint(spec: Any, name: str) -> Any:
    """Return the type of a field, with its range."""
    hints = get_type_hints(type(spec), include_extras=True)
    return hints[match_name("field", name, hints)]
