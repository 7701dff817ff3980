"""Pauses in long work, by the clock."""

from __future__ import annotations

import time

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
