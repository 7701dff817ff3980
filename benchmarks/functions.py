"""The second-order finish on functions without noise: error and time of one network, with it and without.

    python -m benchmarks functions           # 12 functions of 2 to 5 inputs, one seed: a minute
    python -m benchmarks functions --seeds 5 --peers

Each function is looked at in 2,500 random points (two inputs) or 5,000, and judged on 20,000 others. Both fits have the
same starts, so that they differ in the finish only. Times are seconds of the processor on one thread. Peers are
scikit-learn's MLPRegressor of the same shape, by L-BFGS and by Adam, the best of three starts on 15 % of the
points.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.timing import Bar, has_one_core, show

Array = np.ndarray[Any, Any]
HIDDEN = (16, 16)
JUDGED = 20_000
STARTS = 3


def franke(x: Array) -> Array:
    """Franke's function: four Gaussian hills."""
    a, b = 9 * x.T
    hills = 0.75 * np.exp(-((a - 2) ** 2 + (b - 2) ** 2) / 4) + 0.75 * np.exp(-((a + 1) ** 2) / 49 - (b + 1) / 10)
    return np.asarray(
        hills + 0.5 * np.exp(-((a - 7) ** 2 + (b - 3) ** 2) / 4) - 0.2 * np.exp(-((a - 4) ** 2 + (b - 7) ** 2))
    )


def arm(x: Array) -> Array:
    """Distance of the hand of a two-link arm from its shoulder, of two angles and two lengths."""
    first, second, one, other = x.T
    across, up = (one * f(first) + other * f(first + second) for f in (np.cos, np.sin))
    return np.hypot(across, up)


def option(x: Array) -> Array:
    """A kinked payoff with a smooth premium."""
    price, strike, spread, rate, years = x.T
    return np.asarray(np.maximum(price * np.exp(rate * years) - strike, 0) + spread * np.sqrt(years))


TURN = (-np.pi, np.pi)
FUNCTIONS: dict[str, tuple[Callable[[Array], Array], list[tuple[float, float]]]] = {
    "franke": (franke, [(0, 1)] * 2),
    "polar": (lambda x: np.hypot(*x.T) * np.sin(3 * x[:, 0]), [(-2, 2)] * 2),
    "saddle": (lambda x: x[:, 0] ** 2 - x[:, 1] ** 2, [(-2, 2)] * 2),
    "waves": (lambda x: np.sin(2 * x[:, 0]) * np.cos(3 * x[:, 1]), [(-2, 2)] * 2),
    "valley": (lambda x: np.log1p((1 - x[:, 0]) ** 2 + 100 * (x[:, 1] - x[:, 0] ** 2) ** 2), [(-2, 2)] * 2),
    "ridge": (lambda x: np.tanh(2 * x[:, 0] + x[:, 1]) * x[:, 2] + np.abs(x[:, 0] - x[:, 2]), [(-1, 1)] * 3),
    "ishigami": (lambda x: np.sin(x[:, 0]) * (1 + 0.1 * x[:, 2] ** 4) + 7 * np.sin(x[:, 1]) ** 2, [TURN] * 3),
    "arm": (arm, [TURN, TURN, (0.5, 1), (0.5, 1)]),
    "gas": (lambda x: x[:, 0] * x[:, 1] / (x[:, 2] + 0.5) * np.exp(-x[:, 3]), [(0, 1)] * 4),
    "friedman": (
        lambda x: 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4],
        [(0, 1)] * 5,
    ),
    "option": (option, [(0.5, 1.5), (0.5, 1.5), (0.1, 0.5), (0, 0.1), (0.1, 2)]),
    "joints": (lambda x: np.cos(x[:, 0] + x[:, 1]) * x[:, 2] + np.sin(x[:, 3]) * x[:, 4] ** 2, [(-1, 1)] * 5),
}
"""Name to function and box."""


def points(name: str, count: int, seed: Sequence[int]) -> tuple[Array, Array]:
    """Return random points of the box of a function, and its values."""
    f, box = FUNCTIONS[name]
    low, high = np.array(box).T
    x = np.random.default_rng(seed).uniform(low, high, (count, len(box)))
    return x, f(x)


