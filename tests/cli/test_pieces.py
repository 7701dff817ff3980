"""The lines of `plunit pieces`: a table of pieces, or a summary of regions."""

import io
import pickle
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from commands import run
from rich.console import Console
from torch import nn

from plunit import pieces as library
from plunit.cli import networks
from plunit.cli.networks import domain_of
from plunit.pieces import activation, network, save_json, save_onnx
from plunit.pieces.formats.exporter import EXPORTERS
from plunit.torch import PLU, to_network


def lines(net, box):
    return networks.lines(net, domain_of(net, box))


def test_the_pieces_are_rows_of_a_table():
    # the second unit goes nowhere: its kinks at -1/4 and 1/4 bend nothing
    net = network([([[2.0], [4.0]], [0.0, 0.0]), activation.plu(), ([[3.0, 0.0]], [1.0])])
    head, *rows, last = lines(net, "-1 2")
    assert head.split() == ["from", "to", "slope", "intercept"]
    assert [[float(word) for word in row.split()] for row in rows] == [
        [-1, -0.5, 0.6, -1.7],
        [-0.5, 0.5, 6, 1],
        [0.5, 2, 0.6, 3.7],
    ]
    assert last == "3 pieces, 5 activation patterns on [-1, 2]"
    assert {len(line) for line in (head, *rows)} == {4 * 13 + 3}  # columns stand below one another


@pytest.mark.parametrize(("units", "more"), [(50, ["... 11 more"]), (40, ["... 1 more"]), (39, [])])
def test_a_long_table_is_cut_after_40_rows(units, more):
    first, last = ([[1.0]] * units, np.linspace(6, -6, units)), ([[1.0] * units] * 2, [0.0, 1.0])
    head, *rows, last = lines(network([first, activation.relu(), last]), "-6.5 6.5")
    assert re.split(r"\s{2,}", head.strip()) == ["from", "to", "slope 1", "intercept 1", "slope 2", "intercept 2"]
    assert rows[40:] == more
    assert len(rows) == 40 + len(more)
    assert last == f"{units + 1} pieces, {units + 1} activation patterns on [-6.5, 6.5]"


def test_a_network_of_two_inputs_has_polygons_and_one_piece_is_singular():
    quarters = network([(np.eye(2), [0.0, 0.0]), activation.relu(), ([[2.0, 0.0]], [0.0])])
    head, area, steepness, last = lines(quarters, "-1 3, -1 1")
    assert head.split() == ["least", "median", "largest"]
    assert area.split() == ["area", "1", "2", "3"]
    assert steepness.split() == ["steepness", "0", "1", "2"]
    assert last == "2 pieces, 4 polygons (activation patterns) on [-1, 3] x [-1, 1], area 8"
    assert lines(network([([[2.0]], [0.0])]), "-1 1")[-1] == "1 piece, 1 activation pattern on [-1, 1]"


def test_a_long_work_shows_its_progress(tmp_path, monkeypatch, capsys):
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=100)
    monkeypatch.setattr(networks, "Console", lambda **options: console)
    torch.save(nn.Sequential(nn.Linear(2, 6), PLU(), nn.Linear(6, 6), PLU(), nn.Linear(6, 1)), tmp_path / "model.pt")
    networks.pieces_of(tmp_path / "model.pt")
    assert re.search(r"layer 2 of 2: \d+ polygons", shown.getvalue())
    assert "polygons (activation patterns) on" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("inputs", "box", "expected"),
    [
        (1, "-2 3", ((-2, 3),)),
        (3, "-2 3", ((-2, 3),) * 3),
        (3, "-2,2 0,1 -1,5", ((-2, 2), (0, 1), (-1, 5))),
    ],
)
def test_the_domain_of_every_input(inputs, box, expected):
    assert domain_of(network([([[1.0] * inputs], [0.0])]), box) == expected


@pytest.fixture
def tent(tmp_path):
    """A file with |x| as a network."""
    path = tmp_path / "tent.json"
    save_json(network([([[1.0]], [0.0]), activation.absolute(), ([[1.0]], [0.0])]), path)
    return path


@pytest.fixture
def wide(tmp_path):
    """A file with a network of five inputs."""
    path = tmp_path / "wide.onnx"
    save_onnx(network([([[1.0] * 5] * 3, [0.0] * 3), activation.plu(), ([[1.0] * 3], [0.0])]), path)
    return path


@pytest.mark.parametrize("box", [["--box", "-1", "2"], ["--box=-1,2"], ["--box", "-1 2"], []])
@pytest.mark.parametrize("order", [1, -1])
def test_any_format_and_any_form_of_box(box, order, tent):
    code, out, err = run("pieces", *[word for part in [[tent], box][::order] for word in part])
    assert (code, err) == (0, "")
    domain = "[-1, 2]" if box else "[-6.28319, 6.28319]"
    *_, last = lines = out.splitlines()
    assert (lines[-1 if box else -2]) == f"2 pieces, 2 activation patterns on {domain}"
    assert last.startswith("box: [-6.28319, 6.28319] for every input, by default; ") == (not box)


@pytest.mark.parametrize("ending", EXPORTERS)
def test_a_file_of_every_ending(ending, tent, tmp_path):
    target = tmp_path / f"out{ending}"
    code, out, err = run("pieces", tent, "--box", -1, 2, "--save", target)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == f"saved as {target}"
    value = {
        ".csv": lambda: 1.5 * target.read_text().splitlines()[2].startswith("0.0,2.0,2,1.0,0.0,0.0,2.0,"),
        ".h": lambda: 1.5 * ("void out(const double *x, double *y)" in target.read_text()),
    }.get(ending, lambda: library.load(target)([1.5]))
    assert float(np.squeeze(value())) == 1.5


