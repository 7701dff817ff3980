"""What a folder of results covers: experiments, their seeds, activations and variants, kept in run.json."""

from __future__ import annotations

import dataclasses
import difflib
import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import plunit
from plunit import ensemble
from plunit.base.errors import UserError
from plunit.base.files import write_atomically
from plunit.data.tables import read_table
from plunit.ensemble import ENGINES
from plunit.lab import settings, store
from plunit.lab.cell import Arrays, Cell
from plunit.lab.experiment import Experiment, Results, catalogue

MOST_SEEDS = 100_000
_LONGEST = 1 << 20  # bytes of run.json; that of a reproduction has 3,000


@dataclass(frozen=True)
class Part:
    """One experiment of a plan.

    Attributes:
        base: its name in the catalogue.
        seeds: how many are run: 0, ..., seeds - 1.
        activations: those that are run.
        engine: of the ensemble; "" if it uses none.
        steps: its length; 0 for that of its spec.
        changes: fields of the spec with other values than usual.
    """

    base: str
    seeds: int
    activations: tuple[str, ...]
    engine: str = ""
    steps: int = 0
    changes: settings.Changes = field(default_factory=dict, hash=False)

    def experiment(self) -> Experiment:
        """Return the experiment as it is run here."""
        found = catalogue()[self.base].varied(self.changes)
        return (
            dataclasses.replace(found, spec=dataclasses.replace(found.spec, steps=self.steps)) if self.steps else found
        )

    def cells(self) -> list[Cell]:
        """Return all cells of the part."""
        return self.experiment().cells(self.activations, self.seeds, self.engine)

    def command(self) -> str:
        """Return the command that runs this part, without its folder."""
        words = ["plunit", "run", self.base, "--seeds", str(self.seeds)]
        words += ["--steps", str(self.steps)] if self.steps else []
        words += ["--activations", ",".join(self.activations)]
        words += ["--engine", self.engine] if self.engine else []
        for name, value in self.changes.items():
            words += ["--set", f"{name}={','.join(map(str, value)) if isinstance(value, tuple) else value}"]
        return self.experiment().command(self) or shlex.join(words)


Plan = dict[str, Part]
"""Name of an experiment, or of its variant, to what is run of it."""


def load(folder: Path) -> Plan:
    """Read the plan of a folder; an empty one if the folder is new."""
    path = folder / "run.json"
    try:
        if not path.exists():
            return {}
        if path.stat().st_size > _LONGEST:
            raise UserError(f"{path} has {path.stat().st_size:,} bytes, and at most {_LONGEST:,} are read")
        content = json.loads(path.read_text())
        version, parts = content["plunit"], dict(content["experiments"])
        if version == plunit.__version__:
            return {name: _part(path, name, given) for name, given in parts.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path} was not written by plunit; choose another folder with --out") from error
    raise UserError(
        f"{folder} holds results of plunit {version}, this is {plunit.__version__}; choose another with --out"
    )


def save(folder: Path, plan: Plan) -> None:
    """Write the plan."""
    parts = {name: vars(part) for name, part in plan.items()}
    text = json.dumps({"plunit": plunit.__version__, "experiments": parts}, indent=2)
    write_atomically(folder / "run.json", text.encode())


def merged(stored: Plan, wanted: Plan, say: Callable[[str], object]) -> Plan:
    """Return the plan of the folder after `wanted` has run: results add up, and `say` gets a line for replaced ones."""
    result = stored | wanted
    for name in stored.keys() & wanted.keys():
        old, new = stored[name], wanted[name]
        if dataclasses.replace(old, activations=()) == dataclasses.replace(new, activations=()):
            both = tuple(dict.fromkeys((*old.activations, *new.activations)))
            result[name] = dataclasses.replace(new, activations=both)
        else:
            say(f"{name}: the tables no longer show the results of `{old.command()}`; run it again to show them")
    return result


