"""The examples run here as scripts, with warnings as errors; `make docs` runs them for the gallery.

None of them takes longer than a few seconds, so that there is no shorter form. Here they run on every Python and system
that the tests run on.
"""

import runpy
from pathlib import Path

import pytest

plt = pytest.importorskip("matplotlib.pyplot")
torch = pytest.importorskip("torch")
pytest.importorskip("onnx")

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.fixture
def one_thread():
    """Small arrays take longer with several threads, the more the busier the machine is."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_numbers_and_draws_one_picture(path, one_thread, monkeypatch, capsys):
    plt.switch_backend("Agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.close("all")
    runpy.run_path(str(path), run_name="__main__")
    assert any(letter.isdigit() for letter in capsys.readouterr().out)
    (number,) = plt.get_fignums()
    figure = plt.figure(number)
    figure.draw_without_rendering()  # what does not fit the figure warns
    assert all(axes.get_title() or not axes.axison for axes in figure.axes if axes.get_label() != "<colorbar>")
    plt.close("all")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short(path):
    lines = [line for line in path.read_text().split('"""', 2)[2].splitlines() if line and not line.startswith("#")]
    assert path.stem.startswith("plot_")  # others are shown without being run
    assert 20 <= len(lines) <= 60


def test_there_are_examples():
    assert len(EXAMPLES) >= 12
