"""Pieces of stored networks: counts against dense sampling, verdicts, figures, and `plunit pieces MODEL`."""

import dataclasses
import math
import re
import sys

import numpy as np
import pytest
import torch
from plunit.lab.fit.drawn import evaluate
from plunit.lab.pieces.count import PIECEWISE, count, steps
from plunit.lab.results import Results
from torch import nn

from plunit import cli
from plunit.ensemble import Network
from plunit.lab import experiments, fit, pieces, style
from plunit.lab.cell import Cell
from plunit.torch import PLU

SINE, SURFACE = fit.SPECS["sine"], fit.SPECS["surface"]


def quick(name, **changes):
    return dataclasses.replace(fit.SPECS[name], **{"steps": 32, "stride": 8, "checkpoints": (8, 16), **changes})


def trained(name, activation, first=0, last=10, **changes):
    return fit.compute(Cell(name, quick(name, **changes), activation, first, last, "eager"))


def sampled(spec, activation, theta):
    """Count runs of equal slopes between neighbours of 100,001 points; a kink between two of them makes no run."""
    x = np.linspace(spec.low, spec.high, 100_001)
    slopes = np.diff(evaluate(spec, activation, theta, x[None]), axis=1) / (x[1] - x[0])
    equal = (np.abs(np.diff(slopes, axis=1)) <= 1e-8 * np.abs(slopes).max()).all(axis=0)
    return int(equal[0]) + int((equal[1:] & ~equal[:-1]).sum())


@pytest.mark.parametrize(("name", "activation"), [*(("sine", each) for each in PIECEWISE), ("parametric", "relu")])
def test_pieces_are_the_runs_of_equal_slope_of_a_sampled_network(name, activation):
    spec, theta = quick(name), trained(name, activation, 0, 6, lr=0.05)["theta"]
    found = count(spec, Network(spec.widths, activation), torch.tensor(theta))
    assert found.pieces.tolist() == [sampled(spec, activation, column) for column in theta.T]
    assert (found.patterns >= found.pieces).all()


@pytest.mark.parametrize(("activation", "expected"), [("relu", 7), ("plu", 1 + 6 + 12), ("identity", 1)])
def test_cells_of_lines_in_general_position(activation, expected):
    """L lines with I crossings in the box make 1 + L + I cells; the second layer stays on one piece."""
    theta = torch.zeros(25, 1)
    theta[:6, 0] = torch.tensor([1.0, 0.0, 0.0, 1.0, 0.8, 0.9])  # x, y and a diagonal
    theta[6:9, 0] = torch.tensor([0.1, 0.2, 0.15])
    theta[9:18, 0] = 0.01 * torch.eye(3).flatten()
    theta[18:21, 0] = 0.5
    theta[21:24, 0] = torch.tensor([1.0, 2.0, 3.0])
    found = count(SURFACE, Network(SURFACE.widths, activation), theta)
    assert found.pieces.tolist() == [expected]


def test_a_dead_kink_is_a_pattern_but_no_piece():
    theta = torch.zeros(22, 1)
    theta[:3, 0] = 1
    theta[3:6, 0] = torch.tensor([0.0, 1.0, 2.0])  # kinks at 0, -1 and -2
    theta[6, 0] = theta[9, 0] = 1  # the last unit goes nowhere, nor does the second
    theta[15:18, 0] = 5
    theta[18:21, 0] = torch.tensor([1.0, 0.0, 0.0])
    found = count(SINE, Network(SINE.widths, "relu"), theta)
    assert (found.pieces.tolist(), found.patterns.tolist()) == ([2], [4])


def test_a_network_that_diverged_has_no_pieces():
    theta = torch.from_numpy(trained("sine", "plu", 0, 4)["theta"])
    network = Network(SINE.widths, "plu")
    whole = count(SINE, network, theta).pieces
    theta[3, 1], theta[0, 2], theta[5, 3] = math.nan, math.inf, -1e30
    assert count(SINE, network, theta).pieces.tolist() == [whole[0], 0, 0, 0]


@pytest.mark.parametrize("activation", ["relu", "plu", "plu_learned"])
@pytest.mark.parametrize("name", ["sine", "surface"])
def test_the_initial_networks_are_those_that_training_started_from(name, activation):
    """At a step size of 0 the stored weights are the initial ones, those of seeds 20 to 39 here."""
    arrays = experiments.derive(name, activation, trained(name, activation, 20, 40, lr=0.0))
    for kind in ("pieces", "patterns"):
        np.testing.assert_array_equal(arrays[f"initial_{kind}"], arrays[f"trained_{kind}"])
    assert len(set(arrays["initial_pieces"])) > (0 if (name, activation) == ("sine", "relu") else 2)
    assert (arrays["course"] == arrays["initial_pieces"]).all()


def test_biases_of_0_leave_a_relu_network_two_pieces_and_random_ones_more():
    arrays = pieces.derive("sine", "relu", trained("sine", "relu", 0, 40))
    assert arrays["initial_pieces"].max() == 2
    assert np.median(arrays["random_pieces"]) > 4


