"""What surrounds the work of `fit`: its parameters, its failures and its warnings."""

from __future__ import annotations

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

    def _warn(self, note: str) -> None:
        """Warn the caller of `fit`, if there is something; after the work, so that an error of it loses nothing."""
        if note:
            warnings.warn(note, stacklevel=3)
