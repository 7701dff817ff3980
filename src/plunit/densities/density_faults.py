"""Tables whose rows have no density: rules and messages of `search`, `PLUDensity` and `Flow.fit`.

The likelihood of a model is unbounded if
- a column is constant,
- a value is an atom: at least the fraction `ATOM_SHARE` of the rows, and at least `TIMES` rows, have it,
- columns are linearly dependent: scaled to variance 1, they have a standard deviation below `DEPENDENT` in some
  direction. Rows farther than `OUTLIER` spreads from the median are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from plunit.ensemble.arrays import Array

ATOM_SHARE, TIMES = 0.1, 10
DEPENDENT = 1e-5
OUTLIER = 20.0
EXAMINED = 10_000  # dependence is checked in about this number of rows

_NAMED = 5


def name_columns(columns: Sequence[int], what: str = "column", names: Sequence[str] | None = None) -> str:
    """Return the beginning of a sentence about columns: their names and "is" or "are".

    >>> name_columns([2]), name_columns([0, 1], names=["a", "b"]), name_columns(range(8))
    ('column 2 is', 'columns 0 (a), 1 (b) are', 'columns 0, 1, 2, 3, 4 and 3 more are')
    """
    first = ", ".join(f"{i}" if names is None else f"{i} ({names[i]})" for i in columns[:_NAMED])
    if len(columns) == 1:
        return f"{what} {first} is"
    return f"{what}s {first}{f' and {len(columns) - _NAMED} more' if len(columns) > _NAMED else ''} are"


def constants(x: Array, columns: Sequence[int]) -> Iterator[str]:
    """Yield a sentence that names constant columns, if there are any."""
    if columns:
        about = name_columns(columns)
        yield f"{about} constant ({x[0, columns[0]]:g}), and a constant has no density; drop constant columns"


def is_atom(count: int, rows: int) -> bool:
    """Return whether a value that occurs in `count` rows is an atom.

    >>> is_atom(10, 100), is_atom(9, 90), is_atom(99, 1000)
    (True, False, False)
    """
    return count >= max(TIMES, ATOM_SHARE * rows)


def discrete(
    x: Array, columns: Iterable[int], rule: Callable[[Array, Array], bool], names: Sequence[str] | None = None
) -> Iterator[str]:
    """Yield a sentence that names the columns whose values and counts satisfy the rule, if there are any."""
    counted = {i: np.unique(x[:, i], return_counts=True) for i in columns}
    found = [i for i, (values, counts) in counted.items() if rule(values, counts)]
    if found:
        values, counts = counted[found[0]]
        yield (
            f"{name_columns(found, names=names)} discrete, at least in part: {values[counts.argmax()]:g} makes up "
            f"{counts.max() / len(x):.0%} of column {found[0]}, where a density is unbounded; add uniform noise as "
            f"wide as a step, or model these rows separately"
        )


def dependent(x: Array, columns: Array, names: Sequence[str] | None = None) -> Iterator[str]:
    """Yield a sentence that names linearly dependent columns, if there are any."""
    found, spread = dependent_columns(x[:, columns])
    if found:
        about = name_columns(columns[found].tolist(), names=names)
        yield (
            f"{about} linearly dependent (to {spread:.1g} of their spread), and on a plane a density is unbounded; "
            f"drop columns that others determine"
        )


def thin(x: Any) -> Any:
    """Return about `EXAMINED` of the rows of an array or tensor, evenly spaced."""
    return x[:: max(1, len(x) // EXAMINED)]


def middle_and_spread(x: Array) -> tuple[Array, Array]:
    """Return each column's median, and the standard deviation of a normal distribution with its quartiles."""
    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75], axis=0)
    # if half of the rows are equal, quartiles do not measure the spread
    return middle, np.where(high > low, (high - low) / 1.349, x.std(0))


def dependent_columns(x: Array) -> tuple[list[int], float]:
    """Return the linearly dependent columns, [] if none, and their smallest standard deviation.

    >>> x = np.random.default_rng(0).normal(size=(50, 3))
    >>> dependent_columns(x)[0], dependent_columns(np.c_[x, x[:, 0] - x[:, 2]])[0]
    ([], [0, 2, 3])
    """
    x = thin(x)
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
