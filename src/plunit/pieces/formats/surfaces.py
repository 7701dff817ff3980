"""For every writer of polygons: one output as a surface z = f(x, y) of polygons with common vertices."""

from __future__ import annotations

from operator import index

import numpy as np

from plunit.pieces.arrays import Floats
from plunit.pieces.exact.polygons import Cells


def check_output(cells: Cells, output: int) -> int:
    """Return the output's number; TypeError or IndexError if there is no such output."""
    if not isinstance(cells, Cells):
        raise TypeError(f"this needs plunit.pieces.Cells, got {type(cells).__name__}; plunit.pieces.cells makes them")
    count = cells.values.shape[1]
    if not 0 <= index(output) < count:
        raise IndexError(f"there is no output {output} of {count}; count from 0")
    return index(output)


def surface(cells: Cells, output: int) -> tuple[Floats, list[list[int]]]:
    """Return the points (x, y, f(x, y)) [n, 3], and the points of each polygon, counter-clockwise seen from above."""
    column = check_output(cells, output)
    points = np.column_stack([cells.vertices, cells.values[:, column]])
    return points, [corners.tolist() for corners in np.split(cells.faces.tails, cells.faces.offsets[1:-1])]


def rows(points: Floats, before: str = "") -> list[str]:
    """Return a line of text for each point; its numbers read back as the same bits."""
    return [before + " ".join(map(repr, point)) for point in points.tolist()]
