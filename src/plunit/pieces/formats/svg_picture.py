"""Polygons and curves as SVG pictures, without a drawing package."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import numpy as np

from plunit.base.files import save_whole
from plunit.pieces.arrays import Floats
from plunit.pieces.drawing import gradient_colors, largest_slope, value_colors
from plunit.pieces.exact.polygons import Cells
from plunit.pieces.exact_curves import Curve
from plunit.pieces.formats.surfaces import check_output

WIDTH = 640.0
MARGIN = 24.0
LEFT = 72.0

_PICTURE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" \
font-family="sans-serif" font-size="12">
<title>{title}</title>
{parts}
</svg>
"""


def save_svg(
    shape: Cells | Curve, path: str | Path, *, output: int = 0, color: Literal["gradient", "value"] = "gradient"
) -> None:
    """Write a picture of polygons, or of a curve with a dot on every knot that bends it, for one output.

    Polygons are coloured by gradient, hue for its direction and depth of colour for its size, or by the mean of the
    values at their corners, from dark blue to yellow. A browser shows the affine map of the polygon under the pointer.
    """
    if isinstance(shape, Curve):
        save_whole(path, _curve(shape.output(output).merged()))
        return
    if color not in ("gradient", "value"):
        raise ValueError(f"color must be 'gradient' or 'value', got {color!r}")
    save_whole(path, _cells(shape, check_output(shape, output), color))


def _cells(cells: Cells, output: int, color: str) -> str:
    (left, right), (bottom, top) = cells.box
    # equal scales, unless the box is very long
    height = WIDTH * float(np.clip((top - bottom) / (right - left), 0.25, 4.0))
    points = _scaled(cells.vertices, (left, top), (right, bottom), WIDTH, height)[cells.faces.tails]
    slopes, constants = cells.gradients[:, output], cells.intercepts[:, output]
    if color == "gradient":
        colors = gradient_colors(slopes, largest_slope(slopes))
    else:
        corners = np.add.reduceat(cells.values[cells.faces.tails, output], cells.faces.offsets[:-1])
        colors = value_colors(corners / cells.faces.sizes)
    # thin edges on many polygons would hide the colours
    stroke = float(np.clip(16 / np.sqrt(len(cells)), 0.05, 0.8))
    polygons = (
        f'<polygon fill="#{_hex(shade)}" points="{_pairs(part)}"><title>{a:.6g} x {b:+.6g} y {c:+.6g}</title></polygon>'
        for shade, part, (a, b), c in zip(
            colors, np.split(points, cells.faces.offsets[1:-1]), slopes, constants, strict=True
        )
    )
    group = f'<g stroke="black" stroke-width="{stroke:.3g}" stroke-linejoin="round">'
    title = f"{cells.patterns} polygons on [{left:g}, {right:g}] x [{bottom:g}, {top:g}]"
    return _PICTURE.format(width=WIDTH, height=height, title=title, parts="\n".join([group, *polygons, "</g>"]))


def _curve(curve: Curve) -> str:
    low, high = curve.minimum()[1], curve.maximum()[1]
    low, high = (low, high) if high > low else (low - 1, high + 1)
    width, height = WIDTH - LEFT - MARGIN, 0.6 * WIDTH - 2 * MARGIN
    knots = np.column_stack([curve.knots, curve.values])
    points = np.array([LEFT, MARGIN]) + _scaled(knots, (curve.low, high), (curve.high, low), width, height)
    dots = (
        f'<circle cx="{x:.4f}" cy="{y:.4f}" r="3"><title>({a:.6g}, {b:.6g})</title></circle>'
        for (x, y), (a, b) in zip(points[1:-1], knots[1:-1], strict=True)
    )
    parts = [
        f'<rect x="{LEFT}" y="{MARGIN}" width="{width}" height="{height}" fill="none" stroke="#ccc"/>',
        _label(LEFT, MARGIN + height + 16, "start", curve.low),
        _label(LEFT + width, MARGIN + height + 16, "end", curve.high),
        _label(LEFT - 4, MARGIN + height, "end", low),
        _label(LEFT - 4, MARGIN + 8, "end", high),
        f'<polyline fill="none" stroke="#1f77b4" stroke-width="1.5" points="{_pairs(points)}"/>',
        '<g fill="#1f77b4">',
        *dots,
        "</g>",
    ]
    title = f"{curve.pieces} pieces on [{curve.low:g}, {curve.high:g}]"
    return _PICTURE.format(width=WIDTH, height=0.6 * WIDTH, title=title, parts="\n".join(parts))


def _label(x: float, y: float, anchor: str, number: float) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="#666">{number:.4g}</text>'


def _scaled(
    points: Floats, start: tuple[float, float], end: tuple[float, float], width: float, height: float
) -> Floats:
    """Return points with `start` moved to the upper left corner of the picture and `end` to the lower right one."""
    origin, size = np.array(start), np.array(end) / 2 - np.array(start) / 2
    return np.asarray((points / 2 - origin / 2) / size * np.array([width, height]))


def _pairs(points: Iterable[Floats]) -> str:
    return " ".join(f"{x:.4f},{y:.4f}" for x, y in points)


def _hex(shade: Floats) -> str:
    return "".join(f"{round(255 * part):02x}" for part in shade.tolist())
