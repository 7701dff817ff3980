"""The examples run here block by block, with warnings as errors; `make docs` runs them for the gallery.

All of them together take about ten seconds, so they have no shorter form. The tests run on more versions of Python and
more systems than the build of the site does.
"""

import runpy
from pathlib import Path

import pytest

plt = pytest.importorskip("matplotlib.pyplot")
torch = pytest.importorskip("torch")
parser = pytest.importorskip("sphinx_gallery.py_source_parser")
pytest.importorskip("onnx")

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.fixture
def one_thread():
    """Small arrays take longer with several threads, the more the busier the machine is."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def texts(figure):
    """Return the title and the labels of a picture."""
    axes = [one for one in figure.axes if one.get_label() != "<colorbar>"]
    return axes[0].get_title(), axes[-1].get_xlabel(), *(one.get_ylabel() for one in axes)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_numbers_and_ends_with_its_picture(path, one_thread, monkeypatch, capsys):
    plt.switch_backend("Agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.close("all")
    blocks = [block for block in parser.split_code_and_text_blocks(path)[1] if block.type == "code"]
    names, pictures = {"__name__": "__main__"}, []
    for block in blocks:
        exec(compile("\n" * (block.lineno - 1) + block.content, path, "exec"), names)
        pictures += [texts(plt.figure(number)) for number in plt.get_fignums()]
        plt.close("all")  # as the gallery does: what a later block draws is not in the picture
    assert any(letter.isdigit() for letter in capsys.readouterr().out)
    assert len(pictures) == 1
    assert all(pictures[0])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short(path):
    lines = [line for line in path.read_text().split('"""', 2)[2].splitlines() if line and not line.startswith("#")]
    assert path.stem.startswith("plot_")  # others are shown without being run
    assert 20 <= len(lines) <= 60


def test_there_are_examples():
    assert len(EXAMPLES) >= 12


def test_the_gallery_has_a_place_for_every_example(monkeypatch):
    docs = EXAMPLES[0].parents[1] / "docs"
    monkeypatch.syspath_prepend(docs)
    order = runpy.run_path(str(docs / "gallery.py"))["ORDER"]
    assert sorted(f"plot_{name}" for name in order) == [path.stem for path in EXAMPLES]
