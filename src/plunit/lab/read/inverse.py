"""Round trips through invertible networks: rows, statistics, figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from plunit.lab.cell import Arrays
from plunit.lab.experiment import Experiment, Runs, Statistic
from plunit.lab.intervals import Column, median
from plunit.lab.pictures import Picture
from plunit.lab.style import look
from plunit.lab.summary import label, listed, names, seeds_of
from plunit.lab.train import inverse as run
from plunit.lab.train.inverse import InverseSpec

_CEILING = 1e3


@dataclass(frozen=True)
class InverseExperiment(Experiment):
    """Inverses of untrained networks."""

    activations = ("tanh", "plu", "leaky_relu")
    choices = run.NETWORKS
    columns = ("error", "lost")
    compute = staticmethod(run.compute)
    seeds = 6
    chunk = 1
    side_by_side = True

    def seeds_within(self, seeds: int) -> int:
        """Return at most six seeds, enough for the interval of a median."""
        return min(seeds, self.seeds)

    def axes(self) -> dict[str, Sequence[Any]]:
        """Return kinds of layers, precisions and depths."""
        return {"linear": self.spec.linears, "dtype": self.spec.dtypes, "depth": self.spec.depths}

    def statistics(self, runs: Runs) -> Iterator[Statistic]:
        """Yield errors of round trips."""
        depths, layers = self.spec.depths, " and ".join(self.spec.linears)
        at = depths.index(32) if 32 in depths else len(depths) - 1
        where = f"depth {depths[at]}, {self.spec.features} features, the worse of {layers}, {self.spec.dtypes[0]}"
        for name, arrays in runs.items():
            words = f"median of the largest |F^-1(F(x)) - x| of {label(name)}, {where}"
            yield Statistic(f"round trip {name}", words, median(self._worst(arrays, at)))

    def finding(self, runs: Runs) -> str:
        """Say what comes back from the deepest networks."""
        last = {name: float(np.median(self._worst(arrays, -1))) for name, arrays in runs.items()}
        where = f"depth {self.spec.depths[-1]}, {self.spec.dtypes[0]}"
        return f"Largest |F⁻¹(F(x)) - x| at {where}, median of seeds: {listed(last)}."

    def _worst(self, arrays: Arrays, depth: int) -> Column:
        """Return the error of the worse kind of layer in the first precision, at one of the depths [seeds]."""
        worst: Column = arrays["error"][:, 0, depth].max(0)
        return worst

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw round-trip errors over depth."""
        spec: InverseSpec = self.spec
        figure = Figure(figsize=(7.6, 5.6))
        grid: Any = figure.subplots(len(spec.dtypes), len(spec.linears), squeeze=False, sharex=True, sharey="row")
        for (i, j), axes in np.ndenumerate(grid):
            for activation, arrays in runs.items():
                error = np.minimum(np.median(arrays["error"][j, i], axis=-1), _CEILING)
                axes.plot(spec.depths, error, marker="o", markersize=3, **look(activation))
            axes.set(
                xscale="log", yscale="log", title=f"{spec.linears[j].replace('lu', 'LU')} layers, {spec.dtypes[i]}"
            )
            axes.set_xticks(spec.depths, [str(depth) for depth in spec.depths])
            axes.minorticks_off()
        for axes in grid[-1]:
            axes.set_xlabel("depth (blocks)")
        for axes in grid[:, 0]:
            axes.set_ylabel("largest |F⁻¹(F(x)) - x|")
        figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        caption = (
            f"{self.title}: median of {seeds_of(runs)}, {spec.features} features. Values at {_CEILING:g} stand for "
            "round trips that lose points: tanh rounds to +-1, where its inverse is infinite."
        )
        alt = f"Errors of round trips over depth, rising from rounding level, for {names(runs)}."
        yield Picture(self.name, caption, alt, figure)


EXPERIMENTS = (InverseExperiment("inverse", "Round trips through invertible networks", InverseSpec(), "6"),)
