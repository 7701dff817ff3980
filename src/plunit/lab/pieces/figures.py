"""Pieces over training and against the loss; a fitted sine with its knots; the cells of a fitted surface."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from plunit.ensemble import Network
from plunit.lab.fit.spec import SPECS, TITLES
from plunit.lab.fit.targets import TARGETS
from plunit.lab.pieces.count import exact, steps
from plunit.lab.results import Results
from plunit.lab.store import Arrays
from plunit.lab.style import Picture, label, look
from plunit.pieces import Network as Exact
from plunit.pieces import cells, curve, draw_cells, draw_curve

_MARKERS = {"relu": "v", "plu": "o", "plu_learned": "D"}


def figures(results: Results) -> Iterator[Picture]:
    """Draw what was run with piecewise-linear activations."""
    for name in results.names():
        if name in SPECS and (shown := _counted(name, results)):
            yield _pieces(name, shown, results)
            both = [activation for activation in shown if activation in ("relu", "plu")]
            if both and SPECS[name].target == "sine":
                yield _knots(name, both, results)
            if both and SPECS[name].target == "saddle":
                yield _cells(name, both, results)


def _counted(name: str, results: Results) -> list[str]:
    return [activation for activation in results.activations(name) if "course" in results[name, activation]]


def _pieces(name: str, shown: list[str], results: Results) -> Picture:
    figure = Figure(figsize=(7.4, 3.4))
    over, against = figure.subplots(1, 2)
    at, seeds = steps(SPECS[name]), results[name, shown[0]]["course"].shape[1]
    for activation in shown:
        arrays, style = results[name, activation], look(activation)
        low, middle, high = np.quantile(arrays["course"], [0.05, 0.5, 0.95], axis=1)
        over.fill_between(at, low, high, color=style["color"], alpha=0.12, linewidth=0)
        marker = {"marker": _MARKERS.get(activation, "s"), "color": style["color"], "markeredgewidth": 0}
        over.plot(at, middle, **{**style, **marker, "markersize": 5})
        dots = {**marker, "markersize": 3, "alpha": 0.4, "linestyle": "none"}
        against.plot(arrays["trained_pieces"], arrays["final_loss"], **dots)
    noun = "pieces" if SPECS[name].widths[0] == 1 else "cells"
    # linear up to the first checkpoint, so that step 0 has its place
    over.set_xscale("symlog", base=2, linthresh=at[1])
    over.set_xticks(at, [str(step) for step in at], rotation=45)
    over.minorticks_off()
    over.set(xlabel="step", ylabel=noun, ylim=(0, None), title=f"median and 5-95 % of {seeds} seeds")
    against.set(yscale="log", xlabel=f"{noun} after training", ylabel="final loss", title="one mark for each seed")
    for axis in (over.yaxis, against.xaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(*over.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    counts = "; ".join(f"{label(a)} {_medians(results[name, a])}" for a in shown)
    caption = f"{TITLES[name]}: functionally distinct {noun}. Medians before and after training: {counts}."
    return Picture(name, f"{name}-pieces", caption, figure)


def _medians(arrays: Arrays) -> str:
    return " to ".join(f"{np.median(arrays[f'{stage}_pieces']):g}" for stage in ("initial", "trained"))


def _median_seed(name: str, activation: str, results: Results) -> tuple[Exact, str]:
    """Return the network with the median final loss and a line that names it."""
    arrays, spec = results[name, activation], SPECS[name]
    order = np.argsort(np.nan_to_num(arrays["final_loss"], nan=np.inf))
    member = order[(len(order) - 1) // 2]
    theta = torch.from_numpy(arrays["theta"][:, [member]])
    title = f"{label(activation)}, median seed ({arrays['seed'][member]}), loss {arrays['final_loss'][member]:.2g}"
    return exact(spec, Network(spec.widths, activation), theta), title


def _knots(name: str, shown: list[str], results: Results) -> Picture:
    spec = SPECS[name]
    figure = Figure(figsize=(3.7 * len(shown), 3.2))
    x = np.linspace(spec.low, spec.high, 1001)[None]
    panels = figure.subplots(1, len(shown), squeeze=False, sharey=True)
    for axes, activation in zip(panels[0], shown, strict=True):
        net, title = _median_seed(name, activation, results)
        found = curve(net, spec.low, spec.high)
        axes.plot(x[0], TARGETS[spec.target](x)[0], color="black", linewidth=0.8)
        draw_curve(found, axes, color=look(activation)["color"])
        axes.get_legend().remove()
        axes.set(ylabel="F(x)")
        axes.label_outer()
        axes.set_title(f"{title}\n{found.pieces} pieces, {found.patterns} patterns", fontsize=9)
    caption = f"{TITLES[name]}: fitted functions with their knots, target in black."
    return Picture(name, f"{name}-knots", caption, figure)


def _cells(name: str, shown: list[str], results: Results) -> Picture:
    spec = SPECS[name]
    figure = Figure(figsize=(4.2 * len(shown), 3.4))
    panels = figure.subplots(1, len(shown), squeeze=False)
    for axes, activation in zip(panels[0], shown, strict=True):
        net, title = _median_seed(name, activation, results)
        found = cells(net, ((spec.low, spec.high), (spec.low, spec.high)))
        draw_cells(found, axes)
        axes.grid(False)
        axes.set_title(f"{title}\n{found.pieces} pieces, {found.patterns} patterns", fontsize=9)
    caption = f"{TITLES[name]}: the cells of fitted networks, coloured by gradient; on each the network is affine."
    return Picture(name, f"{name}-cells", caption, figure)
