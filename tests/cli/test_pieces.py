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
from plunit.base.errors import UserError
from plunit.cli import pieces
from plunit.cli.pieces import domain_of
from plunit.pieces import activation, load_json, network, polygons, save_json, save_onnx
from plunit.pieces.formats.exporter import EXPORTERS
from plunit.torch import PLU, to_network


def lines(net, box):
    return pieces.lines(net, domain_of(net, box))


def linear(weight, bias):
    layer = nn.Linear(len(weight[0]), len(weight))
    layer.weight.data, layer.bias.data = torch.tensor(weight), torch.tensor(bias)
    return layer


def net(*layers):
    return to_network(nn.Sequential(*layers).eval())


def test_the_pieces_are_rows_of_a_table():
    # the second unit goes nowhere: its kinks at -1/4 and 1/4 bend nothing
    layers = linear([[2.0], [4.0]], [0.0, 0.0]), PLU(), linear([[3.0, 0.0]], [1.0])
    head, *rows, last = lines(net(*layers), "-1 2")
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
    first = linear([[1.0]] * units, torch.linspace(6, -6, units).tolist())
    head, *rows, last = lines(net(first, nn.ReLU(), linear([[1.0] * units] * 2, [0.0, 1.0])), "-6.5 6.5")
    assert re.split(r"\s{2,}", head.strip()) == ["from", "to", "slope 1", "intercept 1", "slope 2", "intercept 2"]
    assert rows[40:] == more
    assert len(rows) == 40 + len(more)
    assert last == f"{units + 1} pieces, {units + 1} activation patterns on [-6.5, 6.5]"


QUARTERS = linear([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0]), nn.ReLU(), linear([[2.0, 0.0]], [0.0])


def test_a_network_of_two_inputs_has_polygons():
    head, area, steepness, last = lines(net(*QUARTERS), "-1 3, -1 1")
    assert head.split() == ["least", "median", "largest"]
    assert area.split() == ["area", "1", "2", "3"]
    assert steepness.split() == ["steepness", "0", "1", "2"]
    assert last == "2 pieces, 4 polygons (activation patterns) on [-1, 3] x [-1, 1], area 8"


@pytest.mark.parametrize(
    ("inputs", "box", "text"),
    [
        (1, "3 1", "an interval needs finite low < high, got [3.0, 1.0]"),
        (1, "0 inf", "an interval needs finite low < high"),
        (1, "0 1 0 1", "the model has 1 input, so --box needs low and high, got 4 numbers"),
        (2, "0 1 1 0", "a box needs finite low < high, got [1.0, 0.0] for input 1"),
        (2, "0 1 1", "the model has 2 inputs, so --box needs 2 numbers for all or 4 for each, got 3 numbers"),
        (2, "0 one", "--box needs numbers, low and high of all inputs or of each, got '0 one'"),
        (2, " ", "--box needs numbers, low and high of all inputs or of each, got ' '"),
    ],
)
def test_a_bad_domain_is_one_line(inputs, box, text):
    with pytest.raises(UserError) as error:
        lines(net(nn.Linear(inputs, 1)), box)
    assert str(error.value).startswith(text)


def test_a_long_work_shows_its_progress(tmp_path, monkeypatch, capsys):
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=100)
    monkeypatch.setattr(pieces, "Console", lambda **options: console)
    torch.save(nn.Sequential(nn.Linear(2, 6), PLU(), nn.Linear(6, 6), PLU(), nn.Linear(6, 1)), tmp_path / "model.pt")
    pieces.pieces_of(tmp_path / "model.pt")
    assert re.search(r"layer 2 of 2: \d+ polygons", shown.getvalue())
    assert "polygons (activation patterns) on" in capsys.readouterr().out


@pytest.mark.parametrize(("inputs", "text"), [(1, "pieces there are too short"), (2, "layer 1 of 1 makes 2 pieces")])
def test_what_stops_the_work_is_one_line(inputs, text, monkeypatch):
    layers = linear([[1e17] * inputs], [-3e16]), nn.Hardtanh(), linear([[1.0]], [0.0])
    monkeypatch.setattr("plunit.cli.pieces.polygons", lambda net, box, progress: polygons(net, box, limit=1))
    with pytest.raises(UserError, match=text):
        lines(net(*layers), "-6 6")


@pytest.mark.parametrize(
    ("inputs", "box", "expected"),
    [
        (1, "-2 3", ((-2, 3),)),
        (3, "-2 3", ((-2, 3),) * 3),
        (3, "-2,2 0,1 -1,5", ((-2, 2), (0, 1), (-1, 5))),
    ],
)
def test_the_domain_of_every_input(inputs, box, expected):
    assert domain_of(net(nn.Linear(inputs, 1)), box) == expected


