"""What a flow cannot learn from data as they are, name_columns before training.

`plunit.densities.density_faults` has the rules for data without a density. Training will also be poor if
- a column has `FEW` values or fewer, each on average `TIMES` times,
- the middle of a column is farther than `FAR` from 0, or its spread is beyond `FAR` or below 1 / `FAR`: training starts
  near centre 0 and spread 1, and takes small steps. Median and quartiles are meant, so an outlier does not matter.
  After 500 steps with 5 blocks the moons have an NLL of 2.14, 3.02 at a spread of 30 and 5.67 at a centre of 30, in the
  units of the standardised moons; a Gaussian has 2.73.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from torch import Tensor

from plunit.densities.density_faults import (
    TIMES,
    constants,
    dependent,
    discrete,
    is_atom,
    middle_and_spread,
    name_columns,
    thin,
)
from plunit.ensemble.arrays import Array

FEW = 30
FAR = 30.0


def screen(x: Tensor, context: Tensor | None = None, *, whole: bool = True) -> None:
    """Raise if the rows x have no density, and warn if they, or their contexts, are hard to learn.

    Args:
        x: points [m, n].
        context: their contexts [m, k]; discrete and constant ones are fine.
        whole: whether these are all data. Of a batch everything is a warning, because the other batches may differ.
    """
    if whole and len(x) < 2:
        raise ValueError("one point has no density: give at least two different points of weight above 0")
    some, varies = _thin(x), (x.amax(0) > x.amin(0)).cpu().numpy()
    faults: list[str] = []
    if whole or len(x) >= 2 * TIMES:
        faults = [*constants(some, np.flatnonzero(~varies).tolist()), *dependent(some, np.arange(x.shape[1]))]
    if faults and whole:
        raise ValueError("; ".join(faults))

    def is_discrete(values: Array, counts: Array) -> bool:
        return is_atom(counts.max(), len(some)) or (len(counts) <= FEW and TIMES * len(counts) <= len(some))

    doubts = [*faults, *discrete(some, np.flatnonzero(varies).tolist(), is_discrete), *_far(some, "column")]
    if context is not None:
        doubts += _far(_thin(context), "context column")
    for doubt in doubts:
        warnings.warn(doubt, UserWarning, stacklevel=4)


def _thin(x: Tensor) -> Array:
    """Return about ten thousand rows as an array."""
    return thin(x).double().cpu().numpy()  # type: ignore[no-any-return]


def _far(x: Array, what: str) -> Iterator[str]:
    if len(x) < TIMES:
        return
    middle, spread = middle_and_spread(x)
    narrow = (spread < 1 / FAR) & (spread > 0)
    found = np.flatnonzero((np.abs(middle) > FAR) | (spread > FAR) | narrow).tolist()
    if found:
        yield (
            f"{name_columns(found, what)} far from standard: {what} {found[0]} has the centre {middle[found[0]]:.3g} "
            f"and the spread {spread[found[0]]:.3g}, while training starts from 0 and 1 and takes small steps. "
            f"Standardise: (x - x.mean(0)) / x.std(0), or by median and quartiles if there are outliers"
        )
