"""What a page asks for: checked names, numbers and texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, TypeVar

from plunit.base.errors import UserError
from plunit.base.ranges import Range
from plunit.ensemble import ACTIVATIONS

Made = TypeVar("Made")

COUNTS = {"depth": Range(1, 6), "width": Range(1, 32), "networks": Range(1, 4096), "seed": Range(0, 2**31 - 1)}
NUMBERS = {"alpha": Range(0, 1), "c": Range(0.01, 10), "lr": Range(1e-5, 1)}
RANGES = {**COUNTS, **NUMBERS}


@dataclass(frozen=True)
class Settings:
    """The target as `plunit.play.targets.task_of` takes it, and the networks: `depth` hidden layers of `width` units.

    Network i of each activation starts with the generator of (seed, i). `paused` waits for a command.
    """

    target: dict[str, Any]
    activations: tuple[str, ...] = ("tanh", "relu", "plu")
    depth: int = 2
    width: int = 3
    alpha: float = 0.1
    c: float = 1.0
    lr: float = 0.01
    networks: int = 1000
    seed: int = 0
    paused: bool = False


def settings_of(given: Any) -> Settings:
    """Return the settings of a page, or raise UserError with what is wrong."""
    found = called("settings", Settings, given)
    numbers = {name: number(name, getattr(found, name), RANGES[name], name in COUNTS) for name in RANGES}
    names = found.activations
    if not isinstance(names, list | tuple) or not names or not all(name in list(ACTIVATIONS) for name in names):
        raise UserError(f"activations must be a list of some of {', '.join(ACTIVATIONS)}, got {str(names)[:60]}")
    if len(set(names)) < len(names):
        raise UserError(f"each activation can be named once, got {', '.join(names)}")
    if not isinstance(found.paused, bool):
        raise UserError(f"paused must be true or false, got {repr(found.paused)[:40]}")
    if "plu_learned" in names and not 1e-6 <= found.alpha <= 1 - 1e-6:
        raise UserError(f"learned PLU needs 0 < alpha < 1 at the start, got {found.alpha:g}; take 0.1")
    return replace(found, activations=tuple(names), **numbers)


def called(what: str, function: Callable[..., Made], given: Any) -> Made:
    """Return function(**given) for an object of the page with all fields that are needed, and no others."""
    if not isinstance(given, dict):
        raise UserError(f"{what} must be an object, got {type(given).__name__}")
    fields = signature(function).parameters
    if unknown := sorted(str(name)[:40] for name in given if name not in fields):
        raise UserError(f"{what} can have no field {unknown[0]!r}; there are {', '.join(fields) or 'none'}")
    if missing := [name for name, field in fields.items() if field.default is field.empty and name not in given]:
        raise UserError(f"{what} must have a field {missing[0]!r}")
    return function(**given)


def known(what: str, name: Any, names: Collection[str]) -> str:
    """Return a name that is one of those, or raise UserError."""
    if name not in tuple(names):  # a list from a page cannot be looked up in a dictionary
        raise UserError(f"unknown {what} {str(name)[:40]!r}; there are {', '.join(names)}")
    return str(name)


def number(name: str, value: Any, allowed: Range, whole: bool = False) -> Any:
    """Return a number in a range, or raise UserError."""
    # NaN compares as false
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)) or not allowed.holds(value):
        kind = "a whole number" if whole else "a number"
        raise UserError(f"{name} must be {kind} from {allowed.low:g} to {allowed.high:g}, got {repr(value)[:40]}")
    return value if whole else float(value)


def checked_text(name: str, value: Any, most: int) -> str:
    """Return a text of at most so many characters, or raise UserError."""
    if not isinstance(value, str) or len(value) > most:
        got = f"{len(value):,} characters" if isinstance(value, str) else type(value).__name__
        raise UserError(f"{name} must be a text of at most {most:,} characters, got {got}")
    if half := re.search("[\ud800-\udfff]", value):  # half a character, which no file can hold
        raise UserError(f"{name} holds {half[0]!r}, which is not UTF-8; leave it out")
    return value
