"""Loss and test accuracy of this run, and of the stored record beside it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from plunit.lab.cifar10.curves import WINDOW, Curve, curve
from plunit.lab.cifar10.record import Record, read
from plunit.lab.cifar10.spec import SPECS, TITLES
from plunit.lab.results import Results
from plunit.lab.style import Picture, label, look


def figures(results: Results) -> Iterator[Picture]:
    """Draw the experiments that were run."""
    for name in results.names():
        if name in SPECS:
            yield _picture(name, results)


def _picture(name: str, results: Results) -> Picture:
    runs = {activation: results[name, activation] for activation in results.activations(name)}
    steps = len(next(iter(runs.values()))["loss"])
    ours = {activation: curve(arrays, min(WINDOW, max(1, steps // 50))) for activation, arrays in runs.items()}
    columns = {"this run": ours}
    if record := read(name):
        columns["stored record of a full run"] = record.curves
    figure = Figure(figsize=(4.4 * len(columns), 5.4))
    grid: Any = figure.subplots(2, len(columns), squeeze=False, sharex="col")
    for (title, curves), (top, bottom) in zip(columns.items(), grid.T, strict=True):
        draw(curves, top, bottom)
        some = next(iter(curves.values()))
        top.set_title(f"{title}: {some.steps:,} steps, {_seeds(some)}")
    figure.legend(*grid[0, -1].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    parts = [f"{title}: {_accuracies(curves)}" for title, curves in columns.items()]
    caption = (
        f"{TITLES[name]}: training loss (mean of neighbouring steps) and test accuracy; median over "
        f"seeds. Test accuracy at the end, {'; '.join(parts)}."
    )
    return Picture(name, name, caption, figure)


def of_record(record: Record) -> Picture:
    """Return the figure of a record alone, loss and accuracy side by side."""
    figure = Figure(figsize=(8.6, 3.2))
    left, right = figure.subplots(1, 2, sharex=True)
    draw(record.curves, left, right)
    left.set_xlabel("step")
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return Picture("cifar10", "curves", f"Test accuracy at the end: {_accuracies(record.curves)}.", figure)


def draw(curves: dict[str, Curve], top: Any, bottom: Any) -> None:
    """Draw training loss on the upper axes and test accuracy on the lower ones."""
    for activation, found in curves.items():
        style = look(activation)
        x = found.window * np.arange(1, len(found.loss) + 1)
        top.plot(*_thinned(x, np.median(found.loss, axis=1)), **{**style, "linewidth": 1.2})
        accuracy = 100 * np.median(found.test_accuracy, axis=1)
        bottom.plot(found.test_step, accuracy, marker="o", markersize=2.5, **style)
    top.set(yscale="log", ylabel="training loss (cross-entropy)")
    bottom.set(xscale="log", xlabel="step", ylabel="test accuracy, %")
    long = max(found.steps for found in curves.values()) > 2000
    for axis, subs in ((top.yaxis, (1, 2, 5)), (bottom.xaxis, (1,) if long else (1, 2, 5))):
        axis.set_major_locator(LogLocator(subs=subs))
        axis.set_major_formatter("{x:,g}")
        axis.set_minor_formatter("")


def _thinned(x: Any, y: Any) -> tuple[Any, Any]:
    """Average neighbours at the far end of a long curve: at most 120 points, evenly spaced where x is logarithmic."""
    edges = np.unique(np.geomspace(1, len(x) + 1, 120).astype(int)) - 1
    groups = [slice(low, high) for low, high in itertools.pairwise(edges)]
    return np.array([x[group][-1] for group in groups]), np.array([y[group].mean() for group in groups])


def _accuracies(curves: dict[str, Curve]) -> str:
    return ", ".join(
        f"{label(activation)} {100 * np.median(found.test_accuracy[-1]):.1f} %" for activation, found in curves.items()
    )


def _seeds(found: Curve) -> str:
    seeds = found.loss.shape[1]
    return f"{seeds} seed{'s' if seeds > 1 else ''}"
