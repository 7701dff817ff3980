"""What a page asks for: checked names and numbers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from plunit.ensemble import ACTIVATIONS
from plunit.errors import UserError
from plunit.ranges import Range

COUNTS = {"depth": Range(1, 6), "width": Range(1, 32), "networks": Range(1, 4096), "seed": Range(0, 2**31 - 1)}
NUMBERS = {"alpha": Range(0, 1), "c": Range(0.01, 10), "lr": Range(1e-5, 1)}


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
    given = checked_fields(given, "settings", tuple(field.name for field in fields(Settings)))
    if not isinstance(given.get("target"), dict):
        raise UserError("settings need a target, an object such as {'kind': 'expression', 'text': 'sin(x)'}")
    known = {**COUNTS, **NUMBERS}
    numbers = {name: number(name, given[name], known[name], name in COUNTS) for name in known if name in given}
    names = given.get("activations", list(Settings.activations))
    if not isinstance(names, list) or not names or not all(name in list(ACTIVATIONS) for name in names):
        raise UserError(f"activations must be a list of some of {', '.join(ACTIVATIONS)}, got {str(names)[:60]}")
    if len(set(names)) < len(names):
        raise UserError(f"each activation can be named once, got {', '.join(names)}")
    if not isinstance(paused := given.get("paused", False), bool):
        raise UserError(f"paused must be true or false, got {repr(paused)[:40]}")
    found = Settings(given["target"], tuple(names), paused=paused, **numbers)
    if "plu_learned" in names and not 1e-6 <= found.alpha <= 1 - 1e-6:
        raise UserError(f"learned PLU needs 0 < alpha < 1 at the start, got {found.alpha:g}; take 0.1")
    return found


def checked_fields(given: Any, what: str, names: tuple[str, ...]) -> dict[str, Any]:
    """Return an object of the page, if it has no other fields."""
    if not isinstance(given, dict):
        raise UserError(f"{what} must be an object, got {type(given).__name__}")
    if unknown := sorted(str(name)[:40] for name in given if name not in names):
        raise UserError(f"{what} have no field {unknown[0]!r}; there are {', '.join(names)}")
    return given


def number(name: str, value: Any, allowed: Range, whole: bool = False) -> Any:
    """Return a number in a range, or raise UserError."""
    # NaN compares as false
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)) or not allowed.holds(value):
        kind = "a whole number" if whole else "a number"
        raise UserError(f"{name} must be {kind} from {allowed.low:g} to {allowed.high:g}, got {repr(value)[:40]}")
    return value if whole else float(value)


def text(name: str, value: Any, most: int) -> str:
    """Return a text of at most so many characters, or raise UserError."""
    if not isinstance(value, str) or len(value) > most:
        got = f"{len(value):,} characters" if isinstance(value, str) else type(value).__name__
        raise UserError(f"{name} must be a text of at most {most:,} characters, got {got}")
    return value
