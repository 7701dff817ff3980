"""What a page asks for: checked names and numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from plunit.ensemble import ACTIVATIONS
from plunit.errors import UserError

COUNTS = {"depth": (1, 6), "width": (1, 32), "networks": (1, 4096), "seed": (0, 2**31 - 1)}
"""The least and the largest of each whole number."""

NUMBERS = {"alpha": (0.0, 1.0), "c": (0.01, 10.0), "lr": (1e-5, 1.0)}
"""The least and the largest of each real number."""

TITLES = {"relu": "ReLU", "plu": "PLU", "plu_learned": "learned PLU", "leaky_relu": "leaky ReLU", "gelu": "GELU"}
"""What a page calls an activation, if not by its name."""


@dataclass(frozen=True)
class Settings:
    """The target, as the page describes it, and the networks that fit it.

    Attributes:
        target: see `plunit.play.targets.task_of`.
        activations: names of `plunit.ensemble.ACTIVATIONS`.
        depth: number of hidden layers.
        width: units of each.
        alpha: PLU's outer slope, the start of a learned one.
        c: the half-width of its inner piece; likewise.
        lr: Adam's step size.
        networks: networks of each activation.
        seed: network i starts with the generator of (seed, i).
        paused: whether training waits for a command.
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
    given = fields_of(given, "settings", tuple(Settings.__dataclass_fields__))
    if not isinstance(given.get("target"), dict):
        raise UserError("settings need a target, an object such as {'kind': 'expression', 'text': 'sin(x)'}")
    checked: dict[str, Any] = {"target": given["target"]}
    for name, (low, high) in {**COUNTS, **NUMBERS}.items():
        if name in given:
            checked[name] = number(name, given[name], low, high, whole=name in COUNTS)
    if "activations" in given:
        checked["activations"] = _activations(given["activations"])
    if "paused" in given:
        checked["paused"] = given["paused"] is True
    settings = Settings(**checked)
    if "plu_learned" in settings.activations and not 1e-6 <= settings.alpha <= 1 - 1e-6:
        raise UserError(f"learned PLU needs 0 < alpha < 1 at the start, got {settings.alpha:g}; take 0.1")
    return settings


def fields_of(given: Any, what: str, names: tuple[str, ...]) -> dict[str, Any]:
    """Return an object of the page, if it has no other fields."""
    if not isinstance(given, dict):
        raise UserError(f"{what} must be an object, got {type(given).__name__}")
    if unknown := sorted(str(name)[:40] for name in given if name not in names):
        raise UserError(f"{what} have no field {unknown[0]!r}; there are {', '.join(names)}")
    return given


def number(name: str, value: Any, low: float, high: float, *, whole: bool = False) -> Any:
    """Return a number in a range, or raise UserError."""
    kinds = int if whole else (int, float)
    # a number beyond 64 bits has no float, and NaN compares as false
    if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
        shown = f"{value:.6g}" if isinstance(value, float) and math.isfinite(value) else repr(value)[:40]
        kind = "a whole number" if whole else "a number"
        raise UserError(f"{name} must be {kind} from {low:g} to {high:g}, got {shown}")
    return value if whole else float(value)


def text(name: str, value: Any, most: int) -> str:
    """Return a text of at most so many characters, or raise UserError."""
    if not isinstance(value, str):
        raise UserError(f"{name} must be a text, got {type(value).__name__}")
    if len(value) > most:
        raise UserError(f"{name} has {len(value):,} characters, the limit is {most:,}")
    return value


def _activations(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list) or not given:
        raise UserError("activations must be a list of one name or more")
    for name in given:
        if not isinstance(name, str) or name not in ACTIVATIONS:
            raise UserError(f"unknown activation {str(name)[:40]!r}; there are {', '.join(ACTIVATIONS)}")
    if len(set(given)) < len(given):
        raise UserError(f"each activation can be named once, got {', '.join(given)}")
    return tuple(given)