@pytest.fixture
def tent(tmp_path):
    """A file with |x| as a network."""
    path = tmp_path / "tent.bin"
    save_json(network([([[1.0]], [0.0]), activation.absolute(), ([[1.0]], [0.0])]), path)
    return path


@pytest.fixture
def wide(tmp_path):
    """A file with a network of five inputs."""
    path = tmp_path / "wide.bin"
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
        ".json": lambda: load_json(target)(1.5),
        ".h": lambda: 1.5 * ("void out(const double *x, double *y)" in target.read_text()),
    }.get(ending, lambda: library.load(target)([1.5]))
    assert float(np.squeeze(value())) == 1.5


def test_a_model_of_images_needs_its_shape(tmp_path):
    model = nn.Sequential(nn.Conv1d(1, 2, 2), PLU(), nn.MaxPool1d(2), nn.Flatten(), nn.Linear(2, 1))
    torch.save(model, tmp_path / "model")
    code, out, _ = run("pieces", tmp_path / "model", "--shape", "1,3", "--box", "-1 1", "--maximum")
    found = library.maximum(to_network(model, shape=(1, 3)), [(-1, 1)] * 3)
    assert code == 0
    assert out.startswith(f"maximum {found.value:.9g} at")
    code, _, err = run("pieces", tmp_path / "model")
    assert code == 2
    assert "it needs the shape of its input; give shape=(channels, length)" in err


@pytest.mark.parametrize("shape", ["", "a", "0,3", "-1", "1.5", ","])
def test_a_shape_is_positive_integers(shape, tent):
    code, _, err = run("pieces", tent, "--shape", shape)
    assert (code, err) == (2, f"plunit: --shape needs positive integers, as in 3,32,32, got {shape!r}\n")


@pytest.mark.parametrize(("proved", "proof"), [(True, "proved"), (False, "not proved: at most 1.5")])
@pytest.mark.parametrize(("file", "inputs", "above"), [("wide", 5, 0), ("tent", 1, 4)])
def test_the_maximum_is_one_line(file, inputs, above, proved, proof, request, monkeypatch):
    asked, found = [], SimpleNamespace(value=1.25, bound=1.5, x=np.array([2.0, -1.0, 0.5]), proved=proved)
    monkeypatch.setattr(library, "maximum", lambda net, box, progress: asked.append((net.inputs, box)) or found)
    code, out, _ = run("pieces", request.getfixturevalue(file), "--maximum", "--box", "-2 2")
    assert (code, out.splitlines()[above:]) == (0, [f"maximum 1.25 at x = [2, -1, 0.5], {proof}"])
    assert asked == [(inputs, ((-2.0, 2.0),) * inputs)]


@pytest.mark.parametrize("error", [ValueError("no\nsolution"), ImportError("highspy is missing")])
def test_what_stops_the_maximum_is_one_line(error, tent, monkeypatch):
    def fail(net, box, progress):
        raise error

    monkeypatch.setattr(library, "maximum", fail)
    code, out, err = run("pieces", tent, "--maximum")
    assert (code, out, err) == (2, "", f"plunit: {' '.join(str(error).split())}\n")


BAD = {
    "three inputs": (lambda path: [path / "wide.bin"], "the model has 5 inputs, a table needs 1 or 2; --maximum and"),
    "no file": (lambda path: [path / "none"], "none: No such file or directory; give the file of a model"),
    "a folder": (lambda path: [path], "is a folder, a device or a pipe; give the file of a model"),
    "another format": (lambda path: [path / "text"], "has no known format"),
    "a pickle": (lambda path: [path / "pickle"], "is a pickle: a pickle can run any code"),
    "another ending": (
        lambda path: [path / "tent.bin", "--save", path / "net.txt"],
        f"ends in '.txt'; a file can be saved as one of {', '.join(EXPORTERS)}",
    ),
    "a curve of five inputs": (
        lambda path: [path / "wide.bin", "--save", path / "net.csv"],
        ".csv holds a function of one input, and the network has 5",
    ),
    "a folder that is not there": (
        lambda path: [path / "tent.bin", "--save", path / "no/net.csv"],
        "is missing; make it first",
    ),
}


@pytest.mark.usefixtures("tent", "wide")
@pytest.mark.parametrize("name", BAD)
def test_a_user_s_error_is_one_line(name, tmp_path):
    (tmp_path / "text").write_text("hello")
    (tmp_path / "pickle").write_bytes(pickle.dumps([1]))
    arguments, text = BAD[name]
    code, out, err = run("pieces", *arguments(tmp_path))
    assert (code, out) == (2, "")
    assert err.startswith("plunit: ")
    assert text in err
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("net.*"))


def test_a_package_that_is_missing_is_one_line(wide, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    code, _, err = run("pieces", wide, "--maximum")
    assert (code, err) == (2, f"plunit: {wide} is an ONNX model; to read it, install onnx: pip install 'plunit[fit]'\n")
