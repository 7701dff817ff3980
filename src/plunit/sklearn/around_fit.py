"""What surrounds the work of `fit`: its parameters, its failures, its warnings, and its progress on the terminal."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


class AtomicFit:
    """An estimator that keeps its parameters as they are, and that a `fit` which fails leaves as it was."""

    def _keep_parameters(self, given: Mapping[str, Any]) -> None:
        """Set the parameters of `__init__`, which are its `locals()`; scikit-learn wants each as an attribute."""
        for name, value in given.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Leave the estimator as it was if `fit` fails."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise


def warn_of(note: str) -> None:
    """Warn the caller of `fit`, if there is something; after the work, so that an error of it loses nothing."""
    if note:
        warnings.warn(note, stacklevel=3)


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
