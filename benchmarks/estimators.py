"""PLURegressor, PLUClassifier and scikit-learn: errors, time, and the spread over seeds.

    python -m benchmarks estimators                                         # two minutes: 6 tables, 2 splits of each
    python -m benchmarks estimators --full --peers peers.json               # 18 tables, 10 splits of each
    python -m benchmarks estimators --full --peers peers.json --only-peers  # only scikit-learn
    python -m benchmarks estimators --full --peers peers.json --errors      # no times; the peers from the file
    python -m benchmarks estimators --full --store                          # for docs/benchmarks.md
    python -m benchmarks estimators --times                                 # only times, the default against the peers

An error is the RMSE over the deviation of the training target, or the part of wrong classes. A table's error is the
median over splits. The MLPs have the shape (16, 16). They learn on 85 % of the training rows, standardised. The best of
20 is chosen on the other 15 %. One network of ours gets these validation rows if `fit` takes them as X_val and y_val.
The default and gradient boosting get all training rows. Compilation and the start of processes are not counted.
"""

from __future__ import annotations

import argparse
import inspect
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import timing
from benchmarks.peers import RESTARTS, Peers, Store, measure
from benchmarks.scores import (
    ACTIVATIONS,
    Result,
    classification_bars,
    medians,
    peer_medians,
    print_row,
    regression_bars,
    time_bars,
)
from benchmarks.tables import CLASSIFICATION, REGRESSION, SPLITS, Fold, Table, fold
from benchmarks.timing import Bar, Row, show

SHORT = ("yacht", "autompg", "energy", "friedman1", "wine", "moons")
STEADY = ("yacht", "autompg", "energy", "friedman1")  # tables on which many values of random_state are tried
TIMED = 2  # splits of each table whose peers are run even if their results are known, because times are of one run
VARIANTS: dict[str, dict[str, Any]] = {
    "one": {"n_best": 1, "hidden_layer_sizes": (16, 16)},
    "default": {},
    **{name: {"activation": name} for name in ACTIVATIONS},
}
IMPORT = """
import sys, time
start = time.perf_counter()
import plunit.sklearn
print(time.perf_counter() - start, int("torch" in sys.modules))
"""


def fit_ours(
    part: Fold, parameters: dict[str, Any], *, random_state: int = 0, share: bool = False
) -> tuple[float, float]:
    """Fit our estimator to data that are not scaled; return the test error and the seconds of `fit`.

    With `share` the estimator gets the validation rows of the MLPs, if it takes any.
    """
    from plunit.sklearn import PLUClassifier, PLURegressor

    model = (PLUClassifier if part.classes else PLURegressor)(random_state=random_state, **parameters)
    x, y, validation = part.x, part.y, {}
    if share and takes_validation(model):
        choose = part.validation
        x, y, validation = x[~choose], y[~choose], {"X_val": x[choose], "y_val": y[choose]}
    start = time.perf_counter()
    model.fit(x, y, **validation)
    seconds = time.perf_counter() - start
    return part.error(model.predict(part.x_test), part.y_test), seconds


def takes_validation(model: Any) -> bool:
    """Whether `fit` takes validation rows, in the words of HistGradientBoostingRegressor."""
    return {"X_val", "y_val"} <= set(inspect.signature(model.fit).parameters)


def peers_of(table: Table, split: int, store: Store, jobs: int, *, timed: bool) -> Peers:
    """Results of the peers, from the store if it has them and no times are needed."""
    found = None if timed else store.get(table, split)
    if found is None:
        found = measure(fold(table, split), jobs)
        store.put(table, split, found)
    return found


def judge(table: Table, splits: int, store: Store, jobs: int, timed: int, variants: Sequence[str]) -> list[Result]:
    """Run the peers and some of our variants on the first splits of a table; the first `timed` peers are run now."""
    results = []
    for split in range(splits):
        peers = peers_of(table, split, store, jobs, timed=split < timed)
        part = fold(table, split)
        ours = {name: fit_ours(part, VARIANTS[name], share=name == "one") for name in variants}
        errors, seconds = ({name: pair[index] for name, pair in ours.items()} for index in (0, 1))
        results.append(Result(peers, errors, seconds))
    return results


def spread(table: Table, peers: Peers) -> float:
    """Deviation of the test error over 20 values of random_state on the first split: our default / a single MLP."""
    part = fold(table, 0)
    ours = np.std([fit_ours(part, {}, random_state=seed)[0] for seed in range(RESTARTS)])
    theirs = np.std(peers.restarts)
    print(f"{table.name:14}deviation over random_state {ours:.4f}, of one MLP {theirs:.4f}", flush=True)
    return float(ours / theirs)


def only_peers(names: list[str], splits: int, store: Store, jobs: int) -> None:
    """Print the peers' medians."""
    for kind in (REGRESSION, CLASSIFICATION):
        chosen = [name for name in names if name in kind]
        for name in chosen:
            table = kind[name]()
            row = peer_medians([peers_of(table, split, store, jobs, timed=False) for split in range(splits)])
            print_row(name, row, header=name == chosen[0], classes=kind is CLASSIFICATION)


