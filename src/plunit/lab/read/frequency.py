"""Whether PLU's advantage grows with the nonlinearity of the function: losses on sin(k x) over k."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from plunit.lab.experiment import Runs, Statistic
from plunit.lab.intervals import median
from plunit.lab.pictures import Picture
from plunit.lab.read.series import Series
from plunit.lab.style import draw_band
from plunit.lab.summary import names, number, seeds_of
from plunit.lab.train.series import FrequencySpec


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
        figure = Figure(figsize=(7.4, 3.4))
        left, right = figure.subplots(1, 2)
        x, fits = self.spec.frequencies, [*self.spec.fits()]
        self.draw(left, runs, x, fits)
        left.set(xlabel="k", ylabel="final loss")
        if runs.keys() >= {"relu", "plu"}:
            found = np.stack([self.advantage(runs, fit) for fit in fits])
            draw_band(right, x, found, "plu", marker="o", markersize=3)
            right.axhline(1, color="black", linewidth=0.8)
        right.set(xscale="log", yscale="log", xlabel="k", ylabel="final loss, ReLU / PLU")
        right.set_xticks(x, fits)
        right.minorticks_off()
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)
        caption = f"{self.title}: median and 5-95 % of {seeds_of(runs)}; right, the ratio ReLU / PLU, seed by seed."
        alt = f"Left: final losses over k for {names(runs)}. Right: the ratio of ReLU's to PLU's over k."
        yield Picture(self.name, caption, alt, figure)

    def finding(self, runs: Runs) -> str:
        """Give the ratios ReLU / PLU at all frequencies."""
        if not runs.keys() >= {"relu", "plu"}:
            return ""
        found = {fit: median(self.advantage(runs, fit)).value for fit in self.spec.fits()}
        listed = ", ".join(f"{number(value)} at k = {fit}" for fit, value in found.items())
        return f"Median of final loss ReLU / PLU on sin(k x): {listed}."


EXPERIMENTS = (Frequency("frequency", "sin(k x) for k from 1/4 to 4", FrequencySpec("sine", (1, 3, 3, 1), 2048), "7"),)
