"""The best network of an activation as a file, made in memory."""

from __future__ import annotations

from plunit.errors import UserError
from plunit.play.courses import Snapshot
from plunit.play.frames import Reply
from plunit.play.settings import Settings
from plunit.play.targets import Task

FORMATS = ("c", "onnx", "json", "torch", "fit")


def export(task: Task, settings: Settings, now: Snapshot, form: str) -> Reply:
    """Return a file."""
    raise UserError("not yet")
