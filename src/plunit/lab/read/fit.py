"""What the stored networks of sections 2-4 say: rows, claims and the experiments themselves."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from plunit.base.ranges import Range
from plunit.ensemble import ACTIVATIONS, ENGINES, MLP
from plunit.lab.cell import Arrays, Cell
from plunit.lab.claims import Claim, mean, measure, measure_ratio, median
from plunit.lab.experiment import Experiment, Results, Runs
from plunit.lab.read import fit_figures
from plunit.lab.style import Picture, label, listed, median_loss
from plunit.lab.train import fit as run
from plunit.lab.train.fit import FitSpec

_STARTS = {
    "initial": "Before training, with biases 0,",
    "random": "Before training, but with biases N(0, 1),",
}


@dataclass(frozen=True)
class FitExperiment(Experiment):
    """A function fitted by small networks.

    Attributes:
        noun: its name in sentences.
        theme: its name in the statements of the paper.
        setting: how it differs from what the paper did; "" if it does not.
    """

    noun: str = ""
    theme: str = ""
    setting: str = ""

    activations = ("tanh", "relu", "plu", "plu_learned")
    choices = ACTIVATIONS
    compute = staticmethod(run.compute)
    engines = tuple(ENGINES)

    def cost(self, cell: Cell) -> float:
        """Estimate the work; drawing a batch costs about four times as much as a step on it."""
        updates = len(cell.seeds) * self.spec.steps * MLP(self.spec.widths).parameters
        return float(updates * 5 if self.spec.batch else updates)

    def rows(self, runs: Runs) -> Iterator[dict[str, Any]]:
        """Yield one row for each activation and seed; alpha and c are the means over layers if learned."""
        for activation, arrays in runs.items():
            for i, seed in enumerate(arrays["seed"]):
                row = self.first_columns(activation, seed)
                if activation == "plu":
                    row |= {"alpha": self.spec.alpha, "c": self.spec.c}
                elif "alpha" in arrays:
                    row |= {key: float(arrays[key][:, i].mean()) for key in ("alpha", "c")}
                if "trained_pieces" in arrays:
                    row |= {key: int(arrays[f"trained_{key}"][i]) for key in ("pieces", "patterns")}
                yield row | {"final_loss": float(arrays["final_loss"][i]), "dead_units": int(arrays["dead"][i])}

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw the fits and losses, then what the networks are made of."""
        return fit_figures.pictures(self.name, self.title, self.spec, runs)

    def finding(self, runs: Runs) -> str:
        """Compare the median final losses."""
        medians = {activation: median_loss(arrays["final_loss"]) for activation, arrays in runs.items()}
        seeds = max(arrays["seed"].size for arrays in runs.values())
        best = min(medians, key=lambda activation: medians[activation])
        return f"Median final losses over {seeds:,} seeds: {listed(medians)}; the lowest is {label(best)}'s."

    def claims(self, runs: Runs, results: Results) -> Iterator[Claim]:
        """Yield the claims that can be measured with what was run."""
        if runs.keys() >= {"tanh", "relu", "plu"}:
            yield from self._losses(*(runs[activation] for activation in ("tanh", "relu", "plu")))
        if runs.keys() >= {"plu", "plu_learned"}:
            fixed, learned = (runs[activation]["final_loss"] for activation in ("plu", "plu_learned"))
            sentence = f"On {self.noun}, learned alpha and c do better than fixed ones."
            statistic, bars = "median of final loss fixed / learned", (Range(low=1.1), Range(low=1))
            yield measure_ratio("", sentence, statistic, fixed, learned, *bars)
        if runs.keys() >= {"relu", "plu"}:
            yield from self._dead(runs["relu"], runs["plu"])
            yield from self._pieces(runs["relu"], runs["plu"])

    def _losses(self, tanh: Arrays, relu: Arrays, plu: Arrays) -> Iterator[Claim]:
        sentence = f"On {self.noun}, PLU and tanh reach similar losses."
        bars = Range(0.5, 2), Range(0.2, 5)
        columns, setting = (plu["final_loss"], tanh["final_loss"]), self.setting
        statistic = "median of final loss PLU / tanh"
        yield measure_ratio(f"{self.theme}-tanh", sentence, statistic, *columns, *bars, setting=setting)
        sine = self.spec.target == "sine"
        above = "two orders of magnitude" if sine else "well"
        bars = (Range(low=100), Range(low=10)) if sine else (Range(low=2), Range(low=1))
        for name, arrays in (("PLU", plu), ("tanh", tanh)):
            sentence = f"On {self.noun}, ReLU's loss is {above} above {name}'s."
            statistic = f"median of final loss ReLU / {name}"
            columns = relu["final_loss"], arrays["final_loss"]
            setting = self.setting if name == "PLU" else f"compared with {name} {self.setting}".strip()
            yield measure_ratio(f"{self.theme}-relu", sentence, statistic, *columns, *bars, setting=setting)

    def _dead(self, relu: Arrays, plu: Arrays) -> Iterator[Claim]:
        """Yield that ReLU's units die, and PLU's do not; the one that decides is on the sine."""
        units = sum(self.spec.widths[1:-1])
        where = "" if self.theme == "sine" else f"on {self.noun}"
        for name, arrays, some, bars, setting in (
            ("ReLU", relu, "", (Range(low=0.01), Range(low=0.001)), f"for dead units of ReLU {where}".strip()),
            ("PLU", plu, " no", (Range(0, 0), Range(0, 0.001)), where),
        ):
            sentence = f"{name} networks trained on {self.noun} have{some} dead units."
            share, statistic = arrays["dead"] / units, f"share of {name}'s hidden units with slope 0 on all data"
            statistic += "" if name == "ReLU" else f"; ReLU's {mean(relu['dead'] / units):.3g}"
            bar = {"claimed": bars[0], "weaker": bars[1]}
            yield measure("dead", sentence, statistic, mean, share, **bar, setting=setting)

    def _pieces(self, relu: Arrays, plu: Arrays) -> Iterator[Claim]:
        """Yield claims on counts; section 3 says "abundantly more", sections 2 and 4 say more.

        A unit of PLU has two kinks and one of ReLU has one: k kinks cut a line in about k pieces, a plane in k^2.
        """
        abundantly = self.spec.target == "curve"
        more, least = ("abundantly more", 2) if abundantly else ("more", 1.1)
        sentence = f"Trained on {self.noun}, PLU networks have {more} pieces than ReLU's."
        columns = plu["trained_pieces"], relu["trained_pieces"]
        bars, statistic = (Range(low=least), Range(low=1)), _medians("trained", relu, plu)
        yield measure_ratio(f"{self.theme}-pieces", sentence, statistic, *columns, *bars, setting=self.setting)
        if abundantly:
            sentence = f"Trained on {self.noun}, the ReLU network has 5 line segments."
            statistic = f"median of pieces; of patterns {median(relu['trained_patterns']):g}"
            bar = {"claimed": Range(5, 5), "weaker": Range(4, 6)}
            column = relu["trained_pieces"]
            yield measure("curve-five", sentence, statistic, median, column, **bar, setting=self.setting)
        line = self.spec.widths[0] == 1
        times = "about twice as many pieces" if line else "two to four times as many regions"
        bars = (Range(1.5, 2.5), Range(1.25, 3)) if line else (Range(2, 4), Range(1.5, 5))
        for stage, start in _STARTS.items():
            sentence = f"{start} PLU networks have {times} on the domain of {self.noun}, as theory expects."
            columns = plu[f"{stage}_pieces"], relu[f"{stage}_pieces"]
            yield measure_ratio("", sentence, _medians(stage, relu, plu), *columns, *bars)
        for name, arrays in (("ReLU", relu), ("PLU", plu)):
            sentence = f"Training on {self.noun} gives {name} networks more pieces."
            columns = arrays["trained_pieces"], arrays["initial_pieces"]
            statistic = "median of pieces trained / initial; medians {:g} and {:g}".format(*map(median, columns))
            yield measure_ratio("", sentence, statistic, *columns, Range(low=1.1), Range(low=1))