def collect(plan: Plan, have: dict[Cell, Arrays], folder: Path, say: Callable[[str], object]) -> Results:
    """Return the finished runs of a plan; cells that `have` lacks are read. `say` prints a line for unfinished runs."""
    results: Results = {}
    for name, part in plan.items():
        cells = part.cells()
        found = have | store.read_all(folder, (cell for cell in cells if cell not in have), say)
        unfinished = dict.fromkeys(cell.activation for cell in cells if cell not in found)
        for activation in part.activations:
            if activation not in unfinished:
                chunks = [found[cell] for cell in cells if cell.activation == activation]
                results.setdefault(name, {})[activation] = store.join(chunks)
        if unfinished:
            command = f"{part.command()} --out {shlex.quote(str(folder))}"
            what = f"{name} with {', '.join(unfinished)}"
            say(f"{what} is left out: it is unfinished, or its source has changed since; run `{command}`")
    return results


def _part(path: Path, name: str, given: dict[str, Any]) -> Part:
    """Return a part as read from run.json; raise UserError, with the value and the rule, if it is not valid."""
    part = Part(
        given["base"],
        given["seeds"],
        tuple(given["activations"]),
        given["engine"],
        given["steps"],
        {key: tuple(value) if isinstance(value, list) else value for key, value in dict(given["changes"]).items()},
    )
    known = catalogue()
    if part.base not in known:
        raise UserError(f"{path}: {name} is not an experiment of this version; `plunit list` shows them")
    base = known[part.base]
    rules = {
        f"seeds must be a whole number from 1 to {MOST_SEEDS:,}": type(part.seeds) is int
        and 0 < part.seeds <= MOST_SEEDS,
        "steps must be a whole number, 0 or more": type(part.steps) is int and 0 <= part.steps <= 10**9,
        "engine must be a text": isinstance(part.engine, str),
        f"activations must be among {', '.join(base.choices)}": all(a in [*base.choices] for a in part.activations),
        "activations must not be empty or repeated": len(set(map(str, part.activations))) == len(part.activations) > 0,
    }
    if broken := [rule for rule, kept in rules.items() if not kept]:
        raise UserError(f"{path}: {name}: {broken[0]}, got {json.dumps(given)[:200]}")
    if part.engine not in (ENGINES if base.engines else ("",)) or (part.steps and not base.short):
        raise UserError(f"{path}: {name} does not take engine {part.engine!r} and steps {part.steps}")
    try:
        settings.check(base.spec, part.changes)
        matches = part.experiment().name == name
    except UserError as error:
        raise UserError(f"{path}: {name}: {error}") from None
    if not matches:
        raise UserError(f"{path}: the entry {name} must be named {part.experiment().name}, as its content says")
    return part


QUICK_SEEDS = 64


def one(
    folder: Path,
    name: str,
    *,
    seeds: int | None = None,
    steps: int | None = None,
    activations: str = "",
    engine: str = "",
    quick: bool = False,
    assignments: Iterable[str] = (),
) -> Plan:
    """Return the plan of `plunit run`; None stands for the number in the folder, or else for the usual number."""
    base = find(name)
    if base.by_itself:
        raise UserError(f"{name} has a command of its own: plunit {name} --help")
    if steps is not None and not base.short:
        raise UserError(
            f"--steps is for {', '.join(one.name for one in catalogue().values() if one.short)}, not for {name}"
        )
    changes = settings.parse(base.spec, assignments)
    if steps is not None and "steps" in changes:
        raise UserError("choose either --steps or --set steps=")
    varied = base.varied(changes)
    stored = load(folder).get(varied.name)
    usual = stored.seeds if stored and not quick else base.seeds_within(QUICK_SEEDS if quick else base.seeds)
    length = base.spec.steps if base.short and "steps" not in changes else 0
    part = Part(
        name,
        _positive("--seeds", seeds, usual, MOST_SEEDS),
        chosen(base, activations),
        _engine(base, engine or _usable(stored)),
        _positive("--steps", steps, length, 10**9),
        changes,
    )
    return {varied.name: part}


