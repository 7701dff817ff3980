"""Pauses in long work, by the clock."""

from __future__ import annotations

import math
import multiprocessing
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

SECONDS = 0.5
"""Work pauses after about this time, to show progress and to be stopped."""


class Pace:
    """How many steps to take before the next pause: few at first, then about as many as take half a second."""

    def __init__(self) -> None:
        self.steps, self.begun = 0, 0.0

    def next(self, first: int, most: int) -> int:
        """Return the step of the next pause, after `first` and at most `most`."""
        now = time.monotonic()
        if not self.steps:
            self.steps = 4
        elif now - self.begun < SECONDS:
            self.steps *= 2
        else:
            self.steps = max(1, int(self.steps * SECONDS / (now - self.begun)))
        self.begun = now
        return min(first + self.steps, most)


Progress = Callable[[float, float], object]
"""Called with the part of the work that is done and the least loss so far; if it returns true, the work ends."""


@dataclass
class CtrlC:
    """Whether Ctrl-C was pressed inside of `listening`."""

    pressed: bool = False

    def ending(self, progress: Progress) -> Progress:
        """Return a progress that also ends the work at Ctrl-C; while no loss is known, it raises KeyboardInterrupt."""

        def call(done: float, best: float) -> bool:
            asked = bool(progress(done, best))
            if self.pressed and not math.isfinite(best):
                raise KeyboardInterrupt
            return asked or self.pressed

        return call


@contextmanager
def listening(say: Callable[[], object] = lambda: None) -> Iterator[CtrlC]:
    """Note the first Ctrl-C inside, which then does not raise; the second one does.

    The work inside looks at `pressed` at its pauses. `say` is called at the first Ctrl-C. No signal is touched, and
    `pressed` stays False, where Ctrl-C is not for this work alone:

    - in other threads than the main one, in processes that a Python program has started, and inside of joblib's loops
      (GridSearchCV, also with n_jobs=1), because Ctrl-C is to end all of them;
    - where Ctrl-C does something else than to raise KeyboardInterrupt: with a handler of the caller's, inside of
      another `listening`, or in a job in the background.

    >>> with listening() as ctrl_c:
    ...     signal.raise_signal(signal.SIGINT)
    >>> ctrl_c.pressed
    True
    """
    found = CtrlC()
    if not _is_ours():
        yield found
        return

    def press(*details: Any) -> None:
        if found.pressed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.default_int_handler(*details)
        found.pressed = True
        say()

    signal.signal(signal.SIGINT, press)
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def interruption(taken: Iterable[int], steps: int, kept: str) -> str:
    """Return the warning of work that Ctrl-C has ended: how many steps were taken, of how many, and what is kept.

    >>> interruption([100, 300], 4000, "the best network so far")
    'Training interrupted by user after 300 of 4000 steps: kept is the best network so far'
    """
    return f"Training interrupted by user after {max(taken)} of {steps} steps: kept is {kept}"


def _is_ours() -> bool:
    return (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        and multiprocessing.parent_process() is None
        and not any(_is_of_joblib(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_stack(None))
    )


def _is_of_joblib(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] == "joblib"
