"""A comparison on one's own table: rows, pairs of activations, figures."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from plunit.ensemble import ACTIVATIONS, ENGINES
from plunit.lab import style, summary
from plunit.lab.experiment import Changes, Experiment, Runs, changed, options, texts
from plunit.lab.pictures import Picture
from plunit.lab.style import draw_band
from plunit.lab.train import compare as run
from plunit.lab.train.compare import CompareSpec

_TABLE = ("path", "sha256", "target", "inputs")


@dataclass(frozen=True)
class Compare(Experiment):
    """Activations on one table."""

    activations = ("relu", "tanh", "gelu", "plu", "plu_learned")
    choices = ACTIVATIONS
    columns = ("test_loss", "train_loss", "baseline")
    compute = staticmethod(run.compute)
    engines = tuple(ENGINES)
    seeds = 256
    chunk = 64  # members that the ensemble trains at once
    by_itself = True

    def varied(self, changes: Changes) -> Experiment:
        """Return the comparison on a table, named after the file, the target and what is not as usual."""
        spec: CompareSpec = changed(self.spec, changes)
        usual = {*_TABLE, *(name for name in changes if getattr(spec, name) == getattr(self.spec, name))}
        told = texts({name: value for name, value in changes.items() if name not in usual})
        mark = hashlib.sha256(repr((spec.sha256, spec.inputs, told)).encode()).hexdigest()[:6]
        about = [Path(spec.path).stem, spec.target, *(f"{name}={text}" for name, text in told.items()), mark]
        name = "+".join(["compare", *(re.sub(r"[^\w.=-]", "_", part)[:40] for part in about)])
        count = "one column" if len(spec.inputs) == 1 else f"{len(spec.inputs)} columns"
        settings = "".join(f", {name} = {text}" for name, text in told.items())
        title = f"{_column(spec.target)} of {Path(spec.path).name}, learned from {count}{settings}"
        return dataclasses.replace(self, name=name, title=title, spec=spec)

    def command(self, changes: Changes) -> list[str]:
        """Return the words of the command that compares on the table that the changes name."""
        words = ["plunit", "compare", changes["path"], "--target", changes["target"]]
        others = {name: value for name, value in changes.items() if name not in _TABLE}
        return [*words, "--inputs", ",".join(changes["inputs"]), *options(others)]

    def compared(self, runs: Runs) -> tuple[Runs, str]:
        """Return all runs, and a constant as a baseline: the mean of the training rows."""
        first = next(iter(runs.values()))
        return {**runs, "mean": {"seed": first["seed"], "test_loss": first["baseline"]}}, "test_loss"

    def finding(self, runs: Runs) -> str:
        """Compare the median test losses."""
        where = f"over {summary.seeds_of(runs, 'split')} and starts, in units of the target's variance"
        return f"Median test losses {where}: {summary.lowest(runs, 'test_loss')}."

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw losses during training, and the distribution of test losses."""
        figure = Figure(figsize=(7.4, 3.2))
        left, right = figure.subplots(1, 2)
        for activation, arrays in runs.items():
            every = -(-self.spec.steps // 200)
            draw_band(left, every * np.arange(len(arrays["history"])), arrays["history"], activation)
            draw_band(right, self.spec.marks(), arrays["test_curve"], activation)
        left.set(yscale="log", xlabel="step", ylabel="mean square error", title="training rows, batch by batch")
        right.set(yscale="log", xlabel="step", ylabel="mean square error", title="test rows")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=5)
        caption = f"{self.title}: losses during training, median and 5-95 % of seeds; 1 is the loss of the mean."
        alt = f"Losses over steps on training and test rows, for {summary.names(runs)}."
        yield Picture(f"{self.name}-loss", caption, alt, figure)
        yield style.distribution(f"{self.name}-final", self.title, runs, {"test_loss": "test loss"})


def _column(name: str) -> str:
    """Return how a column is called: by its name, or, where it has none, by its number."""
    return f"column {name}" if name.isdecimal() else name


EXPERIMENTS = (Compare("compare", "A table of one's own", CompareSpec()),)
