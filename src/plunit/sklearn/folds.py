"""Preparation of a table for training: equal rows are merged, and rows are split into folds for validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plunit.ensemble import Rows, Validation
from plunit.ensemble.arrays import Array, Scale

MERGED = 100_000  # equal rows of tables up to this size are merged
_LARGEST = 1e100  # larger weights are divided by the largest, because their sum may overflow
NEGLIGIBLE = 1e-30  # rows with less than this fraction of the largest weight have no effect on a density
LARGEST_FOLD = 4_000  # the maximum number of rows in a fold
FEWEST_ROWS = 10  # with fewer rows, the training rows also validate


def merge(x: Array, y: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Return the rows in a canonical order, with equal rows merged into one that has their total weight.

    So a row of weight 2 gives the same bits as a row that occurs twice, and the order of the rows does not matter.
    """
    weight = weight / weight.max() if weight.max() > _LARGEST else weight
    if len(x) > MERGED:
        return x, y, weight
    rows, place = np.unique(np.column_stack([x, y]), axis=0, return_inverse=True)
    total = np.zeros(len(rows))
    order = np.argsort(weight)  # equal sets of weights are summed in the same order
    np.add.at(total, place.ravel()[order], weight[order])
    return rows[:, : x.shape[1]], rows[:, x.shape[1] :], total


def drop_weightless(x: Array, y: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Return the rows whose weight is not 0."""
    there = weight > 0
    if not there.any():
        raise ValueError("all sample weights are 0; give at least one row a positive weight")
    return x[there], y[there], weight[there]


def drop_negligible(x: Array, weight: Array) -> tuple[Array, Array]:
    """Return the rows of a density without those whose weight is `NEGLIGIBLE` compared with the largest."""
    x, _, weight = drop_weightless(x, x[:, :0], weight)
    there = weight >= NEGLIGIBLE * weight.max()
    if there.sum() < min(2, len(x)):
        raise ValueError(
            f"sample weights are from {weight.min():g} to {weight.max():g}: one row has all the weight, but a density "
            "needs at least two; give other weights"
        )
    return x[there], weight[there]


def box(x: Array, scale: Scale) -> Array:
    """Return the range of each column [in, 2]; that of a constant column is one unit of its scale to each side."""
    low, high = x.min(0), x.max(0)
    around = np.where(low == high, scale.spread, 0)
    return np.stack([low - around, high + around], axis=1)


def split(y: Array, share: float, folds: int, rng: np.random.RandomState, *, classes: bool) -> tuple[Array, int, int]:
    """Return the rows in random order, the number of rows in a fold, and the number of folds, at most `folds`.

    Fold k has the rows k size, ..., (k + 1) size - 1 of this order, with classes in proportion. Rows after the last
    fold are used for training only, as is the first row of each class. Without folds, the training rows validate.
    """
    n = len(y)
    order = rng.permutation(n)
    if share == 0 or n < FEWEST_ROWS:
        return order, 0, 0
    size = min(max(round(share * n), n // 3 if n < 30 else 10), LARGEST_FOLD, n - 1)
    last = n
    if classes:
        label = y @ np.arange(1, y.shape[1] + 1)  # with several labels, rows are grouped by this sum
        # spread the rows of each class evenly, so that every stretch of the order has all classes in proportion
        rank = np.full(n, np.inf)
        for value in np.unique(label):
            mine = order[label[order] == value][1:]
            rank[mine] = (np.arange(len(mine)) + 0.5) / max(len(mine), 1)
        order = order[np.argsort(rank[order], kind="stable")]
        last = int(np.isfinite(rank).sum())
        size = min(size, last)
    if not size:
        return order, 0, 0
    folds = max(1, min(folds, last // size))
    if classes:  # draws use rows at even distances
        stretches = np.split(order, [*(size * np.arange(1, folds + 1))])
        order = np.concatenate([stretch[rng.permutation(len(stretch))] for stretch in stretches])
    return order, size, folds


def make_rows(
    x: Array, y: Array, weight: Array, size: int, folds: Sequence[int], batch: int, looks: Mapping[str, Any]
) -> tuple[Rows, Validation]:
    """Return the training rows and the validation rows, with weights of mean 1; `looks` are options of `Validation`.

    With one fold, the first `size` rows are for validation; with several, `folds` has the fold of each start. Without
    validation rows, the training rows validate.
    """
    if len(set(folds)) > 1:
        firsts = [size * fold for fold in folds]
        rows = Rows(x, y, _relative(weight), min(batch, len(x) - size), held=size, firsts=firsts)
        return rows, Validation(**looks)
    train, test = slice(size, None), slice(0, size or None)
    count = len(x) - size
    rows = Rows(x[train], y[train], _relative(weight[train]), batch if batch < count else 0)
    return rows, Validation(x[test], y[test], _relative(weight[test]), **looks)


def _relative(weight: Array) -> Array | None:
    relative = weight / weight.mean()
    return None if (relative == 1).all() else relative
