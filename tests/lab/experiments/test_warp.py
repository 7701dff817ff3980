"""The swirl, its inverse, and a network that learns both."""

import dataclasses

import numpy as np
import pytest
import torch

from plunit.invertible import InvertibleNetwork
from plunit.lab import scratch
from plunit.lab.cell import Cell
from plunit.lab.read.warp import EXPERIMENTS
from plunit.lab.train.warp import compute, grid, measured, square, swirl

(USUAL,) = EXPERIMENTS
SPEC = dataclasses.replace(USUAL.spec, steps=40, batch=64, depth=3, lines=5, dots=7, points=200)
WARP = dataclasses.replace(USUAL, spec=SPEC)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("warp")
    found = {name: compute(Cell("warp", SPEC, name, 0, 5, "", ""), folder / name) for name in USUAL.activations}
    assert [scratch.done(folder / name) for name in USUAL.activations] == [1, 1]
    return found


def test_the_swirl_turns_by_the_angle_of_its_radius_and_is_undone():
    x = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]], dtype=torch.float64)
    y = swirl(x, 2.0)
    turned = torch.view_as_complex(y[:2]) / torch.view_as_complex(x[:2])
    angles = torch.tensor([2 * torch.e**-0.5, 2 * torch.e**-2], dtype=torch.float64)
    torch.testing.assert_close(turned.angle(), angles)
    torch.testing.assert_close(swirl(y, -2.0), x)


def test_training_learns_map_and_inverse_together(runs):
    arrays = runs["plu"]
    assert arrays["loss"].shape == (40, 5)
    assert (arrays["loss"][-1] < 0.6 * arrays["loss"][0]).all()
    np.testing.assert_allclose(arrays["forward_error"], np.sqrt(arrays["loss"][-5:].mean(0)), rtol=0.25)
    assert (arrays["round_trip"] < 1e-4).all()
    assert arrays["forward"].shape == (2 * 5 * 7, 2, 5)


def test_the_grid_has_upright_and_level_lines_and_points_fill_the_square():
    lines = grid(SPEC).reshape(2, 5, 7, 2)
    assert (lines[0, :, :, 0].std(1) == 0).all()
    assert (lines[1, :, :, 1].std(1) == 0).all()
    x = square(SPEC, 1000, torch.Generator().manual_seed(0))
    assert -2 <= x.min() < -1.9 < 1.9 < x.max() <= 2


def test_the_figure_draws_the_grids_of_the_median_seed(runs, tmp_path):
    (picture,) = WARP.figures(runs)
    panels = np.array(picture.figure.axes).reshape(2, 3)
    drawn = [[np.stack([line.get_xydata() for line in axes.lines]) for axes in row] for row in panels]
    middle = [np.argsort(runs[name]["inverse_error"])[2] for name in ("plu", "leaky_relu")]
    lines = grid(SPEC)
    images = [
        [
            swirl(lines, sign * SPEC.turn).numpy(),
            *(runs[name][key][..., m] for name, m in zip(runs, middle, strict=True)),
        ]
        for sign, key in ((1, "forward"), (-1, "inverse"))
    ]
    np.testing.assert_array_equal(drawn, np.reshape(images, (2, 3, 10, 7, 2)))
    picture.figure.savefig(tmp_path / "figure.png")


class Swirl(InvertibleNetwork):
    """The swirl itself, turned by given angles on the way and on the way back."""

    def __init__(self, there, back):
        super().__init__(2, 0)
        self.there, self.back = there, back

    def forward(self, x):
        return swirl(x, self.there)

    def inverse(self, y):
        return swirl(y, self.back)


def test_errors_are_root_mean_squares_of_each_way_at_test_points_of_the_seed():
    x = square(SPEC, SPEC.points, torch.Generator().manual_seed(10_003))
    radius = x.double().norm(dim=-1)

    def apart(angle):
        """Return the root mean square distance of points that are turned by angles this far apart at the origin."""
        return (2 * radius * (angle * (-(radius**2) / 2).exp() / 2).sin()).square().mean().sqrt().item()

    found = measured(SPEC, Swirl(SPEC.turn + 0.5, 0.25 - SPEC.turn), 3)
    errors = [found[key] for key in ("forward_error", "inverse_error", "round_trip")]
    assert errors == pytest.approx([apart(0.5), apart(0.25), apart(0.75)], rel=1e-4)
    np.testing.assert_allclose(found["forward"], swirl(grid(SPEC), SPEC.turn + 0.5))
    np.testing.assert_allclose(found["inverse"], swirl(grid(SPEC), 0.25 - SPEC.turn))


def test_a_seed_is_the_same_in_any_cell(runs, tmp_path):
    alone = compute(Cell("warp", SPEC, "plu", 2, 3, "", ""), tmp_path / "plu")
    for key, array in alone.items():
        np.testing.assert_allclose(array[..., 0], runs["plu"][key][..., 2], rtol=1e-3, atol=1e-3)
