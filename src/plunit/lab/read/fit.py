"""What `sine`, `parametric` and `surface` share: rows, statistics, and figures of functions, losses and pieces."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

from plunit.ensemble import ACTIVATIONS, ENGINES, MLP, forward
from plunit.ensemble.arrays import Array
from plunit.ensemble.mlp import exact
from plunit.lab import style, summary
from plunit.lab.cell import Arrays, Cell
from plunit.lab.experiment import Experiment, Runs, Statistic, ratio
from plunit.lab.intervals import mean, median, ratios, share
from plunit.lab.pictures import Picture
from plunit.lab.summary import names
from plunit.lab.train import fit as run
from plunit.lab.train.fit import FitSpec, steps
from plunit.pieces import curve, draw_curve, draw_polygons, polygons

_LAST = 16  # recorded batches, of 256 steps, over which the training loss is averaged
_SHOWN = ("tanh", "relu", "plu")
_AXES: dict[str, dict[str, Any]] = {
    "sine": {"xlabel": "x", "ylabel": "F(x)", "ylim": (-1.6, 1.6)},
    "curve": {"xlabel": "first output", "ylabel": "second output", "xlim": (-10, 4), "ylim": (-8, 8)},
}


@dataclass(frozen=True)
class FitExperiment(Experiment):
    """A function fitted by small networks.

    Attributes:
        noun: its name in sentences.
    """

    noun: str = ""

    activations: ClassVar[tuple[str, ...]] = ("tanh", "relu", "plu", "plu_learned")
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
        yield _fitted(self, runs)
        yield _losses(self, runs)
        yield style.distribution(f"{self.name}-final", self.title, runs, {"final_loss": "final loss"})
        if "plu_learned" in runs:
            yield _learned(self, runs["plu_learned"])
        if counted := {activation: arrays for activation, arrays in runs.items() if "course" in arrays}:
            yield _pieces(self, counted)
        shown = ("relu", "plu", *self.added(runs))
        pieced = {activation: arrays for activation, arrays in counted.items() if activation in shown}
        if pieced and self.spec.target != "curve":  # which has two outputs
            yield _exact(self, pieced)

    def added(self, runs: Runs) -> list[str]:
        """Return the activations that the user has added to the usual ones."""
        return [activation for activation in runs if activation not in self.activations]

    def compared(self, runs: Runs) -> tuple[Runs, str]:
        """Return all runs if the user has added an activation to the usual ones."""
        return (runs if self.added(runs) else {}), "final_loss"

    def finding(self, runs: Runs) -> str:
        """Compare the median final losses."""
        text = f"Median final losses over {summary.seeds_of(runs)}: {summary.lowest(runs, 'final_loss')}"
        if not self.spec.batch:
            return f"{text}."
        last = summary.listed(summary.medians(_last(runs), "last"))
        return f"{text} (at the points of a grid; median training losses, means of the last batches: {last})."

    def statistics(self, runs: Runs) -> Iterator[Statistic]:
        """Yield ratios of losses, shares of dead units, and numbers of pieces."""
        for above, below in (("plu", "tanh"), ("relu", "plu"), ("relu", "tanh"), ("plu", "plu_learned")):
            yield from ratio(runs, above, below, "final_loss", "final loss")
            if self.spec.batch:
                yield from ratio(
                    _last(runs), above, below, "last", "training loss, mean of the last batches,", "train "
                )
        if "relu" in runs:
            dead = runs["relu"]["dead"]
            words = "hidden units with slope 0 on all data"
            units = sum(self.spec.widths[1:-1])
            yield Statistic("dead relu", f"mean share of ReLU's {words}", mean(dead / units))
            yield Statistic("networks with dead relu", f"share of ReLU networks that have {words}", share(dead > 0))
            yield Statistic("pieces relu", "median of pieces of ReLU", median(runs["relu"]["trained_pieces"]))
        for stage, when in (("trained", ""), ("initial", "initial "), ("random", "random ")):
            yield from ratio(runs, "plu", "relu", f"{stage}_pieces", f"{when}pieces", f"{when}pieces ")
        for name in ("relu", "plu"):
            if name in runs:
                gain = ratios(*(runs[name][f"{stage}_pieces"] for stage in ("trained", "initial")))
                words = f"median of pieces of {summary.label(name)}, trained / initial"
                yield Statistic(f"pieces {name} trained/initial", words, median(gain))


class Repeated(FitExperiment):
    """A fit of the paper in another setting: the paper's activations, and only the losses are drawn."""

    activations = ("tanh", "relu", "plu")

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw the losses."""
        yield _losses(self, runs)


def with_tensorflow(one: FitExperiment) -> Repeated:
    """Return a fit with TensorFlow's form of Adam, in which the paper's program was written."""
    return Repeated(
        f"{one.name}-tensorflow",
        f"{one.title}, with TensorFlow's form of Adam",
        dataclasses.replace(one.spec, adam="tensorflow"),
        one.section,
        noun=one.noun,
    )


def _last(runs: Runs) -> Runs:
    """Return the runs with the training loss of the last recorded batches as an array `last`, besides their seeds."""
    return {name: {"seed": arrays["seed"], "last": arrays["history"][-_LAST:].mean(0)} for name, arrays in runs.items()}


def _fitted(one: FitExperiment, runs: Runs) -> Picture:
    """Draw two rows, the median and the best seed, and a column for each activation."""
    shown = [activation for activation in (*_SHOWN, *one.added(runs)) if activation in runs] or list(runs)
    figure = Figure(figsize=(2.5 * len(shown), 4.9))
    flat, deep = {"sharex": True, "sharey": True}, {"subplot_kw": {"projection": "3d", "box_aspect": (1, 1, 0.8)}}
    options: dict[str, Any] = deep if one.spec.target == "saddle" else flat
    panels = figure.subplots(2, len(shown), squeeze=False, **options)
    medians = {}
    for column, activation in enumerate(shown):
        arrays = runs[activation]
        members = {"median": summary.median_member(arrays), "best": int(summary.ranked(arrays)[0])}
        medians[activation] = float(arrays["final_loss"][members["median"]])
        for axes, (kind, member) in zip(panels[:, column], members.items(), strict=True):
            _draw_fit(axes, one.spec, activation, arrays["theta"][:, member])
            seed, loss = arrays["seed"][member], arrays["final_loss"][member]
            axes.set_title(f"{summary.label(activation)}, {kind} seed ({seed})\nloss {loss:.2g}", fontsize=9)
    told = f"Loss of the median seed: {summary.listed(medians)}."
    caption = f"{one.title}: the fitted functions, target in black. {told}"
    alt = f"The target and fitted functions: for each of {names(shown)} the median and the best seed."
    return Picture(f"{one.name}-fits", caption, alt, figure)


def _losses(one: FitExperiment, runs: Runs) -> Picture:
    figure = Figure(figsize=(7.4, 3.2))
    many, single = figure.subplots(1, 2, sharey=True)
    for activation, arrays in runs.items():
        at = np.arange(len(arrays["history"])) * one.spec.stride
        style.draw_band(many, at, arrays["history"], activation)
        single.plot(at, arrays["history"][:, 0], **style.look(activation))
    title = f"median and 5-95 % of {summary.seeds_of(runs)}"
    many.set(yscale="log", xlabel="step", ylabel="mean square error", title=title)
    single.set(xlabel="step", title="one run (seed 0), as in the paper")
    figure.legend(*many.get_legend_handles_labels(), loc="outside lower center", ncols=5)
    last = summary.medians({name: {"last": arrays["history"][-1]} for name, arrays in runs.items()}, "last")
    what = "the loss of the training batches" if one.spec.batch else "the loss during training"
    caption = f"{one.title}: {what}. Medians at the end: {summary.listed(last)}."
    alt = f"Two charts of loss over steps, logarithmic: median and band over seeds, and seed 0, for {names(runs)}."
    return Picture(f"{one.name}-loss", caption, alt, figure)


def _learned(one: FitExperiment, arrays: Arrays) -> Picture:
    figure = Figure(figsize=(5.2, 3.4))
    axes = figure.subplots()
    shades = colormaps["cividis"](np.linspace(0.05, 0.85, len(arrays["alpha"])))
    for layer, (alpha, c) in enumerate(zip(arrays["alpha"], arrays["c"], strict=True)):
        dots = {"markersize": 2, "alpha": 0.4, "color": shades[layer], "rasterized": True}
        axes.plot(c, alpha, "osDv^<>"[layer % 7], label=f"activation {layer + 1}", **dots)
    axes.plot(one.spec.c, one.spec.alpha, "*", color="black", markersize=12, label="start")
    axes.set(xscale="log", xlabel="c", ylabel="alpha", ylim=(-0.02, 1.02))
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    middle = " and ".join(f"{key} {summary.number(float(np.median(arrays[key])))}" for key in ("alpha", "c"))
    caption = (
        f"{one.title}: learned alpha and c after training, a mark for each seed and activation. Medians: {middle}."
    )
    start = f"({one.spec.c:g}, {one.spec.alpha:g})"
    alt = f"A cloud of marks, c to the right and alpha upwards, moved away from the start {start}."
    return Picture(f"{one.name}-learned", caption, alt, figure)


def _pieces(one: FitExperiment, runs: Runs) -> Picture:
    figure = Figure(figsize=(7.4, 3.4))
    over, against = figure.subplots(1, 2)
    at, seeds = steps(one.spec), max(arrays["course"].shape[1] for arrays in runs.values())
    for activation, arrays in runs.items():
        marker = {"marker": style.MARKS.get(activation, "^"), "markeredgewidth": 0}
        style.draw_band(over, at, arrays["course"], activation, **marker, markersize=5)
        dots = {**marker, "markersize": 3, "alpha": 0.4, "linestyle": "none", "rasterized": True}
        against.plot(arrays["trained_pieces"], arrays["final_loss"], color=style.look(activation)["color"], **dots)
    noun = "pieces" if one.spec.widths[0] == 1 else "regions"
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
        summary.listed({activation: float(np.median(arrays[f"{stage}_pieces"])) for activation, arrays in runs.items()})
        for stage in ("initial", "trained")
    )
    caption = f"{one.title}: functionally distinct {noun}. Medians before training: {before}; after it: {after}."
    alt = f"Left: {noun} over training steps for {names(runs)}. Right: loss against {noun}, a mark for each seed."
    return Picture(f"{one.name}-pieces", caption, alt, figure)


def _exact(one: FitExperiment, runs: Runs) -> Picture:
    """Draw the median networks piece by piece: with their knots on a line, their regions on a square."""
    spec: FitSpec = one.spec
    line, domain = spec.widths[0] == 1, (spec.low, spec.high)
    figure = Figure(figsize=(3.7 * len(runs), 3.2) if line else (4.2 * len(runs), 3.4))
    panels = figure.subplots(1, len(runs), squeeze=False, sharey=line)
    for axes, (activation, arrays) in zip(panels[0], runs.items(), strict=True):
        member = summary.median_member(arrays)
        net = exact(MLP(spec.widths, activation), arrays["theta"][:, [member]], spec.alpha, spec.c).member(0)
        found: Any = curve(net, *domain) if line else polygons(net, (domain, domain))
        if line:
            x = np.linspace(*domain, 1001)[None]
            axes.plot(x[0], spec.value(x)[0], color="black", linewidth=0.8)
            draw_curve(found, axes, color=style.look(activation)["color"])
            axes.get_legend().remove()
            axes.set(ylabel="F(x)")
            axes.label_outer()
        else:
            draw_polygons(found, axes)
            axes.grid(False)
        seed, loss = arrays["seed"][member], arrays["final_loss"][member]
        counts = f"{found.pieces} pieces, {found.patterns} patterns"
        axes.set_title(f"{summary.label(activation)}, median seed ({seed}), loss {loss:.2g}\n{counts}", fontsize=9)
    if line:
        caption = "the functions of the median seeds with their knots, target in black."
        alt = f"Fitted functions of {names(runs)} as broken lines, a dot at each knot, over the smooth target."
    else:
        caption = "the polygons of the median seeds, coloured by gradient; on each the network is affine."
        alt = f"The square of the inputs cut into polygons by the networks of {names(runs)}."
    return Picture(f"{one.name}-{'knots' if line else 'polygons'}", f"{one.title}: {caption}", alt, figure)


def evaluate(spec: FitSpec, activation: str, theta: Array, x: Array) -> Array:
    """F(x) of one member, [outputs, points]."""
    column = theta[:, None].astype(np.float64)
    return forward(MLP(spec.widths, activation), column, x, spec.alpha, spec.c)[..., 0]


def _draw_fit(axes: Any, spec: FitSpec, activation: str, theta: Array) -> None:
    """Draw the target in black and one member in the colour of its activation."""
    colour = style.look(activation)["color"]
    if spec.target == "saddle":
        grid = np.stack(np.meshgrid(*[np.linspace(spec.low, spec.high, 61)] * 2, indexing="ij"))
        values = evaluate(spec, activation, theta, grid.reshape(2, -1)).reshape(61, 61)
        axes.plot_surface(*grid, values, color=colour, alpha=0.85, rcount=30, ccount=30, rasterized=True)
        axes.plot_wireframe(*grid, spec.value(grid)[0], color="black", linewidth=0.5, rcount=9, ccount=9)
        axes.set(zlim=(-10, 10))
        axes.tick_params(labelsize=6, pad=-2)
        return
    sine = spec.target == "sine"
    x = np.linspace(spec.low, spec.high, 501 if sine else 1001)[None]
    for values, line in (
        (spec.value(x), {"color": "black", "linewidth": 1}),
        (evaluate(spec, activation, theta, x), {"color": colour}),
    ):
        axes.plot(*(np.concatenate([x, values]) if sine else values), **line)
    axes.set(**_AXES[spec.target])
    axes.label_outer()
