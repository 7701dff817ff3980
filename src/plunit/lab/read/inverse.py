"""Round trips through invertible networks: rows, claims, figures; and the theorems of section 6, checked exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from plunit.base.ranges import Range
from plunit.functional import formula
from plunit.lab.cell import Arrays
from plunit.lab.claims import Claim, Column, mean, measure, median
from plunit.lab.experiment import Experiment, Results, Runs
from plunit.lab.style import Picture, label, listed, look, names, seeds_of
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
    seeds = 5
    chunk = 1
    side_by_side = True

    def seeds_within(self, seeds: int) -> int:
        """Return at most five seeds, enough for a median."""
        return min(seeds, self.seeds)

    def axes(self) -> dict[str, Sequence[Any]]:
        """Return kinds of layers, precisions and depths."""
        return {"linear": self.spec.linears, "dtype": self.spec.dtypes, "depth": self.spec.depths}

    def claims(self, runs: Runs, results: Results) -> Iterator[Claim]:
        """Yield the theorems, and the claims that can be measured with what was run."""
        yield from theorems()
        for activation in ("plu", "tanh"):
            if activation in runs:
                yield self._round_trip(activation, runs[activation])

    def finding(self, runs: Runs) -> str:
        """Say what comes back from the deepest networks."""
        last = {name: float(np.median(self._worst(arrays, -1))) for name, arrays in runs.items()}
        where = f"depth {self.spec.depths[-1]}, {self.spec.dtypes[0]}"
        return f"Largest |F⁻¹(F(x)) - x| at {where}, median of seeds: {listed(last)}."

    def _worst(self, arrays: Arrays, depth: int) -> Column:
        """Return the error of the worse kind of layer in the first precision, at one of the depths [seeds]."""
        worst: Column = arrays["error"][:, 0, depth].max(0)
        return worst

    def _round_trip(self, activation: str, arrays: Arrays) -> Claim:
        depths, layers = self.spec.depths, " and ".join(self.spec.linears)
        at = depths.index(32) if 32 in depths else len(depths) - 1
        network = f"An invertible {label(activation)} network of depth {depths[at]}"
        sentence = f"{network} returns its input in {self.spec.dtypes[0]}."
        statistic = f"median of the largest |F^-1(F(x)) - x|, {self.spec.features} features, the worse of {layers}"
        worst, bars = self._worst(arrays, at), (Range(high=1e-3), Range(high=1e-2))
        return measure("", sentence, statistic, median, worst, claimed=bars[0], weaker=bars[1])

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


def theorems() -> Iterator[Claim]:
    """Check section 6; for PLU (alpha = 1/10, c = 1) and leaky ReLU in rational arithmetic.

    Two points on each piece decide whether a piecewise-linear function is the identity, so these checks are proofs.
    """
    x, alpha = np.array([Fraction(k, 2) for k in range(-6, 7)]), Fraction(1, 10)
    undone = [formula(np, formula(np, x, slope, 1), 1 / slope, 1) == x for slope in (alpha, 1 / alpha)]
    sentence = "PLU with slope 1 / alpha undoes PLU, and PLU undoes it."
    statistic = "share of 13 points on all pieces that come back, exactly, in either order"
    yield measure("inverse-plu", sentence, statistic, mean, np.concatenate(undone), claimed=Range(1, 1))
    relu, leaky = np.array([max(-1, 0) == max(-2, 0)]), np.where(x < 0, x / 100, x)
    inside, outside = np.linspace(-0.9, 0.9, 7), np.array([-2.0, -1.0, 1.0, 2.0])
    with np.errstate(all="ignore"):
        tanh = np.isclose(np.tanh(np.arctanh(inside)), inside), ~np.isfinite(np.arctanh(outside))
    facts = np.concatenate([relu, np.where(leaky < 0, leaky * 100, leaky) == x, *tanh])
    sentence = "ReLU(-1) = ReLU(-2), slope 100 undoes leaky ReLU, and artanh is finite on (-1, 1) only."
    statistic = "share of 25 checks that come out as the theorem says"
    yield measure("inverse-others", sentence, statistic, mean, facts, claimed=Range(1, 1))


EXPERIMENTS = (InverseExperiment("inverse", "Inverses and round trips", InverseSpec(), "6"),)
