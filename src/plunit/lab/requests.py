"""What a user asks for, checked and turned into a plan."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from plunit import ensemble
from plunit.data.tables import read_table
from plunit.errors import UserError
from plunit.lab import plan, settings, store
from plunit.lab.experiment import Experiment, catalogue
from plunit.lab.plan import MOST_SEEDS, Part, Plan

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
    stored = plan.load(folder).get(varied.name)
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
    stored = plan.load(folder).get(varied.name)
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
    stored = plan.load(folder)
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