def ours(name: str, seed: int, finish: Any) -> tuple[float, float]:
    """Fit one network; return its RMSE over the deviation of the function, and the seconds of `fit`."""
    from plunit.sklearn import PLURegressor

    model = PLURegressor(HIDDEN, n_best=1, random_state=seed, finish=finish)
    return judged(name, seed, lambda x, y: model.fit(x, y).predict)


def peers(name: str, seed: int, solver: str) -> tuple[float, float]:
    """Fit the best of some MLPs of scikit-learn, on standardised columns."""
    from sklearn.neural_network import MLPRegressor

    def fit(x: Array, y: Array) -> Callable[[Array], Array]:
        mean, spread, rows = x.mean(0), x.std(0), round(0.85 * len(x))
        level, size = y.mean(), y.std()
        x, y = (x - mean) / spread, (y - level) / size
        found = []
        for start in range(STARTS):
            options = {"solver": solver, "alpha": 0.0, "max_iter": 2000 if solver == "lbfgs" else 400}
            model = MLPRegressor(hidden_layer_sizes=HIDDEN, random_state=start, **options).fit(x[:rows], y[:rows])
            found.append((np.mean((model.predict(x[rows:]) - y[rows:]) ** 2), start, model))
        best = min(found)[2]
        return lambda new: best.predict((new - mean) / spread) * size + level

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of iterations that did not suffice
        return judged(name, seed, fit)


def judged(name: str, seed: int, fit: Callable[[Array, Array], Callable[[Array], Array]]) -> tuple[float, float]:
    """Return the RMSE on fresh points over the deviation of the function, and the seconds of a fit."""
    x, y = points(name, 2500 if len(FUNCTIONS[name][1]) == 2 else 5000, [seed, 0])
    fresh, expected = points(name, JUDGED, [seed, 1])
    start = time.process_time()
    predict = fit(x, y)
    seconds = time.process_time() - start
    return float(np.sqrt(np.mean((predict(fresh) - expected) ** 2)) / expected.std()), seconds


def main(arguments: Sequence[str] = ()) -> None:
    """Print a row for each function, then the bars."""
    parser = argparse.ArgumentParser("python -m benchmarks functions", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, choices=range(1, 101), default=1, metavar="N", help="fits of each (1)")
    parser.add_argument("--peers", action="store_true", help="scikit-learn's MLPs, too")
    chosen = parser.parse_args(arguments)
    if not has_one_core("benchmarks.functions", *arguments):
        return
    ours("saddle", 0, 1)  # the program is compiled
    kinds = {"Adam": lambda *given: ours(*given, 0), "finished": lambda *given: ours(*given, "auto")}
    if chosen.peers:
        kinds |= {f"MLP {solver}": lambda *given, solver=solver: peers(*given, solver) for solver in ("lbfgs", "adam")}
    print(f"{'RMSE / deviation':18}" + "".join(f"{kind:>12}" for kind in kinds) + "   seconds of the processor")
    table = []
    for name in FUNCTIONS:
        found = np.array([[kind(name, seed) for kind in kinds.values()] for seed in range(chosen.seeds)])
        table += [*found]
        errors, seconds = np.median(found, axis=0).T
        print(
            f"{name:18}"
            + "".join(f"{one:12.4f}" for one in errors)
            + "   "
            + " ".join(f"{one:6.2f}" for one in seconds),
            flush=True,
        )
    errors, seconds = np.moveaxis(np.array(table), -1, 0)
    print()
    for i, kind in enumerate(kinds):
        if i:
            show(
                f"RMSE {kind} / Adam, geometric mean", _mean(errors[:, i] / errors[:, 0]), Bar(0.7) if i == 1 else None
            )
            show(
                f"time {kind} / Adam, geometric mean",
                _mean(seconds[:, i] / seconds[:, 0]),
                Bar(3.0) if i == 1 else None,
            )
    ratios = errors[:, 1] / errors[:, 0]
    show("RMSE finished / Adam, the least", float(ratios.min()))
    show("RMSE finished / Adam, the largest", float(ratios.max()))
    show(f"fits of {len(ratios)} that were left as they are", float((ratios == 1).sum()))
    show("time finished / Adam, the largest", float((seconds[:, 1] / seconds[:, 0]).max()), Bar(3.0))


def _mean(ratios: Array) -> float:
    return float(np.exp(np.log(ratios).mean()))


if __name__ == "__main__":
    main(sys.argv[1:])
