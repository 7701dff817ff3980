"""Maps of the loss over alpha and c."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from plunit.lab.cell import Cell
from plunit.lab.claims import judge
from plunit.lab.intervals import Estimate
from plunit.lab.read.fit import MAPS, table
from plunit.lab.read.fit import SINE as SINES
from plunit.lab.train.fit import ShapeSpec, compute, compute_map

MAP, SINE = MAPS[0], SINES.spec


@pytest.mark.parametrize("spec", [one.spec for one in MAPS])
def test_the_grid_holds_the_paper_s_choice_and_16_by_16_values(spec):
    assert len(set(spec.alphas)) == len(set(spec.cs)) == 16
    assert (spec.alphas[spec.chosen[0]], spec.cs[spec.chosen[1]]) == (0.1, 1)


def test_a_point_of_the_map_is_the_experiment_with_that_alpha_and_c():
    quick = dataclasses.replace(SINE, steps=24, checkpoints=())
    spec = ShapeSpec(**vars(quick), alphas=(0.1, 0.4), cs=(0.5, 1, 2))
    arrays = compute_map(Cell("map-sine", spec, "plu", 5, 7, "numpy", ""), Path())
    alone = [
        [
            compute(Cell("sine", dataclasses.replace(quick, alpha=alpha, c=c), "plu", 5, 7, "numpy", ""), Path())
            for c in spec.cs
        ]
        for alpha in spec.alphas
    ]
    losses = table(spec, arrays)
    assert losses.shape == (2, 3, 2)
    np.testing.assert_allclose(losses, [[one["final_loss"] for one in row] for row in alone], rtol=1e-6)
    assert arrays["seed"].tolist() == [5] * 6 + [6] * 6
    np.testing.assert_allclose(arrays["alpha"], ([0.1] * 3 + [0.4] * 3) * 2)
    np.testing.assert_allclose(arrays["c"], [0.5, 1, 2] * 4)


@pytest.mark.parametrize(("order", "share", "verdict"), [(1, 0, "holds"), (-1, 255 / 256, "refuted")])
def test_the_verdict_is_the_rank_of_the_paper_s_choice(order, share, verdict):
    losses = np.roll(order * np.arange(256.0), 3 * 16 + 8)  # the first of the order falls on alpha = 0.1, c = 1
    runs = {"plu": {"seed": np.arange(20), "final_loss": np.tile(losses, 20) + 1000}}
    (found,) = judge({"map-sine": MAP}, {"map-sine": runs})
    assert (MAP.spec.alphas[3], MAP.spec.cs[8]) == (0.1, 1)
    assert (found.claim.statement, found.verdict) == ("", verdict)
    assert found.estimate == Estimate(share, share, share, 20)


@pytest.fixture
def runs():
    """Three seeds on a map of six points, one loss of which is no number."""
    losses = np.random.default_rng(0).lognormal(size=(3, 6))
    losses[0, 4] = np.nan
    alpha, c = (np.tile(column, 3) for column in (np.repeat([0.1, 0.4], 3), np.tile([0.5, 1, 2], 2)))
    return {"plu": {"seed": np.repeat([0, 1, 2], 6), "alpha": alpha, "c": c, "final_loss": losses.ravel()}}


SMALL = dataclasses.replace(MAP, spec=ShapeSpec(**vars(SINE), alphas=(0.1, 0.4), cs=(0.5, 1, 2)))


def test_the_finding_compares_the_paper_s_choice_with_the_lowest(runs):
    medians = np.sort(np.nan_to_num(runs["plu"]["final_loss"].reshape(3, 6), nan=np.inf), axis=0)[1]
    best = int(np.argmin(medians))
    assert best != 1
    assert SMALL.finding(runs) == (
        f"For the sine, the paper's choice has the median loss {medians[1]:.3g}; the lowest is {medians[best]:.3g}, "
        f"at alpha = {(0.1, 0.4)[best // 3]}, c = {(0.5, 1, 2)[best % 3]}."
    )
    assert SMALL.finding({"relu": runs["plu"]}) == ""


def test_the_figure_is_the_map_with_the_paper_s_choice_and_the_lowest(runs):
    (picture,) = SMALL.figures(runs)
    axes = picture.figure.axes[0]
    losses = table(SMALL.spec, runs["plu"])
    assert losses[1, 1, 0] == np.inf  # it diverged
    medians = np.median(losses, axis=-1)
    np.testing.assert_array_equal(axes.images[0].get_array(), medians)
    chosen, best = (line.get_xydata()[0] for line in axes.lines)
    assert chosen.tolist() == [1, 0]
    assert best.tolist() == [np.argmin(medians) % 3, np.argmin(medians) // 3]
