"""Train networks on the rows of a table, each seed on another split, and measure them on the other rows."""

from __future__ import annotations

import functools
import math
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from plunit.base.errors import UserError
from plunit.base.ranges import COUNT, RATE, SHARE, WIDTH, Range
from plunit.data.encoding import column_encoder
from plunit.data.tables import Table, read_columns
from plunit.ensemble import MLP, forward, initial, train
from plunit.ensemble.arrays import Array, is_constant
from plunit.ensemble.training_data import Data
from plunit.lab.cell import Arrays, Cell

_MOST_TESTED = 10_000  # rows, of either kind, on which a loss is computed


@dataclass(frozen=True)
class CompareSpec:
    """A table and the networks that learn one column of it from the others.

    Attributes:
        sha256: of the file.
        target: the column to learn.
        inputs: the columns to learn from.
        path: where the file is; the result does not depend on it.
        widths: units of the hidden layers.
        test: fraction of the rows held out for testing, drawn for each seed.
        steps: steps of Adam.
        batch: rows of each step, drawn with replacement; all training rows if there are at most that many.
        lr: Adam's step size.
        alpha: PLU's outer slope, or its start if it is learned.
        c: half-width of PLU's inner piece, or its start.
        tests: number of times that the loss on test rows is computed.
    """

    sha256: str = ""
    target: str = ""
    inputs: tuple[str, ...] = ()
    path: str = field(default="", compare=False)
    widths: Annotated[tuple[int, ...], Range(1, 256)] = (16, 16)
    test: Annotated[float, Range(0.01, 0.9)] = 0.2
    steps: Annotated[int, COUNT] = 2000
    batch: Annotated[int, Range(1, 4096)] = 128
    lr: Annotated[float, RATE] = 0.01
    alpha: Annotated[float, SHARE] = 0.1
    c: Annotated[float, WIDTH] = 1.0
    tests: Annotated[int, Range(1, 100)] = 20

    def marks(self) -> list[int]:
        """Return the steps after which test rows are looked at; the last is the end."""
        return sorted({max(1, round(self.steps * (i + 1) / self.tests)) for i in range(self.tests)})


def compute(cell: Cell, scratch: Path) -> Arrays:
    """Train seeds first, ..., last - 1.

    Seed s has one generator, which gives the split, the start and the batches: the same for every activation. Inputs
    and target are standardised by the training rows of the seed, so a loss of 1 is that of the mean. The arrays:

    - seed [S]; theta [rows, S]; history [steps / stride, S], losses of the batches; test_curve [marks, S];
    - test_loss, train_loss [S], mean square errors at the end; baseline [S], that of the mean on the test rows.
    """
    spec: CompareSpec = cell.spec
    table = load(spec.path, spec.sha256, spec.target, spec.inputs)
    splits = [Split(table, spec.test, np.random.default_rng(seed)) for seed in cell.seeds]
    network = MLP((table.inputs, *spec.widths, 1), cell.activation)
    scales = [1 / math.sqrt(inputs) for inputs in network.widths[:-1]]
    start = initial(network, [one.generator for one in splits], scales=scales, alpha=spec.alpha, c=spec.c)
    whole = len(splits[0].train) <= spec.batch
    trained = train(
        network,
        start,
        _stack([one.rows(one.train) for one in splits])
        if whole
        else lambda steps: _stack([one.batches(steps, spec.batch) for one in splits]),
        steps=spec.steps,
        lr=spec.lr,
        alpha=spec.alpha,
        c=spec.c,
        stride=math.ceil(spec.steps / 200),
        checkpoints=spec.marks(),
        engine=cell.engine,
    )
    test = _stack([one.rows(one.test[:_MOST_TESTED]) for one in splits])  # in a random order
    seen = _stack([one.rows(one.train[:_MOST_TESTED]) for one in splits])
    curve = [_loss(spec, network, theta, test) for theta in trained.checkpoints]
    return {
        "seed": np.array(cell.seeds),
        "theta": trained.theta,
        "history": trained.history,
        "test_curve": np.stack(curve),
        "test_loss": curve[-1],
        "train_loss": _loss(spec, network, trained.theta, seen),
        "baseline": (test[1].astype(np.float64) ** 2).mean((0, 1)),
    }


