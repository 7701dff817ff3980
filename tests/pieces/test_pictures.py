import colorsys

import numpy as np
import pytest

from plunit.pieces import activation, curve, network, polygons

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402

from plunit.pieces.pictures import draw_curve, draw_polygons, gradient_colors  # noqa: E402

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
    assert ax.get_legend().get_texts()[0].get_text() == f"{len(kinks) + 1} pieces"


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


@pytest.mark.parametrize("size", [0.0, 0.25, 1.0, 4.0])
def test_hue_is_the_direction_and_depth_the_size(size):
    angle = np.linspace(0, 2 * np.pi, 13)
    depth = min(size, 1.0) ** 0.5
    expected = [colorsys.hsv_to_rgb(turn % 1.0, 0.75 * depth, 1 - 0.15 * depth) for turn in angle / (2 * np.pi)]
    found = gradient_colors(size * np.stack([np.cos(angle), np.sin(angle)], axis=1), 1.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
