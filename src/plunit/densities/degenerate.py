"""Tables whose rows have no density: a value that many rows share, and columns that are linearly dependent.

The likelihood of a model can then grow without end. `PLUDensity` and `Flow.fit` ask here, each with its own words:
- An atom is a value of at least `SHARE` of the rows, and of at least `TIMES` of them.
- Columns are dependent if, scaled to variance 1, they have a standard deviation below `DEPENDENT` in some direction.
  Rows farther than `OUTLIER` spreads from the median are no evidence against it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plunit.ensemble.arrays import Array

SHARE, TIMES = 0.1, 10
DEPENDENT = 1e-5
OUTLIER = 20.0
ROWS = 10_000  # dependence is looked for in about so many rows


def thinned(x: Any) -> Any:
    """Return about `ROWS` of the rows of an array or tensor, evenly spaced."""
    return x[:: max(1, len(x) // ROWS)]


def is_atom(count: int, rows: int) -> bool:
    """Whether a value that so many of the rows have is an atom.

    >>> is_atom(10, 100), is_atom(9, 90), is_atom(99, 1000)
    (True, False, False)
    """
    return count >= max(TIMES, SHARE * rows)


def middle_and_spread(x: Array) -> tuple[Array, Array]:
    """Return the median and the standard deviation that a normal of these quartiles has, by column."""
    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75], axis=0)
    # where half of the rows are equal the quartiles say nothing
    return middle, np.where(high > low, (high - low) / 1.349, x.std(0))


def dependent_columns(x: Array) -> tuple[list[int], float]:
    """Return the columns that are linearly dependent, [] if none are, and their least standard deviation.

    >>> x = np.random.default_rng(0).normal(size=(50, 3))
    >>> dependent_columns(x)[0], dependent_columns(np.c_[x, x[:, 0] - x[:, 2]])[0]
    ([], [0, 2, 3])
    """
    x = thinned(x)
    x = x / np.abs(x).max(0, initial=1e-300)
    middle, spread = middle_and_spread(x)
    x = x[(np.abs(x - middle) <= OUTLIER * spread).all(1)]
    columns = np.flatnonzero(np.ptp(x, 0)) if len(x) >= 2 * x.shape[1] + 2 else np.array([])
    if len(columns) < 2:
        return [], 1.0
    x = x[:, columns]
    x = (x - x.mean(0)) / x.std(0)
    variances, directions = np.linalg.eigh(x.T @ x / len(x))
    found = variances < DEPENDENT**2
    if not found.any():
        return [], 1.0
    sides = np.abs(directions[:, found]).max(1)
    return columns[sides > 0.1 * sides.max()].tolist(), float(np.sqrt(max(variances[0], 0.0)))
