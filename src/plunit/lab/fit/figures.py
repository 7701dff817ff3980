"""The figures of sections 1-4: activations, loss curves, final losses, fitted functions, learned shapes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from plunit.ensemble import ACTIVATIONS
from plunit.lab.fit.drawn import fitted
from plunit.lab.fit.spec import SPECS, TITLES
from plunit.lab.results import Results
from plunit.lab.style import Picture, label, look


def figures(results: Results) -> Iterator[Picture]:
    """Draw what was run."""
    names = [name for name in results.names() if name in SPECS]
    if names:
        yield _activations()
    for name in names:
        yield _losses(name, results)
        yield _final(name, results)
        yield from fitted(name, results)
        if results.has(name, "plu_learned"):
            yield _learned(name, results)


def _activations() -> Picture:
    figure = Figure(figsize=(4.2, 3))
    axes = figure.subplots()
    x = torch.linspace(-3, 3, 601)
    for activation in ("tanh", "relu", "plu"):
        axes.plot(x, ACTIVATIONS[activation](x, torch.tensor(0.1), torch.tensor(1.0)), **look(activation))
    axes.set(xlabel="x", ylabel="a(x)", ylim=(-1.5, 3))
    axes.legend(loc="upper left")
    return Picture("", "activations", "The activations of section 1; PLU with alpha = 0.1 and c = 1.", figure)


def _losses(name: str, results: Results) -> Picture:
    figure = Figure(figsize=(7.4, 3.2))
    many, single = figure.subplots(1, 2, sharey=True)
    for activation in results.activations(name):
        history = results[name, activation]["history"]
        steps = np.arange(len(history)) * SPECS[name].stride
        low, middle, high = np.nanquantile(history, [0.05, 0.5, 0.95], axis=1)
        style = look(activation)
        many.fill_between(steps, low, high, color=style["color"], alpha=0.12, linewidth=0)
        many.plot(steps, middle, **style)
        single.plot(steps, history[:, 0], **style)
    seeds = history.shape[1]
    many.set(yscale="log", xlabel="step", ylabel="mean square error", title=f"median and 5-95 % of {seeds} seeds")
    single.set(xlabel="step", title="one run (seed 0), as in the paper")
    figure.legend(*many.get_legend_handles_labels(), loc="outside lower center", ncols=5)
    caption = f"{TITLES[name]}: the loss during training."
    return Picture(name, f"{name}-loss", caption, figure)


def _final(name: str, results: Results) -> Picture:
    figure = Figure(figsize=(5.2, 3.2))
    axes = figure.subplots()
    for activation in results.activations(name):
        losses = np.sort(results[name, activation]["final_loss"])
        axes.step(losses, np.arange(1, len(losses) + 1) / len(losses), where="post", **look(activation))
    axes.set(xscale="log", xlabel="final loss", ylabel="share of seeds at or below", ylim=(0, 1))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    caption = f"{TITLES[name]}: the distribution of final losses; further left is better."
    return Picture(name, f"{name}-final", caption, figure)


def _learned(name: str, results: Results) -> Picture:
    arrays = results[name, "plu_learned"]
    figure = Figure(figsize=(5.2, 3.4))
    axes = figure.subplots()
    markers = "osDv^<>"
    shades = colormaps["cividis"](np.linspace(0.05, 0.85, len(arrays["alpha"])))
    for layer, (alpha, c) in enumerate(zip(arrays["alpha"], arrays["c"], strict=True)):
        axes.plot(
            c, alpha, markers[layer % 7], markersize=2, alpha=0.4, color=shades[layer], label=f"activation {layer + 1}"
        )
    spec = SPECS[name]
    axes.plot(spec.c, spec.alpha, "*", color="black", markersize=12, label="start")
    axes.set(xscale="log", xlabel="c", ylabel="alpha", ylim=(-0.02, 1.02))
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    caption = (
        f"{TITLES[name]}: alpha and c of {label('plu_learned')} after training, one mark for each seed and activation."
    )
    return Picture(name, f"{name}-learned", caption, figure)