def test_the_course_is_that_of_the_checkpoints(monkeypatch):
    monkeypatch.setitem(fit.SPECS, "sine", quick("sine"))
    monkeypatch.setattr(pieces.count, "COURSE", 6)
    stored = trained("sine", "plu", lr=0.1)
    arrays = pieces.derive("sine", "plu", stored)
    weights = [stored["checkpoints"][0], stored["checkpoints"][1], stored["theta"]]
    expected = [[sampled(SINE, "plu", column) for column in theta.T[:6]] for theta in weights]
    assert arrays["course"][1:].tolist() == expected
    assert arrays["course"][0].tolist() == arrays["initial_pieces"][:6].tolist()
    assert steps(fit.SPECS["sine"]) == [0, 8, 16, 32]


@pytest.mark.parametrize("activation", ["tanh", "gelu"])
def test_a_smooth_activation_has_no_counts(activation):
    stored = trained("sine", activation)
    assert pieces.derive("sine", activation, stored) is stored
    (row, *_) = fit.rows(Results({("sine", activation): stored}))
    assert "pieces" not in row


def counts(**columns):
    """Arrays with these counts, as pieces and as patterns."""
    return {f"{stage}_{kind}": np.array(column) for stage, column in columns.items() for kind in ("pieces", "patterns")}


def verdicts(name, relu, plu):
    rows = pieces.claims(Results({(name, "relu"): relu, (name, "plu"): plu}))
    assert {row.experiment for row in rows} == {name}
    return [(row.source, row.verdict) for row in rows]


def test_verdicts_follow_the_counts():
    few, many = np.tile([4, 5, 6], 20), np.tile([9, 11, 13], 20)
    start, double = np.full(60, 3), np.full(60, 6)
    relu = counts(trained=few, initial=start, random=start)
    plu = counts(trained=many, initial=double, random=5 * start)
    assert verdicts("sine", relu, plu) == [
        ("2", "holds"),
        ("ours", "holds"),
        ("ours", "does not hold"),
        ("ours", "holds"),
        ("ours", "holds"),
    ]
    assert verdicts("sine", plu, relu) == [
        ("2", "does not hold"),
        ("ours", "does not hold"),
        ("ours", "does not hold"),
        ("ours", "holds"),
        ("ours", "holds"),
    ]


@pytest.mark.parametrize(
    ("segments", "verdict"), [(5, "holds"), (6, "holds weakly"), (4, "holds weakly"), (9, "does not hold")]
)
def test_the_five_segments_of_section_3(segments, verdict):
    relu = counts(trained=[segments] * 50, initial=[2] * 50, random=[10] * 50)
    plu = counts(trained=[3 * segments] * 50, initial=[1] * 50, random=[30] * 50)
    rows = pieces.claims(Results({("parametric", "relu"): relu, ("parametric", "plu"): plu}))
    (row,) = [row for row in rows if "5 line segments" in row.sentence]
    assert (row.source, row.value, row.verdict) == ("3", segments, verdict)
    assert "abundantly more" in rows[0].sentence
    assert (rows[0].value, rows[0].verdict) == (3, "holds")


def test_theory_expects_up_to_four_times_on_a_plane():
    relu = counts(trained=[5] * 50, initial=[10] * 50, random=[10] * 50)
    plu = counts(trained=[4] * 50, initial=[40] * 50, random=[60] * 50)
    found = [verdict for _, verdict in verdicts("surface", relu, plu)]
    assert found == ["does not hold", "holds", "does not hold", "does not hold", "does not hold"]


@pytest.fixture(scope="module")
def results():
    with pytest.MonkeyPatch.context() as patch:
        for name in ("sine", "surface"):
            patch.setitem(fit.SPECS, name, quick(name))
        runs = [(name, activation) for name in ("sine", "surface") for activation in ("tanh", "relu", "plu")]
        yield Results({run: experiments.derive(*run, trained(*run, 0, 9)) for run in runs})


def test_figures_show_the_counts(results):
    with style.settings():
        shown = {picture.name: picture for picture in pieces.figures(results)}
    assert list(shown) == ["sine-pieces", "sine-knots", "surface-pieces", "surface-cells"]
    over, against = shown["sine-pieces"].figure.axes
    for line, dots, activation in zip(over.lines, against.lines, ("relu", "plu"), strict=True):
        arrays = results["sine", activation]
        np.testing.assert_array_equal(
            line.get_xydata(), np.stack([[0, 8, 16, 32], np.median(arrays["course"], axis=1)]).T
        )
        np.testing.assert_array_equal(dots.get_xydata().T, [arrays["trained_pieces"], arrays["final_loss"]])
    for name, kind in (("sine", "knots"), ("surface", "cells")):
        panels = [axes for axes in shown[f"{name}-{kind}"].figure.axes if axes.get_title()]
        for axes, activation in zip(panels, ("relu", "plu"), strict=True):
            arrays = results[name, activation]
            member = np.argsort(arrays["final_loss"])[4]
            counted, patterns = arrays["trained_pieces"][member], arrays["trained_patterns"][member]
            assert f"median seed ({member})" in axes.get_title()
            assert axes.get_title().endswith(f"\n{counted} pieces, {patterns} patterns")
            marks = len(axes.lines[2].get_xdata()) + 1 if kind == "knots" else len(axes.collections[0].get_paths())
            assert marks == (counted if kind == "knots" else patterns)


