"""Pieces of trained networks: counts against dense sampling, verdicts and figures."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from plunit.ensemble import MLP
from plunit.lab import style
from plunit.lab.cell import Cell
from plunit.lab.read.fit import EXPERIMENTS, evaluate
from plunit.lab.train import fit
from plunit.lab.train.fit import PIECEWISE, compute, count, steps

FITS = {one.name: one for one in EXPERIMENTS}
SINE, SURFACE = FITS["sine"].spec, FITS["surface"].spec


def quick(name, **changes):
    return dataclasses.replace(FITS[name].spec, **{"steps": 32, "stride": 8, "checkpoints": (8, 16), **changes})


def trained(name, activation, first=0, last=10, **changes):
    return compute(Cell(name, quick(name, **changes), activation, first, last, "numpy", ""), Path())


def sampled(spec, activation, theta):
    """Count runs of equal slopes between neighbours of 100,001 points; a kink between two of them makes no run."""
    x = np.linspace(spec.low, spec.high, 100_001)
    slopes = np.diff(evaluate(spec, activation, theta, x[None]), axis=1) / (x[1] - x[0])
    equal = (np.abs(np.diff(slopes, axis=1)) <= 1e-8 * np.abs(slopes).max()).all(axis=0)
    return int(equal[0]) + int((equal[1:] & ~equal[:-1]).sum())


@pytest.mark.parametrize(("name", "activation"), [*(("sine", each) for each in PIECEWISE), ("parametric", "relu")])
def test_pieces_are_the_runs_of_equal_slope_of_a_sampled_network(name, activation):
    arrays = trained(name, activation, 0, 6, lr=0.05)
    assert arrays["trained_pieces"].tolist() == [sampled(quick(name), activation, theta) for theta in arrays["theta"].T]
    assert (arrays["trained_patterns"] >= arrays["trained_pieces"]).all()


@pytest.mark.parametrize(("activation", "expected"), [("relu", 7), ("plu", 1 + 6 + 12), ("identity", 1)])
def test_cells_of_lines_in_general_position(activation, expected):
    """L lines with I crossings in the box make 1 + L + I cells; the second layer stays on one piece."""
    theta = np.zeros((25, 1), dtype=np.float32)
    theta[:6, 0] = [1.0, 0.0, 0.0, 1.0, 0.8, 0.9]  # x, y and a diagonal
    theta[6:9, 0] = [0.1, 0.2, 0.15]
    theta[9:18, 0] = 0.01 * np.eye(3).flatten()
    theta[18:21, 0] = 0.5
    theta[21:24, 0] = [1.0, 2.0, 3.0]
    found = count(SURFACE, MLP(SURFACE.widths, activation), theta)
    assert found.pieces.tolist() == [expected]


def test_a_dead_kink_is_a_pattern_but_no_piece():
    theta = np.zeros((22, 1), dtype=np.float32)
    theta[:3, 0] = 1
    theta[3:6, 0] = [0.0, 1.0, 2.0]  # kinks at 0, -1 and -2
    theta[6, 0] = theta[9, 0] = 1  # the last unit goes nowhere, nor does the second
    theta[15:18, 0] = 5
    theta[18:21, 0] = [1.0, 0.0, 0.0]
    found = count(SINE, MLP(SINE.widths, "relu"), theta)
    assert (found.pieces.tolist(), found.patterns.tolist()) == ([2], [4])


def test_a_network_that_diverged_has_no_pieces():
    theta = trained("sine", "plu", 0, 4)["theta"]
    network = MLP(SINE.widths, "plu")
    whole = count(SINE, network, theta).pieces
    theta[3, 1], theta[0, 2], theta[5, 3] = math.nan, math.inf, -1e30
    assert count(SINE, network, theta).pieces.tolist() == [whole[0], 0, 0, 0]


def test_blocks_of_members_change_nothing(monkeypatch):
    arrays = trained("sine", "plu", 0, 5)
    monkeypatch.setattr(fit, "_BLOCK", 2)
    found = count(SINE, MLP(SINE.widths, "plu"), arrays["theta"])
    np.testing.assert_array_equal(found, [arrays["trained_patterns"], arrays["trained_pieces"]])


@pytest.mark.parametrize("activation", ["relu", "plu", "plu_learned"])
@pytest.mark.parametrize("name", ["sine", "surface"])
def test_the_initial_networks_are_those_that_training_started_from(name, activation):
    """At a step size of 0 the stored weights are the initial ones, those of seeds 20 to 39 here."""
    arrays = trained(name, activation, 20, 40, lr=0.0)
    np.testing.assert_array_equal(arrays["initial_pieces"], arrays["trained_pieces"])
    np.testing.assert_array_equal(arrays["initial_patterns"], arrays["trained_patterns"])
    assert len(set(arrays["initial_pieces"])) > (0 if (name, activation) == ("sine", "relu") else 2)
    np.testing.assert_array_equal(arrays["course"], np.tile(arrays["initial_pieces"], (4, 1)))


def test_biases_of_0_leave_a_relu_network_two_pieces_and_random_ones_more():
    arrays = trained("sine", "relu", 0, 40)
    assert arrays["initial_pieces"].max() == 2
    assert np.median(arrays["random_pieces"]) > 4


def test_the_course_is_that_of_the_checkpoints_for_the_first_seeds(monkeypatch):
    monkeypatch.setattr(fit, "COURSE", 6)
    arrays = trained("sine", "plu", 2, 10, lr=0.1)  # seeds 2 to 5 are below COURSE
    weights = [*arrays["checkpoints"], arrays["theta"]]
    expected = [[sampled(SINE, "plu", column) for column in theta.T[:4]] for theta in weights]
    assert arrays["course"][1:].tolist() == expected
    assert arrays["course"][0].tolist() == arrays["initial_pieces"][:4].tolist()
    assert steps(quick("sine")) == [0, 8, 16, 32]
    assert steps(quick("sine", checkpoints=(16, 32, 64))) == [0, 16, 32]


def verdicts(name, relu, plu):
    """Return statement and verdict of the claims on counts; relu and plu are (trained, initial, random)."""
    runs = {}
    for activation, columns in (("relu", relu), ("plu", plu)):
        stages = zip(("trained", "initial", "random"), (np.resize(column, 60) for column in columns), strict=True)
        counts = {f"{stage}_{kind}": column for stage, column in stages for kind in ("pieces", "patterns")}
        runs[activation] = counts | {"seed": np.zeros(60), "dead": np.zeros(60)}
    found = [claim for claim in FITS[name].claims(runs, {}) if claim.statement != "dead"]
    return [claim.statement for claim in found], [claim.verdict for claim in found]


YES, WEAKLY, NO = "holds", "holds weakly", "does not hold"
FEW, MANY = [4, 5, 6], [9, 11, 13]


@pytest.mark.parametrize(
    ("name", "relu", "plu", "expected"),
    [
        ("sine", (FEW, 3, 3), (MANY, 6, 15), [YES, YES, NO, YES, YES]),
        ("sine", (MANY, 6, 15), (FEW, 3, 3), [NO, NO, NO, YES, YES]),
        *(
            (name, (segments, 2, 10), (3 * segments, 1, 30), [YES, five, NO, WEAKLY, YES, YES])
            for name in ("parametric", "parametric-period")
            for segments, five in ((5, YES), (6, WEAKLY), (4, WEAKLY), (9, NO))
        ),
        ("surface", (5, 10, 10), (4, 40, 60), [NO, YES, NO, NO, NO]),  # up to four times as many on a plane
    ],
)
def test_verdicts_follow_the_counts(name, relu, plu, expected):
    theme = {"sine": "sine", "surface": "surface"}.get(name, "curve")
    five = ["curve-five"] if theme == "curve" else []
    assert verdicts(name, relu, plu) == ([f"{theme}-pieces", *five, "", "", "", ""], expected)


@pytest.fixture(scope="module")
def runs():
    names, activations = ("sine", "surface"), ("tanh", "relu", "plu")
    return {name: {activation: trained(name, activation, 0, 9) for activation in activations} for name in names}


@pytest.fixture(scope="module")
def shown(runs):
    with style.settings():
        return {
            picture.name: picture.figure
            for name in runs
            for picture in dataclasses.replace(FITS[name], spec=quick(name)).figures(runs[name])
        }


def test_figures_of_counts_come_last(shown):
    kinds = ("fits", "loss", "final", "pieces")
    sine, surface = ([f"{name}-{kind}" for kind in kinds] for name in ("sine", "surface"))
    assert list(shown) == [*sine, "sine-knots", *surface, "surface-cells"]


@pytest.mark.parametrize("name", ["sine", "surface"])
@pytest.mark.parametrize(("place", "activation"), [(0, "relu"), (1, "plu")])
def test_the_figure_of_counts_shows_them_over_steps_and_against_losses(runs, shown, name, place, activation):
    arrays = runs[name][activation]
    over, against = (axes.lines[place].get_xydata().T for axes in shown[f"{name}-pieces"].axes)
    np.testing.assert_array_equal(over, [[0, 8, 16, 32], np.median(arrays["course"], axis=1)])
    np.testing.assert_array_equal(against, [arrays["trained_pieces"], arrays["final_loss"]])


@pytest.mark.parametrize(("name", "kind"), [("sine", "knots"), ("surface", "cells")])
@pytest.mark.parametrize(("place", "activation"), [(0, "relu"), (1, "plu")])
def test_the_median_network_is_drawn_piece_by_piece(runs, shown, name, kind, place, activation):
    axes = [axes for axes in shown[f"{name}-{kind}"].axes if axes.get_title()][place]
    arrays = runs[name][activation]
    member = np.argsort(arrays["final_loss"])[4]
    counted, patterns = arrays["trained_pieces"][member], arrays["trained_patterns"][member]
    assert f"median seed ({member})" in axes.get_title()
    assert axes.get_title().endswith(f"\n{counted} pieces, {patterns} patterns")
    marks = len(axes.lines[2].get_xdata()) + 1 if kind == "knots" else len(axes.collections[0].get_paths())
    assert marks == (counted if kind == "knots" else patterns)


def test_counts_are_columns_of_the_summary(runs):
    rows = [row for row in FITS["surface"].rows(runs["surface"]) if row["activation"] == "plu"]
    assert [row["pieces"] for row in rows] == runs["surface"]["plu"]["trained_pieces"].tolist()
    assert [row["patterns"] for row in rows] == runs["surface"]["plu"]["trained_patterns"].tolist()
