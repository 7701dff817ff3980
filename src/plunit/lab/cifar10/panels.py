"""Training loss and test accuracy over steps, drawn."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator

from plunit.lab.cifar10.record import Curves
from plunit.lab.style import look


def draw(curves: Curves, top: Any, bottom: Any) -> None:
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
