"""Polygons of a network as a PLY file: the surface z = f(x, y), coloured by gradient."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from plunit.base.files import save_whole
from plunit.pieces.drawing import gradient_colors, largest_slope
from plunit.pieces.exact.polygons import Cells
from plunit.pieces.formats.surfaces import rows, surface

_HEADER = """\
ply
format ascii 1.0
comment z = f(x, y), output {output}
element vertex {vertices}
property double x
property double y
property double z
element face {faces}
property list {count} int vertex_indices
property uchar red
property uchar green
property uchar blue
end_header"""

BYTE = 255
"""The most corners whose number fits into a byte, which most readers expect."""


def save_ply(cells: Cells, path: str | Path, *, output: int = 0) -> None:
    """Write the surface z = f(x, y) of one output as text, made of flat polygons; neighbours share vertices.

    The colour of a polygon is that of its gradient: hue for the direction, white for 0.
    """
    points, polygons = surface(cells, output)
    slopes = cells.gradients[:, output]
    colors = np.rint(255 * gradient_colors(slopes, largest_slope(slopes))).astype(int).tolist()
    count = "uchar" if max(map(len, polygons)) <= BYTE else "int"
    head = _HEADER.format(output=output, vertices=len(points), faces=len(polygons), count=count)
    faces = (
        " ".join(map(str, (len(corners), *corners, *color))) for corners, color in zip(polygons, colors, strict=True)
    )
    save_whole(path, "\n".join([head, *rows(points), *faces, ""]))
