"""The fitted functions, for the median and the best seed of tanh, ReLU and PLU; the target in black."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from plunit.ensemble import Network, forward
from plunit.lab.fit.spec import SPECS, TITLES, Fit
from plunit.lab.fit.targets import TARGETS, Array
from plunit.lab.results import Results
from plunit.lab.style import Picture, label, look

_SHOWN = ("tanh", "relu", "plu")


def fitted(name: str, results: Results) -> Iterator[Picture]:
    """Draw two rows, the median and the best seed, and a column for each activation."""
    spec = SPECS[name]
    shown = [activation for activation in _SHOWN if results.has(name, activation)] or results.activations(name)
    figure = Figure(figsize=(2.5 * len(shown), 4.9))
    draw, options = _PANELS[spec.target]
    panels = figure.subplots(2, len(shown), squeeze=False, **options)
    for column, activation in enumerate(shown):
        arrays = results[name, activation]
        order = np.argsort(np.nan_to_num(arrays["final_loss"], nan=np.inf))
        for row, (kind, member) in enumerate((("median", order[(len(order) - 1) // 2]), ("best", order[0]))):
            axes = panels[row, column]
            draw(axes, spec, activation, arrays["theta"][:, member])
            seed, loss = arrays["seed"][member], arrays["final_loss"][member]
            axes.set_title(f"{label(activation)}, {kind} seed ({seed})\nloss {loss:.2g}", fontsize=9)
    yield Picture(name, f"{name}-fits", f"{TITLES[name]}: fitted functions, target in black.", figure)


def evaluate(spec: Fit, activation: str, theta: Array, x: Array) -> Array:
    """F(x) of one member, [outputs, points]."""
    column = torch.from_numpy(theta[:, None]).double()
    values: Array = forward(Network(spec.widths, activation), column, torch.from_numpy(x), spec.alpha, spec.c)[
        ..., 0
    ].numpy()
    return values


def _graph(axes: Any, spec: Fit, activation: str, theta: Array) -> None:
    x = np.linspace(spec.low, spec.high, 1001)[None]
    axes.plot(x[0], TARGETS[spec.target](x)[0], color="black", linewidth=1)
    axes.set(xlabel="x", ylabel="F(x)", ylim=(-1.6, 1.6))
    axes.label_outer()
    axes.plot(x[0], evaluate(spec, activation, theta, x)[0], color=look(activation)["color"])


def _curve(axes: Any, spec: Fit, activation: str, theta: Array) -> None:
    t = np.linspace(spec.low, spec.high, 2001)[None]
    axes.plot(*TARGETS[spec.target](t), color="black", linewidth=1)
    axes.set(xlabel="first output", ylabel="second output", xlim=(-10, 4), ylim=(-8, 8))
    axes.label_outer()
    axes.plot(*evaluate(spec, activation, theta, t), color=look(activation)["color"])


def _surface(axes: Any, spec: Fit, activation: str, theta: Array) -> None:
    grid = np.stack(np.meshgrid(*[np.linspace(spec.low, spec.high, 61)] * 2, indexing="ij"))
    values = evaluate(spec, activation, theta, grid.reshape(2, -1)).reshape(61, 61)
    target = TARGETS[spec.target](grid)[0]
    axes.plot_surface(*grid, values, color=look(activation)["color"], alpha=0.85, rcount=30, ccount=30)
    axes.plot_wireframe(*grid, target, color="black", linewidth=0.5, rcount=9, ccount=9)
    axes.set(zlim=(-10, 10))
    axes.tick_params(labelsize=6, pad=-2)


_PANELS: dict[str, tuple[Callable[[Any, Fit, str, Array], None], dict[str, Any]]] = {
    "sine": (_graph, {"sharex": True, "sharey": True}),
    "curve": (_curve, {"sharex": True, "sharey": True}),
    "saddle": (_surface, {"subplot_kw": {"projection": "3d", "box_aspect": (1, 1, 0.8)}}),
}
