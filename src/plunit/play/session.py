"""One training for one page."""

from __future__ import annotations

import threading
import time
from typing import Any

from plunit.ensemble import why_not_native
from plunit.errors import UserError
from plunit.play.courses import BATCH, WHOLE, Snapshot, courses_of
from plunit.play.frames import Painter, Reply, problem_of
from plunit.play.settings import Settings
from plunit.play.targets import Task

RATE = 30.0
"""Frames a second, at most."""

PATIENCE = 1.0
"""So many seconds a request waits for a new frame."""

STEPS = 100_000_000
"""Training ends after so many steps."""


class Session:
    """Networks in training, and the frames that show them.

    One thread calls `round`; any thread may call the others.
    """

    def __init__(self, task: Task, settings: Settings) -> None:
        self.task, self.settings = task, settings
        self._courses = courses_of(task, settings)
        self._latest = [course.snapshot() for course in self._courses]
        self._painter = Painter(task, settings, self._latest)
        self._change, self._painting = threading.Condition(), threading.Lock()
        self._fresh = True  # whether `_latest` has not been drawn yet
        self._frame, self._drawn = Reply({"frame": 0}), 0.0
        self._steps, self._seconds = 1, 0.0  # of the next round; of all rounds
        self._single = 0
        self.paused, self.ended = settings.paused, ""
        self.asked = time.monotonic()

    def problem(self) -> Reply:
        """Return what a page shows of the task."""
        notes = []
        if len(self.task.y) > WHOLE:
            notes.append(f"{len(self.task.y):,} rows: each step takes {BATCH} of them, the loss is that of {WHOLE}.")
        if reason := why_not_native():
            notes.append(f"{reason}. Training runs in NumPy, which is slower.")
        return problem_of(self.task, self.settings, notes)

    @property
    def step(self) -> int:
        """The number of steps taken."""
        return self._courses[0].step

    @property
    def waiting(self) -> bool:
        """Whether there is nothing to do."""
        return bool(self.ended) or (self.paused and not self._single)

    def round(self, seconds: float) -> None:
        """Train all activations by as many steps as take about so many seconds, and keep a copy if one is wanted."""
        single = self.paused
        steps = 1 if single else self._steps
        start = time.perf_counter()
        for course in self._courses:
            course.advance(steps)
        spent = time.perf_counter() - start
        self._single = max(0, self._single - single)
        self._seconds += spent
        if not single:
            factor = min(2.0, max(0.5, seconds / spent))
            self._steps = max(1, round(steps * factor + (factor > 1)))
        if self.step >= STEPS:
            self.end(f"Training ended after {self.step:,} steps.")
        if not self._fresh or single:
            with self._change:
                self._latest, self._fresh = [course.snapshot() for course in self._courses], True
                self._change.notify_all()

    def frame(self, after: int) -> Reply:
        """Wait for a frame that is newer than a number, and return it; after a second without one say so."""
        self.asked = time.monotonic()
        with self._painting:
            time.sleep(max(0.0, self._drawn + 1 / RATE - time.monotonic()))
            with self._change:
                if after >= self._frame.content["frame"]:
                    self._change.wait_for(lambda: self._fresh or self.ended, PATIENCE)
                snapshots, fresh, self._fresh = self._latest, self._fresh, False
            self.asked = self._drawn = time.monotonic()
            if fresh:
                made = self._painter.paint(snapshots)
                made.content["frame"] = self._frame.content["frame"] + 1
                self._frame = made
            if after >= self._frame.content["frame"]:
                return Reply({"frame": after, **self._about(), "unchanged": True})
            return Reply({**self._about(), **self._frame.content}, self._frame.payload)

    def latest(self, activation: str) -> Snapshot:
        """Return the last copy of an activation's networks."""
        with self._change:
            for one in self._latest:
                if one.network.activation == activation:
                    return one
        raise UserError(f"there are no networks of {activation[:40]!r}; there are {self._names()}")

    def command(self, name: Any) -> dict[str, Any]:
        """Pause, resume, step or stop."""
        if name not in ("pause", "resume", "step", "stop"):
            raise UserError(f"unknown command {str(name)[:40]!r}; there are pause, resume, step, stop")
        self.asked = time.monotonic()
        self.paused = name != "resume"
        self._single += name == "step"
        if name == "stop":
            self.end("Training was stopped.")
        return {"paused": self.paused, "step": self.step}

    def end(self, reason: str) -> None:
        """Train no more; the next frame says why."""
        with self._change:
            self.ended = self.ended or reason
            self._change.notify_all()

    def _about(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "seconds": round(self._seconds, 3),
            "rate": round(self.step / self._seconds, 1) if self._seconds else 0.0,
            "paused": self.paused,
            "ended": self.ended,
        }

    def _names(self) -> str:
        return ", ".join(self.settings.activations)
