"""Series of fits: `capacity` over sizes of networks, `frequency` over k in sin(k x)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plunit.ensemble import ACTIVATIONS, ENGINES, MLP
from plunit.lab.cell import Arrays, Cell
from plunit.lab.experiment import Experiment, Runs, Statistic
from plunit.lab.intervals import Column, median, paired_ratios, ratios
from plunit.lab.pictures import LinePanel, Picture, count_seeds, draw_lines, list_names, number
from plunit.lab.train import capacity_frequency as run
from plunit.lab.train.capacity_frequency import CapacitySpec, FrequencySpec, fraction, name_of


@dataclass(frozen=True)
class Series(Experiment):
    """Fits that differ in one thing."""

    activations = ("tanh", "relu", "plu")
    choices = ACTIVATIONS
    columns = ("final_loss",)
    compute = staticmethod(run.compute)
    engines = tuple(ENGINES)
    seeds = 256

    def cost(self, cell: Cell) -> float:
        """Estimate the work."""
        weights = sum(MLP(one.widths).parameters for one in self.spec.fits().values())
        return float(len(cell.seeds) * self.spec.steps * weights)

    def loss(self, arrays: Arrays, fit: str) -> Arrays:
        """Return seeds and final losses of one fit."""
        return {"seed": arrays["seed"], "loss": arrays["final_loss"][[*self.spec.fits()].index(fit)]}

    def advantage(self, runs: Runs, fit: str) -> Column:
        """Return ReLU / PLU, the ratio of their final losses, seed by seed, at one fit."""
        return paired_ratios(self.loss(runs["relu"], fit), self.loss(runs["plu"], fit), "loss")

    def compare_advantages(self, runs: Runs, above: tuple[str, str], below: tuple[str, str]) -> Statistic:
        """Return the median of the advantage of one fit divided by that of another; each is (fit, its name)."""
        parts = [self.advantage(runs, fit) for fit, _ in (above, below)]
        words = f"median of final loss ReLU / PLU with {above[1]}, divided by the same with {below[1]}"
        return Statistic(f"ratio {above[1]} / ratio {below[1]}", words, median(ratios(*parts)))

    def panel(self, runs: Runs, fits: dict[Any, str], xlabel: str) -> LinePanel:
        """Return the final losses of some fits, by their place on the axis."""
        losses = {name: np.stack([self.loss(one, fit)["loss"] for fit in fits.values()]) for name, one in runs.items()}
        return LinePanel(
            [*fits], losses, {"xscale": "log", "xlabel": xlabel, "ylabel": "final loss"}, [*map(fraction, fits)]
        )


@dataclass(frozen=True)
class Capacity(Series):
    """Final losses of wider and of deeper networks; `noun` names the fitted function."""

    noun: str = ""

    def axes(self) -> dict[str, Sequence[Any]]:
        """Return the hidden layers of each network, such as 3x3."""
        return {"hidden": [*self.spec.fits()]}

    def wider(self) -> dict[int, str]:
        """Return the fits by units of a layer."""
        return {units: name_of((units,) * self.spec.size[1]) for units in self.spec.units}

    def deeper(self) -> dict[int, str]:
        """Return the fits by number of hidden layers."""
        return {layers: name_of((self.spec.size[0],) * layers) for layers in self.spec.layers}

    def statistics(self, runs: Runs) -> Iterator[Statistic]:
        """Yield ReLU's loss with twice the units, or twice the layers, over PLU's; and the advantage over depth."""
        if not runs.keys() >= {"relu", "plu"}:
            return
        (width, depth), wide, deep = self.spec.size, self.wider(), self.deeper()
        own = wide[width]
        if 2 * width in wide:
            yield self._compare(runs, wide[2 * width], wide[2 * width], own)
        if 2 * depth in deep:
            yield self._compare(runs, deep[2 * depth], f"{2 * depth} layers", f"{depth} layers")
        for layers in self.spec.layers:
            if layers > depth:
                yield self.compare_advantages(runs, (own, f"{depth} layers"), (deep[layers], f"{layers} layers"))

    def _compare(self, runs: Runs, fit: str, size: str, own: str) -> Statistic:
        """Return the median of ReLU's loss at one fit divided by PLU's where the series meet."""
        base = self.wider()[self.spec.size[0]]
        values = paired_ratios(self.loss(runs["relu"], fit), self.loss(runs["plu"], base), "loss")
        words = f"median of final loss ReLU ({size}) / PLU ({own})"
        return Statistic(f"relu {size} / plu {own}", words, median(values))

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw the final losses over units and over layers."""
        width, depth = self.spec.size
        panels = (
            self.panel(runs, self.wider(), f"units in each of {depth} hidden layers"),
            self.panel(runs, self.deeper(), f"hidden layers of {width} units"),
        )
        caption = f"{self.title}: final loss, median and 5-95 % of {count_seeds(runs)}, over width and over depth."
        alt = f"Two charts of final losses, over units and over layers, for {list_names(runs)}."
        yield draw_lines(self.name, caption, alt, *panels)

    def finding(self, runs: Runs) -> str:
        """Say how many units or layers ReLU needs for the loss of the PLU network where the series meet."""
        if not runs.keys() >= {"relu", "plu"}:
            return ""
        width, depth = self.spec.size
        own = name_of((width,) * depth)
        target = self._median(runs, "plu", own)
        units = self._least(runs, self.wider(), target, f"units in each of {depth} layers")
        layers = self._least(runs, self.deeper(), target, f"layers of {width} units")
        return (
            f"PLU with {own} units has the median loss {number(target)} on {self.noun}, ReLU {units} and {layers}; "
            f"with {own} units ReLU's is {number(self._median(runs, 'relu', own))}."
        )

    def _median(self, runs: Runs, activation: str, fit: str) -> float:
        return median(self.loss(runs[activation], fit)["loss"]).value

    def _least(self, runs: Runs, fits: dict[int, str], target: float, noun: str) -> str:
        """Return the least size at which ReLU's median loss is as low as the target, in words."""
        losses = {size: self._median(runs, "relu", fit) for size, fit in fits.items()}
        if enough := [size for size, loss in losses.items() if loss <= target]:
            return f"reaches it with {min(enough)} {noun}"
        return f"does not reach it with up to {max(fits)} {noun} (lowest {number(min(losses.values()))})"


