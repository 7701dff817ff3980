"""How expensive PLU is to compute, compared with ReLU and tanh."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from plunit.lab.experiment import Experiment, Runs, Statistic
from plunit.lab.intervals import median, ratios
from plunit.lab.pictures import Picture, count_seeds, look, number, subplots
from plunit.lab.train import cost as run
from plunit.lab.train.cost import TIMED, CostSpec

_TITLES = {"plu": "PLU", "composite": "PLU without the compiled kernel", "relu": "ReLU", "tanh": "tanh"}


@dataclass(frozen=True)
class Cost(Experiment):
    """Times of one call, forward and backward; all activations are timed together, so that they meet the same load."""

    activations = ("plu",)
    choices = ("plu",)
    columns = tuple(f"{name}_seconds" for name in TIMED)
    compute = staticmethod(run.compute)
    seeds = chunk = 31

    def seeds_within(self, seeds: int) -> int:
        """Return the number of repetitions, at most the default."""
        return min(seeds, self.seeds)

    def statistics(self, runs: Runs) -> Iterator[Statistic]:
        """Yield PLU's time divided by ReLU's and tanh's, with the compiled kernel and without."""
        for arrays in runs.values():
            for above in ("plu", "composite"):
                for below in ("relu", "tanh"):
                    found = median(ratios(*(arrays[f"{name}_seconds"] for name in (above, below))))
                    words = f"median over repetitions of time {_TITLES[above]} / {_TITLES[below]}, {self._call()}"
                    yield Statistic(f"{above}/{below}", words, found)

    def _call(self) -> str:
        return f"forward and backward, {self.spec.elements:,} elements"

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw a mark for each repetition."""
        for arrays in runs.values():
            figure, ((axes,),) = subplots(1, height=2.4)
            for place, name in enumerate(TIMED):
                times = 1e3 * arrays[f"{name}_seconds"]
                colour = look("plu" if name == "composite" else name)["color"]
                axes.plot(times, np.full(times.shape, -place), "o", color=colour, markersize=4, alpha=0.5)
            names = [_TITLES[name].replace(" without", "\nwithout").replace(" the ", " ") for name in TIMED]
            axes.set_yticks(-np.arange(len(TIMED)), names)
            axes.set(xlabel="ms", xlim=(0, None))
            axes.margins(y=0.2)
            caption = f"{self.title}: milliseconds of {self._call()}, {count_seeds(runs, 'repetition')}."
            yield Picture(self.name, caption, f"A row of dots for each of {', '.join(_TITLES.values())}.", figure)

    def finding(self, runs: Runs) -> str:
        """Give the median times."""
        (arrays,) = runs.values()
        times = {name: 1e3 * float(np.median(arrays[f"{name}_seconds"])) for name in TIMED}
        values = ", ".join(f"{_TITLES[name]} {number(value)} ms" for name, value in times.items())
        kernel = "" if arrays["native"].all() else " (the kernel was not compiled)"
        return f"Median time of {self._call()}, on one thread: {values}{kernel}."


EXPERIMENTS = (Cost("cost", "The time that PLU, ReLU and tanh take in PyTorch", CostSpec(), "7"),)
