"""Round trips through invertible networks: statistics and figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit.ensemble.nonlinearities import title_of
from plunit.lab.cell import Arrays
from plunit.lab.experiment import Experiment, Runs, Statistic
from plunit.lab.intervals import Column, median
from plunit.lab.pictures import LinePanel, Picture, count_seeds, draw_lines, list_names, list_values
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
            words = f"median of the largest |F^-1(F(x)) - x| of {title_of(name)}, {where}"
            yield Statistic(f"round trip {name}", words, median(self._worst(arrays, at)))

    def finding(self, runs: Runs) -> str:
        """Give the errors of the deepest networks."""
        last = {name: float(np.median(self._worst(arrays, -1))) for name, arrays in runs.items()}
        where = f"depth {self.spec.depths[-1]}, {self.spec.dtypes[0]}"
        return f"Largest |F⁻¹(F(x)) - x| at {where}, median of seeds: {list_values(last)}."

    def _worst(self, arrays: Arrays, depth: int) -> Column:
        """Return the error of the worse kind of layer in the first precision, at one of the depths [seeds]."""
        worst: Column = arrays["error"][:, 0, depth].max(0)
        return worst

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw round-trip errors over depth."""
        spec: InverseSpec = self.spec
        panels = []
        for i, j in np.ndindex(len(spec.dtypes), len(spec.linears)):
            errors = {name: np.minimum(arrays["error"][j, i], _CEILING) for name, arrays in runs.items()}
            title = f"{spec.linears[j].replace('lu', 'LU')} layers, {spec.dtypes[i]}"
            axes = {"xscale": "log", "xlabel": "depth (blocks)", "ylabel": "largest |F⁻¹(F(x)) - x|", "title": title}
            panels.append(LinePanel(spec.depths, errors, axes, spec.depths))
        caption = (
            f"{self.title}: median and range of {count_seeds(runs)}, {spec.features} features. Values at {_CEILING:g} "
            "mean round trips that lose points: tanh rounds to +-1, where its inverse is infinite."
        )
        alt = f"Errors of round trips over depth, rising from rounding level, for {list_names(runs)}."
        yield draw_lines(self.name, caption, alt, *panels, height=2.6)


EXPERIMENTS = (
    InverseExperiment("inverse", "Inverting networks numerically: x -> F(x) -> x, over depth", InverseSpec(), "6"),
)
