"""The points a density is learned from, and the checks they must pass before a compiled program reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit.ensemble.arrays import Array


@dataclass(frozen=True)
class Sample:
    """Points in random order, standardised: engines meet the rows of a pass at a fixed stride.

    Attributes:
        x: points [rows, n].
        weight: of each point [rows], at least 0; None is 1 for all. Training divides by the mean.
    """

    x: Array
    weight: Array | None = None


def checked(sample: Sample | Array, features: int, what: str) -> Sample:
    """Return the sample as contiguous float32 with mean weight 1; raise ValueError if it cannot be used.

    Args:
        sample: the points, or an array of them.
        features: n, of the networks.
        what: how messages call the points, such as "training".
    """
    sample = sample if isinstance(sample, Sample) else Sample(sample)
    x = _numbers(sample.x, f"x of {what}")
    if x.ndim != 2 or x.shape[1] != features or not len(x):
        raise ValueError(f"x of {what} must be [rows, {features}] with one row or more, got shape {x.shape}")
    if sample.weight is None:
        return Sample(x)
    weight = _numbers(sample.weight, f"weight of {what}", np.float64)
    if weight.shape != (len(x),):
        raise ValueError(f"weight of {what} must be [{len(x)}], one for each row; got shape {weight.shape}")
    if weight.min() < 0 or not weight.max() > 0:
        raise ValueError(f"weights of {what} must be at least 0, and not all 0; the least is {weight.min():g}")
    weight = weight / weight.max()  # the sum of large weights may overflow
    return Sample(x, np.ascontiguousarray(weight / weight.mean(), dtype=np.float32))


def check_spread(sample: Sample) -> None:
    """Raise ValueError unless every column has two values or more: a constant has no density."""
    if len(sample.x) < 2:
        raise ValueError(f"a density needs two rows or more, got {len(sample.x)}")
    constant = np.flatnonzero(np.ptp(sample.x, axis=0) == 0)
    if len(constant):
        raise ValueError(
            f"column {constant[0]} of x has one value, {sample.x[0, constant[0]]:g}, in all {len(sample.x)} rows: a "
            f"constant has no density; drop the column, or add noise to it"
        )


def _numbers(values: Array, name: str, dtype: type[np.floating[Any]] = np.float32) -> Array:
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be real numbers, got an array of {array.dtype}; convert it with astype(float)")
    with np.errstate(over="ignore"):
        array = np.ascontiguousarray(array, dtype=dtype)
    bad = ~np.isfinite(array)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"{name} must be finite in {dtype.__name__}, got {np.asarray(values)[place]} at {list(place)}; drop such "
            f"rows, and standardise the columns"
        )
    return array