class Split:
    """The rows of one seed: for training and for tests, and how the training rows encode and standardise them."""

    def __init__(self, table: TableRows, share: float, generator: np.random.Generator) -> None:
        order = generator.permutation(len(table.y))
        tests = min(max(round(share * len(order)), 1), len(order) - 2)
        self.generator, self._y = generator, table.y
        self.test, self.train = order[:tests], order[tests:]
        self._x = table.encode(self.train)
        rows = np.column_stack([self._x, table.y])[self.train]
        spread = rows.std(0)
        constant = is_constant(rows) | (spread == 0)  # the deviation of 0.1, 0.1, ... is that of rounding
        self._mean, self._spread = rows.mean(0), np.where(constant, 1, spread)

    def rows(self, index: Any) -> tuple[Any, Any]:
        """Return inputs [..., inputs] and target [...] of some rows, standardised."""
        x = (self._x[index] - self._mean[:-1]) / self._spread[:-1]
        return x.astype(np.float32), ((self._y[index] - self._mean[-1]) / self._spread[-1]).astype(np.float32)

    def batches(self, steps: int, batch: int) -> tuple[Any, Any]:
        """Draw the next batches [steps, batch, inputs] and [steps, batch] of training rows."""
        return self.rows(self.train[self.generator.integers(len(self.train), size=(steps, batch))])


class TableRows:
    """The rows of a table, with text and missing values as they are.

    Every split encodes them by its own training rows, as `plunit fit` does, into the columns of the whole table: an
    input for a text, or for a gap, that does not occur among the training rows is 0.
    """

    def __init__(self, table: Table) -> None:
        self.y = table.y
        self._x, self._texts = table.x, table.texts
        self._numbers = [at for at in range(len(table.inputs)) if at not in table.texts]
        self._plain = not self._texts and not np.isnan(self._x).any()
        self._names = [] if self._plain else self._fit(slice(None)).get_feature_names_out().tolist()
        self.inputs = len(table.inputs) if self._plain else len(self._names)

    def _fit(self, rows: Any) -> Any:
        return column_encoder(self._numbers, self._texts).fit(self._x[rows])

    def encode(self, train: Any) -> Array:
        """Return all rows as numbers [rows, inputs]."""
        if self._plain:
            return self._x
        encoder = self._fit(train)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Found unknown categories", UserWarning)  # texts of test rows only
            encoded = encoder.transform(self._x)
        found = dict(zip(encoder.get_feature_names_out().tolist(), encoded.T, strict=True))
        nothing = np.zeros(len(self.y))
        return np.stack([found.get(name, nothing) for name in self._names], axis=1)


@functools.lru_cache(maxsize=1)
def load(path: str, sha256: str, target: str, inputs: tuple[str, ...]) -> TableRows:
    """Return the rows of the table, which must be the one that was asked about."""
    table = read_columns(Path(path), target, inputs, say=lambda text: None)
    if table.sha256 != sha256:
        raise UserError(f"{path} has changed since the comparison began; run `plunit compare` on it again")
    return TableRows(table)


def _stack(parts: list[tuple[Any, Any]]) -> Data:
    """Return inputs [..., inputs, rows, S] and target [..., 1, rows, S] of all seeds."""
    x, y = (np.stack([part[i] for part in parts], axis=-1) for i in (0, 1))
    return x.swapaxes(-3, -2), y[..., None, :, :]


def _loss(spec: CompareSpec, network: MLP, theta: Array, data: Data) -> Array:
    x, y = data
    residual = (forward(network, theta, x, spec.alpha, spec.c) - y).astype(np.float64)
    return np.asarray((residual**2).mean((0, 1)))
