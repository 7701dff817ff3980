"""The training of one page."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

import numpy as np

from plunit.base.errors import UserError
from plunit.base.fields import match_name
from plunit.ensemble import MLP, Rows, initial, why_not_native
from plunit.play.exports import export
from plunit.play.frames import Painter, Reply, problem_of
from plunit.play.live_training import LOOKED, LiveFinish, LiveTraining, Snapshot, advance_all
from plunit.play.targets import LearningTask, Settings

STEP_ROWS = 128  # rows of a step, for tables with more than `LOOKED`
_RATE = 26.0  # maximum number of frames a second
SLOWLY = 0.2  # seconds from one frame with numbers to the next, so that they can be read
_PATIENCE = 1.0  # seconds for which a request waits for a new frame
MOST_WORK = 10**11  # maximum number of operations of a second-order step
WATCHED = 2048  # steps of Adam, the paper's number, that are slow enough to watch; then training pauses
PACE = WATCHED / 10  # watched steps a second, at most
MOST_STEPS = 10_000_000  # after this number training ends: an hour or more


class Session:
    """Networks in training and the frames that show them; one thread calls `round`, any thread the others."""

    def __init__(self, task: LearningTask, settings: Settings) -> None:
        self._task, self._settings, self.bytes = task, settings, estimate_memory(task, settings)
        self._batch = STEP_ROWS if len(task.y) > LOOKED and settings.method == "adam" else 0
        self._trainings = _trainings(task, settings, self._batch)
        self._latest, self._fresh = [training.snapshot() for training in self._trainings], True
        self._painter, self._frame = Painter(task, settings, self._latest), Reply({"frame": 0})
        self._change, self._painting, self._stepping = threading.Condition(), threading.Lock(), threading.Lock()
        self._steps, self._seconds, self._due = 1, 0.0, 0.0  # of the next round; of all; when a frame may be made
        self._numbered, self._numbers_due = False, 0.0  # whether the last frame has numbers; when the next one has
        self._single, self.paused, self.ended = 0, settings.paused, ""
        self._since: float | None = None  # when step 0 would have been, had training never paused
        self.asked = time.monotonic()

    def problem(self) -> Reply:
        """Return the part of a task that a page shows."""
        notes = [f"{reason}. Training runs in NumPy, which is slower."] if (reason := why_not_native()) else []
        if self._batch:
            notes.append(f"Each step uses {STEP_ROWS} of the rows, and the loss is measured on {LOOKED} of them.")
        return problem_of(self._task, self._settings, notes)

    @property
    def waiting(self) -> bool:
        """Whether training has ended or is paused."""
        return bool(self.ended) or (self.paused and not self._single)

    def round(self, seconds: float) -> None:
        """Train all activations for about `seconds`; keep a copy if the last one was drawn."""
        with self._stepping:
            with self._change:
                if self.waiting:  # a command came after this round was planned
                    return
                single = self.paused
                self._single -= single
            start, watched = time.perf_counter(), not single and self._is_watched()
            steps = 1 if single else min(self._steps, self._due_steps(start)) if watched else self._steps
            advance_all(self._trainings, steps)
        spent = time.perf_counter() - start
        self._seconds += spent
        if not single:
            self._steps = max(1, round(steps * min(2.0, max(0.5, seconds / spent))))
        if all(training.ended for training in self._trainings):
            self.end(f"No network improves any more after {self._trainings[0].step:,} steps.")
        if self._trainings[0].step >= MOST_STEPS:
            self.end(f"Training ended after {MOST_STEPS:,} steps.")
        if single or not self._fresh:
            self._keep()
        if watched:
            if not self._is_watched():
                self.paused = True
            time.sleep(max(0.0, seconds - spent))

    def _is_watched(self) -> bool:
        """Whether training keeps to a pace that can be watched."""
        return self._settings.method == "adam" and self._trainings[0].step < WATCHED

    def _due_steps(self, now: float) -> int:
        """Return the number of steps that bring training to where it should be now; at least 1."""
        step = self._trainings[0].step
        if self._since is None:
            self._since = now - step / PACE
        return min(WATCHED - step, max(1, math.ceil((now - self._since) * PACE) - step))

    def _keep(self) -> None:
        """Keep a copy of the networks; called while they do not train."""
        with self._change:
            self._latest, self._fresh = [training.snapshot() for training in self._trainings], True
            self._change.notify_all()

    def _settle(self) -> None:
        """Keep a copy of networks that no longer train, if the last copy is older."""
        if self.waiting:
            with self._stepping:
                if self._latest[0].step != self._trainings[0].step:
                    self._keep()

    def frame(self, after: int) -> Reply:
        """Return a frame newer than `after`; if there is none within a second, say so."""
        self.asked = math.inf  # a page that waits is still open, however long a frame takes
        try:
            return self._next(after)
        finally:
            self.asked = time.monotonic()

    def _next(self, after: int) -> Reply:
        with self._painting:
            self.asked = math.inf
            time.sleep(max(0.0, self._due - time.monotonic()))
            self._settle()
            with self._change:
                if after >= self._painter.frames:
                    self._change.wait_for(lambda: self._fresh or self.ended, _PATIENCE)
                snapshots, fresh, self._fresh = self._latest, self._fresh, False
            self._due = max(self._due + 1 / _RATE, time.monotonic())  # a frame that was late does not delay the next
            if fresh or (self.paused and not self._numbered):
                self._frame = self._paint(snapshots)
            if after >= self._painter.frames:
                return Reply({**self._about(), "frame": after, "unchanged": True})
            return Reply({**self._about(), **self._frame.content}, self._frame.payload)

    def _paint(self, snapshots: list[Snapshot]) -> Reply:
        now = time.monotonic()
        self._numbered = bool(self.paused or self.ended or now >= self._numbers_due)
        if self._numbered:
            self._numbers_due = now + SLOWLY
        return self._painter.paint(snapshots, self._numbered)

    def export(self, activation: Any, form: Any) -> Reply:
        """Return the best network of an activation as a file."""
        self._settle()
        names = self._settings.activations
        now = self._latest[names.index(match_name("activation", activation, names))]
        return export(self._task, self._settings, now, self._batch, form)

    def command(self, name: Any) -> dict[str, Any]:
        """Pause, resume, step or stop."""
        match_name("command", name, ("pause", "resume", "step", "stop"))
        self.asked = time.monotonic()
        with self._change:
            self.paused, self._since = name != "resume", None
            self._single += name == "step"
        if name == "stop":
            self.end("Training was stopped.")
        return {"paused": self.paused, "step": self._trainings[0].step}

    def end(self, reason: str) -> None:
        """End training; the next frame gives the reason."""
        with self._change:
            self.ended = self.ended or reason
            self._change.notify_all()

    def _about(self) -> dict[str, Any]:
        step = self._trainings[0].step
        rate = round(step / self._seconds, 1) if self._seconds else 0.0
        return {"step": step, "seconds": self._seconds, "rate": rate, "paused": self.paused, "ended": self.ended}


def _trainings(task: LearningTask, settings: Settings, batch: int) -> list[LiveTraining] | list[LiveFinish]:
    """Return the networks of each activation before the first step; network i has the same start in each."""
    widths = task.widths(settings)
    shape: dict[str, Any] = {"alpha": settings.alpha, "c": settings.c}
    generators = [np.random.default_rng([settings.seed, i]) for i in range(settings.networks)]
    # raw alpha and c are the last rows; the other activations use the rows before
    learned = "plu_learned" in settings.activations
    start = initial(MLP(widths, "plu_learned" if learned else "plu"), generators, **shape)
    rows = Rows(*task.scaled, batch=batch, seeds=range(settings.networks) if batch else ())
    unit = float(np.mean(task.scales[1].spread ** 2))
    networks = [MLP(widths, name) for name in settings.activations]
    shape |= {"unit": unit}
    if settings.method == "adam":
        return [LiveTraining(one, start[: one.parameters], rows, lr=settings.lr, **shape) for one in networks]
    return [LiveFinish(one, start[: one.parameters], rows, **shape) for one in networks]


def check_work(task: LearningTask, settings: Settings) -> None:
    """Raise UserError if one second-order step of all networks would take longer than about two seconds."""
    parameters = max(MLP(task.widths(settings), name).parameters for name in settings.activations)
    work = len(settings.activations) * settings.networks * task.y.size * parameters**2
    if settings.method != "adam" and work > MOST_WORK:
        most = settings.networks * MOST_WORK // work
        remedy = f"at most {most} networks" if most else "a smaller network, fewer rows, or Adam"
        raise UserError(f"a second-order step of {settings.networks} such networks takes too long; use {remedy}")


def estimate_memory(task: LearningTask, settings: Settings) -> int:
    """Estimate the memory of a session: parameters, moments and copies, pixels, and the table."""
    rows = max(MLP(task.widths(settings), name).parameters for name in settings.activations)
    return 4 * len(settings.activations) * settings.networks * (8 * rows + 500) + 8 * (task.x.nbytes + task.y.nbytes)
