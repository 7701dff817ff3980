"""Figures of the whole report: the final losses of all fits, and every claim with its interval and claimed range."""

from __future__ import annotations

import functools
import math
import textwrap
from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure

from plunit.lab.claims import FAILS, HOLDS, UNDECIDED, UNSEEN, WEAKLY, Claim
from plunit.lab.style import Picture, label, listed, look

VERDICT_COLOURS = {HOLDS: "#0a6b4a", WEAKLY: "#b07800", FAILS: "#b3261e", UNDECIDED: "#7f7f7f", UNSEEN: "#7f7f7f"}
_MARKERS = {"tanh": "s", "relu": "v", "plu": "o", "plu_learned": "D"}
_LIMITS = (1e-6, 1e4)
_short = functools.partial(textwrap.shorten, width=88, placeholder=" ...")


def final_losses(losses: dict[str, dict[str, tuple[float, float, float]]], titles: dict[str, str]) -> Picture:
    """Draw the median final loss and 5-95 % of seeds, a row for each experiment and a mark for each activation."""
    activations = list(dict.fromkeys(activation for row in losses.values() for activation in row))
    figure = Figure(figsize=(7.4, 0.75 * len(losses) + 1.1))
    axes = figure.subplots()
    for place, row in enumerate(losses.values()):
        for i, (activation, (low, middle, high)) in enumerate(row.items()):
            y = -place - 0.14 * (i - (len(row) - 1) / 2)
            colour = look(activation)["color"]
            axes.plot([low, high], [y, y], color=colour, linewidth=2.2, alpha=0.45)
            axes.plot(middle, y, _MARKERS.get(activation, "^"), color=colour, markersize=6)
    for activation in activations:
        marker = _MARKERS.get(activation, "^")
        axes.plot([], [], marker, color=look(activation)["color"], label=label(activation))
    axes.set(xscale="log", xlabel="final loss (mean square error), lower is better")
    axes.set_yticks(range(0, -len(losses), -1), [textwrap.fill(_plain(titles[name]), 34) for name in losses])
    axes.set_ylim(-len(losses) + 0.45, 0.55)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=5)
    rows = "; ".join(f"{titles[name]}: {listed({a: q[1] for a, q in row.items()})}" for name, row in losses.items())
    caption = "Final losses of the networks of sections 2-4: median and 5-95 % of seeds."
    return Picture(
        "final-losses", caption, f"A row for each function, a mark for each activation. Medians: {rows}.", figure
    )


def forest(claims: list[Claim]) -> Picture:
    """Draw each claim as a row: estimate, 95 % interval, and the range in which it holds, shaded."""
    figure = Figure(figsize=(7.6, 0.165 * len(claims) + 1.2))
    axes = figure.subplots()
    scale = _axis(axes)
    left, right = scale(-math.inf), scale(math.inf)
    for place, claim in enumerate(claims):
        y, colour = -place, VERDICT_COLOURS[claim.verdict]
        low, high = max(scale(claim.claimed.low), left), min(scale(claim.claimed.high), right)
        axes.plot([low, high], [y, y], color="#9aa5b1", alpha=0.45, linewidth=5, solid_capstyle="butt")
        if not math.isnan(claim.low):
            axes.plot([scale(claim.low), scale(claim.high)], [y, y], color=colour, linewidth=1.4)
        axes.plot(scale(claim.value), y, "o", color=colour, markersize=3.5)
    axes.set_yticks(range(0, -len(claims), -1), [_short(_plain(claim.sentence)) for claim in claims], fontsize=5.5)
    axes.set_ylim(-len(claims) + 0.3, 0.7)
    axes.set_xlim(left - 0.2, right + 0.2)
    counts = {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in VERDICT_COLOURS}
    for verdict in filter(counts.get, counts):
        axes.plot([], [], "o-", color=VERDICT_COLOURS[verdict], markersize=3.5, label=verdict)
    axes.plot([], [], color="#9aa5b1", alpha=0.45, linewidth=5, label="claimed range")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=5, fontsize=7)
    caption = (
        "Every claim: estimate, 95 % interval and claimed range, in the unit of its statistic: a ratio, a share, a "
        "count or nats. The axis is logarithmic, but linear left of 0; values beyond an end are drawn there."
    )
    found = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    return Picture("forest", caption, f"{len(claims)} rows with intervals: {found}.", figure)


def _plain(text: str) -> str:
    """Return a text in which Matplotlib finds no formula."""
    return text.replace("$", r"\$")


def _axis(axes: Any) -> Callable[[float], float]:
    """Set up an axis that is logarithmic right of 0 and linear left of it; return the place of a number on it."""
    least, most = (math.log10(limit) for limit in _LIMITS)

    def place(value: float) -> float:
        if value <= _LIMITS[0]:
            return 2 * max(min(value, 0.0), -1.0)
        return min(math.log10(value), most) - least

    ticks = {-1.0: "-1", 0.0: "0"} | {10.0**power: f"$10^{{{power}}}$" for power in (-4, -2, 0, 2, 4)}
    axes.set_xticks([place(value) for value in ticks], list(ticks.values()), fontsize=7)
    return place