def test_json_is_the_network_and_not_its_part_in_the_box(tmp_path):
    save_json(network([([[1.0]], [-10.0]), activation.relu(), ([[7.0]], [0.0])]), tmp_path / "bent.json")
    code, _, err = run("pieces", "bent.json", "--save", "out.json", folder=tmp_path)
    assert (code, err) == (0, "")
    assert (tmp_path / "out.json").read_bytes() == (tmp_path / "bent.json").read_bytes()
    assert library.load(tmp_path / "out.json")([20.0]).tolist() == [70.0]


def test_a_model_of_images_needs_its_shape(tmp_path):
    model = nn.Sequential(nn.Conv1d(1, 2, 2), PLU(), nn.MaxPool1d(2), nn.Flatten(), nn.Linear(2, 1))
    torch.save(model, tmp_path / "model")
    code, out, _ = run("pieces", tmp_path / "model", "--shape", "1,3", "--box", "-1 1", "--maximum")
    found = library.maximum(to_network(model, shape=(1, 3)), [(-1, 1)] * 3)
    assert code == 0
    assert out.startswith(f"maximum {found.value:.9g} at")
    code, _, err = run("pieces", tmp_path / "model")
    assert code == 2
    assert "the layer needs the shape of its input; give shape=(channels, length)" in err


@pytest.mark.parametrize(("proved", "proof"), [(True, "proved"), (False, "not proved: at most 1.5")])
@pytest.mark.parametrize(("file", "inputs", "above"), [("wide", 5, 0), ("tent", 1, 4)])
def test_the_maximum_is_one_line(file, inputs, above, proved, proof, request, monkeypatch):
    asked, found = [], SimpleNamespace(value=1.25, bound=1.5, x=np.array([2.0, -1.0, 0.5]), proved=proved)
    monkeypatch.setattr(library, "maximum", lambda net, box, progress: asked.append((net.inputs, box)) or found)
    code, out, _ = run("pieces", request.getfixturevalue(file), "--maximum", "--box", "-2 2")
    assert (code, out.splitlines()[above:]) == (0, [f"maximum 1.25 at x = [2, -1, 0.5], {proof}"])
    assert asked == [(inputs, ((-2.0, 2.0),) * inputs)]


WRONG = {
    "an empty interval": ("tent.json --box 3,1", "an interval needs finite low < high, got [3.0, 1.0]"),
    "an endless one": ("tent.json --box 0,inf", "an interval needs finite low < high"),
    "a box of one input": ("tent.json --box 0,1,0,1", "1 input, so --box needs low and high, got 4 numbers"),
    "an empty side": ("plane.json --box 0,1,1,0", "a box needs finite low < high, got [1.0, 0.0] for"),
    "half a side": ("plane.json --box 0,1,1", "--box needs 2 numbers for all or 4 for each, got 3 numbers"),
    "a word": ("plane.json --box one", "--box needs numbers, low and high of all inputs or of each, got 'one'"),
    "short pieces": ("steep.json", "pieces there are too short"),
    **{
        shape: (f"tent.json --shape {shape}", "--shape needs positive integers, as in 3,32,32")
        for shape in ("0,3", ",", "9999999999")
    },
    "five inputs": ("wide.json", "the model has 5 inputs; pieces can be listed for 1 or 2. Use --maximum for"),
    "no file": ("none", "none: No such file or directory; give the file of a network"),
    "a folder": (".", "is a folder, a device or a pipe; give the file of a model"),
    "another format": ("text", "has no known format"),
    "a pickle": ("pickle", "is a pickle: a pickle can run any code"),
    "another ending": (
        "tent.json --save net.txt",
        f"has the extension '.txt'; use one of {', '.join(EXPORTERS)}",
    ),
    "a curve of five inputs": (
        "wide.json --save net.csv",
        "a .csv file holds a function of one input, but the network has 5",
    ),
    "no folder": ("tent.json --save no/net.csv", "does not exist; create it first"),
    "no solution": ("tent.json --maximum", "the solver\nfailed"),
    "no package": ("wide.onnx", "reading it needs onnx, which is not installed; pip install 'plunit[fit]'"),
}


@pytest.mark.parametrize(("words", "text"), WRONG.values(), ids=WRONG)
def test_a_user_s_error_is_one_line(words, text, tent, wide, tmp_path, monkeypatch):
    save_json(network([([[1.0, 2.0]], [0.0])]), tmp_path / "plane.json")
    save_json(network([([[1e17]], [-3e16]), activation.hardtanh(), ([[1.0]], [0.0])]), tmp_path / "steep.json")
    save_json(library.load(wide), tmp_path / "wide.json")
    (tmp_path / "text").write_text("hello")
    (tmp_path / "pickle").write_bytes(pickle.dumps([1]))
    monkeypatch.setattr(library, "maximum", lambda *_, **__: (_ for _ in ()).throw(ValueError(text)))
    monkeypatch.setitem(sys.modules, "onnx", None)
    code, out, err = run("pieces", *words.split(), folder=tmp_path)
    assert (code, out) == (2, "")
    assert err.startswith("plunit: ")
    assert " ".join(text.split()) in err
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("net.*"))
