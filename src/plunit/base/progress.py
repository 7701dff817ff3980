"""Long work: when it pauses, and how its progress is shown on a terminal.

Work runs in parts of about half a second (`Pace`). Between two parts it calls a function with the fraction done and the
lowest loss so far (`Progress`), and Python can raise the KeyboardInterrupt of Ctrl-C.
"""

from __future__ import annotations

import importlib
import math
import sys
import time
from collections.abc import Callable
from typing import Any

PAUSE_SECONDS = 0.5
"""About how long work runs between two pauses, in which it shows progress and can be stopped."""

Progress = Callable[[float, float], object]
"""Called with the fraction of the work done and the lowest loss so far; if it returns true, the work ends."""


def part_of(progress: Progress, i: int, count: int) -> Progress:
    """Return the function that reports the progress of part i of `count` equal parts."""
    return lambda done, best: progress((i + done) / count, best)


class TwoParts:
    """Pass on the progress of work in two parts, and store whether the callback asked to stop.

    The first part is the fraction `share` of the work. The second part reports the lowest loss of the first.
    """

    def __init__(self, progress: Progress, share: float) -> None:
        self.progress, self.share, self.best, self.asked = progress, share, math.inf, False

    def first(self, done: float, best: float) -> bool:
        """Report the first part."""
        self.best = best
        self.asked = bool(self.progress(self.share * done, best)) or self.asked
        return self.asked

    def second(self, done: float, _: float) -> bool:
        """Report the second part."""
        self.asked = self.asked or bool(self.progress(self.share + (0.99 - self.share) * done, self.best))
        return self.asked


def interruption(taken: int, steps: int, kept: str = "the best so far") -> str:
    """Return the warning that Ctrl-C ended training, with the number of steps and what is kept."""
    return f"Training interrupted by user after {taken} of {steps} steps; keeping {kept}"


class Pace:
    """Chooses the number of steps until the next pause: few at first, then enough for about half a second."""

    def __init__(self) -> None:
        self.steps, self.begun = 0, 0.0

    def next(self, first: int, most: int) -> int:
        """Return the step of the next pause, after `first` and at most `most`."""
        now = time.monotonic()
        if not self.steps:
            self.steps = 4
        elif now - self.begun < PAUSE_SECONDS:
            self.steps *= 2
        else:
            self.steps = max(1, int(self.steps * PAUSE_SECONDS / (now - self.begun)))
        self.begun = now
        return min(first + self.steps, most)


def bars(console: Any) -> Any:
    """Return rich's progress display, which shows nothing if the console is not a terminal."""
    rich = importlib.import_module("rich.progress")
    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TaskProgressColumn(),
        rich.TimeRemainingColumn(),
    )
    return rich.Progress(*columns, console=console, disable=not console.is_terminal, transient=True)


class ProgressLine:
    """A progress line on the terminal, without rich: the fraction done, the time left, the lowest loss so far."""

    def __init__(self, members: int) -> None:
        self.members, self.begun = members, time.monotonic()

    def __call__(self, done: float, best: float) -> None:
        """Redraw the line."""
        done = min(done, 1.0)
        left = (time.monotonic() - self.begun) * (1 / done - 1)
        filled = round(30 * done)
        end = "\n" if done == 1 else ""
        bar = "#" * filled + "." * (30 - filled)
        sys.stderr.write(f"\r{self.members} starts [{bar}] {left:5.1f} s left, loss {best:.4g}{end}")
        sys.stderr.flush()
