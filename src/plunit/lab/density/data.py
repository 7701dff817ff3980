"""The data sets: toys without end, and tables of a few hundred rows."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Generator, Tensor

from plunit.invertible import TOYS, toy
from plunit.lab.errors import UserError


def train_and_test(name: str, seed: int, points: int) -> tuple[Callable[[int], Tensor], Tensor]:
    """Return a function that draws training points, and the test points, for one seed; the same for every method."""
    generator = torch.Generator().manual_seed(seed)
    if name in TOYS:
        test = toy(name, points, torch.Generator().manual_seed(1_000_000 + seed))
        return lambda n: toy(name, n, generator), test
    rows = table(name)
    order = torch.randperm(len(rows), generator=generator)
    fifth = len(rows) // 5
    train, test = rows[order[fifth:]], rows[order[:fifth]]
    mean, spread = train.mean(0), train.std(0)
    train, test = (train - mean) / spread, (test - mean) / spread
    return lambda n: _rows(train, n, generator), test


def table(name: str) -> Tensor:
    """Return the rows of a table that ships with scikit-learn."""
    try:
        from sklearn import datasets
    except ImportError:
        raise UserError(f"the data set {name} needs scikit-learn: pip install 'plunit[lab]'") from None
    return torch.from_numpy(getattr(datasets, f"load_{name}")().data).float()


def _rows(table: Tensor, n: int, generator: Generator) -> Tensor:
    return table[torch.randint(len(table), (n,), generator=generator)]
