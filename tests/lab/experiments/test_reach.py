"""What each activation can do: the same starts as the sine, Adam's losses those of the sine, others lower."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from plunit.lab.cell import Cell
from plunit.lab.read.fit import EXPERIMENTS as FITS
from plunit.lab.read.reach import EXPERIMENTS
from plunit.lab.train.fit import compute as compute_fit
from plunit.lab.train.reach import ReachSpec, compute

(REACH,) = EXPERIMENTS


@pytest.fixture(scope="module")
def runs():
    cells = [Cell("reach", REACH.spec, name, 0, 48, "native", "") for name in ("tanh", "relu", "plu")]
    return {cell.activation: compute(cell, Path()) for cell in cells}


def test_adam_s_losses_are_those_of_the_sine(runs):
    sine = compute_fit(Cell("sine", FITS[0].spec, "plu", 0, 48, "native", ""), Path())
    np.testing.assert_array_equal(runs["plu"]["adam_loss"], sine["final_loss"])


def test_tanh_can_do_more_than_plu_and_plu_more_than_relu(runs):
    medians = {name: np.median(arrays["final_loss"]) for name, arrays in runs.items()}
    assert 100 * medians["tanh"] < medians["plu"] < medians["relu"] / 10
    claims = {claim.sentence: claim for claim in REACH.claims(runs, {})}
    assert {claim.statement for claim in claims.values()} == {""}
    expected = np.median(runs["plu"]["final_loss"] / runs["tanh"]["final_loss"])
    assert claims["On the sine, tanh can reach a loss 10 times as low as PLU."].value == pytest.approx(expected)


def test_the_finding_and_the_picture_show_both(runs):
    for arrays in runs.values():
        arrays["final_loss"][0] = np.nan
    finding, (picture,) = REACH.finding(runs), REACH.figures(runs)
    assert "over 48 starts" in finding
    assert "nan" not in finding + picture.caption
    assert [len(axes.lines) for axes in picture.figure.axes] == [3, 3]


def test_batches_are_refused():
    with pytest.raises(ValueError, match="must be 0, because all points count at each step, got 5"):
        ReachSpec(dataclasses.replace(FITS[0].spec, batch=5))
