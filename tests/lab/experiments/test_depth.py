"""Gradients over depth: against networks written out, and what is said of them."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from plunit.lab.cell import Cell
from plunit.lab.claims import judge
from plunit.lab.read.depth import EXPERIMENTS
from plunit.lab.train.depth import compute

DEPTHS = {one.name: one for one in EXPERIMENTS}
DEPTH = DEPTHS["depth"]


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


@pytest.mark.parametrize("name", DEPTHS)
def test_gradients_are_those_of_a_plain_network(name):
    spec = DEPTHS[name].spec
    arrays = compute(Cell(name, spec, "tanh", 2, 4, "", ""), Path())
    assert arrays["seed"].tolist() == [2, 3]
    assert arrays["gradient_norm"].shape == (6, 2)
    assert (spec.depths[0], spec.depths[-1], spec.scale) == (2, 64, "paper" if name == "depth" else "fan_in")
    expected = [[by_hand(spec.depths[row], spec.scale, seed) for seed in (2, 3)] for row in (0, 2, 5)]
    np.testing.assert_allclose(arrays["gradient_norm"][[0, 2, 5]], expected, rtol=1e-5)


def falling(**factors):
    """Runs whose gradients fall by a factor from the first depth to the last."""
    start = np.random.default_rng(0).lognormal(size=50)
    return {
        name: {"seed": np.arange(50), "gradient_norm": np.stack([start, *[start] * 4, start * factor])}
        for name, factor in factors.items()
    }


@pytest.mark.parametrize(
    ("tanh", "plu", "verdicts"),
    [
        (1e-6, 1.0, ["holds", "holds", "holds"]),
        (1.0, 1e-6, ["refuted", "refuted", "refuted"]),
        (1e-6, 1e-6, ["holds", "refuted", "refuted"]),
    ],
)
def test_verdicts_follow_the_gradients(tanh, plu, verdicts):
    judged = judge({"depth": DEPTH}, {"depth": falling(tanh=tanh, plu=plu)})
    assert [one.verdict for one in judged] == verdicts
    assert [one.claim.statement for one in judged] == ["gradients-tanh", "gradients-plu", "gradients-plu"]


def random_runs(*activations):
    draw = np.random.default_rng(1).lognormal
    return {name: {"seed": np.arange(7), "gradient_norm": draw(size=(6, 7))} for name in activations}


def test_statistics_compare_the_last_depth_with_the_first():
    runs = random_runs("relu", "plu", "tanh")
    falls = {name: arrays["gradient_norm"][5] / arrays["gradient_norm"][0] for name, arrays in runs.items()}
    expected = {f"fall {name}": np.sort(fall)[3] for name, fall in falls.items()}
    expected["fall plu/tanh"] = np.sort(falls["plu"] / falls["tanh"])[3]
    found = {one.name: one for one in DEPTH.statistics(runs)}
    assert {name: one.estimate.value for name, one in found.items()} == pytest.approx(expected)
    assert all("depth 64 / depth 2" in one.words for one in found.values())
    assert "with weights N(0, 1)" in DEPTH.finding(runs)
    assert [one.name for one in DEPTH.statistics(random_runs("relu", "plu"))] == ["fall relu", "fall plu"]


def test_the_figure_draws_medians_and_zeros_at_its_floor():
    runs = random_runs("tanh", "plu")
    runs["plu"]["gradient_norm"][5] = 0
    (picture,) = DEPTH.figures(runs)
    (axes,) = picture.figure.axes
    tanh, plu = (line.get_xydata() for line in axes.lines)
    np.testing.assert_allclose(tanh.T, [[2, 4, 8, 16, 32, 64], np.sort(runs["tanh"]["gradient_norm"])[:, 3]])
    assert plu[5].tolist() == [64, 1e-16]
    assert "7 seeds" in picture.caption
