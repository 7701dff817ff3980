"""The figure of `plunit fit`: the curve over one input, polygons or groups over two, predictions over more."""

from __future__ import annotations

from typing import Any

import numpy as np

from plunit.ensemble.mlp import PIECEWISE
from plunit.fitting.problems import Problem
from plunit.fitting.solving import FitResult
from plunit.pieces.boxes import many

_DOTS = 3000  # rows that are drawn, at most
CELLS = 1500  # polygons that are drawn as shapes; more are one picture
_BLUE, _ORANGE, _GREY = "#1f5fa8", "#d9730d", "#9a9a9a"


def draw_fit(problem: Problem, found: FitResult) -> Any:
    """Return a matplotlib figure: the curve over one input, polygons or groups over two, predictions over more."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    if len(problem.inputs) == 1:
        _curve(figure.subplots(2, 1, sharex=True, height_ratios=[3, 1]), problem, found)
    elif len(problem.inputs) == 2:
        left, right = figure.subplots(1, 2)
        flags = [at for at in (0, 1) if _is_indicator(problem, at)]
        _groups(left, problem, found, flags[0]) if flags else _plane(left, problem, found)
        _dots(right, problem, found)
    else:
        _dots(figure.subplots(), problem, found)
    return figure


def _plain(name: str) -> str:
    """Return a name that matplotlib does not take for a formula."""
    return name.replace("$", r"\$")


def _is_indicator(problem: Problem, at: int) -> bool:
    return problem.encoder is not None and bool(np.isin(problem.x[:, at], (0, 1)).all())


def _name_axis(axis: Any, problem: Problem, at: int) -> None:
    """Label an axis with an input; an indicator has two places."""
    axis.set_label_text(_plain(problem.inputs[at]))
    if _is_indicator(problem, at):
        axis.set_ticks([0, 1], ["no", "yes"])


def _some(problem: Problem) -> Any:
    """Return the rows to draw: all, or random ones of many."""
    if len(problem.y) <= _DOTS:
        return slice(None)
    return np.random.default_rng(0).choice(len(problem.y), _DOTS, replace=False)


def _curve(axes: Any, problem: Problem, found: FitResult) -> None:
    known, (upper, lower) = problem.expression is not None, axes
    x, y = problem.x[_some(problem), 0], problem.y[_some(problem)]
    order = np.argsort(x)
    if known:
        upper.plot(x[order], y[order], color=_GREY, linewidth=4, label=_plain(problem.title[:60]))
    else:
        upper.plot(x, y, ".", color=_GREY, markersize=3, label="rows")
    low, high = problem.box[0].tolist()
    grid = np.linspace(low, high, 2001)
    upper.plot(grid, found.model.predict(grid[:, None]), color=_BLUE, label="network")
    style = {"linestyle": "-" if known else "", "marker": "" if known else ".", "markersize": 3}
    lower.plot(x[order], found.model.predict(x[order, None]) - y[order], color=_BLUE, **style)
    if found.reduced is not None:
        few = found.reduced.curve
        upper.plot(few.knots, few.values[:, 0], "-o", color=_ORANGE, markersize=4, label=many(few.pieces, "piece"))
        lower.plot(x[order], few(x[order])[:, 0] - y[order], color=_ORANGE, **style)
    upper.set_ylabel(_plain(problem.target))
    upper.legend(frameon=False)
    _name_axis(lower.xaxis, problem, 0)
    lower.set_ylabel("error")
    lower.axhline(0, color=_GREY, linewidth=0.8)


def _plane(axes: Any, problem: Problem, found: FitResult) -> None:
    if found.model.activation not in PIECEWISE:
        return
    from plunit.pieces import draw_polygons

    try:
        polygons = found.model.polygons_
        draw_polygons(polygons, axes)
    except ValueError as error:  # numbers beyond 1e300, too many polygons
        axes.text(0.5, 0.5, f"no polygons: {error}", ha="center", va="center", wrap=True)
        axes.set_axis_off()
        return
    for faces in axes.collections:
        faces.set_rasterized(len(polygons) > CELLS)  # a page with each of them would have many megabytes
    _name_axis(axes.xaxis, problem, 0)
    _name_axis(axes.yaxis, problem, 1)
    axes.set_aspect("auto")
    axes.set_title(f"{len(polygons)} polygons, coloured by slope", fontsize=10)


def _groups(axes: Any, problem: Problem, found: FitResult, flag: int) -> None:
    """Draw the rows and the network over the other of two inputs, for both values of an indicator."""
    x, y, other = problem.x[_some(problem)], problem.y[_some(problem)], 1 - flag
    for value, word, colour in ((0, "no", _BLUE), (1, "yes", _ORANGE)):
        mine = x[:, flag] == value
        ends = problem.x[problem.x[:, flag] == value, other]
        line = np.full((2001, 2), float(value))
        line[:, other] = np.linspace(ends.min(), ends.max(), len(line))
        axes.plot(x[mine, other], y[mine], ".", color=colour, markersize=3, alpha=0.4)
        label = f"{_plain(problem.inputs[flag])}: {word}"
        axes.plot(line[:, other], found.model.predict(line), color=colour, label=label)
    _name_axis(axes.xaxis, problem, other)
    axes.set_ylabel(_plain(problem.target))
    axes.legend(frameon=False)


def _dots(axes: Any, problem: Problem, found: FitResult) -> None:
    x, y = problem.x[_some(problem)], problem.y[_some(problem)]
    ends = float(problem.y.min()), float(problem.y.max())
    axes.plot(ends, ends, color=_GREY, linewidth=1)
    axes.plot(y, found.model.predict(x), ".", color=_BLUE, markersize=3)
    axes.set(xlabel=_plain(problem.target), ylabel="predicted")
    axes.set_title("training rows" if problem.expression is None else "training points", fontsize=10)
