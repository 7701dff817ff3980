"""Frames: what a page draws, as an object for JSON and one block of bytes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from plunit.ensemble.arrays import Array
from plunit.play.clouds import View
from plunit.play.courses import Snapshot
from plunit.play.panels import Panel, pixels, surface_bytes, value_range
from plunit.play.settings import Settings
from plunit.play.targets import DOTS, Task

BARS = 24
"""Bars of a histogram of losses."""


class Reply(NamedTuple):
    """An answer to a page: an object, and bytes that it points into."""

    content: dict[str, Any]
    payload: bytes = b""


class Payload:
    """The bytes of a reply; each array begins at a multiple of four."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, array: Array) -> int:
        """Append an array; return the place of its first byte."""
        start, content = self._size, array.tobytes()
        content += bytes(-len(content) % 4)
        self._parts.append(content)
        self._size += len(content)
        return start

    def image(self, image: Array) -> dict[str, int]:
        """Append an image; return where it is."""
        height, width = image.shape
        return {"offset": self.add(image), "width": width, "height": height}

    def content(self) -> bytes:
        """Return all bytes."""
        return b"".join(self._parts)


class Painter:
    """Makes the frames of one session."""

    def __init__(self, task: Task, settings: Settings, snapshots: list[Snapshot]) -> None:
        view = view_of(task)
        self._panels = [Panel(one.network, task, settings, view) for one in snapshots]
        self._frames = 0

    def paint(self, snapshots: list[Snapshot]) -> Reply:
        """Return a frame; the exact lines are renewed for one activation after the other."""
        self._frames += 1
        payload, panels = Payload(), []
        bars = _bars([one.loss for one in snapshots])
        for i, (panel, now) in enumerate(zip(self._panels, snapshots, strict=True)):
            painted, image, edges = panel.paint(now, i == self._frames % len(snapshots))
            painted["image"] = payload.image(image)
            painted["histogram"] = {"edges": bars.tolist(), "counts": _histogram(now.loss, bars)}
            painted["edges"] = None if edges is None else {"offset": payload.add(edges), "count": len(edges)}
            panels.append(painted)
        return Reply({"step": snapshots[0].step, "panels": panels}, payload.content())


def view_of(task: Task) -> View:
    """Return the ends of the picture."""
    if task.inputs == 2:
        ends = task.box
    else:
        low, high = task.y.min(0), task.y.max(0)
        margin = np.where(high > low, 0.2 * (high - low), np.maximum(0.2 * np.abs(high), 1.0))
        padded = np.stack([low - margin, high + margin], axis=1)
        ends = padded if task.outputs == 2 else np.concatenate([task.box, padded])
    (left, right), (bottom, top) = ends.tolist()
    return (left, right), (bottom, top)


def problem_of(task: Task, settings: Settings, notes: list[str]) -> Reply:
    """Return what a page shows of the task."""
    view = view_of(task)
    content: dict[str, Any] = {
        "title": task.title,
        "inputs": task.inputs,
        "outputs": task.outputs,
        "names": list(task.names),
        "target": task.target,
        "points": len(task.y),
        "widths": [task.inputs, *[settings.width] * settings.depth, task.outputs],
        "view": {"x": view[0], "y": view[1]},
        "notes": [*task.notes, *notes],
    }
    payload = Payload()
    if task.inputs == 2:
        content["range"] = value_range(task)
        if task.expressions:
            with np.errstate(all="ignore"):
                content["image"] = payload.image(surface_bytes(task, task.expressions[0](*pixels(task.box).T)))
        else:
            content["dots"] = task.x[:DOTS].tolist()
    elif task.outputs == 2 or task.expressions or task.title == "drawing":
        content["line"] = (task.y if task.outputs == 2 else np.column_stack([task.x, task.y])).tolist()
    else:
        content["dots"] = np.column_stack([task.x, task.y])[:DOTS].tolist()
    return Reply(content, payload.content())


def _bars(losses: list[Array]) -> Array:
    """Return the edges of the bars over log10 of all losses, at multiples of a half."""
    together = np.concatenate(losses)
    logs = np.log10(together[np.isfinite(together) & (together > 0)])
    if not len(logs):
        return np.linspace(-1, 0, BARS + 1)
    low, high = math.floor(2 * logs.min()) / 2, math.ceil(2 * logs.max()) / 2
    return np.linspace(low, max(high, low + 0.5), BARS + 1)


def _histogram(loss: Array, edges: Array) -> list[int]:
    logs = np.log10(loss[np.isfinite(loss) & (loss > 0)])
    found: list[int] = np.histogram(logs, edges)[0].tolist()
    return found
