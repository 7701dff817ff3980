"""What a folder of results covers: experiments, their seeds, activations and variants, kept in run.json."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import plunit
from plunit.ensemble import ENGINES
from plunit.errors import UserError
from plunit.files import write_atomically
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
