"""A `fit` that fails leaves the estimator as it was; one that Ctrl-C ends keeps the best so far."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class AtomicFit:
    """What estimators do around the work of `fit`."""

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

    def _warn(self, note: str) -> None:
        """Warn the caller of `fit`, if there is something; after the work, so that an error of it loses nothing."""
        if note:
            warnings.warn(note, stacklevel=3)
