import numpy as np
import pytest

from plunit.pieces import activation, cells, curve, network

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402

from plunit.pieces.drawing import draw_cells, draw_curve, draw_surface  # noqa: E402

BOX = ((-2.0, 2.0), (-2.0, 2.0))
FOLD = cells(network([(np.eye(2), [0.0, 0.0]), activation.plu(), ([[1.0, 1.0]], [0.0])]), BOX)
FLAT = cells(network([([[0.0, 0.0]], [0.0])]), BOX)


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
def test_a_polygon_for_every_cell(found):
    ax = draw_cells(found)
    ax.figure.canvas.draw()
    assert len(ax.collections[0].get_paths()) == len(found)
    assert ax.get_title() == f"{len(found)} polygons"


@pytest.mark.parametrize("found", [FOLD, FLAT])
def test_a_facet_for_every_cell(found):
    ax = draw_surface(found)
    ax.figure.canvas.draw()
    assert len(ax.collections[0].get_facecolor()) == len(found)


def test_given_axes_are_used():
    _, ax = pyplot.subplots()
    assert draw_cells(FOLD, ax, key=False) is ax
    assert draw_curve(curve(network([([[1.0]], [0.0])]), 0.0, 1.0), ax) is ax


@pytest.mark.parametrize("draw", [draw_cells, draw_surface, draw_curve])
def test_without_matplotlib_the_error_says_what_to_install(draw, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'plunit\[lab\]'"):
        draw(FOLD)