@dataclass(frozen=True)
class Frequency(Series):
    """Final losses at several frequencies."""

    seeds = 1024

    def axes(self) -> dict[str, Sequence[Any]]:
        """Return the frequencies."""
        return {"k": self.spec.frequencies}

    def statistics(self, runs: Runs) -> Iterator[Statistic]:
        """Yield the advantage over ReLU at each frequency divided by that at the lowest."""
        if runs.keys() >= {"relu", "plu"}:
            first, *others = ((k, f"k={k}") for k in self.spec.fits())
            for one in others:
                yield self.compare_advantages(runs, one, first)

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw the losses over the frequency, and the ratio ReLU / PLU."""
        fits = dict(zip(self.spec.frequencies, self.spec.fits(), strict=True))
        panels = [self.panel(runs, fits, "k")]
        if runs.keys() >= {"relu", "plu"}:
            found = {"plu": np.stack([self.advantage(runs, fit) for fit in fits.values()])}
            panels.append(panels[0]._replace(values=found, axes={**panels[0].axes, "ylabel": "final loss, ReLU / PLU"}))
        caption = f"{self.title}: median and 5-95 % of {count_seeds(runs)}; below, the ratio ReLU / PLU, seed by seed."
        alt = f"Above: final losses over k for {list_names(runs)}. Below: the ratio of ReLU's to PLU's over k."
        yield draw_lines(self.name, caption, alt, *panels)

    def finding(self, runs: Runs) -> str:
        """Give the ratios ReLU / PLU at all frequencies."""
        if not runs.keys() >= {"relu", "plu"}:
            return ""
        found = {fit: median(self.advantage(runs, fit)).value for fit in self.spec.fits()}
        values = ", ".join(f"{number(value)} at k = {fit}" for fit, value in found.items())
        return f"Median of final loss ReLU / PLU on sin(k x): {values}."


def _capacity(name: str, noun: str, spec: CapacitySpec) -> Capacity:
    return Capacity(name, f"Wider and deeper networks on {noun}", spec, "1", noun=noun)


EXPERIMENTS = (
    _capacity("capacity", "the sine", CapacitySpec("sine", (1, 3, 3, 1), 2048)),
    _capacity("capacity-curve", "the parametric curve", CapacitySpec("curve", (1, 3, 3, 2), 4096)),
    Frequency(
        "frequency",
        "More and less nonlinear functions: sin(k x) for k from 1/4 to 4",
        FrequencySpec("sine", (1, 3, 3, 1), 2048),
        "7",
    ),
)
