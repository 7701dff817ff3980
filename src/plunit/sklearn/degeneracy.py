"""Warnings of rows that have no density: a value that many rows share, and columns that depend on others."""

from __future__ import annotations

import warnings

import numpy as np

from plunit.ensemble.arrays import Array
from plunit.sklearn.inspection import Labels, on_grid

SHARE, TIMES = 0.1, 10
"""An atom is a value of at least this part of the rows, and of at least so many."""

DEPENDENT = 1e-5
"""Columns of variance 1 are dependent if they have a smaller standard deviation in some direction."""

ROWS = 10_000
"""Dependence is looked for in about so many rows."""

OUTLIER = 20.0
"""Rows farther than so many spreads from the median are no evidence against dependence."""


def warn_of_atoms(x: Array, number: Array, labels: Labels) -> None:
    """Warn of values of columns of numbers that many of the rows have; rounded columns may have such values."""
    least = max(TIMES, SHARE * len(x))
    for i in np.flatnonzero(number).tolist():
        values, counts = np.unique(x[:, i], return_counts=True)
        if counts.max() >= least and not on_grid(np.diff(values)):
            warnings.warn(
                f"{labels[i]} holds {values[counts.argmax()]:g} in {counts.max()} of {len(x)} rows, and a density has "
                "no limit there: model these rows apart, or add noise to the column",
                stacklevel=5,
            )


def warn_of_dependence(x: Array, number: Array, labels: Labels) -> None:
    """Warn of columns of numbers that are linearly dependent, outliers aside."""
    columns = np.flatnonzero(number)
    x = x[:: max(1, len(x) // ROWS)]
    x = x[:, columns] / np.abs(x[:, columns]).max(0, initial=1e-300)
    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75], axis=0)
    spread = np.where(high > low, (high - low) / 1.349, x.std(0))
    x = x[(np.abs(x - middle) <= OUTLIER * spread).all(1)]
    if len(columns) < 2 or len(x) < 2 * len(columns) + 2 or (x.std(0) == 0).any():
        return
    x = (x - x.mean(0)) / x.std(0)
    _, sizes, directions = np.linalg.svd(x / np.sqrt(len(x)), full_matrices=False)
    if sizes[-1] < DEPENDENT:
        sides = np.abs(directions[sizes < DEPENDENT]).max(0)
        named = ", ".join(labels[i] for i in columns[sides > 0.1 * sides.max()].tolist())
        warnings.warn(
            f"{named} are linearly dependent, to {sizes[-1]:.1g} of their spread, and on a plane a density has no "
            "limit: drop columns that others determine, or put a PCA before",
            stacklevel=5,
        )
