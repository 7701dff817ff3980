"""What a folder of results covers: experiments, seeds and activations, kept in run.json."""

from __future__ import annotations

import contextlib
import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import plunit
from plunit.ensemble import ENGINES
from plunit.lab import experiments, store
from plunit.lab.cell import Cell
from plunit.lab.errors import UserError
from plunit.lab.results import Results, join
from plunit.lab.store import Arrays


@dataclass(frozen=True)
class Part:
    """One experiment of a plan; `steps` is 0 for those of its spec."""

    seeds: int
    activations: tuple[str, ...]
    engine: str
    steps: int = 0

    def command(self, name: str) -> str:
        """Return the command that runs this part; the folder is still to be named."""
        steps = f" --steps {self.steps}" if self.steps else ""
        engine = f" --engine {self.engine}" if self.engine in ENGINES else ""
        return f"plunit run {name} --seeds {self.seeds}{steps} --activations {','.join(self.activations)}{engine}"


Plan = dict[str, Part]
"""Experiment name to what is run of it."""


def cells(plan: Plan) -> list[Cell]:
    """Return all cells of a plan."""
    return [
        cell
        for name, part in plan.items()
        for cell in experiments.cells(name, part.activations, part.seeds, part.engine, part.steps)
    ]


def load(folder: Path) -> Plan:
    """Read the plan of a folder; an empty one if the folder is new."""
    path = folder / "run.json"
    try:
        if not path.exists():
            return {}
        content = json.loads(path.read_text())
        version = content["plunit"]
        plan = {
            name: Part(part["seeds"], tuple(part["activations"]), part["engine"], part.get("steps", 0))
            for name, part in content["experiments"].items()
        }
        sound = all(
            type(part.seeds) is type(part.steps) is int and part.seeds > 0 <= part.steps for part in plan.values()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is not a record of plunit's; choose another folder") from error
    if not sound:
        raise UserError(f"{path} has numbers of seeds or steps that are none; choose another folder")
    if version != plunit.__version__:
        raise UserError(
            f"{folder} holds results of plunit {version}, this is {plunit.__version__}; choose another with --out"
        )
    if unknown := [name for name in plan if name not in experiments.MODULES]:
        raise UserError(f"{path} names experiments this version does not have: {', '.join(unknown)}")
    for name, part in plan.items():
        if strange := [repr(given) for given in part.activations if given not in experiments.MODULES[name].CHOICES]:
            raise UserError(f"{path} names activations that {name} does not take: {', '.join(strange)}")
    return plan


def save(folder: Path, plan: Plan) -> None:
    """Write the plan; raise UserError if the folder cannot be written."""
    parts = {name: vars(part) for name, part in plan.items()}
    text = json.dumps({"plunit": plunit.__version__, "experiments": parts}, indent=2)
    try:
        store.write_atomically(folder / "run.json", text.encode())
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}; choose another folder with --out") from error


def collect(folder: Path, plan: Plan, report: Callable[[str], None]) -> Results:
    """Read the finished experiments of a plan; report those with cells missing or damaged."""
    arrays: dict[tuple[str, str], Arrays] = {}
    for name, part in plan.items():
        parts: dict[tuple[str, str], list[Arrays]] = defaultdict(list)
        todo = cells({name: part})
        for cell in todo:
            with contextlib.suppress(store.Damaged):
                if found := store.read(folder, cell):
                    parts[name, cell.activation].append(found)
        if sum(map(len, parts.values())) == len(todo):
            arrays |= {key: experiments.derive(*key, join(pieces)) for key, pieces in parts.items()}
        else:
            command = f"{part.command(name)} --out {folder}"
            report(f"{name} is unfinished, or of another state of the program, and left out; run `{command}`")
    return Results(arrays)
