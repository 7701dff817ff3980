"""The lines of `plunit pieces`: a table of pieces, or a summary of regions."""

import io
import re

import pytest
import torch
from rich.console import Console
from torch import nn

from plunit.cli import pieces
from plunit.cli.pieces import lines
from plunit.errors import UserError
from plunit.pieces import cells
from plunit.torch import PLU, to_network

USUAL = (-2 * torch.pi, 2 * torch.pi)


def linear(weight, bias):
    layer = nn.Linear(len(weight[0]), len(weight))
    layer.weight.data, layer.bias.data = torch.tensor(weight), torch.tensor(bias)
    return layer


def net(*layers):
    return to_network(nn.Sequential(*layers).eval())


def test_the_pieces_are_rows_of_a_table():
    # the second unit goes nowhere: its kinks at -1/4 and 1/4 bend nothing
    layers = linear([[2.0], [4.0]], [0.0, 0.0]), PLU(), linear([[3.0, 0.0]], [1.0])
    head, *rows, last = lines(net(*layers), (-1.0, 2.0))
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
    head, *rows, last = lines(net(first, nn.ReLU(), linear([[1.0] * units] * 2, [0.0, 1.0])), USUAL)
    assert re.split(r"\s{2,}", head.strip()) == ["from", "to", "slope 1", "intercept 1", "slope 2", "intercept 2"]
    assert rows[40:] == more
    assert len(rows) == 40 + len(more)
    assert last == f"{units + 1} pieces, {units + 1} activation patterns on [-6.28319, 6.28319]"


QUARTERS = linear([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0]), nn.ReLU(), linear([[2.0, 0.0]], [0.0])


@pytest.mark.parametrize(
    ("interval", "box", "expected"),
    [
        (
            USUAL,
            None,
            "2 pieces, 4 cells (activation patterns) on [-6.28319, 6.28319] x [-6.28319, 6.28319], area 157.914",
        ),
        (USUAL, ((-1, 3), (-1, 1)), "2 pieces, 4 cells (activation patterns) on [-1, 3] x [-1, 1], area 8"),
        ((1, 2), None, "1 pieces, 1 cells (activation patterns) on [1, 2] x [1, 2], area 1"),
    ],
)
def test_a_network_of_two_inputs_has_cells(interval, box, expected):
    head, *_, last = lines(net(*QUARTERS), interval, box)
    assert head.split() == ["least", "median", "largest"]
    assert last == expected


def test_areas_and_steepness_of_cells():
    _, area, steepness, _ = lines(net(*QUARTERS), USUAL, ((-1, 3), (-1, 1)))
    assert area.split() == ["area", "1", "2", "3"]
    assert steepness.split() == ["steepness", "0", "1", "2"]


@pytest.mark.parametrize(
    ("inputs", "interval", "box", "text"),
    [
        (1, (3.0, 1.0), None, "an interval needs finite low < high, got [3.0, 1.0]"),
        (1, (0.0, torch.inf), None, "an interval needs finite low < high"),
        (1, USUAL, ((0.0, 1.0), (0.0, 1.0)), "the model has one input; give --low and --high rather than --box"),
        (2, USUAL, ((0.0, 1.0), (1.0, 0.0)), "a box needs finite low < high, got [1.0, 0.0] for y"),
        (3, USUAL, None, "the model has 3 inputs, a table needs 1 or 2; in Python, plunit.pieces.along(net, a, b)"),
    ],
)
def test_a_bad_domain_is_one_line(inputs, interval, box, text):
    with pytest.raises(UserError) as error:
        lines(net(nn.Linear(inputs, 1)), interval, box)
    assert str(error.value).startswith(text)
    assert "\n" not in str(error.value)


def test_a_long_work_shows_its_progress(tmp_path, monkeypatch, capsys):
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=100)
    monkeypatch.setattr(pieces, "Console", lambda **options: console)
    torch.save(nn.Sequential(nn.Linear(2, 6), PLU(), nn.Linear(6, 6), PLU(), nn.Linear(6, 1)), tmp_path / "model.pt")
    pieces.pieces_of(tmp_path / "model.pt")
    assert re.search(r"layer 2 of 2: \d+ cells", shown.getvalue())
    assert "cells (activation patterns) on" in capsys.readouterr().out


def test_without_a_terminal_there_is_no_progress(tmp_path, capsys):
    torch.save(nn.Sequential(nn.Linear(1, 6), PLU(), nn.Linear(6, 1)), tmp_path / "model.pt")
    pieces.pieces_of(tmp_path / "model.pt")
    assert capsys.readouterr().err == ""


def test_an_activation_may_stand_in_several_places(tmp_path, capsys):
    act, middle = PLU(alpha=0.0), linear([[1.0]], [0.5])
    torch.save(nn.Sequential(linear([[1.0]], [0.0]), act, middle, act), tmp_path / "model.pt")
    pieces.pieces_of(tmp_path / "model.pt", low=-2.0, high=2.0)
    # clip(clip(x) + 1/2): kinks at -1 and 1/2, not at 1
    assert "3 pieces, 4 activation patterns on [-2, 2]" in capsys.readouterr().out


@pytest.mark.parametrize(("inputs", "text"), [(1, "pieces there are too short"), (2, "layer 1 of 1 makes 2 pieces")])
def test_what_stops_the_work_is_one_line(inputs, text, monkeypatch):
    layers = linear([[1e17] * inputs], [-3e16]), nn.Hardtanh(), linear([[1.0]], [0.0])
    monkeypatch.setattr("plunit.cli.pieces.cells", lambda net, box, progress: cells(net, box, limit=1))
    with pytest.raises(UserError, match=text) as error:
        lines(net(*layers), USUAL)
    assert "\n" not in str(error.value)
