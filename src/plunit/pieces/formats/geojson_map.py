"""Polygons of a network as GeoJSON, each with its affine map."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plunit.base.files import save_whole
from plunit.pieces.exact.polygons import Cells
from plunit.pieces.formats.surfaces import check_output


def save_geojson(cells: Cells, path: str | Path) -> None:
    """Write a Feature for each polygon, with f(x) = gradient x + intercept there for all outputs.

    Properties: gradient [out, 2], intercept [out], area, and piece, the number of the functional piece that the polygon
    is part of. Coordinates are the two inputs, x first; a map program takes them for longitude and latitude.
    """
    check_output(cells, 0)
    content = {"type": "FeatureCollection", "features": _features(cells)}
    save_whole(path, json.dumps(content, allow_nan=False) + "\n")


def _features(cells: Cells) -> list[dict[str, Any]]:
    columns = (cells.labels, cells.areas, cells.gradients, cells.intercepts)
    maps = zip(*(column.tolist() for column in columns), strict=True)
    features = []
    for i, (polygon, (piece, area, gradient, intercept)) in enumerate(zip(cells.polygons, maps, strict=True)):
        corners = polygon.tolist()
        # a ring ends where it starts
        geometry = {"type": "Polygon", "coordinates": [[*corners, corners[0]]]}
        properties = {"piece": piece, "area": area, "gradient": gradient, "intercept": intercept}
        features.append({"type": "Feature", "id": i, "geometry": geometry, "properties": properties})
    return features