def comparison(
    folder: Path,
    table: Path,
    target: str,
    inputs: str,
    assignments: Iterable[str],
    *,
    seeds: int | None = None,
    activations: str = "",
    engine: str = "",
    say: Callable[[str], object] = print,
) -> Plan:
    """Return the plan of `plunit compare`; the table is read once, to see that it can be learned from."""
    base = catalogue()["compare"]
    changes = settings.parse(base.spec, assignments)
    names = tuple(name.strip() for name in inputs.split(",") if name.strip())
    if own := changes.keys() & {"path", "sha256", "target", "inputs"}:
        raise UserError(f"--target and --inputs name columns, got --set {', '.join(sorted(own))}; use these options")
    if inputs and not names:
        raise UserError(f"--inputs must name columns, as in --inputs a,b; got {inputs!r}")
    if not str(table).isprintable():
        raise UserError(f"{str(table)!r} has characters that cannot be printed; rename the file")
    found = read_table(table, target, names, say)
    changes |= {"path": str(table.resolve()), "sha256": found.sha256, "target": found.target, "inputs": found.inputs}
    varied = base.varied(changes)
    stored = load(folder).get(varied.name)
    count = _positive("--seeds", seeds, stored.seeds if stored else base.seeds, MOST_SEEDS)
    used = _engine(base, engine or _usable(stored))
    return {varied.name: Part(base.name, count, chosen(base, activations), used, changes=changes)}


def everything(
    folder: Path,
    only: Sequence[str] = (),
    *,
    seeds: int | None = None,
    engine: str = "",
    quick: bool = False,
    full: bool = False,
) -> Plan:
    """Return the plan of `plunit reproduce`.

    Long experiments keep their own number of seeds and, unless `full`, are short. If the folder has a finished run of a
    long experiment with at least these steps, seeds and activations, that run is kept.
    """
    names = [name.strip() for text in only for name in text.split(",") if name.strip()]
    if only and not names:
        raise UserError(f"--only must name an experiment, got {', '.join(map(repr, only))}; `plunit list` shows all")
    chosen_ones = [find(name) for name in names] or [one for one in catalogue().values() if not one.by_itself]
    count = _positive("--seeds", seeds, QUICK_SEEDS if quick else 0, MOST_SEEDS)
    stored = load(folder)
    wanted: Plan = {}
    for base in chosen_ones:
        if base.by_itself:
            raise UserError(f"{base.name} is not part of the reproduction; it has a command of its own")
        steps = (base.spec.steps if full else min(base.short, base.spec.steps)) if base.short else 0
        part = Part(base.name, base.seeds_within(count or base.seeds), base.activations, _engine(base, engine), steps)
        old = stored.get(base.name)
        if base.short and old and _covers(old, part) and _is_finished(folder, old):
            part = old
        wanted[base.name] = part
    return wanted


def find(name: str) -> Experiment:
    """Return the experiment of a name."""
    if name not in catalogue():
        near = difflib.get_close_matches(name, catalogue(), 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UserError(f"unknown experiment {name!r}; {hint}`plunit list` shows them all")
    return catalogue()[name]


def chosen(experiment: Experiment, activations: str) -> tuple[str, ...]:
    """Return the activations of a text with commas, each once; the experiment's usual ones for an empty text."""
    names = tuple(dict.fromkeys(name.strip() for name in activations.split(",") if name.strip()))
    known = ", ".join(experiment.choices)
    if unknown := [name for name in names if name not in experiment.choices]:
        raise UserError(f"unknown activation {', '.join(map(repr, unknown))}; {experiment.name} takes {known}")
    if activations and not names:
        raise UserError(f"--activations must name an activation, got {activations!r}; {experiment.name} takes {known}")
    return names or experiment.activations


def _engine(experiment: Experiment, engine: str) -> str:
    """Return the engine an experiment runs with; "" if it uses none."""
    if engine and engine not in ensemble.ENGINES:
        raise UserError(f"unknown engine {engine!r}; choose native or numpy")
    if engine == "native" and (reason := ensemble.why_not_native()):
        raise UserError(f"the native engine is not available: {reason}")
    return (engine or ensemble.engine()) if experiment.engines else ""


def _usable(stored: Part | None) -> str:
    """Return the engine of a stored part, "" if it cannot be used here."""
    return stored.engine if stored and (stored.engine == "numpy" or not ensemble.why_not_native()) else ""


def _positive(option: str, value: int | None, usual: int, most: int) -> int:
    if value is not None and not 1 <= value <= most:
        raise UserError(f"{option} must be a whole number from 1 to {most:,}, got {value}")
    return usual if value is None else value


def _covers(stored: Part, part: Part) -> bool:
    enough = stored.steps >= part.steps and stored.seeds >= part.seeds
    return enough and set(stored.activations) >= set(part.activations)


def _is_finished(folder: Path, part: Part) -> bool:
    return len(store.read_all(folder, part.cells(), lambda text: None)) == len(part.cells())
