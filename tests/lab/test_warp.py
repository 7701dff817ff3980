"""The swirl, its inverse, and a network that learns both."""

import dataclasses

import numpy as np
import pytest
import torch
from plunit.lab.results import Results
from plunit.lab.warp.compute import grid, measured, square, swirl

from plunit.invertible import InvertibleNetwork
from plunit.lab import experiments, scratch, warp
from plunit.lab.cell import Cell

SPEC = dataclasses.replace(warp.SPECS["warp"], steps=40, batch=64, depth=3, lines=5, dots=7, points=200)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("warp")
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(warp.SPECS, "warp", SPEC)
        for activation in warp.ACTIVATIONS:
            cell = Cell("warp", SPEC, activation, 0, 5, "torch")
            found["warp", activation] = warp.compute(cell, folder / activation)
            assert scratch.done(folder / activation) == 1
        yield Results(found)


def test_the_swirl_turns_by_the_angle_of_its_radius_and_is_undone():
    x = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]], dtype=torch.float64)
    y = swirl(x, 2.0)
    turned = torch.view_as_complex(y[:2]) / torch.view_as_complex(x[:2])
    angles = torch.tensor([2 * torch.e**-0.5, 2 * torch.e**-2], dtype=torch.float64)
    torch.testing.assert_close(turned.angle(), angles)
    torch.testing.assert_close(swirl(y, -2.0), x)


def test_training_learns_map_and_inverse_together(results):
    arrays = results["warp", "plu"]
    assert arrays["loss"].shape == (40, 5)
    assert (arrays["loss"][-1] < 0.6 * arrays["loss"][0]).all()
    np.testing.assert_allclose(arrays["forward_error"], np.sqrt(arrays["loss"][-5:].mean(0)), rtol=0.25)
    assert (arrays["round_trip"] < 1e-4).all()
    assert arrays["forward"].shape == (2 * 5 * 7, 2, 5)


def test_the_grid_has_upright_and_level_lines():
    lines = grid(SPEC).reshape(2, 5, 7, 2)
    assert (lines[0, :, :, 0].std(1) == 0).all()
    assert (lines[1, :, :, 1].std(1) == 0).all()


def test_claim_rows_and_figure(results, tmp_path):
    (claim,) = warp.claims(results)
    assert "40 steps" in claim.sentence
    assert claim.n == 5
    assert claim.value == pytest.approx(np.median(results["warp", "plu"]["inverse_error"]))
    assert len(list(warp.rows(results))) == 10
    (picture,) = warp.figures(results)
    assert len(picture.figure.axes) == 6
    picture.figure.savefig(tmp_path / "figure.png")


def test_cells_take_the_steps():
    (cell,) = experiments.cells("warp", ("plu",), 5, "native", 7)
    assert cell.spec.steps == 7


def test_a_network_that_is_the_swirl_has_no_error():
    class Swirl(InvertibleNetwork):
        def forward(self, x):
            return swirl(x, SPEC.turn)

        def inverse(self, y):
            return swirl(y, -SPEC.turn)

    found = measured(SPEC, Swirl(2, 0), 0)
    assert all(found[key] < 1e-5 for key in ("forward_error", "inverse_error", "round_trip"))
    np.testing.assert_allclose(found["forward"], swirl(grid(SPEC), SPEC.turn))
    np.testing.assert_allclose(found["inverse"], swirl(grid(SPEC), -SPEC.turn))


def test_points_fill_the_square():
    x = square(SPEC, 1000, torch.Generator().manual_seed(0))
    assert -2 <= x.min() < -1.9
    assert 1.9 < x.max() <= 2


def test_a_seed_is_the_same_in_any_cell(results, tmp_path):
    alone = warp.compute(Cell("warp", SPEC, "plu", 2, 3, "torch"), tmp_path / "plu")
    np.testing.assert_allclose(alone["inverse_error"], results["warp", "plu"]["inverse_error"][2:3], rtol=1e-2)


def test_a_run_that_is_too_short_is_not_judged(results, monkeypatch):
    monkeypatch.setitem(warp.SPECS, "warp", dataclasses.replace(SPEC, steps=41))
    assert warp.claims(results) == []
