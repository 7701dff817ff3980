"""How many units or layers ReLU needs for the loss of a small PLU network: losses over width and depth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from plunit.lab.experiment import Runs, Statistic
from plunit.lab.intervals import median
from plunit.lab.pictures import Picture
from plunit.lab.read.series import Series
from plunit.lab.summary import names, number, seeds_of
from plunit.lab.train.series import CapacitySpec, name_of


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
            twice = wide[2 * width]
            yield self.compare_fits(runs, ("relu", twice, twice), ("plu", own, own))
        if 2 * depth in deep:
            above = ("relu", deep[2 * depth], f"{2 * depth} layers")
            yield self.compare_fits(runs, above, ("plu", own, f"{depth} layers"))
        for layers in self.spec.layers:
            if layers > depth:
                yield self.compare_advantages(runs, (own, f"{depth} layers"), (deep[layers], f"{layers} layers"))

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw the final losses over units and over layers."""
        figure = Figure(figsize=(7.4, 3.4))
        left, right = figure.subplots(1, 2, sharey=True)
        wide, deep = self.wider(), self.deeper()
        self.draw(left, runs, [*wide], [*wide.values()])
        self.draw(right, runs, [*deep], [*deep.values()])
        width, depth = self.spec.size
        left.set(xlabel=f"units in each of {depth} hidden layers", ylabel="final loss")
        right.set(xlabel=f"hidden layers of {width} units")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)
        caption = f"{self.title}: final loss, median and 5-95 % of {seeds_of(runs)}, over width and over depth."
        alt = f"Two charts of final losses, over units and over layers, for {names(runs)}."
        yield Picture(self.name, caption, alt, figure)

    def finding(self, runs: Runs) -> str:
        """Say how many units or layers ReLU needs for the loss of the PLU network where the series meet."""
        if not runs.keys() >= {"relu", "plu"}:
            return ""
        width, depth = self.spec.size
        wide, deep, own = self.wider(), self.deeper(), name_of((width,) * depth)
        target = self._median(runs, "plu", own)
        units = self._least(runs, wide, target, f"units in each of {depth} layers")
        layers = self._least(runs, deep, target, f"layers of {width} units")
        return (
            f"PLU with {own} units has the median loss {number(target)} on {self.noun}, ReLU {units} and {layers}; "
            f"with {own} units ReLU's is {number(self._median(runs, 'relu', own))}."
        )

    def _median(self, runs: Runs, activation: str, fit: str) -> float:
        return median(self.loss(runs[activation], fit)["loss"]).value

    def _least(self, runs: Runs, fits: dict[int, str], target: float, noun: str) -> str:
        """Say from which size on ReLU's median loss is as low as the target."""
        enough = [size for size, fit in fits.items() if self._median(runs, "relu", fit) <= target]
        lowest = min(self._median(runs, "relu", fit) for fit in fits.values())
        if enough:
            return f"reaches it with {min(enough)} {noun}"
        return f"does not reach it with up to {max(fits)} {noun} (lowest {number(lowest)})"


EXPERIMENTS = (
    Capacity(
        "capacity",
        "The sine with wider and deeper networks",
        CapacitySpec("sine", (1, 3, 3, 1), 2048),
        "1",
        noun="the sine",
    ),
    Capacity(
        "capacity-curve",
        "The parametric curve with wider and deeper networks",
        CapacitySpec("curve", (1, 3, 3, 2), 4096),
        "1",
        noun="the parametric curve",
    ),
)