def times(names: list[str], store: Store, jobs: int) -> None:
    """Print the times of the first splits of each table of regression, and their bars."""
    fit_ours(_warm(jobs), {})
    rows = []
    for name in names:
        if name in REGRESSION:
            rows.append(medians(judge(REGRESSION[name](), TIMED, store, jobs, TIMED, ["one", "default"])))
            seconds = {key: value for key, value in rows[-1].items() if key.endswith(", s")}
            print_row(name, seconds, header=len(rows) == 1, classes=False)
    print()
    time_bars(rows)
    import_bars()


def _warm(jobs: int) -> Fold:
    """Start the peers' processes on a small split, and return it."""
    warm = fold(REGRESSION["linnerud"](), 0)
    measure(warm, jobs)
    return warm


def contest(
    names: list[str], splits: int, store: Store, jobs: int, steady: tuple[str, ...], timed: int
) -> dict[str, Any]:
    """Print everyone's medians on each table, then the bars; return the bars, and the accuracies by table."""
    from plunit.sklearn import PLURegressor

    if timed:
        fit_ours(_warm(jobs), {})
    print(f"validation rows of one network: {'those of the MLPs' if takes_validation(PLURegressor) else 'its own'}")
    bars: list[Row] = []
    accuracies: dict[str, dict[str, float]] = {}
    for kind in (REGRESSION, CLASSIFICATION):
        tables = [kind[name]() for name in names if name in kind]
        rows, first = [], {}
        for table in tables:
            results = judge(table, splits, store, jobs, timed, list(VARIANTS))
            rows.append(medians(results))
            first[table.name] = results[0].peers
            print_row(table.name, rows[-1], header=len(rows) == 1, classes=kind is CLASSIFICATION)
        if rows and kind is REGRESSION:
            print()
            bars += regression_bars(
                rows, [spread(table, first[table.name]) for table in tables if table.name in steady]
            )
        elif rows:
            bars += classification_bars(rows)
            for table, row in zip(tables, rows, strict=True):
                accuracies[table.name] = {key: 1 - row[key] for key in ("best of 20", "boosting", *VARIANTS)}
    if timed:
        bars += import_bars()
    return {"bars": bars, "accuracies": accuracies}


def import_bars() -> list[Row]:
    """Print the time of a cold import, and whether it loads PyTorch."""
    seconds, torch = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, check=True).stdout.split()
    return [
        show("cold import of plunit.sklearn, seconds", float(seconds), Bar(1.0)),
        show("PyTorch loaded by that import (0 no, 1 yes)", float(torch), Bar(0.0)),
    ]


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser("python -m benchmarks estimators", description=(__doc__ or "").partition("\n")[0])
    tables = [*REGRESSION, *CLASSIFICATION]
    parser.add_argument("--full", action="store_true", help="all tables, all ten splits of each")
    parser.add_argument("--tables", nargs="+", choices=tables, metavar="NAME", help=", ".join(tables))
    parser.add_argument("--splits", type=int, choices=range(1, SPLITS + 1), metavar="N", help="the first N splits")
    parser.add_argument(
        "--jobs", type=int, choices=range(1, 65), default=2, metavar="N", help="processes for the MLPs (2)"
    )
    parser.add_argument("--peers", type=Path, metavar="FILE", help="results of the peers: read, completed and written")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument(
        "--store", type=Path, nargs="?", const=timing.STORED, metavar="FILE", help=f"write {timing.STORED.name}"
    )
    kinds.add_argument("--only-peers", action="store_true", help="leave plunit out")
    kinds.add_argument("--errors", action="store_true", help="only errors; stored peers are not run")
    kinds.add_argument("--times", action="store_true", help="only times, of regression")
    chosen = parser.parse_args(arguments)
    chosen.tables = chosen.tables or (tables if chosen.full else list(SHORT))
    chosen.splits = chosen.splits or (SPLITS if chosen.full else 2)
    return chosen


def main(arguments: Sequence[str] = ()) -> None:
    """Print the tables."""
    chosen = parse(arguments)
    store = Store(chosen.peers)
    print(f"{len(chosen.tables)} tables, {chosen.splits} splits of each, MLPs in {chosen.jobs} processes")
    if chosen.only_peers:
        only_peers(chosen.tables, chosen.splits, store, chosen.jobs)
    elif chosen.times:
        times(chosen.tables, store, chosen.jobs)
    else:
        steady = STEADY if chosen.full else STEADY[:1]
        found = contest(chosen.tables, chosen.splits, store, chosen.jobs, steady, 0 if chosen.errors else TIMED)
        if chosen.store:
            about = {"splits": chosen.splits, "tables": chosen.tables}
            timing.store(chosen.store, "estimators", arguments, about | found)
    print(store)


if __name__ == "__main__":
    main(sys.argv[1:])
