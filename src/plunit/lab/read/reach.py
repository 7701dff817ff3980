"""How far the networks of sections 2 and 3 can go: by second-order steps, and with other alpha and c."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from plunit.base.ranges import Range
from plunit.ensemble import ACTIVATIONS, ENGINES, MLP
from plunit.lab import style
from plunit.lab.cell import Arrays, Cell
from plunit.lab.claims import Claim, Column, measure, measure_ratio
from plunit.lab.experiment import Experiment, Results, Runs
from plunit.lab.read.fit import EXPERIMENTS as FITS
from plunit.lab.style import Picture, label, listed, number
from plunit.lab.train import fit as run
from plunit.lab.train.fit import ReachSpec, ShapeSpec


@dataclass(frozen=True)
class Reach(Experiment):
    """The losses that networks of a shape can reach."""

    activations = ("tanh", "relu", "plu", "plu_learned")
    choices = ACTIVATIONS
    columns = ("adam_loss", "final_loss", "taken")
    compute = staticmethod(run.compute_reach)
    engines = tuple(ENGINES)

    def cost(self, cell: Cell) -> float:
        """Estimate the work, in Adam's steps; a second-order one takes as long as about 30."""
        return float(len(cell.seeds) * 22 * (self.spec.steps + 30 * self.spec.finish_steps))

    def claims(self, runs: Runs, results: Results) -> Iterator[Claim]:
        """Yield how far the activations are apart, and how far Adam stays above what each can do."""
        for above, below, least in (("plu", "tanh", 10), ("relu", "plu", 10)):
            if {above, below} <= runs.keys():
                one, other = label(above), label(below)
                yield measure_ratio(
                    "",
                    f"On the sine, {other} can reach a loss {least} times as low as {one}.",
                    f"median of loss after second-order steps {one} / {other}",
                    runs[above]["final_loss"],
                    runs[below]["final_loss"],
                    Range(low=least),
                    Range(low=1),
                )
        for name, arrays in runs.items():
            yield measure_ratio(
                "",
                f"On the sine, second-order steps lead {label(name)} to a lower loss than Adam's.",
                f"median of loss of {label(name)}, Adam / second-order steps",
                arrays["adam_loss"],
                arrays["final_loss"],
                Range(low=1.1),
                Range(low=1),
            )

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw the share of starts at or below each loss, after Adam and after second-order steps."""
        losses = {
            "adam_loss": f"loss after {self.spec.steps:,} steps of Adam",
            "final_loss": "loss after second-order steps",
        }
        yield style.distribution(self.name, self.title, runs, losses)

    def finding(self, runs: Runs) -> str:
        """Compare the medians."""
        final, adam = (style.medians(runs, key) for key in ("final_loss", "adam_loss"))
        best = listed({name: float(np.nanmin(arrays["final_loss"])) for name, arrays in runs.items()})
        ends = f"(best {best}), where Adam ends at {', '.join(number(value) for value in adam.values())}"
        return f"Median losses over {style.seeds_of(runs, 'start')} after second-order steps: {listed(final)} {ends}."


@dataclass(frozen=True)
class ShapeMap(Experiment):
    """A map of the final loss; `noun` names the fitted function."""

    noun: str = ""

    activations = ("plu",)
    choices = ACTIVATIONS
    columns = ("alpha", "c", "final_loss")
    compute = staticmethod(run.compute_map)
    engines = tuple(ENGINES)
    seeds = 32
    chunk = 4

    def seeds_within(self, seeds: int) -> int:
        """Return an eighth of the seeds, at most 32: enough for a median at each point of the grid."""
        return min(max(seeds // 8, 1), self.seeds)

    def cost(self, cell: Cell) -> float:
        """Estimate the work."""
        grid = len(self.spec.alphas) * len(self.spec.cs)
        return float(len(cell.seeds) * grid * self.spec.steps * MLP(self.spec.widths).parameters)

    def claims(self, runs: Runs, results: Results) -> Iterator[Claim]:
        """Yield how the paper's choice ranks on the map."""
        if "plu" in runs:
            losses = table(self.spec, runs["plu"])
            yield measure(
                "",
                f"alpha = {self.spec.alpha:g}, c = {self.spec.c:g} is among the best tenth of the map for {self.noun}.",
                "share of the map with a lower median loss",
                _share_below_first,
                np.stack([losses[self.spec.chosen], *losses.reshape(-1, losses.shape[-1])]),
                claimed=Range(0, 0.1),
                weaker=Range(0, 0.25),
            )

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw the map."""
        if "plu" not in runs:
            return
        losses = table(self.spec, runs["plu"])
        medians, best = _best(losses)
        figure = Figure(figsize=(6.2, 5))
        axes = figure.subplots()
        image = axes.imshow(medians, origin="lower", norm=LogNorm(), cmap="cividis", aspect="auto")
        look: dict[str, Any] = {"markersize": 14, "markeredgecolor": "black", "linestyle": "none"}
        axes.plot(
            self.spec.chosen[1], self.spec.chosen[0], marker="*", color="white", label="the paper's choice", **look
        )
        axes.plot(best[1], best[0], marker="P", color="#7fd6ff", label="lowest", **look)
        axes.set_xticks(range(len(self.spec.cs)), [f"{c:g}" for c in self.spec.cs])
        axes.set_yticks(range(len(self.spec.alphas)), [f"{alpha:g}" for alpha in self.spec.alphas])
        axes.set(xlabel="c", ylabel="alpha")
        axes.grid(False)
        figure.colorbar(image, label="median final loss")
        handles, labels = axes.get_legend_handles_labels()
        legend = figure.legend(handles, labels, loc="outside lower center", ncols=2, facecolor="#808080", frameon=True)
        legend.get_frame().set_edgecolor("none")
        caption = f"{self.title}: median final loss over {losses.shape[-1]} seeds at each point."
        ends = f"{medians.min():.2g} to {medians.max():.2g}"
        alt = f"A heat map, c from left to right and alpha upwards; losses go from {ends}."
        yield Picture(self.name, caption, alt, figure)

    def finding(self, runs: Runs) -> str:
        """Compare the paper's choice with the best one."""
        if "plu" not in runs:
            return ""
        medians, best = _best(table(self.spec, runs["plu"]))
        chosen, least = (number(float(medians[at])) for at in (self.spec.chosen, best))
        where = f"alpha = {self.spec.alphas[best[0]]:g}, c = {self.spec.cs[best[1]]:g}"
        return f"For {self.noun}, the paper's choice has the median loss {chosen}; the lowest is {least}, at {where}."


def table(spec: ShapeSpec, arrays: Arrays) -> Column:
    """Return the final losses as [alphas, cs, seeds]; losses that diverged are infinite."""
    losses = arrays["final_loss"].reshape(-1, len(spec.alphas), len(spec.cs))
    return np.nan_to_num(np.moveaxis(losses, 0, -1), nan=np.inf, posinf=np.inf)


def _best(losses: Column) -> tuple[Column, tuple[int, int]]:
    medians = np.median(losses, axis=-1)
    first, second = np.unravel_index(np.argmin(medians), medians.shape)
    return medians, (int(first), int(second))


def _share_below_first(losses: Column) -> Any:
    medians = np.median(losses, axis=-1)
    return (medians < medians[0]).mean(axis=0)


EXPERIMENTS = (
    Reach("reach", "What each activation can do on the sine", ReachSpec(**vars(FITS[0].spec))),
    *(
        ShapeMap(f"map-{fit.name}", f"Loss over alpha and c, {fit.noun}", ShapeSpec(**vars(fit.spec)), noun=fit.noun)
        for fit in FITS[:2]
    ),
)
