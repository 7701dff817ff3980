"""Data that a flow cannot learn, or not as they are: named before training, with the rule and the remedy.

Three rules mean that there is no density, so that the likelihood of a flow can grow without end: there is one point
only, a column is constant, or columns are linearly dependent (`plunit.densities.degenerate`).
Two rules mean that training will be poor:
- a column is discrete: a value is an atom (`plunit.densities.degenerate`), or there are `FEW` values or fewer, each on
  average `TIMES` times. The density wants to be infinite there,
- the middle of a column is farther than `FAR` from 0, or its spread is beyond `FAR` or below 1 / `FAR`: training starts
  near centre 0 and spread 1, and takes small steps. Median and quartiles are meant, so an outlier does not matter.
  After 500 steps with 5 blocks the moons have an NLL of 2.14, 3.02 at a spread of 30 and 5.67 at a centre of 30, in the
  units of the standardised moons; a Gaussian has 2.73.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np
from torch import Tensor

from plunit.densities.degenerate import TIMES, dependent_columns, is_atom, middle_and_spread, thinned
from plunit.ensemble.arrays import Array

FEW = 30
FAR = 30.0

_NAMED = 5


def screen(x: Tensor, context: Tensor | None = None, *, whole: bool = True) -> None:
    """Raise if the rows x have no density, and warn if they, or their contexts, are hard to learn.

    Args:
        x: points [m, n].
        context: their contexts [m, k]; discrete and constant ones are fine.
        whole: whether these are all data. Of a batch everything is a warning, because the other batches may differ.
    """
    if whole and len(x) < 2:
        raise ValueError("one point has no density: give at least two different points of weight above 0")
    some, varying = _some(x), (x.amax(0) > x.amin(0)).tolist()
    faults = [*_constant(some, varying), *_dependent(some)] if whole or len(x) >= 2 * TIMES else []
    if faults and whole:
        raise ValueError("; ".join(faults))
    doubts = [*faults, *_discrete(some, varying), *_far(some, "column")]
    if context is not None:
        doubts += _far(_some(context), "context column")
    for doubt in doubts:
        warnings.warn(doubt, UserWarning, stacklevel=4)


def _some(x: Tensor) -> Array:
    """Return about ten thousand rows as an array."""
    return thinned(x).double().cpu().numpy()  # type: ignore[no-any-return]


def _constant(x: Array, varying: list[bool]) -> Iterable[str]:
    found = [i for i, varies in enumerate(varying) if not varies]
    if found and len(x) > 1:
        yield (f"{_columns(found)} constant ({x[0, found[0]]:g}), and a constant has no density: drop what is constant")


def _dependent(x: Array) -> Iterable[str]:
    found, spread = dependent_columns(x)
    if found:
        yield (
            f"{_columns(found)} linearly dependent (to {spread:.1g} of their spread), and on a plane there is no "
            f"density: drop one of them"
        )


def _discrete(x: Array, varying: list[bool]) -> Iterable[str]:
    values, counts = zip(*(np.unique(column, return_counts=True) for column in x.T), strict=True)
    found = [
        i
        for i, count in enumerate(counts)
        if varying[i] and (is_atom(count.max(), len(x)) or (len(count) <= FEW and TIMES * len(count) <= len(x)))
    ]
    if found:
        first = found[0]
        value, share = values[first][counts[first].argmax()], counts[first].max() / len(x)
        yield (
            f"{_columns(found)} discrete, at least in part: {value:g} makes up {share:.0%} of column {first}. A "
            f"density becomes infinite there: dequantise (add uniform noise as wide as a step), or drop the column"
        )


def _far(x: Array, what: str) -> Iterable[str]:
    if len(x) < TIMES:
        return
    middle, spread = middle_and_spread(x)
    narrow = (spread < 1 / FAR) & (spread > 0)
    found = np.flatnonzero((np.abs(middle) > FAR) | (spread > FAR) | narrow).tolist()
    if found:
        yield (
            f"{_columns(found, what)} far from standard: {what} {found[0]} has the centre {middle[found[0]]:.3g} and "
            f"the spread {spread[found[0]]:.3g}, while training starts from 0 and 1 and takes small steps. "
            f"Standardise: (x - x.mean(0)) / x.std(0), or by median and quartiles if there are outliers"
        )


def _columns(found: list[int], what: str = "column") -> str:
    """Name columns, and begin a sentence about them."""
    if len(found) == 1:
        return f"{what} {found[0]} is"
    rest = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return f"{what}s {', '.join(map(str, found[:_NAMED]))}{rest} are"
