"""Cells as pictures, surfaces and maps, read back by a parser that shares nothing with the writer."""

import itertools
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from random_networks import random_network

from plunit.pieces import (
    Curve,
    activation,
    cells,
    curve,
    network,
    save_geojson,
    save_obj,
    save_ply,
    save_svg,
)

BOX = ((-2.0, 1.0), (-1.0, 1.0))
NETS = [random_network(seed, 2, 8, 3, 2) for seed in range(6)]
SVG = "{http://www.w3.org/2000/svg}"


def surfaces(path):
    """Return the points [n, 3] and the polygons in an OBJ or a PLY file."""
    if path.suffix == ".obj":
        lines = [line.split() for line in path.read_text().splitlines()]
        points = [list(map(float, line[1:])) for line in lines if line[0] == "v"]
        return np.array(points), [[int(part) - 1 for part in line[1:]] for line in lines if line[0] == "f"]
    head, body = path.read_text().split("end_header\n")
    vertices, faces = (int(count) for count in re.findall(r"element \w+ (\d+)", head))
    rows = [line.split() for line in body.splitlines()]
    assert len(rows) == vertices + faces
    polygons = [list(map(int, row[1 : 1 + int(row[0])])) for row in rows[vertices:]]
    assert all(len(row) == 1 + int(row[0]) + 3 for row in rows[vertices:])
    return np.array(rows[:vertices], dtype=float), polygons


def triangles(points, polygons):
    """Return the corners of fans of triangles, [n, 3, 3]."""
    fans = [(corners[0], *pair) for corners in polygons for pair in itertools.pairwise(corners[1:])]
    return points[np.array(fans)]


def volume(points, polygons):
    """Return the area below the polygons, seen from above, and the integral of z over it."""
    corners = triangles(points, polygons)
    (ax, ay), (bx, by) = (corners[:, 1] - corners[:, 0]).T[:2], (corners[:, 2] - corners[:, 0]).T[:2]
    area = 0.5 * (ax * by - ay * bx)
    assert (area > -1e-12).all()
    return area.sum(), (area * corners[:, :, 2].mean(axis=1)).sum()


def integral(net, output, n=300):
    """Return the integral of an output over the box by the midpoint rule."""
    x, y = (np.linspace(low, high, 2 * n + 1)[1::2] for low, high in BOX)
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    return net(grid)[..., output].mean() * 6.0


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("output", [0, 1])
@pytest.mark.parametrize("suffix", ["obj", "ply"])
def test_the_volume_under_the_surface_is_the_integral(net, output, suffix, tmp_path):
    found, path = cells(net, BOX), tmp_path / f"surface.{suffix}"
    {"obj": save_obj, "ply": save_ply}[suffix](found, path, output=output)
    points, polygons = surfaces(path)
    assert (len(points), len(polygons)) == (len(found.vertices), len(found))
    area, below = volume(points, polygons)
    assert area == pytest.approx(6.0, rel=1e-12)
    size = np.abs(found.values[:, output]).max()
    assert below == pytest.approx(integral(net, output), abs=3e-4 * size)
    np.testing.assert_allclose(points[:, 2], net(points[:, :2])[:, output], rtol=0, atol=1e-9 * size)


@pytest.mark.parametrize("suffix", ["obj", "ply"])
def test_neighbours_share_vertices(suffix, tmp_path):
    """So every edge inside belongs to two polygons, once in each direction."""
    path = tmp_path / f"surface.{suffix}"
    {"obj": save_obj, "ply": save_ply}[suffix](cells(NETS[0], BOX), path)
    points, polygons = surfaces(path)
    edges = {edge for corners in polygons for edge in zip(corners, corners[1:] + corners[:1], strict=True)}
    assert len(edges) == sum(map(len, polygons))
    alone = [tail for tail, head in edges if (head, tail) not in edges]
    rim = np.isin(points[:, 0], BOX[0]) | np.isin(points[:, 1], BOX[1])
    assert rim[alone].all()


def test_the_colours_in_a_ply_file_are_those_of_the_gradients(tmp_path):
    net = network([(np.eye(2), [0.0, 0.0]), activation.relu(), ([[1.0, 0.0]], [0.0])])
    save_ply(cells(net, ((-1, 1), (-1, 1))), tmp_path / "surface.ply")
    text = (tmp_path / "surface.ply").read_text()
    assert "property list uchar int vertex_indices" in text
    shades = {tuple(line.split()[-3:]) for line in text.splitlines() if re.fullmatch(r"4( \d+){7}", line)}
    assert shades == {("255", "255", "255"), ("217", "54", "54")}


def test_a_polygon_of_many_corners_needs_a_larger_count(tmp_path, monkeypatch):
    monkeypatch.setattr("plunit.pieces.formats.ply_mesh.BYTE", 3)
    save_ply(cells(NETS[0], BOX), tmp_path / "surface.ply")
    assert "property list int int vertex_indices" in (tmp_path / "surface.ply").read_text()