def test_counts_are_columns_of_the_summary(results):
    rows = [row for row in fit.rows(results) if (row["experiment"], row["activation"]) == ("surface", "plu")]
    assert [row["pieces"] for row in rows] == results["surface", "plu"]["trained_pieces"].tolist()
    assert [row["patterns"] for row in rows] == results["surface", "plu"]["trained_patterns"].tolist()


@pytest.fixture
def run_cli(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["plunit", "pieces", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return stop.value.code or 0, *capsys.readouterr()

    return run


def save(path, *layers):
    model = nn.Sequential(*layers).eval()
    torch.save(model, path)
    return model


def linear(weight, bias):
    layer = nn.Linear(len(weight[0]), len(weight))
    layer.weight.data, layer.bias.data = torch.tensor(weight), torch.tensor(bias)
    return layer


def test_a_saved_model_s_pieces_are_printed(run_cli, tmp_path):
    # the second unit goes nowhere: its kinks at -1/4 and 1/4 bend nothing
    save(tmp_path / "model.pt", linear([[2.0], [4.0]], [0.0, 0.0]), PLU(), linear([[3.0, 0.0]], [1.0]))
    code, out, err = run_cli(tmp_path / "model.pt", "--low", -1, "--high", 2)
    assert (code, err) == (0, "")
    head, *rows, last = out.splitlines()
    assert head.split() == ["from", "to", "slope", "intercept"]
    assert [[float(word) for word in row.split()] for row in rows] == [
        [-1, -0.5, 0.6, -1.7],
        [-0.5, 0.5, 6, 1],
        [0.5, 2, 0.6, 3.7],
    ]
    assert last == "3 pieces, 5 activation patterns on [-1, 2]"


def test_a_long_table_is_cut_after_40_rows(run_cli, tmp_path):
    first = linear([[1.0]] * 50, torch.linspace(6, -6, 50).tolist())
    save(tmp_path / "model.pt", first, nn.ReLU(), linear([[1.0] * 50] * 2, [0.0, 1.0]))
    _, out, _ = run_cli(tmp_path / "model.pt")
    head, *rows, more, last = out.splitlines()
    assert re.split(r"\s{2,}", head.strip()) == ["from", "to", "slope 1", "intercept 1", "slope 2", "intercept 2"]
    assert len(rows) == 40
    assert more == "... 11 more"
    assert last == "51 pieces, 51 activation patterns on [-6.28319, 6.28319]"


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        ([], "2 pieces, 4 cells (activation patterns) on [-6.28319, 6.28319] x [-6.28319, 6.28319], area 157.914"),
        (["--box", -1, 3, -1, 1], "2 pieces, 4 cells (activation patterns) on [-1, 3] x [-1, 1], area 8"),
        (["--low", 1, "--high", 2], "1 pieces, 1 cells (activation patterns) on [1, 2] x [1, 2], area 1"),
    ],
)
def test_a_model_of_two_inputs_has_cells(run_cli, tmp_path, domain, expected):
    layers = linear([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0]), nn.ReLU(), linear([[2.0, 0.0]], [0.0])
    save(tmp_path / "model.pt", *layers)
    _, out, _ = run_cli(tmp_path / "model.pt", *domain)
    head, area, steepness, last = out.splitlines()
    assert head.split() == ["least", "median", "largest"]
    assert last == expected
    if "--box" in domain:
        assert area.split() == ["area", "1", "2", "3"]
        assert steepness.split() == ["steepness", "0", "1", "2"]


BAD = {
    "tanh.pt": (lambda path: save(path, nn.Linear(1, 1), nn.Tanh()), "holds torch.nn.modules.activation.Tanh;"),
    "three.pt": (lambda path: save(path, nn.Linear(3, 1)), "the model has 3 inputs, a table needs 1 or 2; in Python"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_model_of_pieces_is_one_line(run_cli, tmp_path, name):
    make, text = BAD[name]
    make(tmp_path / name)
    code, out, err = run_cli(tmp_path / name)
    assert (code, out) == (2, "")
    assert err.startswith("plunit: ")
    assert err.count("\n") == 1
    assert text in err


@pytest.mark.parametrize(
    ("inputs", "domain", "text"),
    [
        (1, ["--low", 3, "--high", 1], "an interval needs finite low < high, got [3.0, 1.0]"),
        (1, ["--high", "inf"], "an interval needs finite low < high"),
        (1, ["--box", 0, 1, 0, 1], "the model has one input; give --low and --high rather than --box"),
        (2, ["--box", 0, 1, 1, 0], "a box needs finite low < high, got [1.0, 0.0] for y"),
    ],
)
def test_a_bad_domain_is_one_line(run_cli, tmp_path, inputs, domain, text):
    save(tmp_path / "model.pt", nn.Linear(inputs, 1))
    code, out, err = run_cli(tmp_path / "model.pt", *domain)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert text in err
