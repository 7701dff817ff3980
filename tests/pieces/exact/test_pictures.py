import colorsys

import numpy as np
import pytest

from plunit.pieces import activation, curve, network, polygons

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402

from plunit.pieces.exact.pictures import draw_curve, draw_polygons, draw_slice, gradient_colors  # noqa: E402

BOX = ((-2.0, 2.0), (-2.0, 2.0))
FOLD = polygons(network([(np.eye(2), [0.0, 0.0]), activation.plu(), ([[1.0, 1.0]], [0.0])]), BOX)
FLAT = polygons(network([([[0.0, 0.0]], [0.0])]), BOX)


@pytest.fixture(autouse=True)
def _close():
    yield
    pyplot.close("all")


@pytest.mark.parametrize(("alpha", "kinks"), [(0.1, [-1, 1]), (1.0, [])])
def test_a_dot_on_every_kink_that_is_not_dead(alpha, kinks):
    ax = draw_curve(curve(network([([[1.0]], [0.0]), activation.plu(alpha)]), -2.0, 2.0))
    line, dots = ax.lines
    assert line.get_xdata().tolist() == [-2, *kinks, 2]
    assert dots.get_xdata().tolist() == kinks
    assert ax.get_legend().get_texts()[0].get_text() == ("3 pieces" if kinks else "1 piece")


@pytest.mark.parametrize("found", [FOLD, FLAT])
def test_a_polygon_for_every_polygon(found):
    ax = draw_polygons(found)
    ax.figure.canvas.draw()
    assert len(ax.collections[0].get_paths()) == len(found)
    assert ax.get_title() == ("1 polygon" if found is FLAT else "9 polygons")


def test_a_slice_has_axes_a_title_a_colour_bar_and_the_edges_of_its_polygons():
    weight = [[1.0, 0, 0, 0], [0, 0, 0, 1.0]]
    net = network([(weight, [0.0, 0.0]), activation.plu(), ([[0.0, 1.0], [1.0, 2.0]], [0.0, 3.0])])
    ax = draw_slice(net, [(-2.0, 2.0), (0.0, 1.0), (4.0, 6.0), (-2.0, 4.0)], (3, 0), output=1)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("$x_{4}$", "$x_{1}$")
    assert ax.get_title() == "output 2, $x_{2}$ = 0.5, $x_{3}$ = 5\n9 polygons"
    assert ax.images[0].get_extent() == [-2, 4, -2, 2]
    values = ax.images[0].get_array()
    assert values[0, 0] == pytest.approx(-1.1 + 2 * -1.1 + 3)
    assert values[0, -1] == pytest.approx(-1.1 + 2 * 1.3 + 3)
    assert [bar.get_ylabel() for bar in ax.figure.axes[1:]] == ["output 2"]
    places = {tuple(np.unique(segment[:, i].round(9))) for segment in ax.collections[0].get_segments() for i in (0, 1)}
    assert {(-1.0,), (1.0,)} <= places
    for wrong in ({"inputs": (1, 1)}, {"at": [0.0]}, {"inputs": (0, 4)}):
        with pytest.raises(ValueError, match="two of the inputs 0 to 3"):
            draw_slice(net, [(-1.0, 1.0)] * 4, **wrong)


def test_given_axes_are_used():
    _, ax = pyplot.subplots()
    assert draw_polygons(FOLD, ax) is ax
    assert draw_curve(curve(network([([[1.0]], [0.0])]), 0.0, 1.0), ax) is ax


@pytest.mark.parametrize("draw", [draw_polygons, draw_curve])
def test_without_matplotlib_the_error_says_what_to_install(draw, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"matplotlib, which is not installed; pip install 'plunit\[fit\]'"):
        draw(FOLD)


@pytest.mark.parametrize("size", [0.0, 0.25, 1.0, 4.0])
def test_hue_is_the_direction_and_depth_the_size(size):
    angle = np.linspace(0, 2 * np.pi, 13)
    depth = min(size, 1.0) ** 0.5
    expected = [colorsys.hsv_to_rgb(turn % 1.0, 0.75 * depth, 1 - 0.15 * depth) for turn in angle / (2 * np.pi)]
    found = gradient_colors(size * np.stack([np.cos(angle), np.sin(angle)], axis=1), 1.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
