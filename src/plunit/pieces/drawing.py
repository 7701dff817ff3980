"""Pictures with Matplotlib: a curve with a dot on each kink, polygons coloured by gradient; and these colours.

Colours are red, green and blue from 0 to 1.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.exact.polygon_set import Polygons
from plunit.pieces.exact_curves import Curve


def draw_curve(curve: Curve, ax: Any = None, *, output: int = 0, color: str = "C0", label: str | None = None) -> Any:
    """Draw one output with a dot on every knot that bends it, and return the axes."""
    _check_matplotlib()
    ax = _axes(ax)
    shown = curve.output(output).merged()
    text = f"{shown.pieces} pieces" if label is None else label
    ax.plot(shown.knots, shown.values[:, 0], color=color, linewidth=1.5, label=text)
    inner = slice(1, -1)
    ax.plot(shown.knots[inner], shown.values[inner, 0], "o", color=color, markersize=4, markeredgecolor="white")
    ax.set_xlabel("x")
    ax.set_ylabel("f(x)")
    ax.legend(frameon=False)
    return ax


def draw_polygons(polygons: Polygons, ax: Any = None, *, output: int = 0, key: bool = True) -> Any:
    """Draw the polygons, coloured by gradient: hue for its direction, depth of colour for its size. Return the axes."""
    _check_matplotlib()
    from matplotlib.collections import PolyCollection

    ax = _axes(ax)
    slopes = polygons.gradients[:, output]
    # thin edges on many polygons would hide the colours
    width = float(np.clip(12 / np.sqrt(len(polygons)), 0.0, 0.6))
    colors = gradient_colors(slopes, largest_slope(slopes))
    faces = PolyCollection(polygons.corners, facecolors=colors, edgecolors="black", linewidths=width)
    ax.add_collection(faces)
    ax.set(xlim=polygons.box[0], ylim=polygons.box[1], aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    ax.set_title(f"{polygons.patterns} polygons")
    if key:
        _draw_key(ax, largest_slope(slopes))
    return ax


RAMP = np.array([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]]) / 255
"""From the least value to the largest: dark blue, green, yellow; readers who do not see red or green can use them."""


def gradient_colors(slopes: Floats, largest: float) -> Floats:
    """Return a colour for each gradient [n, 2]: hue for the direction, white for 0, deepest at `largest`; [n, 3]."""
    size = np.linalg.norm(slopes, axis=1)
    depth = np.sqrt(np.minimum(size / largest, 1.0))[:, None]
    turn = (np.arctan2(slopes[:, 1], slopes[:, 0]) / (2 * np.pi))[:, None]
    # red, green and blue are a third of a turn apart; each falls off between a sixth and a third of a turn
    away = (6 * turn + np.array([5.0, 3.0, 1.0])) % 6
    fall = np.clip(np.minimum(away, 4 - away), 0.0, 1.0)
    return np.asarray((1 - 0.15 * depth) * (1 - 0.75 * depth * fall))


def value_colors(values: Floats) -> Floats:
    """Return a colour for each value [n], from that of the least to that of the largest; [n, 3]."""
    low, high = values.min(), values.max()
    part = (values / 2 - low / 2) / (high / 2 - low / 2) if high > low else np.full(len(values), 0.5)
    steps = np.linspace(0.0, 1.0, len(RAMP))
    return np.stack([np.interp(part, steps, channel) for channel in RAMP.T], axis=1)


def largest_slope(slopes: Floats) -> float:
    """Return the size of the largest gradient [n, 2], or 1 if all are 0."""
    return float(np.linalg.norm(slopes, axis=1).max()) or 1.0


def _draw_key(ax: Any, largest: float) -> None:
    """Draw the disc of colours beside the axes: the gradient of a polygon is the point of its colour."""
    inset = ax.inset_axes((1.05, 0.7, 0.28, 0.28))
    grid = np.linspace(-1, 1, 101)
    x, y = np.meshgrid(grid, grid)
    colors = gradient_colors(np.column_stack([x.ravel(), y.ravel()]), 1.0).reshape(101, 101, 3)
    inside = np.hypot(x, y) <= 1
    inset.imshow(np.dstack([colors, inside]), origin="lower", extent=(-1, 1, -1, 1))
    inset.set(xticks=[], yticks=[], title="gradient")
    inset.set_xlabel(f"radius {largest:.2g}")
    inset.set_frame_on(False)


def _check_matplotlib() -> None:
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError("drawing needs matplotlib: pip install 'plunit[lab]'")


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.figure().add_subplot()
