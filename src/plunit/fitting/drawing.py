"""The panels of `plunit fit`: a curve and its errors over one input, maps over two, unseen rows of a table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from plunit.ensemble.arrays import Array
from plunit.fitting.problems import Problem
from plunit.fitting.solving import FitResult
from plunit.pieces.boxes import many

_DOTS = 3000  # maximum number of rows drawn
_GRID = 161  # points of a map along each axis
_BLUE, _ORANGE, _GREY = "#0072b2", "#d55e00", "#8a8a8a"  # after Okabe and Ito, for colour-blind readers
_STYLE: Any = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "legend.frameon": False,
}
_WIDTH, _HEIGHT = 4.4, 3.4  # size of a panel in inches: its 10-point letters are 11 pixels high on a phone

_Painter = Callable[[Any], None]
"""Draws on the given matplotlib axes."""


def draw_fit(problem: Problem, found: FitResult) -> Any:
    """Return a matplotlib figure with all panels in a row."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    drawn = panels(problem, found)
    with rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH * len(drawn), _HEIGHT), layout="constrained")
        for panel, axes in zip(drawn, np.ravel(figure.subplots(1, len(drawn))), strict=True):
            panel(axes)
    return figure


def draw_panels(problem: Problem, found: FitResult) -> list[Any]:
    """Return one figure for each panel, so that a page can stack them on a narrow screen."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figures = []
    with rc_context(_STYLE):
        for panel in panels(problem, found):
            figures.append(Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained"))
            panel(figures[-1].subplots())
    return figures


def panels(problem: Problem, found: FitResult) -> list[_Painter]:
    """Return the panels: the function, the network and its error for a formula, unseen rows for a table."""
    count = len(problem.inputs)
    if count == 1:
        drawn: list[_Painter] = [partial(_curve, problem, found), partial(_errors, problem, found)]
    elif problem.expression is not None:
        drawn = _maps(problem, found)
    elif count == 2:
        flags = [at for at in (0, 1) if _is_indicator(problem, at)]
        drawn = [partial(_groups, problem, found, flags[0]) if flags else partial(_surface, problem, found)]
    else:
        drawn = []
    return drawn if problem.expression is not None else [*drawn, partial(_dots, problem, found)]


def _plain(name: str) -> str:
    """Return a name that matplotlib does not read as a formula."""
    return name.replace("$", r"\$")


def _is_indicator(problem: Problem, at: int) -> bool:
    return problem.encoder is not None and bool(np.isin(problem.x[:, at], (0, 1)).all())


def _name_axis(axis: Any, problem: Problem, at: int) -> None:
    """Label an axis with an input; an indicator gets two ticks."""
    axis.set_label_text(_plain(problem.inputs[at]))
    if _is_indicator(problem, at):
        axis.set_ticks([0, 1], ["no", "yes"])


def _some(count: int) -> Any:
    """Return the rows to draw: all, or a random sample if there are many."""
    return slice(None) if count <= _DOTS else np.random.default_rng(0).choice(count, _DOTS, replace=False)


def _curve(problem: Problem, found: FitResult, axes: Any) -> None:
    some = _some(len(problem.y))
    x, y = problem.x[some, 0], problem.y[some]
    if problem.expression is not None:
        order = np.argsort(x)
        axes.plot(x[order], y[order], color=_GREY, linewidth=4, label="function")
    else:
        axes.plot(x, y, ".", color=_GREY, markersize=3, label="training rows")
    low, high = problem.box[0].tolist()
    grid = np.linspace(low, high, 2001)
    axes.plot(grid, found.model.predict(grid[:, None]), color=_BLUE, label="network")
    if found.reduced is not None:
        few = found.reduced.curve
        label = f"curve of {many(few.pieces, 'piece')}"
        axes.plot(few.knots, few.values[:, 0], "--o", color=_ORANGE, markersize=4, label=label)
    axes.set_ylabel(_plain(problem.target))
    axes.legend(fontsize="small")
    _name_axis(axes.xaxis, problem, 0)


def _errors(problem: Problem, found: FitResult, axes: Any) -> None:
    some = _some(len(problem.y))
    x, y = problem.x[some, 0], problem.y[some]
    order = np.argsort(x)
    known = problem.expression is not None
    style = {"linestyle": "-" if known else "", "marker": "" if known else ".", "markersize": 3}
    axes.plot(x[order], found.model.predict(x[order, None]) - y[order], color=_BLUE, label="network", **style)
    if found.reduced is not None:
        few = found.reduced.curve
        axes.plot(x[order], few(x[order])[:, 0] - y[order], color=_ORANGE, label=many(few.pieces, "piece"), **style)
    axes.axhline(0, color=_GREY, linewidth=0.8)
    _name_axis(axes.xaxis, problem, 0)
    axes.set_title("error" if known else "error on training rows")


def _maps(problem: Problem, found: FitResult) -> list[_Painter]:
    """Return maps of function, network and error over two inputs; the others have the values of the largest error."""
    assert problem.expression is not None
    box, worst = problem.box, found.largest.x if found.largest else ()
    place = np.array(worst) if worst else box.mean(axis=1)
    sides = [np.linspace(low, high, _GRID) for low, high in box[:2].tolist()]
    x = np.repeat(place[None], _GRID**2, axis=0)
    x[:, 0], x[:, 1] = (part.ravel() for part in np.meshgrid(*sides))
    wanted = problem.expression(*x.T).reshape(_GRID, _GRID)
    given = found.model.predict(x).reshape(_GRID, _GRID)
    ends: dict[str, Any] = {"vmin": float(np.nanmin(wanted)), "vmax": float(np.nanmax(wanted)), "cmap": "viridis"}
    most = float(np.nanmax(np.abs(given - wanted))) or 1.0
    others = ", ".join(f"{name} = {number:.3g}" for name, number in zip(problem.inputs[2:], place[2:], strict=True))
    at = f" at {others}" if others else ""
    around = {"vmin": -most, "vmax": most, "cmap": "PuOr"}
    show = partial(_map, problem)
    return [
        partial(show, wanted, f"function{at}", ends, ()),
        partial(show, given, f"network{at}", ends, ()),
        partial(show, given - wanted, "error (cross: the largest)", around, worst[:2]),
    ]


def _map(problem: Problem, values: Array, title: str, look: dict[str, Any], place: Any, axes: Any) -> None:
    """Draw values on a grid as colours."""
    picture = axes.imshow(values, origin="lower", extent=problem.box[:2].ravel(), aspect="auto", **look)
    axes.figure.colorbar(picture, ax=axes)
    if len(place):
        axes.plot(*place, "x", color="black", markersize=8, markeredgewidth=2, clip_on=False)
    axes.set_title(title)
    _name_axis(axes.xaxis, problem, 0)
    _name_axis(axes.yaxis, problem, 1)


def _surface(problem: Problem, found: FitResult, axes: Any) -> None:
    """Draw the network of a table over its two inputs, with the rows as dots."""
    first, second = np.meshgrid(*(np.linspace(low, high, _GRID) for low, high in problem.box.tolist()))
    values = found.model.predict(np.stack([first.ravel(), second.ravel()], axis=1)).reshape(_GRID, _GRID)
    _map(problem, values, f"network: {_plain(problem.target)}; dots: rows", {"cmap": "viridis"}, (), axes)
    axes.plot(*problem.x[_some(len(problem.y))].T, ".", color="white", markersize=2, alpha=0.5)


def _groups(problem: Problem, found: FitResult, flag: int, axes: Any) -> None:
    """Draw the rows and the network for both values of an indicator, over the other input."""
    some, other = _some(len(problem.y)), 1 - flag
    x, y = problem.x[some], problem.y[some]
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
    axes.legend(fontsize="small")


def _dots(problem: Problem, found: FitResult, axes: Any) -> None:
    """Draw the predictions for unseen rows, or for the training rows if nothing was tested."""
    y, predicted = found.unseen if len(found.unseen[0]) else (problem.y, found.model.predict(problem.x))
    some, ends = _some(len(y)), (float(problem.y.min()), float(problem.y.max()))
    axes.plot(ends, ends, color=_GREY, linewidth=1)
    axes.plot(y[some], predicted[some], ".", color=_BLUE, markersize=3)
    axes.set(xlabel=_plain(problem.target), ylabel="predicted")
    axes.set_title("unseen rows" if len(found.unseen[0]) else "training rows")
