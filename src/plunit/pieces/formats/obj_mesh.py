"""Polygons of a network as a Wavefront OBJ file: the surface z = f(x, y)."""

from __future__ import annotations

from pathlib import Path

from plunit.base.files import save_whole
from plunit.pieces.exact.polygons import Cells
from plunit.pieces.formats.surfaces import rows, surface


def save_obj(cells: Cells, path: str | Path, *, output: int = 0) -> None:
    """Write the surface z = f(x, y) of one output, made of flat polygons; neighbours share vertices.

    For Blender, MeshLab, CAD and others. Seen from above, corners go counter-clockwise.
    """
    points, polygons = surface(cells, output)
    # OBJ counts from 1
    faces = ("f " + " ".join(str(corner + 1) for corner in corners) for corners in polygons)
    head = f"# z = f(x, y), output {output}: {len(points)} vertices, {len(polygons)} polygons"
    save_whole(path, "\n".join([head, "o surface", *rows(points, "v "), *faces, ""]))
