"""The figures of sections 2-4: fitted functions, losses, learned shapes, pieces with their knots and regions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

from plunit.ensemble import MLP, forward
from plunit.ensemble.arrays import Array
from plunit.ensemble.mlp import exact
from plunit.lab.cell import Arrays
from plunit.lab.experiment import Runs
from plunit.lab.style import Picture, distribution, draw_band, label, listed, look, median_member, number, ranked
from plunit.lab.train.fit import FitSpec, steps
from plunit.pieces import curve, draw_curve, draw_polygons, polygons

_SHOWN = ("tanh", "relu", "plu")
_MARKERS = {"relu": "v", "plu": "o", "plu_learned": "D"}


def pictures(name: str, title: str, spec: FitSpec, runs: Runs) -> Iterator[Picture]:
    """Draw what was run; the fitted functions first."""
    yield _fitted(name, title, spec, runs)
    yield _losses(name, title, spec, runs)
    yield distribution(f"{name}-final", title, runs, "final_loss")
    if "plu_learned" in runs:
        yield _learned(name, title, spec, runs["plu_learned"])
    counted = {activation: arrays for activation, arrays in runs.items() if "course" in arrays}
    if counted:
        yield _pieces(name, title, spec, counted)
    both = {activation: arrays for activation, arrays in counted.items() if activation in ("relu", "plu")}
    if both and spec.target in _EXACT:
        yield _EXACT[spec.target](name, title, spec, both)


def _fitted(name: str, title: str, spec: FitSpec, runs: Runs) -> Picture:
    """Draw two rows, the median and the best seed, and a column for each activation."""
    shown = [activation for activation in _SHOWN if activation in runs] or list(runs)
    figure = Figure(figsize=(2.5 * len(shown), 4.9))
    draw, options = _PANELS[spec.target]
    panels = figure.subplots(2, len(shown), squeeze=False, **options)
    medians = {}
    for column, activation in enumerate(shown):
        arrays = runs[activation]
        members = {"median": median_member(arrays), "best": int(ranked(arrays)[0])}
        medians[activation] = float(arrays["final_loss"][members["median"]])
        for axes, (kind, member) in zip(panels[:, column], members.items(), strict=True):
            draw(axes, spec, activation, arrays["theta"][:, member])
            seed, loss = arrays["seed"][member], arrays["final_loss"][member]
            axes.set_title(f"{label(activation)}, {kind} seed ({seed})\nloss {loss:.2g}", fontsize=9)
    caption = f"{title}: what the networks make of it, the target in black. Loss of the median seed: {listed(medians)}."
    alt = f"The target and fitted functions: for each of {_names(shown)} the median and the best seed."
    return Picture(f"{name}-fits", caption, alt, figure)


def _losses(name: str, title: str, spec: FitSpec, runs: Runs) -> Picture:
    figure = Figure(figsize=(7.4, 3.2))
    many, single = figure.subplots(1, 2, sharey=True)
    for activation, arrays in runs.items():
        at = np.arange(len(arrays["history"])) * spec.stride
        draw_band(many, at, arrays["history"], activation)
        single.plot(at, arrays["history"][:, 0], **look(activation))
    seeds = max(arrays["seed"].size for arrays in runs.values())
    many.set(yscale="log", xlabel="step", ylabel="mean square error", title=f"median and 5-95 % of {seeds} seeds")
    single.set(xlabel="step", title="one run (seed 0), as in the paper")
    figure.legend(*many.get_legend_handles_labels(), loc="outside lower center", ncols=5)
    last = {activation: float(np.nanmedian(arrays["history"][-1])) for activation, arrays in runs.items()}
    caption = f"{title}: the loss during training. Medians at the end: {listed(last)}."
    alt = f"Two charts of loss over steps, logarithmic: median and band over seeds, and seed 0, for {_names(runs)}."
    return Picture(f"{name}-loss", caption, alt, figure)


def _learned(name: str, title: str, spec: FitSpec, arrays: Arrays) -> Picture:
    figure = Figure(figsize=(5.2, 3.4))
    axes = figure.subplots()
    shades = colormaps["cividis"](np.linspace(0.05, 0.85, len(arrays["alpha"])))
    for layer, (alpha, c) in enumerate(zip(arrays["alpha"], arrays["c"], strict=True)):
        dots = {"markersize": 2, "alpha": 0.4, "color": shades[layer], "rasterized": True}
        axes.plot(c, alpha, "osDv^<>"[layer % 7], label=f"activation {layer + 1}", **dots)
    axes.plot(spec.c, spec.alpha, "*", color="black", markersize=12, label="start")
    axes.set(xscale="log", xlabel="c", ylabel="alpha", ylim=(-0.02, 1.02))
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    middle = " and ".join(f"{key} {number(float(np.median(arrays[key])))}" for key in ("alpha", "c"))
    caption = f"{title}: learned alpha and c after training, a mark for each seed and activation. Medians: {middle}."
    alt = f"A cloud of marks, c to the right and alpha upwards, moved away from the start ({spec.c:g}, {spec.alpha:g})."
    return Picture(f"{name}-learned", caption, alt, figure)


def _pieces(name: str, title: str, spec: FitSpec, runs: Runs) -> Picture:
    figure = Figure(figsize=(7.4, 3.4))
    over, against = figure.subplots(1, 2)
    at, seeds = steps(spec), max(arrays["course"].shape[1] for arrays in runs.values())
    for activation, arrays in runs.items():
        marker = {"marker": _MARKERS.get(activation, "s"), "markeredgewidth": 0}
        draw_band(over, at, arrays["course"], activation, **marker, markersize=5)
        dots = {**marker, "markersize": 3, "alpha": 0.4, "linestyle": "none", "rasterized": True}
        against.plot(arrays["trained_pieces"], arrays["final_loss"], color=look(activation)["color"], **dots)
    noun = "pieces" if spec.widths[0] == 1 else "regions"
    # linear up to the first checkpoint, so that step 0 has its place
    over.set_xscale("symlog", base=2, linthresh=at[1])
    over.set_xticks(at, [str(step) for step in at], rotation=45)
    over.minorticks_off()
    over.set(xlabel="step", ylabel=noun, ylim=(0, None), title=f"median and 5-95 % of {seeds} seeds")
    against.set(yscale="log", xlabel=f"{noun} after training", ylabel="final loss", title="one mark for each seed")
    for axis in (over.yaxis, against.xaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(*over.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    before, after = (
        listed({activation: float(np.median(arrays[f"{stage}_pieces"])) for activation, arrays in runs.items()})
        for stage in ("initial", "trained")
    )
    caption = f"{title}: functionally distinct {noun}. Medians before training: {before}; after it: {after}."
    alt = (
        f"Left: {noun} over training steps for {_names(runs)}. Right: final loss against {noun}, a mark for each seed."
    )
    return Picture(f"{name}-pieces", caption, alt, figure)


def _knots(name: str, title: str, spec: FitSpec, runs: Runs) -> Picture:
    figure = Figure(figsize=(3.7 * len(runs), 3.2))
    x = np.linspace(spec.low, spec.high, 1001)[None]
    panels = figure.subplots(1, len(runs), squeeze=False, sharey=True)
    for axes, (activation, arrays) in zip(panels[0], runs.items(), strict=True):
        found = curve(_median(spec, activation, arrays), spec.low, spec.high)
        axes.plot(x[0], spec.value(x)[0], color="black", linewidth=0.8)
        draw_curve(found, axes, color=look(activation)["color"])
        axes.get_legend().remove()
        axes.set(ylabel="F(x)")
        axes.label_outer()
        _entitle(axes, activation, arrays, found)
    caption = f"{title}: the functions of the median seeds with their knots, target in black."
    alt = f"Fitted functions of {_names(runs)} as broken lines, a dot at each knot, over the smooth target."
    return Picture(f"{name}-knots", caption, alt, figure)


def _regions(name: str, title: str, spec: FitSpec, runs: Runs) -> Picture:
    figure = Figure(figsize=(4.2 * len(runs), 3.4))
    panels = figure.subplots(1, len(runs), squeeze=False)
    for axes, (activation, arrays) in zip(panels[0], runs.items(), strict=True):
        found = polygons(_median(spec, activation, arrays), ((spec.low, spec.high), (spec.low, spec.high)))
        draw_polygons(found, axes)
        axes.grid(False)
        _entitle(axes, activation, arrays, found)
    caption = f"{title}: the regions of the median seeds, coloured by gradient; on each the network is affine."
    alt = f"The square of the inputs cut into polygons by the networks of {_names(runs)}."
    return Picture(f"{name}-cells", caption, alt, figure)


def _median(spec: FitSpec, activation: str, arrays: Arrays) -> Any:
    """Return the network with the median final loss, for `plunit.pieces`."""
    theta = arrays["theta"][:, [median_member(arrays)]]
    return exact(MLP(spec.widths, activation), theta, spec.alpha, spec.c).member(0)


def _entitle(axes: Any, activation: str, arrays: Arrays, found: Any) -> None:
    member = median_member(arrays)
    seed, loss = arrays["seed"][member], arrays["final_loss"][member]
    counts = f"{found.pieces} pieces, {found.patterns} patterns"
    axes.set_title(f"{label(activation)}, median seed ({seed}), loss {loss:.2g}\n{counts}", fontsize=9)


def evaluate(spec: FitSpec, activation: str, theta: Array, x: Array) -> Array:
    """F(x) of one member, [outputs, points]."""
    column = theta[:, None].astype(np.float64)
    return forward(MLP(spec.widths, activation), column, x, spec.alpha, spec.c)[..., 0]


def _graph(axes: Any, spec: FitSpec, activation: str, theta: Array) -> None:
    x = np.linspace(spec.low, spec.high, 501)[None]
    axes.plot(x[0], spec.value(x)[0], color="black", linewidth=1)
    axes.set(xlabel="x", ylabel="F(x)", ylim=(-1.6, 1.6))
    axes.label_outer()
    axes.plot(x[0], evaluate(spec, activation, theta, x)[0], color=look(activation)["color"])


def _curve(axes: Any, spec: FitSpec, activation: str, theta: Array) -> None:
    t = np.linspace(spec.low, spec.high, 1001)[None]
    axes.plot(*spec.value(t), color="black", linewidth=1)
    axes.set(xlabel="first output", ylabel="second output", xlim=(-10, 4), ylim=(-8, 8))
    axes.label_outer()
    axes.plot(*evaluate(spec, activation, theta, t), color=look(activation)["color"])


def _surface(axes: Any, spec: FitSpec, activation: str, theta: Array) -> None:
    grid = np.stack(np.meshgrid(*[np.linspace(spec.low, spec.high, 61)] * 2, indexing="ij"))
    values = evaluate(spec, activation, theta, grid.reshape(2, -1)).reshape(61, 61)
    colour = look(activation)["color"]
    axes.plot_surface(*grid, values, color=colour, alpha=0.85, rcount=30, ccount=30, rasterized=True)
    axes.plot_wireframe(*grid, spec.value(grid)[0], color="black", linewidth=0.5, rcount=9, ccount=9)
    axes.set(zlim=(-10, 10))
    axes.tick_params(labelsize=6, pad=-2)


def _names(activations: Any) -> str:
    return ", ".join(map(label, activations))


_PANELS: dict[str, tuple[Callable[[Any, FitSpec, str, Array], None], dict[str, Any]]] = {
    "sine": (_graph, {"sharex": True, "sharey": True}),
    "curve": (_curve, {"sharex": True, "sharey": True}),
    "saddle": (_surface, {"subplot_kw": {"projection": "3d", "box_aspect": (1, 1, 0.8)}}),
}
_EXACT: dict[str, Callable[[str, str, FitSpec, Runs], Picture]] = {"sine": _knots, "saddle": _regions}
