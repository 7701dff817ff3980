"""Frames: what a page draws, as an object for JSON and one block of bytes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from plunit.ensemble.arrays import Array
from plunit.play.live_training import Snapshot
from plunit.play.panels import Panel, pixels, surface_bytes, view_of
from plunit.play.targets import Settings, Task

BARS = 24  # of a histogram of losses
DOTS = 1000  # rows that are shown, at most


class Reply(NamedTuple):
    """An answer to a page: an object, and bytes that it points into."""

    content: dict[str, Any]
    payload: bytes = b""


def _put(payload: bytearray, array: Array) -> dict[str, int]:
    """Append an image or rows of numbers, each a multiple of four bytes long; return where they are."""
    size = {"height": len(array), "width": array.shape[1]} if array.dtype == np.uint8 else {"count": len(array)}
    place = {"offset": len(payload), **size}
    payload += array.tobytes()
    return place


class Painter:
    """Makes the frames of one session."""

    def __init__(self, task: Task, settings: Settings, snapshots: list[Snapshot]) -> None:
        self._panels = [Panel(one.network, task, settings) for one in snapshots]
        self.frames = 0

    def paint(self, snapshots: list[Snapshot], numbers: bool = True) -> Reply:
        """Return a frame, with or without numbers; the exact lines are renewed for one activation after the other."""
        self.frames += 1
        payload, panels = bytearray(), []
        bars = _bars([one.loss for one in snapshots]) if numbers else None
        for i, (panel, now) in enumerate(zip(self._panels, snapshots, strict=True)):
            painted, image, edges = panel.paint(now, i == self.frames % len(snapshots), numbers)
            painted["image"] = _put(payload, image)
            painted["edges"] = None if edges is None else _put(payload, edges)
            if bars is not None:
                counts = np.histogram(_logs(now.loss), bars)[0]
                painted["histogram"] = {"edges": bars.tolist(), "counts": counts.tolist()}
            panels.append(painted)
        return Reply({"frame": self.frames, "step": snapshots[0].step, "panels": panels}, bytes(payload))


def problem_of(task: Task, settings: Settings, notes: list[str]) -> Reply:
    """Return what a page shows of the task."""
    view, payload = view_of(task).tolist(), bytearray()
    content: dict[str, Any] = {
        "title": task.title,
        "inputs": task.inputs,
        "widths": task.widths(settings),
        "view": {"x": view[0], "y": view[1]},
        "range": [task.y.min(), task.y.max()],
        "notes": [*task.notes, *notes],
    }
    if task.inputs == 2 and task.function:
        content["image"] = _put(payload, surface_bytes(task, task.function(*pixels(task.box).T)))
    elif settings.target["kind"] == "csv":
        content["dots"] = np.column_stack([task.x, task.y])[:DOTS, :2].tolist()
    else:
        content["line"] = (task.y if task.outputs == 2 else np.column_stack([task.x, task.y])).tolist()
    return Reply(content, bytes(payload))


def _logs(loss: Array) -> Array:
    return np.log10(loss[np.isfinite(loss) & (loss > 0)])


def _bars(losses: list[Array]) -> Array:
    """Return the edges of the bars over log10 of all losses, at multiples of a half."""
    logs = _logs(np.concatenate(losses))
    low, high = (math.floor(2 * logs.min()) / 2, math.ceil(2 * logs.max()) / 2) if len(logs) else (-1.0, 0.0)
    return np.linspace(low, max(high, low + 0.5), BARS + 1)
