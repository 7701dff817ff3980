"""Plans: experiments with their seeds, activations and changes, as requested and as stored in run.json.

A request (`for_run`, `for_reproduce`) becomes a plan; `merge_plans` adds it to that of the folder. Where the request
says nothing, the folder's plan is the default.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import plunit
from plunit import ensemble
from plunit.base.errors import UserError
from plunit.base.fields import check_value, construct, match_name
from plunit.base.files import write_atomically
from plunit.base.ranges import Range
from plunit.data.tables import read_columns
from plunit.lab.cell import Cell
from plunit.lab.experiment import Changes, Experiment, catalogue, check_changes, parse_changes

_LONGEST = 1 << 20  # bytes of run.json; a reproduction writes 4,000
_Seeds = Annotated[int, Range(1, 100_000)]


@dataclass(frozen=True)
class Part:
    """One experiment of a plan.

    Attributes:
        base: its name in the catalogue.
        seeds: how many are run: 0, ..., seeds - 1.
        activations: those that are run.
        engine: of the ensemble; "" if it uses none.
        changes: fields of the spec with other values than the defaults.
    """

    base: str
    seeds: _Seeds
    activations: tuple[str, ...]
    engine: str = ""
    changes: Changes = field(default_factory=dict, hash=False)

    def experiment(self) -> Experiment:
        """Return the experiment as it is run here."""
        return self._experiment_and_cells[0]

    def cells(self) -> list[Cell]:
        """Return all cells of the part."""
        return self._experiment_and_cells[1]

    @functools.cached_property
    def _experiment_and_cells(self) -> tuple[Experiment, list[Cell]]:
        """The experiment and its cells; a command asks for them several times."""
        experiment = catalogue()[self.base].vary(self.changes)
        return experiment, experiment.cells(self.activations, self.seeds, self.engine)

    def command(self) -> str:
        """Return the command that runs this part, without its folder."""
        words = ["--seeds", str(self.seeds), "--activations", ",".join(self.activations)]
        engine = ["--engine", self.engine] if self.engine else []
        return shlex.join([*catalogue()[self.base].command(self.changes), *words, *engine])


Plan = dict[str, Part]
"""Name of an experiment, or of its variant, to what is run of it."""


def for_run(
    folder: Path,
    name: str,
    *,
    seeds: int | None = None,
    activations: str = "",
    engine: str = "",
    assignments: Iterable[str] = (),
    table: Changes | None = None,
) -> Plan:
    """Return the plan of `plunit run`, or, with a `table` of `for_table`, that of `plunit compare`.

    Other settings are those of the folder, or else the defaults.
    """
    base = catalogue()[match_name("experiment", name, catalogue())]
    if base.by_itself and table is None:
        raise UserError(f"{name} has its own command; see plunit {name} --help")
    changes = parse_changes(base.spec, assignments)
    if own := changes.keys() & (table or {}).keys():
        raise UserError(f"{', '.join(sorted(own))} cannot be set; name the table, the target and the inputs instead")
    changes |= table or {}
    called = base.vary(changes).name
    stored = load(folder).get(called)
    usual = stored.seeds if stored else base.seeds_within(base.seeds)
    if stored and (stored.engine == "numpy" or not ensemble.why_not_native()):
        engine = engine or stored.engine
    names = _names("activation", activations) if activations else base.activations
    chosen = tuple(dict.fromkeys(match_name("activation", one, base.choices) for one in names))
    count = usual if seeds is None else check_value("seeds", seeds, _Seeds)
    return {called: Part(base.name, count, chosen, _engine(base, engine), changes)}


def for_table(table: Path, target: str, inputs: str, say: Callable[[str], object] = print) -> Changes:
    """Return the fields of a spec that name a table; it is read once, to check that it can be learned from."""
    names = _names("input", inputs) if inputs else ()
    if not str(table).isprintable():
        raise UserError(f"{str(table)!r} has characters that cannot be printed; rename the file")
    found = read_columns(table, target, names, say)
    return {"path": str(table.resolve()), "sha256": found.sha256, "target": found.target, "inputs": found.inputs}


def for_reproduce(only: Sequence[str] = (), *, seeds: int | None = None, engine: str = "", full: bool = False) -> Plan:
    """Return the plan of `plunit reproduce`.

    Long experiments keep their own number of seeds and, unless `full`, are short.
    """
    names = _names("experiment", ",".join(only)) if only else ()
    count = check_value("seeds", seeds, _Seeds) if seeds is not None else 0
    wanted: Plan = {}
    for name in names or [one.name for one in catalogue().values() if not one.by_itself]:
        base = catalogue()[match_name("experiment", name, catalogue())]
        if base.by_itself:
            raise UserError(f"{base.name} is not part of the reproduction; run `plunit {base.name}`")
        short = base.short and not full and base.short < base.spec.steps
        number, changes = base.seeds_within(count or base.seeds), {"steps": base.short} if short else {}
        wanted[name] = Part(name, number, base.activations, _engine(base, engine), changes)
    return wanted


def merge_plans(stored: Plan, wanted: Plan, say: Callable[[str], object]) -> Plan:
    """Return the plan of the folder after `wanted` has run: results add up, and `say` gets a line for replaced ones."""
    result = stored | wanted
    for name in stored.keys() & wanted.keys():
        old, new = stored[name], wanted[name]
        if dataclasses.replace(old, activations=()) == dataclasses.replace(new, activations=()):
            both = tuple(dict.fromkeys((*old.activations, *new.activations)))
            result[name] = dataclasses.replace(new, activations=both) if both != new.activations else new
        else:
            say(f"{name}: the tables no longer show the results of `{old.command()}`; run it again to show them")
    return result


def load(folder: Path) -> Plan:
    """Read the plan of a folder; an empty one if the folder is new."""
    path = folder / "run.json"
    try:
        if not path.exists():
            return {}
        if path.stat().st_size > _LONGEST:
            raise UserError(f"{path} is {path.stat().st_size:,} bytes; the limit is {_LONGEST:,}")
        content = json.loads(path.read_text() if path.is_file() else "")  # a pipe could be endless
        version, parts = content["plunit"], dict(content["experiments"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{path} was not written by plunit; choose another folder") from error
    if version != plunit.__version__:
        raise UserError(
            f"{folder} holds results of plunit {version}, this is {plunit.__version__}; choose another folder"
        )
    try:
        return {name: _parse_part(name, given) for name, given in parts.items()}
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def save(folder: Path, plan: Plan) -> None:
    """Write the plan."""
    parts = {name: dataclasses.asdict(part) for name, part in plan.items()}
    text = json.dumps({"plunit": plunit.__version__, "experiments": parts}, indent=2)
    write_atomically(folder / "run.json", text.encode())


def _parse_part(name: str, given: Any) -> Part:
    """Return a part as read from run.json; raise UserError, with the value and the rule, if it is not valid."""
    part = construct(name, Part, given)
    base = catalogue()[match_name("experiment", part.base, catalogue())]
    for activation in part.activations:
        match_name(f"activation of {name}", activation, base.choices)
    if len(set(part.activations)) < len(part.activations):
        raise UserError(f"{name}: activations must differ, got {', '.join(part.activations)}")
    if part.engine not in (ensemble.ENGINES if base.engines else ("",)):
        raise UserError(f"{name} does not take engine {part.engine[:80]!r}")
    part = dataclasses.replace(part, changes=check_changes(base.spec, part.changes))
    if (called := part.experiment().name) != name:
        raise UserError(f"the entry {name} must be named {called}, as its content says")
    return part


def _names(what: str, text: str) -> tuple[str, ...]:
    """Return the names in a text with commas; at least one."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise UserError(f"{text!r} names no {what}; separate names with commas")
    return names


def _engine(experiment: Experiment, engine: str) -> str:
    """Return the engine an experiment runs with; "" if it uses none."""
    if engine:
        match_name("engine", engine, ensemble.ENGINES)
    if engine == "native" and (reason := ensemble.why_not_native()):
        raise UserError(f"the native engine is not available: {reason}")
    return (engine or ensemble.engine()) if experiment.engines else ""
