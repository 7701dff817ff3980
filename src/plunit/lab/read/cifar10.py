"""CIFAR-10: rows, statistics and figures, from a run or the stored records.

A record is a run of several seeds, small enough for the package (`lab/records`); `tools/record.py` writes it.
"""

from __future__ import annotations

import csv
import functools
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.ticker import LogLocator

from plunit.base.errors import UserError
from plunit.ensemble.nonlinearities import title_of
from plunit.lab import cifar10_fetch
from plunit.lab.cell import Arrays
from plunit.lab.experiment import Experiment, Runs, Statistic
from plunit.lab.intervals import Column, median, ratios
from plunit.lab.pictures import Picture, add_legend, list_names, list_values, look, subplots
from plunit.lab.train import cifar10 as run
from plunit.lab.train.cifar10 import Cifar10Spec

RECORDS = Path(__file__).parents[1] / "records"
WINDOW = 50

_STEPS = (100, 500, 1000, 5000, 20_000, 100_000)
"""Steps at which losses are compared ..."""

_AREAS, _LATE = 5000, 20_000
"""... and from which areas, and test accuracies, are compared too."""

_CROSSING = 1000  # steps over which losses are averaged to find where one curve crosses another


@dataclass(frozen=True)
class LossCurves:
    """The curves of one activation, seeds on the last axis.

    Attributes:
        seed: the seeds [seeds].
        window: steps in a window.
        loss: mean training loss of each window [windows, seeds].
        test_step: steps after which the test set was evaluated [tests].
        test_loss: mean cross-entropy then [tests, seeds].
        test_accuracy: fraction of right answers then [tests, seeds].
    """

    seed: Column
    window: int
    loss: Column
    test_step: Column
    test_loss: Column
    test_accuracy: Column

    @property
    def steps(self) -> int:
        """The number of steps in all windows."""
        return self.window * len(self.loss)

    @property
    def seeds(self) -> int:
        """The number of seeds."""
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
        """Return the fraction of right answers at the last test up to a step [seeds]."""
        accuracy: Column = self.test_accuracy[np.searchsorted(self.test_step, step, side="right") - 1]
        return accuracy

    def until(self, step: int) -> LossCurves:
        """Return the curves up to a step."""
        count, tests = step // self.window, int(np.searchsorted(self.test_step, step, side="right"))
        after = (self.test_step[:tests], self.test_loss[:tests], self.test_accuracy[:tests])
        return LossCurves(self.seed, self.window, self.loss[:count], *after)

    def of(self, seeds: Column) -> LossCurves:
        """Return the curves of some of the seeds."""
        at = [self.seed.tolist().index(seed) for seed in seeds]
        loss, test_loss, test_accuracy = (one[..., at] for one in (self.loss, self.test_loss, self.test_accuracy))
        return LossCurves(self.seed[at], self.window, loss, self.test_step, test_loss, test_accuracy)

    def smoothed(self, steps: int) -> Column:
        """Return the mean loss of each `steps` steps [groups, seeds]; an incomplete last group is left out."""
        width = max(steps // self.window, 1)
        count = len(self.loss) // width
        loss: Column = self.loss[: count * width].reshape(count, width, -1).mean(1)
        return loss


Curves = dict[str, LossCurves]
"""Activation to its curves."""


class Evidence(NamedTuple):
    """Curves of the same seeds and steps for each activation, and where they are from."""

    source: str
    curves: Curves

    @property
    def steps(self) -> int:
        """The number of steps."""
        return next(iter(self.curves.values())).steps

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return next(iter(self.curves.values())).seeds

    @property
    def where(self) -> str:
        """The source in words, with the number of seeds."""
        return f"{self.source}, {self.seeds} seed{'s' if self.seeds > 1 else ''}"


@dataclass(frozen=True)
class Cifar10Experiment(Experiment):
    """The paper's convolutional network; `records` names the stored ones."""

    records: tuple[str, ...] = ()

    activations = ("tanh", "relu", "plu", "identity")
    choices = run.CHOICES
    compute = staticmethod(run.compute)
    prepare = staticmethod(cifar10_fetch.prepare)
    seeds = chunk = 1
    short = 500

    @cached_property
    def recorded(self) -> list[Curves]:
        """The stored records, which belong to the default spec only, the longest last."""
        found = []
        for name in () if self.variant else self.records:
            about, curves = read(name)
            if about:
                wanted = {**json.loads(json.dumps(asdict(self.spec))), "steps": about["spec"]["steps"]}
                check_spec(f"the record {name!r} of {self.name}", about["spec"], wanted)
                found.append(curves)
        return sorted(found, key=_length)

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

    def evidence(self, runs: Runs, names: Sequence[str], step: int) -> list[Evidence]:
        """Return the first steps of this run, and of the records that are long enough, with paired seeds only.

        The records are joined: a seed that several have counts once, from the longest.
        """
        this = {name: curve(arrays) for name, arrays in runs.items()}
        stored: Curves = {}
        for record in self.recorded:
            for name, found in keep_seeds(record, names, step).items():
                stored[name] = join(stored.get(name), found)
        both = {"this run": keep_seeds(this, names, step), "the stored runs": stored}
        return [Evidence(source, curves) for source, curves in both.items() if curves]

    def statistics(self, runs: Runs) -> Iterator[Statistic]:
        """Yield losses, areas and accuracies at several steps, of this run or the records, whichever has more seeds."""
        for pair in (("relu", "plu"), ("relu", "tanh"), ("identity", "relu")):
            for step in _STEPS:
                if known := self.evidence(runs, pair, step):
                    yield from _compare(step, most_seeds(known))
        if known := [one for step in _STEPS if step >= _LATE for one in self.evidence(runs, ("relu", "plu"), step)]:
            one = most_seeds(known)
            words = (
                f"median step, in thousands, from which ReLU's loss stays below PLU's until {one.steps:,}, {one.source}"
            )
            steps = crossing(*(found.smoothed(_CROSSING) for found in one.curves.values()))
            yield Statistic("thousands of steps until relu is below plu", words, median(steps))

    def finding(self, runs: Runs) -> str:
        """Give the losses of the first steps, and the test accuracies of the longest run."""
        this = {name: curve(arrays) for name, arrays in runs.items()}
        longest = max(_length(curves) for curves in (this, *self.recorded) if curves)
        early, late = (self.evidence(runs, self.activations, step) for step in (min(1000, longest), longest))
        if not late:
            return ""
        first, last = most_seeds(early), most_seeds(late)
        losses = list_values({name: float(np.median(found.at(first.steps))) for name, found in first.curves.items()})
        return (
            f"Training loss after {first.steps:,} steps ({first.where}): {losses}; "
            f"test accuracy after {last.steps:,} steps ({last.where}): {_accuracies(last.curves)}."
        )

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw loss and test accuracy of this run, and below it those of the longest record."""
        steps = len(next(iter(runs.values()))["loss"])
        ours = {name: curve(arrays, min(WINDOW, max(1, steps // 50))) for name, arrays in runs.items()}
        longest = [keep_seeds(curves, self.activations, _length(curves)) for curves in self.recorded[-1:]]
        shown = [Evidence("this run", ours), *(Evidence("the longest record", curves) for curves in longest if curves)]
        ends = "; ".join(f"{one.where}: {_accuracies(one.curves)}" for one in shown)
        caption = f"{self.title}: training loss (mean of neighbouring steps) and test accuracy, medians over seeds. "
        alt = f"Falling losses and rising test accuracies over steps, logarithmic, for {list_names(ours)}."
        yield Picture(self.name, f"{caption}Test accuracy at the end, {ends}.", alt, draw(shown))


def _compare(step: int, one: Evidence) -> Iterator[Statistic]:
    """Yield the statistics of two activations at a step: losses, later also areas and test accuracies."""
    above, below = one.curves
    title = f"{title_of(above)} / {title_of(below)}, {one.source}"
    loss = median(ratios(*(found.at(step) for found in one.curves.values())))
    yield Statistic(
        f"loss {above}/{below} {step}",
        f"median of training loss after {step:,} steps (mean of the last {WINDOW}), {title}",
        loss,
    )
    if step >= _AREAS:
        area = median(ratios(*(found.area(step) for found in one.curves.values())))
        yield Statistic(
            f"area {above}/{below} {step}", f"median of mean training loss over {step:,} steps, {title}", area
        )
    if step >= _LATE and (above, below) == ("relu", "plu") and one.curves["plu"].test_step.size:
        relu, plu = (100 * found.accuracy(step) for found in one.curves.values())
        words = f"median of test accuracy in percent after {step:,} steps, PLU - ReLU, {one.source}"
        yield Statistic(f"accuracy plu - relu {step}", words, median(plu - relu))


def most_seeds(known: list[Evidence]) -> Evidence:
    """Return the evidence with the most seeds; of several, the longest."""
    return max(known, key=lambda one: (one.seeds, one.steps))


def _accuracies(curves: Curves) -> str:
    values = {name: 100 * float(np.median(found.test_accuracy[-1])) for name, found in curves.items()}
    return ", ".join(f"{title_of(name)} {value:.1f} %" for name, value in values.items())


def curve(arrays: Arrays, window: int = WINDOW) -> LossCurves:
    """Reduce the arrays of `compute` to a curve; steps beyond the last whole window are left out."""
    window = min(window, len(arrays["loss"]))
    count = len(arrays["loss"]) // window
    loss = arrays["loss"][: count * window].astype(np.float64).reshape(count, window, -1).mean(1)
    tests = arrays["test_step"][:, 0], arrays["test_loss"], arrays["test_accuracy"]
    return LossCurves(arrays["seed"], window, loss, *tests)


def read(name: str, folder: Path = RECORDS) -> tuple[dict[str, Any], Curves]:
    """Return the description of a stored record, and its curves by activation; {} and {} if there is none."""
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


def check_spec(noun: str, spec: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Raise UserError if the spec of a run is not the wanted one, both as plain values."""
    if others := [name for name in {**wanted, **spec} if spec.get(name) != wanted.get(name)]:
        fields = ", ".join(f"{name} = {spec.get(name)} rather than {wanted.get(name)}" for name in others)
        raise UserError(f"{noun} was made with {fields}; make it again with the same, or keep it under another name")


def join(old: LossCurves | None, new: LossCurves) -> LossCurves:
    """Return the curves of all seeds, in their order; new ones replace old ones of the same seed."""
    if old is None:
        return new
    kept = old.of(np.setdiff1d(old.seed, new.seed))
    parts = ((getattr(kept, key), getattr(new, key)) for key in ("seed", "loss", "test_loss", "test_accuracy"))
    seed, loss, test_loss, test_accuracy = (np.concatenate(part, axis=-1) for part in parts)
    both = LossCurves(seed, new.window, loss, new.test_step, test_loss, test_accuracy)
    return both.of(np.sort(seed))


def keep_seeds(curves: Curves, names: Sequence[str], step: int) -> Curves:
    """Return the first steps of these activations, with the seeds that all of them have; {} if there are none."""
    if not (curves.keys() >= {*names} and all(curves[name].steps >= step for name in names)):
        return {}
    seeds = functools.reduce(np.intersect1d, (curves[name].seed for name in names))
    return {name: curves[name].until(step).of(seeds) for name in names} if seeds.size else {}


def _length(curves: Curves) -> int:
    """Return the least number of steps of any activation."""
    return min(found.steps for found in curves.values())


def crossing(ours: Column, theirs: Column) -> Column:
    """Return, for each seed, the first group from which ours stays below theirs; infinite if ours ends above."""
    below = ours < theirs
    lasting = np.flip(np.cumprod(np.flip(below, 0), 0), 0)
    return np.where(lasting[-1] > 0, len(below) - lasting.sum(0), np.inf).astype(float)


def draw(shown: list[Evidence]) -> Any:
    """Return a figure with the training loss of each run and, below it, its test accuracy."""
    figure, grid = subplots(2 * len(shown), height=2.6)
    for one, top, bottom in zip(shown, grid[::2, 0], grid[1::2, 0], strict=True):
        for activation, found in one.curves.items():
            style = look(activation)
            x = found.window * np.arange(1, len(found.loss) + 1)
            top.plot(*_thin(x, np.median(found.loss, axis=1)), **{**style, "linewidth": 1.2})
            accuracy = 100 * np.median(found.test_accuracy, axis=1)
            bottom.plot(found.test_step, accuracy, marker="o", markersize=2.5, **style)
        top.set(xscale="log", yscale="log", ylabel="training loss", title=one.where)
        bottom.set(xscale="log", xlabel="step", ylabel="test accuracy, %")
        decades = (1,) if one.steps > 2000 else (1, 2, 5)
        for axis, subs in ((top.yaxis, (1, 2, 5)), (top.xaxis, decades), (bottom.xaxis, decades)):
            axis.set_major_locator(LogLocator(subs=subs))
            axis.set_major_formatter("{x:,g}")
            axis.set_minor_formatter("")
    add_legend(figure, grid[0, 0], 4)
    return figure


def _thin(x: Any, y: Any) -> tuple[Any, Any]:
    """Average neighbours at the far end of a long curve: at most 120 points, evenly spaced where x is logarithmic."""
    edges = np.unique(np.geomspace(1, len(x) + 1, 120).astype(int)) - 1
    groups = [slice(low, high) for low, high in itertools.pairwise(edges)]
    return np.array([x[group][-1] for group in groups]), np.array([y[group].mean() for group in groups])


EXPERIMENTS = (
    Cifar10Experiment(
        "cifar10", "The convolutional network of section 5", Cifar10Spec(), "5", records=("first", "seeds", "full")
    ),
    Cifar10Experiment(
        "cifar10-gain",
        "The same network, its start matched to each activation's gain",
        Cifar10Spec(init="gain"),
        "5",
    ),
)
