"""Tables to judge estimators on, and their splits: training, validation and test rows."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.decomposition import PCA
from sklearn.model_selection import StratifiedShuffleSplit, train_test_split

DATA = Path(__file__).parent / "data"
UCI = ("airfoil", "autompg", "concrete", "energy", "servo", "skillcraft", "stock", "yacht")
SPLITS = 10
VALIDATION = 0.15
"""The fraction of the training rows on which the best start is chosen."""


@dataclass(frozen=True)
class Table:
    """Inputs x (rows, inputs), targets y, and a mask of test rows for each split. Integer targets are classes.

    With `components`, the inputs of a split are that many principal components of its training rows.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    splits: tuple[np.ndarray, ...]
    components: int | None = None

    def __post_init__(self) -> None:
        for array in (self.x, self.y, *self.splits):
            array.setflags(write=False)

    def checksum(self) -> int:
        """CRC of all values, so that stored results of another table are not used."""
        parts = (self.x, self.y, *self.splits, np.array(self.components or 0))
        return zlib.crc32(b"".join(np.ascontiguousarray(part).tobytes() for part in parts))


@dataclass(frozen=True)
class Fold:
    """One split of a table: training rows x, y, a mask of those to choose on, and test rows."""

    x: np.ndarray
    y: np.ndarray
    validation: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray

    @property
    def classes(self) -> bool:
        """Whether the targets are classes."""
        return self.y.dtype.kind == "i"

    def standardised(self) -> Fold:
        """(x - mean) / deviation of the training rows; the same for targets that are not classes."""
        mean, deviation = self.x.mean(0), self.x.std(0)
        scaled = dataclasses.replace(self, x=(self.x - mean) / deviation, x_test=(self.x_test - mean) / deviation)
        if self.classes:
            return scaled
        mean, deviation = self.y.mean(0), self.y.std(0)
        return dataclasses.replace(scaled, y=(self.y - mean) / deviation, y_test=(self.y_test - mean) / deviation)

    def error(self, predicted: np.ndarray, truth: np.ndarray) -> float:
        """RMSE over the deviation of the training target, outputs pooled; for classes the fraction of errors."""
        if predicted.shape != truth.shape:
            raise ValueError(f"predictions have shape {predicted.shape}, their targets {truth.shape}")
        if self.classes:
            return float(np.mean(predicted != truth))
        return float(np.sqrt(np.mean(((predicted - truth) / self.y.std(0)) ** 2)))


def fold(table: Table, split: int) -> Fold:
    """Return one split, without inputs that are constant on its training rows. Its number seeds the validation."""
    test = table.splits[split]
    x, x_test, y = table.x[~test], table.x[test], table.y[~test]
    varies = np.ptp(x, axis=0) > 0
    x, x_test = x[:, varies], x_test[:, varies]
    if table.components:
        components = PCA(table.components, random_state=0).fit(x)
        x, x_test = components.transform(x), components.transform(x_test)
    chosen = train_test_split(
        np.arange(len(x)), test_size=VALIDATION, random_state=split, stratify=y if y.dtype.kind == "i" else None
    )[1]
    validation = np.zeros(len(x), bool)
    validation[chosen] = True
    return Fold(x, y, validation, x_test, table.y[test])


def _masks(rows: int, test: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    return tuple(np.isin(np.arange(rows), chosen) for chosen in test)


def _uci(name: str) -> Table:
    data = np.loadtxt(DATA / f"{name}.data.csv.gz", delimiter=",")
    masks = np.loadtxt(DATA / f"{name}.test_mask.csv.gz", delimiter=",", dtype=int).astype(bool)
    return Table(name, data[:, :-1], data[:, -1], tuple(masks.T.copy()))


def _regression(name: str, load: Callable[[], tuple[np.ndarray, np.ndarray]]) -> Table:
    """Ten splits at random, a tenth of the rows for the test."""
    x, y = load()
    rows = len(x)
    test = [np.random.default_rng(seed).permutation(rows)[: rows // 10] for seed in range(SPLITS)]
    return Table(name, x, y, _masks(rows, test))


def _classification(
    name: str, load: Callable[[], tuple[np.ndarray, np.ndarray]], components: int | None = None
) -> Table:
    """Ten splits at random, a fifth of each class for the test."""
    x, y = load()
    test = [part for _, part in StratifiedShuffleSplit(SPLITS, test_size=0.2, random_state=0).split(x, y)]
    return Table(name, x, y.astype(int), _masks(len(x), test), components)


def spirals(rows: int = 500, turns: float = 2.0, noise: float = 0.04) -> tuple[np.ndarray, np.ndarray]:
    """Two spirals r = t, angle = 2 pi turns t + pi class, t in [0, 1]; the arms are 1 / (2 turns) apart."""
    rng = np.random.default_rng(0)
    label = np.arange(rows) % 2
    t = np.sqrt(rng.random(rows))  # the same number of points per length of the arm
    angle = 2 * np.pi * turns * t + np.pi * label
    points = t[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return points + noise * rng.standard_normal(points.shape), label


# noise as in Breiman, Bagging predictors (1996): a third of the signal's deviation for the second and the third
REGRESSION: dict[str, Callable[[], Table]] = {
    **{name: partial(_uci, name) for name in UCI},
    **{
        name: partial(_regression, name, load)
        for name, load in {
            "diabetes": partial(datasets.load_diabetes, return_X_y=True),
            "linnerud": partial(datasets.load_linnerud, return_X_y=True),
            "friedman1": partial(datasets.make_friedman1, n_samples=500, noise=1.0, random_state=0),
            "friedman2": partial(datasets.make_friedman2, n_samples=500, noise=125.0, random_state=0),
            "friedman3": partial(datasets.make_friedman3, n_samples=500, noise=0.1, random_state=0),
        }.items()
    },
}

CLASSIFICATION: dict[str, Callable[[], Table]] = {
    "breast cancer": partial(_classification, "breast cancer", partial(datasets.load_breast_cancer, return_X_y=True)),
    "wine": partial(_classification, "wine", partial(datasets.load_wine, return_X_y=True)),
    "digits": partial(_classification, "digits", partial(datasets.load_digits, return_X_y=True), components=16),
    "spirals": partial(_classification, "spirals", spirals),
    "moons": partial(_classification, "moons", partial(datasets.make_moons, n_samples=500, noise=0.3, random_state=0)),
}
