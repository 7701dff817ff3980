"""Curves of training loss and test accuracy on CIFAR-10: of a run, and of the stored records; and how they are drawn.

Records are long runs, small enough for the package (`lab/records`); `tools/record.py` writes them.
"""

from __future__ import annotations

import csv
import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator

from plunit.lab.cell import Arrays
from plunit.lab.intervals import Column
from plunit.lab.style import look

RECORDS = Path(__file__).parents[1] / "records"
WINDOW = 50


@dataclass(frozen=True)
class LossCurves:
    """What is kept of the runs of one activation, seeds on the last axis.

    Attributes:
        seed: the seeds [seeds].
        window: steps in a window.
        loss: mean training loss of each window [windows, seeds].
        test_step: steps after which the test set was evaluated [tests].
        test_loss: mean cross-entropy then [tests, seeds].
        test_accuracy: share of right answers then [tests, seeds].
    """

    seed: Column
    window: int
    loss: Column
    test_step: Column
    test_loss: Column
    test_accuracy: Column

    @property
    def steps(self) -> int:
        """Number of steps in all windows."""
        return self.window * len(self.loss)

    @property
    def seeds(self) -> int:
        """Number of seeds."""
        return int(self.seed.size)

    def at(self, step: int) -> Column:
        """Return the mean loss of the window that ends at a step [seeds]."""
        loss: Column = self.loss[step // self.window - 1]
        return loss

    def area(self, step: int) -> Column:
        """Return the mean loss of all steps up to one: the area under the curve, divided by its length [seeds]."""
        area: Column = np.mean(self.loss[: step // self.window], axis=0)
        return area

    def accuracy(self, step: int) -> Column:
        """Return the share of right answers at the last test up to a step [seeds]."""
        accuracy: Column = self.test_accuracy[np.searchsorted(self.test_step, step, side="right") - 1]
        return accuracy

    def of(self, seeds: Column) -> LossCurves:
        """Return the curves of some of the seeds."""
        at = [self.seed.tolist().index(seed) for seed in seeds]
        kept = (one[..., at] for one in (self.loss, self.test_loss, self.test_accuracy))
        loss, test_loss, test_accuracy = kept
        return LossCurves(self.seed[at], self.window, loss, self.test_step, test_loss, test_accuracy)

    def smoothed(self, steps: int) -> Column:
        """Return the mean loss of each `steps` steps [groups, seeds]; an incomplete last group is left out."""
        width = max(steps // self.window, 1)
        count = len(self.loss) // width
        loss: Column = self.loss[: count * width].reshape(count, width, -1).mean(1)
        return loss


Curves = dict[str, LossCurves]


def curve(arrays: Arrays, window: int = WINDOW) -> LossCurves:
    """Reduce the arrays of `compute` to a curve; steps beyond the last whole window are left out."""
    window = min(window, len(arrays["loss"]))
    count = len(arrays["loss"]) // window
    loss = arrays["loss"][: count * window].astype(np.float64).reshape(count, window, -1).mean(1)
    tests = arrays["test_step"][:, 0], arrays["test_loss"], arrays["test_accuracy"]
    return LossCurves(arrays["seed"], window, loss, *tests)


def read(name: str, folder: Path = RECORDS) -> Curves:
    """Return the curves of a stored record by activation; {} if there is no such record."""
    place, curves = folder / name, {}
    if not (place / "record.json").exists():
        return {}
    about = json.loads((place / "record.json").read_text())
    losses, tests = (
        list(csv.DictReader((place / file).read_text().splitlines())) for file in ("losses.csv", "tests.csv")
    )

    def column(rows: list[dict[str, str]], key: str, activation: str, seeds: int) -> Column:
        return np.array([float(row[key]) for row in rows if row["activation"] == activation]).reshape(seeds, -1).T

    for one in about["seeds"].items():
        step = column(tests, "step", *one)[:, 0].astype(int)
        kept = column(losses, "loss", *one), step, column(tests, "loss", *one), column(tests, "accuracy", *one)
        curves[one[0]] = LossCurves(np.arange(one[1]), about["window"], *kept)
    return curves


def crossing(ours: Column, theirs: Column) -> Column:
    """Return, for each seed, the first group from which ours stays below theirs; infinite if ours ends above."""
    below = ours < theirs
    lasting = np.flip(np.cumprod(np.flip(below, 0), 0), 0)
    return np.where(lasting[-1] > 0, len(below) - lasting.sum(0), np.inf).astype(float)


def draw(curves: Curves, top: Any, bottom: Any) -> None:
    """Draw training loss on the upper axes and test accuracy on the lower ones."""
    for activation, found in curves.items():
        style = look(activation)
        x = found.window * np.arange(1, len(found.loss) + 1)
        top.plot(*_thinned(x, np.median(found.loss, axis=1)), **{**style, "linewidth": 1.2})
        accuracy = 100 * np.median(found.test_accuracy, axis=1)
        bottom.plot(found.test_step, accuracy, marker="o", markersize=2.5, **style)
    top.set(yscale="log", ylabel="training loss (cross-entropy)")
    bottom.set(xscale="log", xlabel="step", ylabel="test accuracy, %")
    long = max(found.steps for found in curves.values()) > 2000
    for axis, subs in ((top.yaxis, (1, 2, 5)), (bottom.xaxis, (1,) if long else (1, 2, 5))):
        axis.set_major_locator(LogLocator(subs=subs))
        axis.set_major_formatter("{x:,g}")
        axis.set_minor_formatter("")


def _thinned(x: Any, y: Any) -> tuple[Any, Any]:
    """Average neighbours at the far end of a long curve: at most 120 points, evenly spaced where x is logarithmic."""
    edges = np.unique(np.geomspace(1, len(x) + 1, 120).astype(int)) - 1
    groups = [slice(low, high) for low, high in itertools.pairwise(edges)]
    return np.array([x[group][-1] for group in groups]), np.array([y[group].mean() for group in groups])
