"""How far the networks of section 2 can go: second-order steps from the same starts as Adam's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plunit.ensemble import ACTIVATIONS, ENGINES
from plunit.lab import style, summary
from plunit.lab.cell import Arrays, Cell
from plunit.lab.experiment import Experiment, Runs, Statistic, ratio
from plunit.lab.intervals import median, ratios, worst_if_diverged
from plunit.lab.pictures import Picture
from plunit.lab.read.sine import SINE
from plunit.lab.summary import label, listed, number
from plunit.lab.train import fit as run
from plunit.lab.train.fit import ReachSpec

GROUP = 64
"""Starts of which the best one is taken; the best of all starts has no interval."""


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

    def statistics(self, runs: Runs) -> Iterator[Statistic]:
        """Yield how far the activations are apart, at the median and at the best, and how far Adam stays above each."""
        noun = "loss after second-order steps"
        for above, below in (("plu", "tanh"), ("relu", "plu")):
            yield from ratio(runs, above, below, "final_loss", noun)
        best = {name: _best_of_groups(arrays) for name, arrays in runs.items()}
        for below in ("plu", "tanh"):
            yield from ratio(
                best, "relu", below, "final_loss", f"best {noun} in each group of {GROUP} starts,", "best "
            )
        for name, arrays in runs.items():
            gain = median(ratios(arrays["adam_loss"], arrays["final_loss"]))
            words = f"median of loss of {label(name)}, Adam / second-order steps"
            yield Statistic(f"{name} adam/second-order", words, gain)

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw the share of starts at or below each loss, after Adam and after second-order steps."""
        losses = {
            "adam_loss": f"loss after {self.spec.steps:,} steps of Adam",
            "final_loss": "loss after second-order steps",
        }
        yield style.distribution(self.name, self.title, runs, losses)

    def finding(self, runs: Runs) -> str:
        """Compare the medians."""
        final, adam = (summary.medians(runs, key) for key in ("final_loss", "adam_loss"))
        best = listed({name: float(worst_if_diverged(arrays["final_loss"]).min()) for name, arrays in runs.items()})
        ends = f"(best {best}), where Adam ends at {', '.join(number(value) for value in adam.values())}"
        return f"Median losses over {summary.seeds_of(runs, 'start')} after second-order steps: {listed(final)} {ends}."


def _best_of_groups(arrays: Arrays) -> Arrays:
    """Return the lowest loss of each whole group of `GROUP` seeds, and the first seed of each."""
    losses, seeds = worst_if_diverged(arrays["final_loss"]), arrays["seed"]
    count = seeds.size // GROUP
    whole = (one[: count * GROUP].reshape(count, GROUP) for one in (losses, seeds))
    return dict(zip(("final_loss", "seed"), (one.min(axis=1) for one in whole), strict=True))


EXPERIMENTS = (
    Reach("reach", "The lowest losses that each activation reaches on the sine", ReachSpec(**vars(SINE.spec)), "2"),
)
