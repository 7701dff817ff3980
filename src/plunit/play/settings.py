"""The settings of a page, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from plunit.base.errors import UserError
from plunit.base.fields import known, made
from plunit.base.ranges import Range
from plunit.ensemble import ACTIVATIONS

MEMBERS = Range(1, 4096)


@dataclass(frozen=True)
class Settings:
    """The target as `plunit.play.targets.task_of` takes it, and the networks: `depth` hidden layers of `width` units.

    Network i of each activation starts with the generator of (seed, i). `paused` waits for a command.
    """

    target: Any
    activations: tuple[str, ...] = ("tanh", "relu", "plu")
    depth: Annotated[int, Range(1, 6)] = 2
    width: Annotated[int, Range(1, 32)] = 3
    alpha: Annotated[float, Range(0, 1)] = 0.1
    c: Annotated[float, Range(0.01, 10)] = 1.0
    lr: Annotated[float, Range(1e-5, 1)] = 0.01
    networks: Annotated[int, MEMBERS] = 1000
    seed: Annotated[int, Range(0, 2**31 - 1)] = 0
    paused: bool = False


def settings_of(given: Any) -> Settings:
    """Return the settings of a page, or raise UserError with what is wrong."""
    found = made("settings", Settings, given)
    names = [known("activation", name, ACTIVATIONS) for name in found.activations]
    if len(set(names)) < len(names):
        raise UserError(f"each activation can be named once, got {', '.join(names)}")
    if "plu_learned" in names and not 1e-6 <= found.alpha <= 1 - 1e-6:
        raise UserError(f"learned PLU needs 0 < alpha < 1 at the start, got {found.alpha:g}; take 0.1")
    return found
