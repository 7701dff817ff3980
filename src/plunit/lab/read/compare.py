"""A comparison on one's own table: rows, pairs of activations, figures."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plunit.ensemble import ACTIVATIONS, ENGINES
from plunit.lab.experiment import Changes, Experiment, Runs, change, options, texts
from plunit.lab.pictures import LinePanel, Picture, count_seeds, draw_distribution, draw_lines, list_medians, list_names
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

    def vary(self, changes: Changes) -> Experiment:
        """Return the comparison on a table, named after the file, the target and the changed settings."""
        spec: CompareSpec = change(self.spec, changes)
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

    def pairs(self, runs: Runs) -> tuple[Runs, str]:
        """Return all runs, and a constant as a baseline: the mean of the training rows."""
        first = next(iter(runs.values()))
        return {**runs, "mean": {"seed": first["seed"], "test_loss": first["baseline"]}}, "test_loss"

    def finding(self, runs: Runs) -> str:
        """Compare the median test losses."""
        where = f"over {count_seeds(runs, 'split')} and starts, in units of the target's variance"
        return f"Median test losses {where}: {list_medians(runs, 'test_loss')}."

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw losses during training, and the distribution of test losses."""
        every = math.ceil(self.spec.steps / 200)
        batches = {name: arrays["history"] for name, arrays in runs.items()}
        tests = {name: arrays["test_curve"] for name, arrays in runs.items()}
        axes = {"xlabel": "step", "ylabel": "mean square error"}
        at = every * np.arange(max(map(len, batches.values())))
        left = LinePanel(at, batches, {**axes, "title": "training rows, batch by batch"})
        right = LinePanel(self.spec.marks(), tests, {**axes, "title": "test rows"})
        caption = f"{self.title}: losses during training, median and 5-95 % of seeds; 1 is the loss of the mean."
        alt = f"Losses over steps on training and test rows, for {list_names(runs)}."
        yield draw_lines(f"{self.name}-loss", caption, alt, left, right)
        yield draw_distribution(f"{self.name}-final", self.title, runs, {"test_loss": "test loss"})


def _column(name: str) -> str:
    """Return what to call a column: its name or, if it has none, its number."""
    return f"column {name}" if name.isdecimal() else name


EXPERIMENTS = (Compare("compare", "A table of one's own", CompareSpec()),)
