"""Toy densities by what they look like."""

import math

import pytest
import torch

from plunit.invertible import TOYS, toy


@pytest.mark.parametrize("name", TOYS)
def test_mean_zero_and_variance_one_on_each_axis(name):
    x = toy(name, 400_000, torch.Generator().manual_seed(0))
    assert x.shape == (400_000, 2)
    assert torch.equal(x, toy(name, 400_000, torch.Generator().manual_seed(0)))
    torch.testing.assert_close(x.mean(0), torch.zeros(2), rtol=0, atol=0.006)
    torch.testing.assert_close(x.var(0), torch.ones(2), rtol=0, atol=0.01)


def test_checkerboard_fills_eight_of_sixteen_squares_alike():
    x = (toy("checkerboard", 80_000, torch.Generator().manual_seed(0)) * math.sqrt(4 / 3) + 2).floor().long()
    counts = torch.bincount(4 * x[:, 0] + x[:, 1], minlength=16).view(4, 4)
    assert ((counts > 0).sum(), counts.shape) == (8, (4, 4))
    assert all((counts[i, j] > 9_000) == ((i + j) % 2 == 0) for i in range(4) for j in range(4))


def test_moons_are_two_half_circles():
    x = toy("moons", 20_000, torch.Generator().manual_seed(0)) * torch.tensor([0.76, 0.5725 - 1 / math.pi]).sqrt()
    x = x + torch.tensor([0.5, 0.25])
    gap = torch.minimum((x.norm(dim=1) - 1).abs(), ((x - torch.tensor([1.0, 0.5])).norm(dim=1) - 1).abs())
    assert gap.square().mean().sqrt() < 0.11


def test_gaussians_sit_on_a_circle():
    x = toy("gaussians", 20_000, torch.Generator().manual_seed(0)) * math.sqrt(4.125)
    angle = torch.atan2(x[:, 1], x[:, 0])
    nearest = (angle / (math.pi / 4)).round() * math.pi / 4
    centre = 4 / math.sqrt(2) * torch.stack([nearest.cos(), nearest.sin()], -1)
    assert (x - centre).std().item() == pytest.approx(0.5 / math.sqrt(2), rel=0.03)


def test_pinwheel_has_five_arms():
    x = toy("pinwheel", 50_000, torch.Generator().manual_seed(0)) * math.sqrt(0.55)
    radius = x.norm(dim=1)
    angle = (torch.atan2(x[:, 1], x[:, 0]) - 0.25 * radius.exp()) * 5
    assert radius.mean().item() == pytest.approx(1.005, abs=0.01)
    assert angle.cos().mean() > 0.8  # all at the same angle modulo a fifth of a turn
