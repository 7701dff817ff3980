"""Simulators against their densities: by integrals, and by the share of points in boxes."""

import math

import pytest
import torch

from plunit.invertible.toys import SIMULATIONS

CONTEXTS = {
    "two moons": [[0.3, -0.7], [-0.5, -0.4]],
    "regression": [[-1.7], [0.1], [1.2]],
}
CASES = [(name, context) for name, contexts in CONTEXTS.items() for context in contexts]
CENTRE = {"two moons": lambda c: c.new_tensor([0.25 - (c.sum().abs() / 2**0.5), (c[1] - c[0]) / 2**0.5])}


def grid(centre, half, cells=801):
    axis = torch.linspace(-half, half, cells, dtype=torch.float64)
    return centre + torch.cartesian_prod(axis, axis), (2 * half / (cells - 1)) ** 2


@pytest.mark.parametrize(("name", "context"), CASES)
def test_the_density_integrates_to_one(name, context):
    context = torch.tensor(context, dtype=torch.float64)
    centre = CENTRE[name](context) if name in CENTRE else torch.zeros(2)
    x, cell = grid(centre, 0.2 if name == "two moons" else 6.0)
    total = SIMULATIONS[name].log_prob(x, context.expand(len(x), -1)).exp().sum() * cell
    assert total.item() == pytest.approx(1, abs=0.01)


def x_log_x(a, b):
    """The integral of log from a to b."""
    return b * math.log(b) - b - a * math.log(a) + a


NORMAL = 0.5 * math.log(2 * math.pi * math.e)
MEAN_LOG_PROB = {
    # the entropies of radius and angle, and of the factor radius; E log(radius) to second order
    "two moons": -(NORMAL + math.log(0.01)) - math.log(math.pi) - (math.log(0.1) - 0.01**2 / 0.1**2 / 2),
    # the entropy of a normal, and the mean logarithms of both factors on the diagonal
    "regression": -2 * NORMAL - x_log_x(0.1, 0.7) / 0.3 / 2 - x_log_x(0.3, 0.7) / 0.1 / 4,
}


@pytest.mark.parametrize("name", SIMULATIONS)
def test_points_follow_the_density(name):
    """The mean of log p over points is minus the entropy, here in closed form."""
    x, context = SIMULATIONS[name].draw(20_000, torch.Generator().manual_seed(0))
    assert x.shape == (20_000, SIMULATIONS[name].features)
    assert context.shape == (20_000, SIMULATIONS[name].context)
    found = SIMULATIONS[name].log_prob(x, context).mean().item()
    assert found == pytest.approx(MEAN_LOG_PROB[name], abs=0.03)
