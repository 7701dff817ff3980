"""Cells of sections 2-4: the paper's settings, paired seeds, what is measured after training and what is said of it."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from plunit.base.errors import UserError
from plunit.ensemble import MLP
from plunit.lab.cell import Cell
from plunit.lab.claims import answers, judge
from plunit.lab.pictures import settings
from plunit.lab.read.sine_parametric_surface import EXPERIMENTS, FitExperiment, evaluate
from plunit.lab.train import sine_parametric_surface as run
from plunit.lab.train.sine_parametric_surface import (
    PIECEWISE,
    TARGETS,
    compute,
    count,
    counted_steps,
    grid,
    stream,
    training_data,
)

FITS = {one.name: one for one in EXPERIMENTS if type(one) is FitExperiment}
SINE, SURFACE = FITS["sine"].spec, FITS["surface"].spec


def quick(name, **changes):
    return dataclasses.replace(FITS[name].spec, **{"steps": 32, "stride": 8, "checkpoints": (8, 16), **changes})


def trained(name, activation, first=0, last=3, **changes):
    return compute(Cell(name, quick(name, **changes), activation, first, last, "numpy", ""), Path())


def test_the_paper_s_settings():
    given = SINE.target, SINE.widths, SINE.steps, SINE.lr, SINE.alpha, SINE.c
    assert given == ("sine", (1, 3, 3, 1), 2048, 0.01, 0.1, 1.0)
    parametric = FITS["parametric"].spec
    assert (parametric.widths, parametric.steps) == ((1, 5, 5, 5, 5, 2), 4096)
    assert (parametric.low, parametric.high, parametric.points) == (SINE.low, SINE.high, SINE.points)
    assert (SURFACE.widths, SURFACE.steps, SURFACE.batch, SURFACE.low, SURFACE.high) == ((2, 3, 3, 1), 2048, 100, -3, 3)
    x, y = training_data(SINE)
    np.testing.assert_allclose(x[0], np.linspace(-2 * np.pi, 2 * np.pi, 50), rtol=1e-6)
    np.testing.assert_allclose(y[0], np.sin(np.linspace(-2 * np.pi, 2 * np.pi, 50)), atol=1e-6)
    assert len(np.unique(grid(SURFACE), axis=1).T) == 41 * 41


def test_targets():
    t = np.array([[math.pi / 2, 1.0]])
    np.testing.assert_allclose(TARGETS["sine"][0](t), [[1, math.sin(1)]])
    at_one = (math.cos(1) - math.cos(2)) ** 3, (math.sin(2) - math.sin(1)) ** 3
    np.testing.assert_allclose(TARGETS["curve"][0](t).T, [[1, -1], at_one], atol=1e-12)
    np.testing.assert_allclose(TARGETS["saddle"][0](np.array([[3.0], [2.0]])), [[5.0]])
    shapes = [function(np.ones((inputs, 7, 4))).shape for function, inputs, _ in TARGETS.values()]
    assert shapes == [(outputs, 7, 4) for _, _, outputs in TARGETS.values()]


@pytest.mark.parametrize("name", ["sine", "surface"])
def test_chunks_of_seeds_give_the_same_networks(name):
    whole = trained(name, "plu", 0, 5)
    parts = [trained(name, "plu", *ends) for ends in ((0, 2), (2, 5))]
    np.testing.assert_equal({key: np.concatenate([part[key] for part in parts], axis=-1) for key in whole}, whole)


@pytest.mark.parametrize("activation", ["relu", "plu", "plu_learned"])
def test_seeds_are_paired(activation, monkeypatch):
    """At a step size of 0 nothing moves: the weights are those each activation was given, all 25 of them."""
    drawn = []

    def watched(spec, generators):
        batches = stream(spec, generators)
        return lambda steps: drawn.append(batches(steps)) or drawn[-1]

    monkeypatch.setattr(run, "stream", watched)
    ours, tanh = (trained("surface", name, lr=0.0)["theta"] for name in (activation, "tanh"))
    assert (tanh.shape, ours.shape) == ((25, 3), (29 if activation == "plu_learned" else 25, 3))
    np.testing.assert_array_equal(ours[:25], tanh)
    np.testing.assert_array_equal(ours[25:], trained("surface", activation, 7, 10, lr=0.0)["theta"][25:])
    assert len(drawn) % 3 == 0
    first, second, other = (
        np.concatenate([x for x, _ in drawn[i : i + len(drawn) // 3]]) for i in range(0, len(drawn), len(drawn) // 3)
    )
    assert first.shape == (32, 2, 100, 3)
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_batches_are_uniform_fresh_and_each_seed_s_own():
    x, y = stream(SURFACE, [np.random.default_rng(seed) for seed in range(40)])(50)
    assert x.shape == (50, 2, 100, 40)
    assert y.shape == (50, 1, 100, 40)
    assert -3 <= x.min() < -2.99 < 2.99 < x.max() < 3
    assert max(abs(x.mean()), abs(x.var() - 3)) < 0.02
    assert len(np.unique(x[:, 0, 0, :])) > 1990
    np.testing.assert_allclose(y[:, 0], x[:, 0] ** 2 - x[:, 1] ** 2)


def test_the_final_loss_is_that_of_a_network_written_by_hand():
    arrays = trained("surface", "tanh", 0, 2)
    axis = np.linspace(-3, 3, 41)
    points = np.array([(a, b) for a in axis for b in axis])
    losses = []
    for theta in arrays["theta"].T.astype(float):
        w1, b1, w2, b2, w3, b3 = np.split(theta, np.cumsum([6, 3, 9, 3, 3]))
        h = np.tanh(points @ w1.reshape(3, 2).T + b1)
        h = np.tanh(h @ w2.reshape(3, 3).T + b2)
        losses.append(((h @ w3 + b3 - (points[:, 0] ** 2 - points[:, 1] ** 2)) ** 2).mean())
    assert arrays["final_loss"].tolist() == pytest.approx(losses, rel=1e-9)


COUNTS = {f"{stage}_{kind}": (3,) for stage in ("initial", "random", "trained") for kind in ("pieces", "patterns")}


def measured(seeds=61, **factors):
    """Arrays of each activation: losses and counts, its own random numbers times its factor."""
    runs = {}
    for i, (activation, factor) in enumerate(factors.items()):
        rng = np.random.default_rng(i)
        counts = {key: rng.integers(2, 40, seeds) * factor for key in COUNTS}
        loss = factor * rng.lognormal(size=seeds)
        history = factor * rng.lognormal(size=(40, seeds))
        arrays = {"seed": np.arange(seeds), "final_loss": loss, "dead": rng.integers(0, 3, seeds), "history": history}
        runs[activation] = {**counts, **arrays}
    return runs


@pytest.mark.parametrize("name", FITS)
def test_statistics_are_medians_and_shares_of_what_they_name(name):
    runs = measured(tanh=1, relu=50, plu=3, plu_learned=2)
    tanh, relu, plu, learned = runs.values()

    def ratio(above, below, key="final_loss"):
        return np.sort(above[key] / below[key])[30]

    def last(above, below):
        return np.sort(above["history"][24:].mean(0) / below["history"][24:].mean(0))[30]

    pairs = {"plu/tanh": (plu, tanh), "relu/plu": (relu, plu), "relu/tanh": (relu, tanh)}
    pairs["plu/plu_learned"] = plu, learned
    expected = {pair: ratio(*both) for pair, both in pairs.items()}
    if name == "surface":  # trained on batches: its loss on the grid is not the training loss
        expected |= {f"train {pair}": last(*both) for pair, both in pairs.items()}
    expected |= {
        "dead relu": relu["dead"].mean() / (6 if name in ("sine", "surface") else 20),
        "networks with dead relu": np.mean(relu["dead"] > 0),
        "pieces relu": np.sort(relu["trained_pieces"])[30],
        "pieces plu/relu": ratio(plu, relu, "trained_pieces"),
        "initial pieces plu/relu": ratio(plu, relu, "initial_pieces"),
        "random pieces plu/relu": ratio(plu, relu, "random_pieces"),
        "pieces relu trained/initial": np.sort(relu["trained_pieces"] / relu["initial_pieces"])[30],
        "pieces plu trained/initial": np.sort(plu["trained_pieces"] / plu["initial_pieces"])[30],
    }
    found = {one.name: one.estimate for one in FITS[name].statistics(runs)}
    assert {name: one.value for name, one in found.items()} == pytest.approx(expected)
    assert {one.n for one in found.values()} == {61}
    assert all(one.low <= one.value <= one.high for one in found.values())


@pytest.mark.parametrize(
    ("activations", "number"),
    [(("tanh",), 0), (("tanh", "plu"), 2), (("plu", "plu_learned"), 2), (("relu", "plu"), 9), (("tanh", "relu"), 5)],
)
def test_statistics_need_the_activations_they_compare(activations, number):
    runs = measured(**dict.fromkeys(activations, 1))
    assert len(list(FITS["sine"].statistics(runs))) == number


def test_runs_with_other_seeds_are_not_compared():
    runs = measured(1, relu=1) | measured(5, plu=1)
    with pytest.raises(UserError, match="seed by seed"):
        list(FITS["sine"].statistics(runs))


def verdicts(name, runs):
    judged = judge({name: FITS[name]}, {name: runs})
    return {one.key: one.verdict for one in answers(judged) if not one.theorem}


@pytest.mark.parametrize(
    ("name", "factors", "expected"),
    [
        ("sine", {"relu": 200, "plu": 1.1}, {"sine-tanh": "holds", "sine-relu": "holds"}),
        ("sine", {"relu": 15, "plu": 1.1}, {"sine-tanh": "holds", "sine-relu": "holds in a weaker form"}),
        ("sine", {"relu": 200, "plu": 4}, {"sine-tanh": "refuted", "sine-relu": "holds in a weaker form"}),
        ("sine", {"relu": 1, "plu": 10}, {"sine-tanh": "refuted", "sine-relu": "refuted"}),
        ("parametric", {"relu": 9, "plu": 3}, {"curve-tanh": "holds", "curve-relu": "holds"}),  # tanh may be better
        ("parametric", {"relu": 9, "plu": 0.3}, {"curve-tanh": "refuted", "curve-relu": "holds"}),
        ("surface", {"relu": 1.7, "plu": 1}, {"surface-tanh": "holds", "surface-relu": "holds in a weaker form"}),
        ("surface", {"relu": 1.7, "plu": 3}, {"surface-tanh": "refuted", "surface-relu": "refuted"}),
    ],
)
def test_verdicts_follow_the_losses(name, factors, expected):
    base = np.random.default_rng(0).lognormal(size=100)
    constant = dict.fromkeys(COUNTS, np.ones(100)) | {"seed": np.arange(100), "dead": np.zeros(100, dtype=int)}
    constant["history"] = np.ones((20, 100))
    runs = {name: constant | {"final_loss": factor * base} for name, factor in {"tanh": 1, **factors}.items()}
    assert verdicts(name, runs).items() >= expected.items()


def test_rows_state_losses_dead_units_and_shapes():
    runs = {name: trained("sine", name, 4, 6) for name in ("tanh", "plu", "plu_learned")}
    tanh, _, plu, _, _, learned = FITS["sine"].rows(runs)
    loss, dead = runs["tanh"]["final_loss"][0], runs["tanh"]["dead"][0]
    assert tanh == {"experiment": "sine", "activation": "tanh", "seed": 4, "final_loss": loss, "dead_units": dead}
    assert (plu["alpha"], plu["c"]) == (0.1, 1.0)
    assert [plu[key] for key in ("pieces", "patterns")] == [
        runs["plu"][f"trained_{key}"][0] for key in ("pieces", "patterns")
    ]
    arrays = runs["plu_learned"]
    means = [arrays[key][:, 1].sum() / 2 for key in ("alpha", "c")]
    assert [learned[key] for key in ("seed", "alpha", "c", "final_loss")] == [
        5,
        *map(pytest.approx, means),
        arrays["final_loss"][1],
    ]


def test_the_finding_gives_the_median_losses_and_a_diverged_seed_is_not_the_lowest():
    losses = {
        "tanh": np.array([0.5, 9.0, 0.25]),
        "relu": np.linspace(1, 3, 1200),
        "plu": np.array([1e-5, 3e-4, 1e-4, 1.0]),
        "gelu": np.array([np.nan, 1.0, 2.0]),
    }
    runs = {name: {"seed": np.arange(column.size), "final_loss": column} for name, column in losses.items()}
    assert FITS["sine"].finding(runs) == (
        "Median final losses over 1,200 seeds: tanh 0.5, ReLU 2, PLU 2.00e-04, GELU 2; the lowest is PLU's."
    )


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


def test_a_network_that_diverged_has_no_pieces():
    theta = trained("sine", "plu", 0, 4)["theta"]
    network = MLP(SINE.widths, "plu")
    whole = count(SINE, network, theta).pieces
    theta[3, 1], theta[0, 2], theta[5, 3] = math.nan, math.inf, -1e30
    assert count(SINE, network, theta).pieces.tolist() == [whole[0], 0, 0, 0]


def test_blocks_of_members_change_nothing(monkeypatch):
    arrays = trained("sine", "plu", 0, 5)
    monkeypatch.setattr(run, "_BLOCK", 2)
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
    monkeypatch.setattr(run, "COURSE", 6)
    arrays = trained("sine", "plu", 2, 10, lr=0.1)  # seeds 2 to 5 are below COURSE
    weights = [*arrays["checkpoints"], arrays["theta"]]
    expected = [[sampled(SINE, "plu", column) for column in theta.T[:4]] for theta in weights]
    assert arrays["course"][1:].tolist() == expected
    assert arrays["course"][0].tolist() == arrays["initial_pieces"][:4].tolist()
    assert counted_steps(quick("sine")) == [0, 8, 16, 32]
    assert counted_steps(quick("sine", checkpoints=(16, 32, 64))) == [0, 16, 32]


@pytest.mark.parametrize(
    ("name", "relu", "plu", "expected"),
    [
        ("sine", [4, 5, 6], [9, 11, 13], {"sine-pieces": "holds"}),
        ("sine", [9, 11, 13], [4, 5, 6], {"sine-pieces": "refuted"}),
        ("parametric", [5], [15], {"curve-pieces": "holds", "curve-five": "holds"}),
        ("parametric", [6], [9], {"curve-pieces": "refuted", "curve-five": "refuted"}),
        ("parametric", [4, 6], [15], {"curve-pieces": "holds", "curve-five": "undecided"}),
        ("surface", [5], [4], {"surface-pieces": "refuted"}),
    ],
)
def test_verdicts_follow_the_counts(name, relu, plu, expected):
    runs = measured(60, relu=1, plu=1)
    runs["relu"]["trained_pieces"], runs["plu"]["trained_pieces"] = (np.resize(one, 60) for one in (relu, plu))
    assert verdicts(name, runs).items() >= expected.items()


@pytest.fixture(scope="module")
def runs():
    names, activations = ("sine", "surface"), ("tanh", "relu", "plu")
    return {name: {activation: trained(name, activation, 0, 9) for activation in activations} for name in names}


@pytest.fixture(scope="module")
def shown(runs):
    with settings():
        return {
            picture.name: picture.figure
            for name in runs
            for picture in dataclasses.replace(FITS[name], spec=quick(name)).figures(runs[name])
        }


def test_figures_of_counts_come_last(shown):
    kinds = ("fits", "loss", "final", "pieces")
    sine, surface = ([f"{name}-{kind}" for kind in kinds] for name in ("sine", "surface"))
    assert list(shown) == [*sine, "sine-knots", *surface, "surface-polygons"]


def test_an_activation_that_the_user_adds_has_its_pictures_and_is_compared_with_all(runs):
    added = {name: trained("sine", name, 0, 9) for name in ("gelu", "leaky_relu")}
    one = dataclasses.replace(FITS["sine"], spec=quick("sine"))
    found = {picture.name: picture for picture in one.figures(runs["sine"] | added)}
    assert found["sine-fits"].alt.endswith("for each of tanh, ReLU, PLU, GELU, leaky ReLU.")
    assert "of ReLU, PLU, leaky ReLU as" in found["sine-knots"].alt
    assert one.pairs(runs["sine"]) == ({}, "final_loss")
    assert one.pairs(runs["sine"] | added) == (runs["sine"] | added, "final_loss")


@pytest.mark.parametrize("name", ["sine", "surface"])
@pytest.mark.parametrize(("place", "activation"), [(0, "relu"), (1, "plu")])
def test_the_figure_of_counts_shows_them_over_steps(runs, shown, name, place, activation):
    (axes,) = shown[f"{name}-pieces"].axes
    expected = [[0, 8, 16, 32], np.median(runs[name][activation]["course"], axis=1)]
    np.testing.assert_array_equal(axes.lines[place].get_xydata().T, expected)


@pytest.mark.parametrize(("name", "kind"), [("sine", "knots"), ("surface", "polygons")])
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
