"""PLUDensity, KernelDensity and GaussianMixture: log-likelihood of test rows, and time.

    python -m benchmarks density_tables           # a minute: 3 tables, one split of each
    python -m benchmarks density_tables --full    # 14 tables, 5 splits of each

A table is its inputs and, for regression, its target. Columns with fewer than 20 values are left out. In
the others a value that is rounded is moved at random by up to half of the least distance of two, in the rows of
training and of test, because rounded values have no density. All columns are standardised by the rows of training, so
that log-likelihoods do not depend on units. KernelDensity has the best of 20 bandwidths in 5 parts of the rows,
GaussianMixture the number of components, 1 to 20, with the least BIC. "normal" is one component. "one network" is
PLUDensity with n_best=1, the other two columns are means of 4. Seconds are those of
the processor, for the choice of parameters and the fit.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity

from benchmarks.tables import CLASSIFICATION, REGRESSION, UCI, Table
from benchmarks.timing import Bar, show

TOY_NAMES = ("moons", "gaussians", "checkerboard", "pinwheel")
TOY_ROWS, TOY_TESTS = 1000, 10_000
TABLES = (*TOY_NAMES, "wine", "breast cancer", *UCI)
SHORT = ("moons", "wine", "yacht")
FEWEST_VALUES = 20
SPLITS = 5
MOONS = """
import time
from sklearn.datasets import make_moons
from plunit.sklearn import PLUDensity
x = make_moons({rows}, noise=0.1, random_state=0)[0]
start = time.perf_counter()
PLUDensity(random_state=0).fit(x).score(x)
print(time.perf_counter() - start)
"""


@dataclass(frozen=True)
class Rows:
    """Rows of training and of test, standardised by those of training."""

    train: np.ndarray
    test: np.ndarray


def toy_rows(name: str, split: int) -> Rows:
    """Draw a toy density of `plunit.invertible`."""
    import torch

    from plunit.invertible import toy

    train, test = (
        toy(name, count, torch.Generator().manual_seed(seed)).double().numpy()
        for count, seed in ((TOY_ROWS, split), (TOY_TESTS, 1_000_000 + split))
    )
    return _standardised(train, test)


def table_rows(table: Table, split: int) -> Rows:
    """Return one split of a table, without its columns of few values; rounded values are spread out."""
    whole = table.x if table.y.dtype.kind == "i" else np.column_stack([table.x, table.y])
    rng, columns = np.random.default_rng(split), []
    for column in whole.T:
        values = np.unique(column)
        if len(values) < FEWEST_VALUES:
            continue
        gaps = np.diff(values)
        width = gaps[gaps > 1e-9 * gaps.sum()].min() if len(values) < len(column) else 0.0
        columns.append(column + width * (rng.random(len(column)) - 0.5))
    spread, test = np.stack(columns, axis=1), table.splits[split]
    return _standardised(spread[~test], spread[test])


def _standardised(train: np.ndarray, test: np.ndarray) -> Rows:
    mean, deviation = train.mean(0), train.std(0)
    return Rows((train - mean) / deviation, (test - mean) / deviation)


def rows_of(name: str, split: int) -> Rows:
    """Return a split of the table of that name."""
    if name in TOY_NAMES:
        return toy_rows(name, split)
    return table_rows({**REGRESSION, **CLASSIFICATION}[name](), split)


def normal(x: np.ndarray) -> Any:
    """Fit one normal density."""
    return GaussianMixture(1).fit(x)


def kernels(x: np.ndarray) -> Any:
    """Fit a kernel density."""
    search = GridSearchCV(KernelDensity(), {"bandwidth": np.logspace(-1.5, 0.5, 20)}, cv=5)
    return search.fit(np.random.default_rng(0).permutation(x)).best_estimator_


def mixture(x: np.ndarray) -> Any:
    """Fit a mixture of normal densities."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those that did not converge
        fitted = [GaussianMixture(k, random_state=0).fit(x) for k in range(1, min(20, len(x) // 2) + 1)]
    return min(fitted, key=lambda one: one.bic(x))


def ours(x: np.ndarray, **parameters: Any) -> Any:
    """Fit PLUDensity."""
    from plunit.sklearn import PLUDensity

    return PLUDensity(random_state=0, **parameters).fit(x)


MODELS: dict[str, Callable[[np.ndarray], Any]] = {
    "normal": normal,
    "kernels": kernels,
    "mixture": mixture,
    "PLUDensity": ours,
    "exact PLU": partial(ours, activation="plu"),
    "one network": partial(ours, n_best=1),
}
TIMED = ("kernels", "mixture", "PLUDensity")


def measure(rows: Rows, fit: Callable[[np.ndarray], Any]) -> tuple[float, float, int]:
    """Return the mean log-likelihood of the test rows, processor seconds of the fit, and the number of blocks."""
    start = time.process_time()
    model = fit(rows.train)
    seconds = time.process_time() - start
    return float(np.mean(model.score_samples(rows.test))), seconds, getattr(model, "n_blocks_", 0)


def judge(name: str, splits: int) -> dict[str, float]:
    """Print the means over splits of one table; return the log-likelihoods."""
    found = {model: [measure(rows_of(name, split), fit) for split in range(splits)] for model, fit in MODELS.items()}
    shape = rows_of(name, 0).train.shape
    scores = {model: float(np.mean([one[0] for one in results])) for model, results in found.items()}
    seconds = {model: float(np.mean([one[1] for one in results])) for model, results in found.items()}
    blocks = np.median([one[2] for one in found["PLUDensity"]])
    cells = "".join(f"{_short(value):>12}" for value in scores.values())
    times = "".join(f"{seconds[model]:>9.1f}" for model in TIMED)
    print(f"{name:14}{shape[0]:>6}{shape[1]:>4}{cells}{blocks:>8.0f}{times}", flush=True)
    return scores


def _short(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 1e4 else f"{value:.1e}"


def contest(names: Sequence[str], splits: int) -> None:
    """Print all tables and on how many of them PLUDensity is ahead."""
    print(f"log-likelihood of test rows in nats, mean of {splits} split(s); then processor seconds")
    head = "".join(f"{model:>12}" for model in MODELS) + f"{'blocks':>8}"
    print(f"{'table':14}{'rows':>6}{'in':>4}{head}" + "".join(f"{model[:8]:>9}" for model in TIMED))
    rows = [judge(name, splits) for name in names]
    print()
    for peer in ("normal", "kernels", "mixture"):
        ahead = sum(row["PLUDensity"] > row[peer] for row in rows)
        show(f"PLUDensity is ahead of {peer}, tables of {len(rows)}", ahead, None)


def first_call(rows: int) -> float:
    """Return the seconds from the first call to a trained density of moons, with the program compiled before."""
    runs = [
        subprocess.run([sys.executable, "-c", MOONS.format(rows=rows)], capture_output=True, check=True) for _ in "12"
    ]
    return float(runs[-1].stdout)


def main(arguments: Sequence[str] = ()) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks density_tables", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--full", action="store_true", help="all tables, five splits of each")
    parser.add_argument("--tables", nargs="+", choices=TABLES, metavar="NAME", help=", ".join(TABLES))
    parser.add_argument("--splits", type=int, choices=range(1, 11), metavar="N", help="the first N splits")
    options = parser.parse_args(arguments)
    contest(options.tables or (TABLES if options.full else SHORT), options.splits or (SPLITS if options.full else 1))
    for count in (1000, 2000):
        show(
            f"first call to a trained density of moons, {count} points, seconds of the clock",
            first_call(count),
            Bar(1.0),
        )


if __name__ == "__main__":
    main(sys.argv[1:])
