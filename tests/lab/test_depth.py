import itertools
import math

import numpy as np
import pytest
import torch
from plunit.lab.results import Results
from torch import nn

from plunit.lab import depth
from plunit.lab.cell import Cell


def by_hand(layers, scale, seed):
    """|dL/dW_1| of an nn.Sequential with tanh."""
    widths = [1, *[5] * (layers - 1), 1]
    fans = list(itertools.pairwise(widths))
    draws = np.random.default_rng(seed).standard_normal(sum(m * n for m, n in fans), dtype=np.float32)
    parts = iter(np.split(draws, np.cumsum([m * n for m, n in fans])))
    modules = []
    for m, n in fans:
        linear = nn.Linear(m, n, dtype=torch.float64)
        std = 1 / math.sqrt(m) if scale == "fan_in" else 1
        linear.weight.data = torch.from_numpy(next(parts).reshape(n, m)).double() * std
        nn.init.zeros_(linear.bias)
        modules += [linear, nn.Tanh()]
    x = torch.from_numpy(np.linspace(-2 * np.pi, 2 * np.pi, 50))[:, None]
    nn.functional.mse_loss(nn.Sequential(*modules[:-1])(x), x.sin()).backward()
    return modules[0].weight.grad.norm().item()


@pytest.mark.parametrize("name", ["depth", "depth-scaled"])
def test_gradients_are_those_of_a_plain_network(name):
    spec = depth.SPECS[name]
    arrays = depth.compute(Cell(name, spec, "tanh", 2, 4, "eager"))
    assert arrays["gradient"].shape == (6, 2)
    for row in (0, 2, 5):
        for member, seed in enumerate([2, 3]):
            assert arrays["gradient"][row, member] == pytest.approx(
                by_hand(spec.depths[row], spec.scale, seed), rel=1e-5
            )


def test_depths_reach_from_2_to_64():
    assert all((min(s.depths), max(s.depths)) == (2, 64) for s in depth.SPECS.values())


@pytest.mark.parametrize(
    ("tanh", "plu", "verdicts"),
    [
        (1e-6, 1.0, ["holds", "holds", "holds"]),
        (1.0, 1e-6, ["does not hold", "does not hold", "does not hold"]),
        (1e-6, 1e-6, ["holds", "does not hold", "holds weakly"]),
    ],
)
def test_verdicts_follow_the_gradients(tanh, plu, verdicts):
    start = np.random.default_rng(0).lognormal(size=50)
    arrays = {
        ("depth", name): {"gradient": np.stack([start, *[start] * 4, start * fall])}
        for name, fall in (("tanh", tanh), ("plu", plu))
    }
    assert [claim.verdict for claim in depth.claims(Results(arrays))] == verdicts
