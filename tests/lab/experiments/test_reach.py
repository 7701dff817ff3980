"""How far networks can go from the starts of the sine, by second-order steps."""

from pathlib import Path

import numpy as np
import pytest

from plunit.lab.cell import Cell
from plunit.lab.claims import judge
from plunit.lab.read.sine_parametric_surface import GROUP, REACH
from plunit.lab.read.sine_parametric_surface import SINE as SINES
from plunit.lab.train.sine_parametric_surface import ReachSpec, compute, compute_reach

SINE = SINES.spec


@pytest.fixture(scope="module")
def reached():
    cells = [Cell("reach", REACH.spec, name, 0, 48, "native", "") for name in ("tanh", "relu", "plu")]
    return {cell.activation: compute_reach(cell, Path()) for cell in cells}


def test_adam_s_losses_are_those_of_the_sine(reached):
    sine = compute(Cell("sine", SINE, "plu", 0, 48, "native", ""), Path())
    np.testing.assert_array_equal(reached["plu"]["adam_loss"], sine["final_loss"])


def test_tanh_can_do_more_than_plu_and_plu_more_than_relu(reached):
    medians = {name: np.median(arrays["final_loss"]) for name, arrays in reached.items()}
    assert 100 * medians["tanh"] < medians["plu"] < medians["relu"] / 10
    expected = np.median(reached["plu"]["final_loss"] / reached["tanh"]["final_loss"])
    found = {one.name: one.estimate for one in REACH.statistics(reached)}
    assert found["plu/tanh"].value == pytest.approx(expected)
    assert found["best relu/plu"].n == 0  # fewer starts than a group has


def test_the_best_are_compared_group_by_group_and_a_start_that_diverged_is_not_the_best():
    rng = np.random.default_rng(0)
    losses = {name: scale * rng.lognormal(size=7 * GROUP + 5) for name, scale in (("relu", 9.0), ("plu", 1.0))}
    losses["plu"][3], losses["relu"][-5:] = np.nan, 0.0  # the last five are not a whole group
    runs = {
        name: {"seed": np.arange(column.size), "final_loss": column, "adam_loss": column}
        for name, column in losses.items()
    }
    best = {name: [np.nanmin(column[k * GROUP : (k + 1) * GROUP]) for k in range(7)] for name, column in losses.items()}
    found = {one.name: one.estimate for one in REACH.statistics(runs)}
    expected = np.array(best["relu"]) / best["plu"]
    assert found["best relu/plu"].value == np.median(expected)
    assert (found["best relu/plu"].low, found["best relu/plu"].n) == (expected.min(), 7)
    (judged,) = [one for one in judge({"reach": REACH}, {"reach": runs}) if one.claim.statement]
    assert (judged.claim.statement, judged.verdict) == ("sine-floor", "holds")


def test_the_finding_and_the_picture_show_both(reached):
    for arrays in reached.values():
        arrays["final_loss"][0] = np.nan
    finding, (picture,) = REACH.finding(reached), REACH.figures(reached)
    assert "over 48 starts" in finding
    assert "nan" not in finding + picture.caption
    assert [len(axes.lines) for axes in picture.figure.axes] == [3, 3]


def test_batches_are_refused():
    with pytest.raises(ValueError, match="must be 0, because all points count at each step, got 5"):
        ReachSpec(**vars(SINE) | {"batch": 5})
