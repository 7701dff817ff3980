"""The picture of a fit: the curve over one input, the polygons over two, what was predicted over more."""

from __future__ import annotations

from typing import Any

import numpy as np

from plunit.ensemble.mlp import PIECEWISE
from plunit.fitting.problems import Problem
from plunit.fitting.solving import Found
from plunit.pieces import draw_polygons

DOTS = 3000  # rows that are drawn, at most
CELLS = 1500  # polygons that are drawn as shapes; more are one picture
_BLUE, _ORANGE, _GREY = "#1f5fa8", "#d9730d", "#9a9a9a"


def drawn(problem: Problem, found: Found) -> Any:
    """Return a matplotlib figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    if len(problem.inputs) == 1:
        _curve(figure.subplots(2, 1, sharex=True, height_ratios=[3, 1]), problem, found)
    elif len(problem.inputs) == 2:
        left, right = figure.subplots(1, 2)
        _plane(left, problem, found)
        _dots(right, problem, found)
    else:
        _dots(figure.subplots(), problem, found)
    return figure


def _plain(name: str) -> str:
    """Return a name that matplotlib does not take for a formula."""
    return name.replace("$", r"\$")


def _some(problem: Problem) -> Any:
    """Return the rows to draw: all, or random ones of many."""
    if len(problem.y) <= DOTS:
        return slice(None)
    return np.random.default_rng(0).choice(len(problem.y), DOTS, replace=False)


def _curve(axes: Any, problem: Problem, found: Found) -> None:
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
        upper.plot(few.knots, few.values[:, 0], "-o", color=_ORANGE, markersize=4, label=f"{few.pieces} pieces")
        lower.plot(x[order], few(x[order])[:, 0] - y[order], color=_ORANGE, **style)
    upper.set_ylabel(_plain(problem.target))
    upper.legend(frameon=False)
    lower.set(xlabel=_plain(problem.inputs[0]), ylabel="error")
    lower.axhline(0, color=_GREY, linewidth=0.8)


def _plane(axes: Any, problem: Problem, found: Found) -> None:
    if found.model.activation not in PIECEWISE:
        return
    try:
        polygons = found.model.polygons_
        draw_polygons(polygons, axes)
    except ValueError as error:  # numbers beyond 1e300, too many polygons
        axes.text(0.5, 0.5, f"no polygons: {error}", ha="center", va="center", wrap=True)
        axes.set_axis_off()
        return
    for faces in axes.collections:
        faces.set_rasterized(len(polygons) > CELLS)  # a page with each of them would have many megabytes
    axes.set(xlabel=_plain(problem.inputs[0]), ylabel=_plain(problem.inputs[1]), aspect="auto")
    axes.set_title(f"{len(polygons)} polygons, coloured by slope", fontsize=10)


def _dots(axes: Any, problem: Problem, found: Found) -> None:
    x, y = problem.x[_some(problem)], problem.y[_some(problem)]
    ends = float(problem.y.min()), float(problem.y.max())
    axes.plot(ends, ends, color=_GREY, linewidth=1)
    axes.plot(y, found.model.predict(x), ".", color=_BLUE, markersize=3)
    axes.set(xlabel=_plain(problem.target), ylabel="predicted")
    axes.set_title("rows of training" if problem.expression is None else "points of training", fontsize=10)
