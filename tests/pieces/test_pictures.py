import colorsys

import numpy as np
import pytest

from plunit.pieces import activation, curve, network, polygons

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402

from plunit.pieces.pictures import RAMP, draw_curve, draw_polygons, gradient_colors, value_colors  # noqa: E402

BOX = ((-2.0, 2.0), (-2.0, 2.0))
FOLD = polygons(network([(np.eye(2), [0.0, 0.0]), activation.plu(), ([[1.0, 1.0]], [0.0])]), BOX)
FLAT = polygons(network([([[0.0, 0.0]], [0.0])]), BOX)


@pytest.fixture(autouse=True)
def _close():
    yield
    pyplot.close("all")


def test_a_dot_on_every_knot():
    ax = draw_curve(curve(network([([[1.0]], [0.0]), activation.plu()]), -2.0, 2.0))
    line, dots = ax.lines
    assert line.get_xdata().tolist() == [-2, -1, 1, 2]
    assert dots.get_xdata().tolist() == [-1, 1]
    assert ax.get_legend().get_texts()[0].get_text() == "3 pieces"


def test_dead_kinks_get_no_dot():
    ax = draw_curve(curve(network([([[1.0]], [0.0]), activation.plu(1.0)]), -2.0, 2.0))
    assert len(ax.lines[1].get_xdata()) == 0


@pytest.mark.parametrize("found", [FOLD, FLAT])
def test_a_polygon_for_every_polygon(found):
    ax = draw_polygons(found)
    ax.figure.canvas.draw()
    assert len(ax.collections[0].get_paths()) == len(found)
    assert ax.get_title() == f"{len(found)} polygons"


def test_given_axes_are_used():
    _, ax = pyplot.subplots()
    assert draw_polygons(FOLD, ax, key=False) is ax
    assert draw_curve(curve(network([([[1.0]], [0.0])]), 0.0, 1.0), ax) is ax


@pytest.mark.parametrize("draw", [draw_polygons, draw_curve])
def test_without_matplotlib_the_error_says_what_to_install(draw, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'plunit\[lab\]'"):
        draw(FOLD)


def test_colours_tell_directions_apart():
    colors = gradient_colors(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, 0.0]]), 1.0)
    assert len(np.unique(colors.round(3), axis=0)) == 4
    np.testing.assert_allclose(colors[3], 1.0)


@pytest.mark.parametrize("angle", np.linspace(0, 2 * np.pi, 13))
@pytest.mark.parametrize("size", [0.0, 0.25, 1.0, 4.0])
def test_hue_is_the_direction_and_depth_the_size(angle, size):
    depth = min(size, 1.0) ** 0.5
    expected = colorsys.hsv_to_rgb(angle / (2 * np.pi) % 1.0, 0.75 * depth, 1 - 0.15 * depth)
    found = gradient_colors(size * np.array([[np.cos(angle), np.sin(angle)]]), 1.0)
    np.testing.assert_allclose(found[0], expected, rtol=0, atol=1e-12)


def test_values_go_through_the_ramp():
    np.testing.assert_allclose(value_colors(np.array([2.0, 3.0, 4.0, 5.0, 6.0])), RAMP)
    np.testing.assert_allclose(value_colors(np.array([-1e308, 1e308])), RAMP[[0, -1]])
    np.testing.assert_allclose(value_colors(np.array([7.0, 7.0])), RAMP[[2, 2]])
