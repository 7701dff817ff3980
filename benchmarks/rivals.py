"""PLURegressor and other libraries with their defaults: errors and processor seconds, on one core.

    python -m benchmarks rivals                 # 13 tables, 5 splits of each
    python -m benchmarks rivals --store         # for README.md and docs/benchmarks.md
    python -m benchmarks rivals --tables yacht energy --splits 2

CatBoost, LightGBM and RealMLP-TD-S take part where they are installed: pip install catboost lightgbm pytabkit. An
error is the RMSE over the deviation of the training target. Ratios are computed split by split.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.multioutput import MultiOutputRegressor

from benchmarks.scores import geometric_mean
from benchmarks.tables import REGRESSION, SPLITS, fold
from benchmarks.timing import STORED, Bar, has_one_core, show, store

SPLITS_TAKEN = 5
PACKAGES = ("pytabkit", "catboost", "lightgbm", "scikit-learn")
Found = dict[str, dict[str, tuple[np.ndarray, np.ndarray]]]
"""By contestant and table: errors and processor seconds of its splits."""


def _catboost() -> Any:
    from catboost import CatBoostRegressor

    return CatBoostRegressor(random_seed=0, verbose=False, thread_count=1, allow_writing_files=False)


def _lightgbm() -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(random_state=0, verbose=-1, n_jobs=1)


def _realmlp() -> Any:
    from pytabkit import RealMLP_TD_S_Regressor

    return RealMLP_TD_S_Regressor(random_state=0, device="cpu", n_threads=1)


def _ours(**options: Any) -> Callable[[], Any]:
    from plunit.sklearn import PLURegressor

    return lambda: PLURegressor(random_state=0, **options)


def contestants() -> dict[str, Callable[[], Any]]:
    """Return the contestants whose packages are installed."""
    known: dict[str, tuple[str, Callable[[], Any]]] = {
        "default": ("sklearn", _ours()),
        "one PLU": ("sklearn", _ours(n_best=1)),
        "tanh": ("sklearn", _ours(activation="tanh")),
        "ReLU": ("sklearn", _ours(activation="relu")),
        "GELU": ("sklearn", _ours(activation="gelu")),
        "learned PLU": ("sklearn", _ours(activation="plu_learned")),
        "boosting": ("sklearn", lambda: HistGradientBoostingRegressor(random_state=0)),
        "forest": ("sklearn", lambda: RandomForestRegressor(random_state=0)),
        "CatBoost": ("catboost", _catboost),
        "LightGBM": ("lightgbm", _lightgbm),
        "RealMLP": ("pytabkit", _realmlp),
    }
    there = {name: make for name, (package, make) in known.items() if importlib.util.find_spec(package)}
    if missing := [known[name][0] for name in known if name not in there]:
        print(f"left out, because not installed: {', '.join(missing)}")
    return there


def judged(make: Callable[[], Any], name: str, splits: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the errors and the processor seconds of the first splits of a table."""
    table, errors, seconds = REGRESSION[name](), [], []
    for number in range(splits):
        part = fold(table, number)
        model = make()
        if part.y.ndim > 1 and "plunit" not in type(model).__module__:
            model = MultiOutputRegressor(model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of others' libraries
            start = time.process_time()
            model.fit(part.x, part.y)
            seconds.append(time.process_time() - start)
            errors.append(part.error(np.asarray(model.predict(part.x_test)).reshape(part.y_test.shape), part.y_test))
    return np.array(errors), np.array(seconds)


def ratios(found: Found, of: int) -> dict[str, float]:
    """Return errors (0) or seconds (1) over the default's, split by split, geometric means over tables."""
    ours = found["default"]
    return {
        name: geometric_mean(geometric_mean(results[table][of] / ours[table][of]) for table in results)
        for name, results in found.items()
        if name != "default"
    }


def main(arguments: Sequence[str] = ()) -> None:
    """Print errors, seconds, and their ratios to ours."""
    parser = argparse.ArgumentParser("python -m benchmarks rivals", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tables", nargs="+", choices=[*REGRESSION], metavar="NAME", default=[*REGRESSION])
    parser.add_argument("--splits", type=int, choices=range(1, SPLITS + 1), metavar="N", default=SPLITS_TAKEN)
    parser.add_argument("--store", type=Path, nargs="?", const=STORED, metavar="FILE", help=f"write {STORED.name}")
    chosen = parser.parse_args(arguments)
    if not has_one_core("benchmarks.rivals", *arguments):
        return
    makers = contestants()
    found: Found = {name: {} for name in makers}
    print("median error / median processor seconds")
    print(f"{'':14}" + "".join(f"{name:>16}" for name in found), flush=True)
    for table in chosen.tables:
        for name, results in found.items():
            results[table] = judged(makers[name], table, chosen.splits)
        cells = (results[table] for results in found.values())
        print(f"{table:14}" + "".join(f"{np.median(e):>9.3f} /{np.median(s):>5.2f}" for e, s in cells), flush=True)
    print()
    errors, seconds = ratios(found, 0), ratios(found, 1)
    for name in errors:
        bar = Bar(1 / 1.03, True) if name == "tanh" else None
        show(f"{name} / default, error, geometric mean", errors[name], bar)
        show(f"{name} / default, processor seconds, geometric mean", seconds[name])
    if chosen.store:
        packages = [name for name in PACKAGES if importlib.util.find_spec(name.replace("scikit-learn", "sklearn"))]
        medians = {
            table: {name: float(np.median(results[table][0])) for name, results in found.items()}
            for table in chosen.tables
        }
        versions = {name: importlib.metadata.version(name) for name in packages}
        measured = {"errors": medians, "error ratios": errors, "second ratios": seconds}
        about = {"splits": chosen.splits, "versions": versions}
        store(chosen.store, "rivals", arguments, about | measured)


if __name__ == "__main__":
    main(sys.argv[1:])
