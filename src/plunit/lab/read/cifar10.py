"""CIFAR-10: rows, statistics and figures, from a run or the stored records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from plunit.lab import cifar10_fetch
from plunit.lab.experiment import Experiment, Runs, Statistic
from plunit.lab.intervals import Column, median, ratios
from plunit.lab.pictures import Picture
from plunit.lab.read.cifar10_curves import (
    WINDOW,
    Curves,
    LossCurves,
    check_spec,
    crossing,
    curve,
    draw,
    keep_common_seeds,
    read,
)
from plunit.lab.summary import label, listed
from plunit.lab.train import cifar10 as run
from plunit.lab.train.cifar10 import Cifar10Spec

_STEPS = (100, 500, 1000, 5000, 20_000, 100_000)
"""Steps at which losses are compared ..."""

_AREAS, _LATE = 5000, 20_000
"""... and from which areas, and test accuracies, are compared too."""

_CROSSING = 1000  # steps over which losses are averaged to see one curve cross another


class Evidence(NamedTuple):
    """The curves of one run; all activations have the same seeds."""

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

    def both(self, one: str, other: str, value: Callable[[LossCurves], Column]) -> tuple[Column, Column]:
        """Return a value of the curves of two activations."""
        return value(self.curves[one]), value(self.curves[other])

    @property
    def where(self) -> str:
        """What run it is, with its length and its seeds."""
        return f"{self.what} of {self.steps:,} steps, {self.seeds} seed{'s' if self.seeds > 1 else ''}"


@dataclass(frozen=True)
class Cifar10Experiment(Experiment):
    """The paper's convolutional network; `records` names what is stored of it."""

    records: tuple[str, ...] = ()

    activations = ("tanh", "relu", "plu", "identity")
    choices = run.CHOICES
    compute = staticmethod(run.compute)
    prepare = staticmethod(cifar10_fetch.prepare)
    seeds = chunk = 1
    short = 500

    @cached_property
    def stored(self) -> list[Evidence]:
        """The stored records, which belong to the usual spec only, with the seeds that all activations have."""
        found = []
        for name in () if self.variant else self.records:
            about, curves = read(name)
            if about:
                wanted = {**json.loads(json.dumps(asdict(self.spec))), "steps": about["spec"]["steps"]}
                check_spec(f"the record {name!r} of {self.name}", about["spec"], wanted)
                found += self._paired("the stored run", curves)
        return found

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
        this = {name: curve(arrays) for name, arrays in runs.items() if name in self.activations}
        return self._paired("this run", this) + self.stored

    def _paired(self, what: str, curves: Curves) -> list[Evidence]:
        """Return the seeds that all activations of the paper have, as evidence; none if there are none."""
        common = keep_common_seeds({name: curves[name] for name in self.activations if name in curves})
        return [Evidence(what, common)] if len(common) == len(self.activations) else []

    def statistics(self, runs: Runs) -> Iterator[Statistic]:
        """Yield losses, areas and accuracies at several steps, each from the run of most seeds that is long enough."""
        known = self.evidence(runs)
        for step in _STEPS:
            if able := [one for one in known if one.steps >= step]:
                yield from _at(step, _best(able))
        if able := [one for one in known if one.steps >= _LATE]:
            one = _best(able)
            relu, plu = one.both("relu", "plu", lambda found: found.smoothed(_CROSSING))
            words = f"median step, in thousands, from which ReLU's loss stays below PLU's, {one.where}"
            yield Statistic("thousands of steps until relu is below plu", words, median(crossing(relu, plu)))

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


def _at(step: int, one: Evidence) -> Iterator[Statistic]:
    """Yield the statistics at a step: losses, later also areas and test accuracies."""
    for above, below in (("relu", "plu"), ("relu", "tanh"), ("identity", "relu")):
        title = f"{label(above)} / {label(below)}, {one.where}"
        loss = median(ratios(*one.both(above, below, lambda found: found.at(step))))
        words = f"median of loss after {step:,} steps, mean of {WINDOW}, {title}"
        yield Statistic(f"loss {above}/{below} {step}", words, loss)
        if step >= _AREAS:
            area = median(ratios(*one.both(above, below, lambda found: found.area(step))))
            yield Statistic(f"area {above}/{below} {step}", f"median of mean loss of {step:,} steps, {title}", area)
    if step >= _LATE:
        relu, plu = one.both("relu", "plu", lambda found: 100 * found.accuracy(step))
        words = f"median of percent correct on test images after {step:,} steps, PLU - ReLU, {one.where}"
        yield Statistic(f"accuracy plu - relu {step}", words, median(plu - relu))


def _best(known: list[Evidence]) -> Evidence:
    """Return the run of most seeds, and of these the longest."""
    return max(known, key=lambda one: (one.seeds, one.steps))


def _accuracies(curves: Curves) -> str:
    values = {name: 100 * float(np.median(found.test_accuracy[-1])) for name, found in curves.items()}
    return ", ".join(f"{label(name)} {value:.1f} %" for name, value in values.items())


_GAIN = "initialisation matched to each activation's gain"
EXPERIMENTS = (
    Cifar10Experiment(
        "cifar10", "The convolutional network of section 5 on CIFAR-10", Cifar10Spec(), "5", records=("seeds", "full")
    ),
    Cifar10Experiment(
        "cifar10-gain", f"The convolutional network of section 5 on CIFAR-10, {_GAIN}", Cifar10Spec(init="gain"), "5"
    ),
)
