"""What the readers of curves share: a file that is no curve is one clear line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.curve import NEAR, Curve


@contextmanager
def reading(path: str | Path, writer: str) -> Iterator[None]:
    """Turn whatever a file's content makes go wrong into one line that names the file and who writes such files."""
    try:
        yield
    except OSError:
        raise
    except RecursionError:
        raise ValueError(f"{path} is not a curve: it is nested too deeply; {writer} writes curves") from None
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} is not a curve: {reason}; {writer} writes curves") from None


def check_intercepts(curve: Curve, intercepts: Floats) -> None:
    """Raise ValueError if the intercepts in a file are not those of its slopes and values."""
    if intercepts.shape != curve.slopes.shape:
        raise ValueError(f"intercepts must have a number for each slope, got shape {intercepts.shape}")
    size = np.abs(curve.values[:-1]) + np.abs(curve.slopes * curve.knots[:-1, None])
    wrong = ~(np.abs(intercepts - curve.intercepts) <= NEAR * size)
    if wrong.any():
        i, output = (int(index[0]) for index in np.nonzero(wrong))
        raise ValueError(
            f"intercept {intercepts[i, output]} of piece {i} contradicts its slope and values, which give "
            f"{curve.intercepts[i, output]}"
        )
