"""Pictures with Matplotlib: a curve with a dot on each kink, polygons coloured by gradient, and a slice.

Colours are red, green and blue from 0 to 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plunit.base.errors import describe_missing, is_installed
from plunit.pieces.arrays import Floats
from plunit.pieces.boxes import box_array, many
from plunit.pieces.exact.line_curves import Curve
from plunit.pieces.exact.polygon_set import Polygons, polygons
from plunit.pieces.networks import Network, plane


def draw_curve(curve: Curve, ax: Any = None, *, output: int = 0, color: str = "C0") -> Any:
    """Draw one output with a dot on every knot that bends it, and return the axes."""
    ax = _axes(ax)
    shown = curve.output(output).merge()
    x, y = shown.knots, shown.values[:, 0]
    ax.plot(x, y, color=color, linewidth=1.5, label=many(shown.pieces, "piece"))
    ax.plot(x[1:-1], y[1:-1], "o", color=color, markersize=4, markeredgecolor="white")
    ax.set(xlabel="x", ylabel="f(x)")
    ax.legend(frameon=False)
    return ax


def draw_polygons(polygons: Polygons, ax: Any = None, *, output: int = 0) -> Any:
    """Draw polygons coloured by gradient, with hue for direction and saturation for size, and return the axes."""
    ax = _axes(ax)
    from matplotlib.collections import PolyCollection

    slopes = polygons.gradients[:, output]
    largest = float(np.linalg.norm(slopes, axis=1).max()) or 1.0
    # thin edges on many polygons would hide the colours
    width = float(np.clip(12 / np.sqrt(len(polygons)), 0.0, 0.6))
    colors = gradient_colors(slopes, largest)
    faces = PolyCollection(polygons.corners, facecolors=colors, edgecolors="black", linewidths=width)
    ax.add_collection(faces)
    ax.set(xlim=polygons.box[0], ylim=polygons.box[1], aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    ax.set_title(many(polygons.patterns, "polygon"))
    _draw_key(ax, largest)
    return ax


def draw_slice(
    net: Network, box: Any, inputs: tuple[int, int] = (0, 1), ax: Any = None, *, at: Any = None, output: int = 0
) -> Any:
    """Draw one output over two inputs of a network, with the edges of its polygons, and return the axes.

    Args:
        net: a network with two or more inputs.
        box: (low, high) for each input.
        inputs: the two inputs that vary, counted from 0.
        ax: Matplotlib axes; new ones by default.
        at: a point with the values of the other inputs; by default the centre of the box.
        output: the output, counted from 0.
    """
    ax = _axes(ax)
    from matplotlib.collections import LineCollection

    sides = box_array(net, box)
    first, second = inputs
    origin = np.array(sides.mean(axis=1) if at is None else at, dtype=np.float64)
    if first == second or not {first, second} <= {*range(net.inputs)} or origin.shape != (net.inputs,):
        raise ValueError(
            f"a slice needs two of the inputs 0 to {net.inputs - 1} and a point with {net.inputs} coordinates, "
            f"got {inputs} and {at}"
        )
    fixed = [f"$x_{{{i + 1}}}$ = {origin[i]:.3g}" for i in range(net.inputs) if i not in (first, second)]
    origin[[first, second]] = 0.0
    u, v = np.eye(net.inputs)[[first, second]]
    found = polygons(plane(net, origin, u, v), (tuple(sides[first]), tuple(sides[second])))
    s, t = np.meshgrid(*(np.linspace(low, high, 201) for low, high in found.box))
    values = net(origin + s[..., None] * u + t[..., None] * v)[..., output]
    extent = [end for side in found.box for end in side]
    image = ax.imshow(values, origin="lower", extent=extent, aspect="auto", cmap="viridis", interpolation="bilinear")
    inner = (found.faces.neighbours >= 0).all(axis=1)
    ax.add_collection(LineCollection(list(found.vertices[found.faces.ends[inner]]), colors="white", linewidths=0.4))
    ax.set(xlabel=f"$x_{{{first + 1}}}$", ylabel=f"$x_{{{second + 1}}}$")
    where = f", {', '.join(fixed[:4])}{', ...' if len(fixed) > 4 else ''}" if fixed else ""
    ax.set_title(f"output {output + 1}{where}\n{many(found.patterns, 'polygon')}", fontsize=10)
    ax.figure.colorbar(image, ax=ax, label=f"output {output + 1}")
    return ax


def gradient_colors(slopes: Floats, largest: float) -> Floats:
    """Return a colour [n, 3] for each gradient [n, 2]: the hue is its direction, 0 is white, `largest` is deepest."""
    from matplotlib.colors import hsv_to_rgb

    depth = np.sqrt(np.minimum(np.linalg.norm(slopes, axis=1) / largest, 1.0))
    turn = np.arctan2(slopes[:, 1], slopes[:, 0]) / (2 * np.pi) % 1.0
    return np.asarray(hsv_to_rgb(np.stack([turn, 0.75 * depth, 1 - 0.15 * depth], axis=1)))


def _draw_key(ax: Any, largest: float) -> None:
    """Draw the colour disc next to the axes: the gradient of a polygon is the point with its colour."""
    inset = ax.inset_axes((1.05, 0.7, 0.28, 0.28))
    grid = np.linspace(-1, 1, 101)
    x, y = np.meshgrid(grid, grid)
    colors = gradient_colors(np.column_stack([x.ravel(), y.ravel()]), 1.0).reshape(101, 101, 3)
    inside = np.hypot(x, y) <= 1
    inset.imshow(np.dstack([colors, inside]), origin="lower", extent=(-1, 1, -1, 1))
    inset.set(xticks=[], yticks=[], title="gradient")
    inset.set_xlabel(f"radius {largest:.2g}")
    inset.set_frame_on(False)


def _axes(ax: Any) -> Any:
    if not is_installed("matplotlib"):
        raise ModuleNotFoundError(describe_missing("a picture", "matplotlib"), name="matplotlib")
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.figure().add_subplot()
