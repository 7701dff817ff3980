"""Checks for every reader of curves: a file that does not hold what it should is an error of one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.curve_data import NEAR, Curve


@contextmanager
def reading(path: str | Path, writer: str, what: str = "a curve") -> Iterator[None]:
    """Turn any exception from a file's content into one line with the file and the function that writes such files."""
    try:
        yield
    except OSError:
        raise
    except RecursionError:
        raise ValueError(f"{path} is not {what}: it is nested too deeply; {writer} writes such files") from None
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} is not {what}: {reason}; {writer} writes such files") from None


def check_intercepts(curve: Curve, intercepts: Floats) -> None:
    """Raise ValueError if the intercepts in a file are not those of its slopes and values."""
    if intercepts.shape != curve.slopes.shape:
        raise ValueError(f"intercepts must have a number for each slope, got shape {intercepts.shape}")
    size = np.abs(curve.values[:-1]) + np.abs(curve.slopes * curve.knots[:-1, None])
    wrong = ~(np.abs(intercepts - curve.intercepts) <= NEAR * size)
    if wrong.any():
        i, output = (int(index[0]) for index in np.nonzero(wrong))
        raise ValueError(
            f"intercept {intercepts[i, output]} of piece {i} contradicts its slope and values, by which it is "
            f"{curve.intercepts[i, output]}"
        )
