"""CIFAR-10: rows, claims and curves of training loss and test accuracy, from a run or the stored records.

Records are long runs, small enough for the package (`lab/records`); `tools/record.py` writes them.
"""

from __future__ import annotations

import csv
import dataclasses
import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from plunit.base.ranges import Range
from plunit.data import fetch
from plunit.lab.cell import Arrays
from plunit.lab.claims import Claim, Column, interval, measure, measure_ratio, median, ratios
from plunit.lab.experiment import Experiment, Results, Runs
from plunit.lab.style import Picture, label, listed, look
from plunit.lab.train import cifar10 as run
from plunit.lab.train.cifar10 import Cifar10Spec

RECORDS = Path(__file__).parents[1] / "records"
WINDOW = 50
Bars = tuple[Range, Range]

_STEPS = (100, 500, 1000, 5000)
_FULL = Cifar10Spec.steps
"""The paper's number of steps: what it says of the whole run is decided there, and nowhere else."""

_FITS = ("sine", "parametric", "surface")
_CROSSING = 1000  # steps over which losses are averaged to see one curve cross another


@dataclass(frozen=True)
class LossCurves:
    """What is kept of the runs of one activation, seeds on the last axis.

    Attributes:
        window: steps in a window.
        loss: mean training loss of each window [windows, seeds].
        test_step: steps after which the test set was evaluated [tests].
        test_loss: mean cross-entropy then [tests, seeds].
        test_accuracy: share of right answers then [tests, seeds].
    """

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
        return int(self.loss.shape[1])

    def at(self, step: int) -> Column:
        """Return the mean loss of the window that ends at a step [seeds]."""
        loss: Column = self.loss[step // self.window - 1]
        return loss

    def area(self, step: int) -> Column:
        """Return the mean loss of all steps up to one: the area under the curve, divided by its length [seeds]."""
        area: Column = np.mean(self.loss[: step // self.window], axis=0)
        return area

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
    return LossCurves(window, loss, arrays["test_step"][:, 0], arrays["test_loss"], arrays["test_accuracy"])


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
        curves[one[0]] = LossCurves(about["window"], *kept)
    return curves


class Evidence(NamedTuple):
    """The curves of one run."""

    what: str
    curves: Curves

    @property
    def steps(self) -> int:
        """Length of the run."""
        return min(found.steps for found in self.curves.values())

    @property
    def seeds(self) -> int:
        """Number of seeds."""
        return min(found.seeds for found in self.curves.values())

    @property
    def where(self) -> str:
        """What run it is, with its length and its seeds."""
        return f"{self.what} of {self.steps:,} steps, {self.seeds} seed{'s' if self.seeds > 1 else ''}"


@dataclass(frozen=True)
class Cifar10Experiment(Experiment):
    """The paper's convolutional network; `start` says how its weights start, `records` what is stored of it."""

    start: str = ""
    records: tuple[str, ...] = ()

    activations = ("tanh", "relu", "plu", "identity")
    choices = run.CHOICES
    compute = staticmethod(run.compute)
    prepare = staticmethod(fetch.prepare)
    seeds = chunk = 1
    short = 500

    @cached_property
    def stored(self) -> list[Evidence]:
        """The stored records; they belong to the usual spec only."""
        found = map(read, () if self.variant else self.records)
        return [Evidence("the stored run", curves) for curves in found if curves]

    def rows(self, runs: Runs) -> Iterator[dict[str, Any]]:
        """Yield one row for each activation and seed."""
        for activation, arrays in runs.items():
            found = curve(arrays)
            for i, seed in enumerate(arrays["seed"]):
                yield self.first_columns(activation, seed) | {
                    "final_loss": float(found.loss[-1, i]),
                    "steps": len(arrays["loss"]),
                    "test_loss": float(found.test_loss[-1, i]),
                    "test_accuracy": float(found.test_accuracy[-1, i]),
                }

    def evidence(self, runs: Runs) -> list[Evidence]:
        """Return all runs with the paper's activations: this one and the stored ones."""
        this = {name: curve(runs[name]) for name in self.activations if name in runs}
        return ([Evidence("this run", this)] if len(this) == len(self.activations) else []) + self.stored

    def claims(self, runs: Runs, results: Results) -> Iterator[Claim]:
        """Yield the claims, each judged on the run of most seeds that reaches its step."""
        known = self.evidence(runs)
        if not known:
            return
        most, longest = _best(known).steps, max(one.steps for one in known)
        best = {step: _best(known, step) for step in sorted({*_STEPS, most, longest}) if step <= longest}
        yield from self._faster(best, most)
        for step in (100, 500):
            if step in best:
                sentence = f"the identity does well in the first steps: no worse than ReLU after {step}."
                bars, setting = (Range(high=1), Range(high=1.05)), "" if step == 100 else f"after {step} steps"
                yield self._loss("cifar-identity", sentence, ("identity", "relu"), step, best[step], bars, setting)
        if all(results.get(fit, {}).keys() >= {"relu", "plu"} for fit in _FITS):
            yield from (self._favourable(step, best[step], results) for step in sorted({most, longest}))
        yield from self._late(_best(known, min(20_000, longest)))

    def _faster(self, best: dict[int, Evidence], most: int) -> Iterator[Claim]:
        """Yield claims on losses and areas; what decides is PLU's area over the paper's number of steps."""
        bars = Range(low=1), Range(low=0.98)
        for activation in ("tanh", "plu"):
            sentence, whose = f"{label(activation)} trains faster than ReLU:", f"for {label(activation)}, "
            whose = "" if activation == "plu" else whose
            for step, one in best.items():
                if step in _STEPS or _STEPS[-1] < step == most:
                    said, setting = f"{sentence} loss after {step:,} steps.", f"{whose}in the loss after {step:,} steps"
                    yield self._loss("cifar-faster", said, ("relu", activation), step, one, bars, setting)
            for step in sorted({min(_STEPS[-1], max(best)), most, max(best)}):
                said = f"{sentence} area under the curve of {step:,} steps."
                what = f"area of ReLU / {label(activation)}, {step:,} steps"
                columns = [best[step].curves[name].area(step) for name in ("relu", activation)]
                setting = "" if activation == "plu" and step == _FULL else f"{whose}over {step:,} steps"
                yield self._ratio("cifar-faster", said, what, columns, best[step], bars, setting)

    def _late(self, one: Evidence) -> Iterator[Claim]:
        """Yield our claims about the end of a run: when ReLU overtakes, and test accuracy."""
        relu, plu, last = one.curves["relu"], one.curves["plu"], one.steps
        if last > 2 * _STEPS[-1]:
            statistic = f"median step, in thousands, from which ReLU's loss stays below, {one.where}"
            sentence = f"On CIFAR-10{self.start}, ReLU overtakes PLU in training loss after the first 5,000 steps."
            column = crossing(relu.smoothed(_CROSSING), plu.smoothed(_CROSSING))
            yield measure("", sentence, statistic, median, column, claimed=Range(5, last / 1000))
        ahead = 100 * plu.test_accuracy[-1] - 100 * relu.test_accuracy[-1]
        sentence = f"PLU's test accuracy on CIFAR-10{self.start} is at least that of ReLU after {last:,} steps."
        statistic = f"percent correct, PLU - ReLU, {one.where}"
        yield measure("", sentence, statistic, median, ahead, claimed=Range(low=0), weaker=Range(low=-1))

    def _favourable(self, step: int, one: Evidence, results: Results) -> Claim:
        """Return the claim whose range is measured too: the smallest ratio of sections 2-4, the lower end of it."""
        columns = {fit: ratios(*(results[fit][name]["final_loss"] for name in ("relu", "plu"))) for fit in _FITS}
        least = min(columns, key=lambda fit: float(median(columns[fit])))
        ratio, (low, high) = float(median(columns[least])), interval(median, columns[least])
        sentence = f"it is more favourable to ReLU than sections 2-4, whose smallest ratio is {ratio:.3g}."
        bars = Range(high=ratio if math.isnan(low) else low), Range(high=ratio)
        setting = "" if step == _FULL else f"after {step:,} steps"
        claim = self._loss("cifar-favourable", sentence, ("relu", "plu"), step, one, bars, setting)
        source = f"the range is that of final losses on {least}, measured too: {ratio:.3g} ({low:.3g} to {high:.3g})"
        return dataclasses.replace(claim, n=min(claim.n, columns[least].size), statistic=f"{claim.statistic}; {source}")

    def _loss(
        self, statement: str, said: str, pair: tuple[str, str], step: int, one: Evidence, bars: Bars, setting: str = ""
    ) -> Claim:
        columns = [one.curves[name].at(step) for name in pair]
        what = f"loss of {' / '.join(map(label, pair))} after {step:,} steps, mean of {one.curves[pair[0]].window}"
        return self._ratio(statement, said, what, columns, one, bars, setting)

    def _ratio(
        self, statement: str, said: str, what: str, columns: list[Column], one: Evidence, bars: Bars, setting: str
    ) -> Claim:
        """Return a claim on a ratio; how the weights start is a part of how it differs from the paper's setting."""
        said, setting = f"On CIFAR-10{self.start}, {said}", f"{setting}{self.start}".strip()
        return measure_ratio(statement, said, f"{what}, {one.where}", columns[0], columns[1], *bars, setting=setting)

    def finding(self, runs: Runs) -> str:
        """Give losses and test accuracies of the longest run with most seeds."""
        known = self.evidence(runs)
        if not known:
            return ""
        one = _best(known)
        early = {name: float(np.median(found.at(min(1000, one.steps)))) for name, found in one.curves.items()}
        return (
            f"{one.where.capitalize()}: training loss after {min(1000, one.steps):,} steps {listed(early)}; "
            f"test accuracy at the end {_accuracies(one.curves)}."
        )

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw loss and test accuracy of this run, and of the stored records beside it."""
        steps = len(next(iter(runs.values()))["loss"])
        ours = {name: curve(arrays, min(WINDOW, max(1, steps // 50))) for name, arrays in runs.items()}
        columns = [Evidence("this run", ours), *self.stored]
        figure = Figure(figsize=(max(4.4 * len(columns), 6), 5.4))
        grid: Any = figure.subplots(2, len(columns), squeeze=False, sharex="col")
        for one, (top, bottom) in zip(columns, grid.T, strict=True):
            draw(one.curves, top, bottom)
            top.set_title(one.where, fontsize=9)
        figure.legend(*grid[0, -1].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        parts = "; ".join(f"{one.where}: {_accuracies(one.curves)}" for one in columns)
        caption = f"{self.title}: training loss (mean of neighbouring steps) and test accuracy, medians over seeds. "
        alt = f"Falling losses and rising test accuracies over steps, logarithmic, for {', '.join(map(label, ours))}."
        yield Picture(self.name, f"{caption}Test accuracy at the end, {parts}.", alt, figure)


def crossing(ours: Column, theirs: Column) -> Column:
    """Return, for each seed, the first group from which ours stays below theirs; infinite if ours ends above."""
    below = ours < theirs
    lasting = np.flip(np.cumprod(np.flip(below, 0), 0), 0)
    return np.where(lasting[-1] > 0, len(below) - lasting.sum(0), np.inf).astype(float)


def _best(known: list[Evidence], step: int = 0) -> Evidence:
    """Return the run of most seeds, and of these the longest, that reaches a step."""
    return max((one for one in known if one.steps >= step), key=lambda one: (one.seeds, one.steps))


def _accuracies(curves: Curves) -> str:
    values = {name: 100 * float(np.median(found.test_accuracy[-1])) for name, found in curves.items()}
    return ", ".join(f"{label(name)} {value:.1f} %" for name, value in values.items())


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


_GAIN = "initialisation matched to each activation's gain"
EXPERIMENTS = (
    Cifar10Experiment("cifar10", "CIFAR-10, PyTorch's initialisation", Cifar10Spec(), "5", records=("seeds", "full")),
    Cifar10Experiment(
        "cifar10-gain", f"CIFAR-10, {_GAIN}", Cifar10Spec(init="gain"), "5", start=" from gain-matched weights"
    ),
)
