"""A `fit` that fails leaves the estimator as it was."""

from __future__ import annotations

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
