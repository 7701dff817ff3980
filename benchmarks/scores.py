"""Medians over splits of the errors on a table, and bars over all tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.peers import RESTARTS, Peers
from benchmarks.timing import Bar, Row, show

ACTIVATIONS = ("tanh", "relu", "gelu", "plu_learned")
"""The activations that are compared with PLU."""


@dataclass(frozen=True)
class Result:
    """One split of one table: the peers, and error and seconds of each of our variants."""

    peers: Peers
    errors: dict[str, float]
    seconds: dict[str, float]


def peer_medians(peers: list[Peers]) -> dict[str, float]:
    """Errors of the peers, medians over splits; of one MLP, the median over its starts."""
    return {
        "best of 20": float(np.median([one.best for one in peers])),
        "one MLP": float(np.median([np.median(one.restarts) for one in peers])),
        "boosting": float(np.median([one.boosting for one in peers])),
    }


def medians(results: list[Result]) -> dict[str, float]:
    """Errors of all, medians over splits; then seconds, medians over the splits whose peers were timed, if any were."""
    timed = [result for result in results if result.peers.restart_seconds is not None]
    columns: dict[str, Any] = {name: [result.errors[name] for result in results] for name in results[0].errors}
    if timed:
        columns |= {
            "20 MLPs, s": [result.peers.restart_seconds for result in timed],
            "boosting, s": [result.peers.boosting_seconds for result in timed],
            "one, s": [result.seconds["one"] for result in timed],
            "default, s": [result.seconds["default"] for result in timed],
        }
    found = {name: float(np.median(values)) for name, values in columns.items()}
    return {**peer_medians([result.peers for result in results]), **found}


def print_row(name: str, row: dict[str, float], *, header: bool, classes: bool) -> None:
    """Print one table's numbers, accuracies in place of errors for classes, under their names if it is the first."""
    if header:
        kind = "accuracy" if classes else "error"
        print(f"\n{kind:14}" + "".join(f"{key:>12}" for key in row))
    values = (1 - value if classes and not key.endswith(", s") else value for key, value in row.items())
    print(f"{name:14}" + "".join(f"{value:>12.3f}" for value in values), flush=True)


def mean_ratio(rows: list[dict[str, float]], ours: str, theirs: str) -> float:
    """Return the geometric mean over tables of the ratio of two columns."""
    return geometric_mean(row[ours] / row[theirs] for row in rows)


def time_bars(rows: list[dict[str, float]]) -> list[Row]:
    """Print the bars of time."""
    total = sum(row["default, s"] for row in rows) / sum(row["20 MLPs, s"] for row in rows)
    return [
        show("default / 20 MLPs, seconds, geometric mean", mean_ratio(rows, "default, s", "20 MLPs, s"), Bar(0.5)),
        show("default / 20 MLPs, seconds, sums over tables", total, Bar(0.5)),
        show("default / gradient boosting, seconds, geometric mean", mean_ratio(rows, "default, s", "boosting, s")),
    ]


def regression_bars(rows: list[dict[str, float]], spreads: list[float]) -> list[Row]:
    """Print the bars of regression."""
    print()
    share = sum(row["one"] <= row["best of 20"] for row in rows) / len(rows)
    found = [
        show("one network: fraction of tables not worse than the best of 20 MLPs", share, Bar(0.75, at_least=True)),
        show("one network / best of 20 MLPs, error, geometric mean", mean_ratio(rows, "one", "best of 20"), Bar(0.95)),
        show("default / gradient boosting, error, geometric mean", mean_ratio(rows, "default", "boosting"), Bar(1.0)),
        show("default / best of 20 MLPs, error, geometric mean", mean_ratio(rows, "default", "best of 20")),
    ]
    if "20 MLPs, s" in rows[0]:
        found += time_bars(rows)
    if spreads:
        text = f"spread over {RESTARTS} values of random_state / one MLP, geometric mean"
        found.append(show(text, geometric_mean(spreads), Bar(1 / 3)))
    for name in ACTIVATIONS:
        found.append(show(f"{name} / PLU, error of the default, geometric mean", mean_ratio(rows, name, "default")))
    return found


def classification_bars(rows: list[dict[str, float]]) -> list[Row]:
    """Print the bar of classification, which the default should meet; one network is also printed."""
    print()
    found = []
    for name, bar in (("default", Bar(0.8, at_least=True)), ("one", None)):
        share = sum(row[name] <= row["best of 20"] for row in rows) / len(rows)
        found.append(show(f"classification, {name}: fraction of tables not worse than the best of 20 MLPs", share, bar))
    return found


def geometric_mean(values: Iterable[float]) -> float:
    """exp(mean(log values))."""
    return float(np.exp(np.mean(np.log(list(values)))))