@pytest.mark.parametrize("net", NETS)
def test_every_feature_has_its_map(net, tmp_path):
    found = cells(net, BOX)
    save_geojson(found, tmp_path / "cells.geojson")
    content = json.loads((tmp_path / "cells.geojson").read_text())
    assert content["type"] == "FeatureCollection"
    assert len(content["features"]) == len(found)
    total, size = 0.0, np.abs(found.values).max()
    for feature in content["features"]:
        (ring,) = feature["geometry"]["coordinates"]
        assert ring[0] == ring[-1]
        x, y = np.array(ring).T
        area = 0.5 * (x[:-1] * y[1:] - x[1:] * y[:-1]).sum()
        known = feature["properties"]
        assert area == pytest.approx(known["area"], abs=1e-12)
        total += area
        at = np.array(ring) @ np.transpose(known["gradient"]) + known["intercept"]
        np.testing.assert_allclose(at, net(np.array(ring)), rtol=0, atol=1e-8 * size)
    assert total == pytest.approx(6.0)
    assert len({feature["properties"]["piece"] for feature in content["features"]}) == found.pieces


def picture(path):
    root = ElementTree.parse(path).getroot()
    width, height = (float(number) for number in root.get("viewBox").split()[2:])
    return root, width, height


@pytest.mark.parametrize("color", ["gradient", "value"])
@pytest.mark.parametrize("net", NETS[:3])
def test_the_polygons_of_a_picture_fill_it(net, color, tmp_path):
    found = cells(net, BOX)
    save_svg(found, tmp_path / "cells.svg", color=color)
    root, width, height = picture(tmp_path / "cells.svg")
    assert height / width == pytest.approx(2 / 3)
    polygons = root.findall(f".//{SVG}polygon")
    assert len(polygons) == len(found)
    for polygon, corners, area in zip(polygons, found.polygons, found.areas, strict=True):
        x, y = np.array([pair.split(",") for pair in polygon.get("points").split()], dtype=float).T
        # x to the right, y upwards, with the same scale
        np.testing.assert_allclose(x, (corners[:, 0] + 2) * width / 3, rtol=0, atol=1e-3)
        np.testing.assert_allclose(y, height - (corners[:, 1] + 1) * width / 3, rtol=0, atol=1e-3)
        turned = -0.5 * (x * np.roll(y, -1) - np.roll(x, -1) * y).sum()
        assert turned == pytest.approx(area * (width / 3) ** 2, abs=0.2)
        assert re.fullmatch("#[0-9a-f]{6}", polygon.get("fill"))


def test_the_colours_of_a_picture(tmp_path):
    """relu(x): no gradient on the left, that of x on the right; least values on the left."""
    net = network([([[1.0, 0.0]], [0.0]), activation.relu()])
    for color, left, right in (("gradient", "#ffffff", "#d93636"), ("value", "#440154", "#fde725")):
        save_svg(cells(net, ((-1, 1), (-1, 1))), tmp_path / "cells.svg", color=color)
        polygons = picture(tmp_path / "cells.svg")[0].findall(f".//{SVG}polygon")
        shades = {polygon.find(f"{SVG}title").text: polygon.get("fill") for polygon in polygons}
        assert shades == {"0 x +0 y +0": left, "1 x +0 y +0": right}


@pytest.mark.parametrize(("box", "ratio"), [(((0, 1), (0, 100)), 4.0), (((0, 100), (0, 1)), 0.25)])
def test_a_long_box_is_not_a_long_picture(box, ratio, tmp_path):
    save_svg(cells(NETS[0], box), tmp_path / "cells.svg")
    _, width, height = picture(tmp_path / "cells.svg")
    assert height / width == ratio


def test_a_curve_as_a_picture(tmp_path):
    tent = Curve([0, 1, 3, 4], [[0], [1], [1], [0.5]], [[1], [0], [-0.5]])
    save_svg(tent, tmp_path / "curve.svg")
    root, _, _ = picture(tmp_path / "curve.svg")
    frame = {name: float(root.find(f"{SVG}rect").get(name)) for name in ("x", "y", "width", "height")}
    points = [pair.split(",") for pair in root.find(f"{SVG}polyline").get("points").split()]
    x, y = np.array(points, dtype=float).T
    np.testing.assert_allclose((x - frame["x"]) / frame["width"], [0, 0.25, 0.75, 1], atol=1e-4)
    np.testing.assert_allclose((y - frame["y"]) / frame["height"], [1, 0, 0, 0.5], atol=1e-4)
    assert len(root.findall(f".//{SVG}circle")) == 2


@pytest.mark.parametrize("shape", [Curve([0, 1], [[2], [2]], [[0]]), curve(random_network(4, 1, 5, 2), -1.0, 1.0)])
def test_any_curve_is_a_picture(shape, tmp_path):
    save_svg(shape, tmp_path / "curve.svg")
    title = picture(tmp_path / "curve.svg")[0].find(f"{SVG}title").text
    assert title == f"{shape.pieces} pieces on [{shape.low:g}, 1]"


WRITERS = {"svg": save_svg, "obj": save_obj, "ply": save_ply}


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("output", [-1, 2])
def test_an_output_that_is_not_there(form, output, tmp_path):
    with pytest.raises(IndexError, match=f"no output {output} of 2; count from 0"):
        WRITERS[form](cells(NETS[0], BOX), tmp_path / "out", output=output)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("save", [*WRITERS.values(), save_geojson])
def test_something_else_than_cells(save, tmp_path):
    with pytest.raises(TypeError, match=r"needs plunit.pieces.Cells, got Network; plunit.pieces.cells makes them"):
        save(NETS[0], tmp_path / "out")


def test_an_unknown_colour(tmp_path):
    with pytest.raises(ValueError, match="color must be 'gradient' or 'value', got 'red'"):
        save_svg(cells(NETS[0], BOX), tmp_path / "out", color="red")
