"""The data of a least-squares fit: checked, sorted, and in units in which sums of squares keep their digits."""

from __future__ import annotations

from operator import index
from typing import Any, NamedTuple

import numpy as np

from plunit.pieces.arrays import Floats

MANY = 300
"""The most segments that can be asked for, unless there is one between all neighbouring points."""

LEAST = 1e-150
"""The least span of x; the squares of smaller numbers, and of the reciprocals of such, may not be numbers."""


class Data(NamedTuple):
    """Sorted data in the units of the search: x in [-1, 1], |y| <= 1, weights of mean 1; and how to go back."""

    x: Floats
    y: Floats
    w: Floats
    middle: tuple[float, float]
    scale: tuple[float, float]
    ends: tuple[float, float]
    unit: float


def read_data(x: Any, y: Any, weights: Any) -> Data:
    """Return the data in the units of the search; ValueError if they cannot be fitted."""
    return _scaled(*_checked(x, y, weights))


def _checked(x: Any, y: Any, weights: Any) -> tuple[Floats, Floats, Floats]:
    """Return the data as sorted arrays, without points of weight 0."""
    given = {"x": x, "y": y, "weights": np.ones(np.shape(x)) if weights is None else weights}
    arrays = {name: np.asarray(array, dtype=np.float64) for name, array in given.items()}
    for name, array in arrays.items():
        if array.ndim != 1 or len(array) != len(arrays["x"]):
            shapes = ", ".join(f"{key} {value.shape}" for key, value in arrays.items())
            raise ValueError(f"x, y and weights must have one axis and equal lengths, got {shapes}")
        if not np.isfinite(array).all():
            at = int(np.argmin(np.isfinite(array)))
            raise ValueError(f"{name} must be finite, got {array[at]} at index {at}; leave that point out")
    if (arrays["weights"] < 0).any():
        raise ValueError(f"weights must be >= 0, got {arrays['weights'].min()}")
    keep = np.flatnonzero(arrays["weights"] > 0)
    order = keep[np.argsort(arrays["x"][keep], kind="stable")]
    return arrays["x"][order], arrays["y"][order], arrays["weights"][order]


def _scaled(x: Floats, y: Floats, w: Floats) -> Data:
    if len(x) < 2 or x[0] == x[-1]:
        raise ValueError(f"a fit needs points at two or more different x, got {len(np.unique(x))} with weight > 0")
    middle, half = x[0] / 2 + x[-1] / 2, x[-1] / 2 - x[0] / 2
    if half < LEAST or max(half, abs(middle), np.abs(y).max()) > 1 / LEAST:
        raise ValueError(
            f"x spans {half:.3g} to both sides of {middle:.3g} and |y| reaches {np.abs(y).max():.3g}: give them "
            f"units in which the span is at least {LEAST:g} and nothing exceeds {1 / LEAST:g}"
        )
    weight = float(w.mean())
    w = w / weight
    mean = float(y @ w / len(y))
    size = float(np.abs(y - mean).max()) or 1.0
    return Data(
        (x - middle) / half,
        (y - mean) / size,
        w,
        middle=(float(middle), mean),
        scale=(float(half), size),
        ends=(float(x[0]), float(x[-1])),
        unit=weight * size**2,
    )


def checked_pieces(pieces: int, distinct: int) -> int:
    """Return the number of segments; an error if it is not a positive integer, or too large for the data."""
    try:
        count = index(pieces)
    except TypeError:
        raise TypeError(f"pieces must be a positive integer, got {pieces!r}") from None
    if not 1 <= count < distinct:
        raise ValueError(
            f"pieces must be between 1 and {distinct - 1}, one less than the number of different x, got {count}"
        )
    if count > MANY and count < distinct - 1:
        raise ValueError(
            f"pieces must be at most {MANY}, got {count}; divide the data, or simplify the curve through them"
        )
    return count
