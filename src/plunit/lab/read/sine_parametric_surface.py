"""Sections 2 to 4: fits of the sine, a parametric curve and a surface, and how low the loss can get.

`FitExperiment` has the statistics and figures of all three, `Reach` (`plunit run reach`) those of second-order steps.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from matplotlib.ticker import MaxNLocator

from plunit.ensemble import ACTIVATIONS, ENGINES, MLP, forward
from plunit.ensemble.arrays import Array
from plunit.ensemble.mlp import exact
from plunit.ensemble.nonlinearities import title_of
from plunit.lab import pictures
from plunit.lab.cell import Arrays, Cell
from plunit.lab.experiment import Experiment, Runs, Statistic, ratio
from plunit.lab.intervals import mean, median, ratios, share, worst_if_diverged
from plunit.lab.pictures import LinePanel, Picture, count_seeds, draw_lines, list_names, list_values, number
from plunit.lab.train import sine_parametric_surface as run
from plunit.lab.train.sine_parametric_surface import FitSpec, ReachSpec, counted_steps
from plunit.pieces import curve, draw_curve, draw_polygons, polygons

GROUP = 64
"""Starts of which `Reach` takes the best one; the best of all starts has no interval."""

_LAST = 16  # recorded batches, of 256 steps, over which the training loss is averaged
_SHOWN = ("tanh", "relu", "plu")
_AXES: dict[str, dict[str, Any]] = {
    "sine": {"xlabel": "x", "ylabel": "F(x)", "ylim": (-1.6, 1.6)},
    "curve": {"xlabel": "first output", "ylabel": "second output", "xlim": (-10, 4), "ylim": (-8, 8)},
}


@dataclass(frozen=True)
class FitExperiment(Experiment):
    """A function fitted by small networks."""

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
        """Draw the fits and losses, then the pieces of the networks."""
        yield _draw_fits(self, runs)
        yield _draw_losses(self, runs)
        yield pictures.draw_distribution(f"{self.name}-final", self.title, runs, {"final_loss": "final loss"})
        if counted := {activation: arrays for activation, arrays in runs.items() if "course" in arrays}:
            yield _draw_counts(self, counted)
        shown = ("relu", "plu", *self.added(runs))
        pieced = {activation: arrays for activation, arrays in counted.items() if activation in shown}
        if pieced and self.spec.target != "curve":  # which has two outputs
            yield _draw_pieces(self, pieced)

    def added(self, runs: Runs) -> list[str]:
        """Return the activations that the user has added to the default ones."""
        return [activation for activation in runs if activation not in self.activations]

    def pairs(self, runs: Runs) -> tuple[Runs, str]:
        """Return all runs if the user has added an activation."""
        return (runs if self.added(runs) else {}), "final_loss"

    def finding(self, runs: Runs) -> str:
        """Compare the median final losses."""
        text = f"Median final losses over {count_seeds(runs)}: {pictures.list_medians(runs, 'final_loss')}"
        if not self.spec.batch:
            return f"{text}."
        last = list_values(pictures.medians(_last(runs), "last"))
        return f"{text} (at the points of a grid; median training losses, means of the last batches: {last})."

    def statistics(self, runs: Runs) -> Iterator[Statistic]:
        """Yield ratios of losses, fractions of dead units, and numbers of pieces."""
        noun = "final loss on a grid" if self.spec.batch else "final loss"
        for above, below in (("plu", "tanh"), ("relu", "plu"), ("relu", "tanh"), ("plu", "plu_learned")):
            yield from ratio(runs, above, below, "final_loss", noun)
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
            yield Statistic("pieces relu", "median number of pieces of ReLU", median(runs["relu"]["trained_pieces"]))
        for stage, when in (("trained", ""), ("initial", "initial "), ("random", "random ")):
            yield from ratio(runs, "plu", "relu", f"{stage}_pieces", f"{when}pieces", f"{when}pieces ")
        for name in ("relu", "plu"):
            if name in runs:
                gain = ratios(*(runs[name][f"{stage}_pieces"] for stage in ("trained", "initial")))
                words = f"median number of pieces of {title_of(name)}, trained / initial"
                yield Statistic(f"pieces {name} trained/initial", words, median(gain))


class Repeated(FitExperiment):
    """A fit of the paper in another setting: the paper's activations, and only the losses are drawn."""

    activations = ("tanh", "relu", "plu")

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw the losses."""
        yield _draw_losses(self, runs)


def with_tensorflow(one: FitExperiment) -> Repeated:
    """Return a fit with TensorFlow's form of Adam, in which the paper's program was written."""
    return Repeated(
        f"{one.name}-tensorflow",
        f"{one.title}, with TensorFlow's form of Adam",
        dataclasses.replace(one.spec, adam="tensorflow"),
        one.section,
    )


def _last(runs: Runs) -> Runs:
    """Return the runs with the training loss of the last recorded batches as an array `last`, besides their seeds."""
    return {name: {"seed": arrays["seed"], "last": arrays["history"][-_LAST:].mean(0)} for name, arrays in runs.items()}


def _draw_fits(one: FitExperiment, runs: Runs) -> Picture:
    """Draw a row for each activation: the median and the best seed."""
    shown = [activation for activation in (*_SHOWN, *one.added(runs)) if activation in runs] or list(runs)
    flat, deep = {"sharex": True, "sharey": True}, {"subplot_kw": {"projection": "3d", "box_aspect": (1, 1, 0.8)}}
    options: dict[str, Any] = deep if one.spec.target == "saddle" else flat
    figure, panels = pictures.subplots(len(shown), 2, 2.4, 2.7, **options)
    medians = {}
    for row, activation in enumerate(shown):
        arrays = runs[activation]
        members = {"median": pictures.median_member(arrays), "best": int(pictures.rank(arrays)[0])}
        medians[activation] = float(arrays["final_loss"][members["median"]])
        for axes, (kind, member) in zip(panels[row], members.items(), strict=True):
            _draw_fit(axes, one.spec, activation, arrays["theta"][:, member])
            seed, loss = arrays["seed"][member], arrays["final_loss"][member]
            axes.set_title(f"{title_of(activation)}, {kind} seed ({seed})\nloss {loss:.2g}", fontsize=10)
    caption = f"{one.title}: target in black, fits in colour. Loss of the median seed: {list_values(medians)}."
    alt = f"The target and the fit of the median and of the best seed, for each of {list_names(shown)}."
    return Picture(f"{one.name}-fits", caption, alt, figure)


def _draw_losses(one: FitExperiment, runs: Runs) -> Picture:
    """Draw the loss of the training data over steps: of all seeds, and of one run, as the paper does."""
    histories = {name: arrays["history"] for name, arrays in runs.items()}
    at = np.arange(max(map(len, histories.values()))) * one.spec.stride
    axes = {"xlabel": "step", "ylabel": "mean square error"}
    many = LinePanel(at, histories, {**axes, "title": f"median and 5-95 % of {count_seeds(runs)}"})
    first = {name: history[:, :1] for name, history in histories.items()}
    single = LinePanel(at, first, {**axes, "title": "one run (seed 0), as in the paper"})
    last = pictures.medians({name: {"last": history[-1]} for name, history in histories.items()}, "last")
    noun = "the loss of the training batches" if one.spec.batch else "the loss during training"
    caption = f"{one.title}: {noun}. Medians at the end: {list_values(last)}."
    alt = f"Two charts of loss over steps, logarithmic: median and band over seeds, and seed 0, for {list_names(runs)}."
    return draw_lines(f"{one.name}-loss", caption, alt, many, single)


def _draw_counts(one: FitExperiment, runs: Runs) -> Picture:
    """Draw the number of pieces over steps."""
    at, seeds = counted_steps(one.spec), max(arrays["course"].shape[1] for arrays in runs.values())
    noun = "pieces" if one.spec.widths[0] == 1 else "regions"
    courses = {activation: arrays["course"] for activation, arrays in runs.items()}
    axes = {"xscale": "symlog", "yscale": "linear", "xlabel": "step (0: before training)", "ylabel": noun}
    before, after = (
        list_values({activation: float(np.median(arrays[f"{stage}_pieces"])) for activation, arrays in runs.items()})
        for stage in ("initial", "trained")
    )
    caption = (
        f"{one.title}: functionally distinct {noun} during training, median and 5-95 % of {seeds} seeds. Medians over "
        f"all seeds before training: {before}; after it: {after}."
    )
    picture = draw_lines(
        f"{one.name}-pieces",
        caption,
        f"{noun.capitalize()} over steps for {list_names(runs)}.",
        LinePanel(at, courses, axes),
    )
    (drawn,) = picture.figure.axes
    drawn.set_xscale("symlog", base=2, linthresh=at[1])  # linear up to the first checkpoint, so that step 0 has a place
    pictures.label_ticks(drawn.xaxis, at, at)
    drawn.tick_params(axis="x", labelrotation=45)
    drawn.set_ylim(0, None)
    drawn.yaxis.set_major_locator(MaxNLocator(integer=True))
    return picture


def _draw_pieces(one: FitExperiment, runs: Runs) -> Picture:
    """Draw the median networks piece by piece: with their knots on a line, their regions on a square."""
    spec: FitSpec = one.spec
    line, domain = spec.widths[0] == 1, (spec.low, spec.high)
    figure, panels = pictures.subplots(len(runs), height=3.0 if line else 4.0, sharex=True)
    for axes, (activation, arrays) in zip(panels[:, 0], runs.items(), strict=True):
        member = pictures.median_member(arrays)
        net = exact(MLP(spec.widths, activation), arrays["theta"][:, [member]], spec.alpha, spec.c).member(0)
        found: Any = curve(net, *domain) if line else polygons(net, (domain, domain))
        if line:
            x = np.linspace(*domain, 1001)[None]
            axes.plot(x[0], spec.value(x)[0], color="black", linewidth=0.8)
            draw_curve(found, axes, color=pictures.look(activation)["color"])
            axes.get_legend().remove()
            axes.set(ylabel="F(x)")
        else:
            draw_polygons(found, axes)
            axes.grid(False)
        seed, loss = arrays["seed"][member], arrays["final_loss"][member]
        counts = f"{found.pieces} pieces, {found.patterns} patterns"
        axes.set_title(f"{title_of(activation)}, median seed ({seed}), loss {loss:.2g}\n{counts}")
    if line:
        caption = "the functions of the median seeds with their knots, target in black."
        alt = f"Fitted functions of {list_names(runs)} as broken lines, a dot at each knot, over the smooth target."
    else:
        caption = "the polygons of the median seeds, coloured by gradient; on each the network is affine."
        alt = f"The square of the inputs cut into polygons by the networks of {list_names(runs)}."
    return Picture(f"{one.name}-{'knots' if line else 'polygons'}", f"{one.title}: {caption}", alt, figure)


def evaluate(spec: FitSpec, activation: str, theta: Array, x: Array) -> Array:
    """F(x) of one member, [outputs, points]."""
    column = theta[:, None].astype(np.float64)
    return forward(MLP(spec.widths, activation), column, x, spec.alpha, spec.c)[..., 0]


def _draw_fit(axes: Any, spec: FitSpec, activation: str, theta: Array) -> None:
    """Draw the target in black and one member in the colour of its activation."""
    colour = pictures.look(activation)["color"]
    if spec.target == "saddle":
        grid = np.stack(np.meshgrid(*[np.linspace(spec.low, spec.high, 61)] * 2, indexing="ij"))
        values = evaluate(spec, activation, theta, grid.reshape(2, -1)).reshape(61, 61)
        axes.plot_surface(*grid, values, color=colour, alpha=0.85, rcount=30, ccount=30, rasterized=True)
        axes.plot_wireframe(*grid, spec.value(grid)[0], color="black", linewidth=0.5, rcount=9, ccount=9)
        axes.set(zlim=(-10, 10))
        axes.tick_params(labelsize=7, pad=-2)
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
        updates = len(cell.seeds) * MLP(self.spec.widths).parameters
        return float(updates * (self.spec.steps + 30 * self.spec.finish_steps))

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
            words = f"median of loss of {title_of(name)}, Adam / second-order steps"
            yield Statistic(f"{name} adam/second-order", words, gain)

    def figures(self, runs: Runs) -> Iterator[Picture]:
        """Draw the share of starts at or below each loss, after Adam and after second-order steps."""
        losses = {
            "adam_loss": f"loss after {self.spec.steps:,} steps of Adam",
            "final_loss": "loss after second-order steps",
        }
        yield pictures.draw_distribution(self.name, self.title, runs, losses)

    def finding(self, runs: Runs) -> str:
        """Return a sentence that compares the medians."""
        final, adam = (pictures.medians(runs, key) for key in ("final_loss", "adam_loss"))
        best = list_values(
            {name: float(worst_if_diverged(arrays["final_loss"]).min()) for name, arrays in runs.items()}
        )
        ends = f"(best {best}), where Adam ends at {', '.join(number(value) for value in adam.values())}"
        return f"Median losses over {count_seeds(runs, 'start')} after second-order steps: {list_values(final)} {ends}."


def _best_of_groups(arrays: Arrays) -> Arrays:
    """Return the lowest loss of each whole group of `GROUP` seeds, and the first seed of each."""
    losses, seeds = worst_if_diverged(arrays["final_loss"]), arrays["seed"]
    count = seeds.size // GROUP
    whole = (one[: count * GROUP].reshape(count, GROUP) for one in (losses, seeds))
    return dict(zip(("final_loss", "seed"), (one.min(axis=1) for one in whole), strict=True))


# The paper does not state the domain of t. The literal reading is that of section 2; its figure shows one period.
_CURVE = FitSpec("curve", (1, 5, 5, 5, 5, 2), 4096)
# The paper does not state the number of steps: it is that of section 2.
_SADDLE = FitSpec("saddle", (2, 3, 3, 1), 2048, low=-3.0, high=3.0, points=41, batch=100)

SINE = FitExperiment(
    "sine",
    "The sine of section 2, fitted by two hidden layers of three units",
    FitSpec("sine", (1, 3, 3, 1), 2048),
    "2",
)
PARAMETRIC = FitExperiment("parametric", "The parametric curve of section 3, t in [-2 pi, 2 pi]", _CURVE, "3")
PERIOD = FitExperiment(
    "parametric-period",
    "The parametric curve of section 3, one period of t",
    dataclasses.replace(_CURVE, low=0.0, high=2 * math.pi),
    "3",
)
SURFACE = FitExperiment("surface", "The surface of section 4, x^2 - y^2", _SADDLE, "4")
REACH = Reach("reach", "How low the loss on the sine can get, by second-order steps", ReachSpec(**vars(SINE.spec)), "2")

EXPERIMENTS = (
    *(SINE, with_tensorflow(SINE), PARAMETRIC, PERIOD, with_tensorflow(PARAMETRIC), SURFACE, with_tensorflow(SURFACE)),
    REACH,
)