def _medians(stage: str, relu: Arrays, plu: Arrays) -> str:
    pieces, patterns = (
        " and ".join(f"{median(arrays[f'{stage}_{kind}']):g}" for arrays in (plu, relu))
        for kind in ("pieces", "patterns")
    )
    return f"median of pieces PLU / ReLU; medians {pieces}, of patterns {patterns}"


_TITLE = "Parametric curve, t on"
_CURVE = FitSpec("curve", (1, 5, 5, 5, 5, 2), 4096)
_PERIOD = dataclasses.replace(_CURVE, low=0.0, high=2 * math.pi)
_SADDLE = FitSpec("saddle", (2, 3, 3, 1), 2048, low=-3.0, high=3.0, points=41, batch=100)
EXPERIMENTS = (
    FitExperiment("sine", "Sine", FitSpec("sine", (1, 3, 3, 1), 2048), "2", "the sine", "sine"),
    # the paper does not state the domain of t: the literal reading is the one of section 2 ...
    FitExperiment("parametric", f"{_TITLE} the 50 points of section 2", _CURVE, "3", "the parametric curve", "curve"),
    # ... and one period of the curve is what its figure shows
    FitExperiment(
        *("parametric-period", f"{_TITLE} one period", _PERIOD, "3"),
        *("one period of the parametric curve", "curve", "on one period"),
    ),
    # the paper does not state the number of steps: that of section 2
    FitExperiment("surface", "Hyperbolic paraboloid", _SADDLE, "4", "the surface", "surface"),
)
