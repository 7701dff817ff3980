"""Progress on the terminal, without a package for it."""

from __future__ import annotations

import sys
import time


class ProgressLine:
    """A line on the terminal: the part that is done, the time left, the best loss so far."""

    def __init__(self, members: int) -> None:
        self.members, self.begun = members, time.monotonic()

    def __call__(self, done: float, best: float) -> None:
        """Redraw the line: the share of the work done, the best loss so far."""
        done = min(done, 1.0)
        left = (time.monotonic() - self.begun) * (1 / done - 1)
        filled = round(30 * done)
        end = "\n" if done == 1 else ""
        bar = "#" * filled + "." * (30 - filled)
        sys.stderr.write(f"\r{self.members} starts [{bar}] {left:5.1f} s left, loss {best:.4g}{end}")
        sys.stderr.flush()
