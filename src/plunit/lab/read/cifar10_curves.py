"""Curves of training loss and test accuracy on CIFAR-10: of a run, and of the stored records; and how they are drawn.

Records are long runs, small enough for the package (`lab/records`); `tools/record.py` writes them.
"""

from __future__ import annotations

import csv
import functools
import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator

from plunit.base.errors import UserError
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


def read(name: str, folder: Path = RECORDS) -> tuple[dict[str, Any], Curves]:
    """Return what a stored record says of itself, and its curves by activation; {} and {} if there is none."""
    place = folder / name
    if not (place / "record.json").exists():
        return {}, {}
    about, tables = json.loads((place / "record.json").read_text()), []
    for file in ("losses.csv", "tests.csv"):
        table: dict[tuple[str, int], list[dict[str, str]]] = {}
        for row in csv.DictReader((place / file).read_text().splitlines()):
            table.setdefault((row["activation"], int(row["seed"])), []).append(row)
        tables.append(table)
    losses, tests = tables
    seeds: dict[str, list[int]] = {}
    for activation, seed in losses:
        seeds.setdefault(activation, []).append(seed)

    def columns(table: Any, activation: str, key: str) -> Column:
        return np.array([[float(row[key]) for row in table[activation, seed]] for seed in seeds[activation]]).T

    return about, {
        one: LossCurves(
            np.array(seeds[one]),
            about["window"],
            columns(losses, one, "loss"),
            columns(tests, one, "step")[:, 0].astype(int),
            columns(tests, one, "loss"),
            columns(tests, one, "accuracy"),
        )
        for one in seeds
    }


def check_spec(what: str, made: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Raise UserError if a run was made with another spec than the wanted one, both as plain values."""
    if others := [name for name in {**wanted, **made} if made.get(name) != wanted.get(name)]:
        fields = ", ".join(f"{name} = {made.get(name)} rather than {wanted.get(name)}" for name in others)
        raise UserError(f"{what} was made with {fields}; make it again with the same, or keep it under another name")


def join(old: LossCurves | None, new: LossCurves) -> LossCurves:
    """Return the curves of all seeds, in their order; new ones replace old ones of the same seed."""
    if old is None:
        return new
    kept = old.of(np.setdiff1d(old.seed, new.seed))
    parts = ((getattr(kept, key), getattr(new, key)) for key in ("seed", "loss", "test_loss", "test_accuracy"))
    seed, loss, test_loss, test_accuracy = (np.concatenate(part, axis=-1) for part in parts)
    both = LossCurves(seed, new.window, loss, new.test_step, test_loss, test_accuracy)
    return both.of(np.sort(seed))


def keep_common_seeds(curves: Curves) -> Curves:
    """Return the curves of the seeds that all activations have; {} if there are none."""
    seeds = functools.reduce(np.intersect1d, (found.seed for found in curves.values())) if curves else np.array([])
    return {name: found.of(seeds) for name, found in curves.items()} if seeds.size else {}


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
