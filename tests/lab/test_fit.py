"""Cells of sections 2-4: the paper's settings, paired seeds, and what is measured after training."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from plunit.lab.fit.compute import dead_units, final_loss, fixed, grid, stream
from plunit.lab.fit.targets import TARGETS
from plunit.lab.results import Results

from plunit.ensemble import Network, initial
from plunit.lab import fit
from plunit.lab.cell import Cell

SINE, SURFACE = fit.SPECS["sine"], fit.SPECS["surface"]


def cell(name, activation, first=0, last=3, **changes):
    spec = dataclasses.replace(fit.SPECS[name], **{"steps": 32, "stride": 8, "checkpoints": (8,), **changes})
    return Cell(name, spec, activation, first, last, "eager")


def test_the_paper_s_settings():
    assert (SINE.target, SINE.widths, SINE.steps, SINE.lr) == ("sine", (1, 3, 3, 1), 2048, 0.01)
    assert (SINE.alpha, SINE.c) == (0.1, 1.0)
    parametric = fit.SPECS["parametric"]
    assert (parametric.widths, parametric.steps) == ((1, 5, 5, 5, 5, 2), 4096)
    assert (parametric.low, parametric.high, parametric.points) == (SINE.low, SINE.high, SINE.points)
    assert (SURFACE.widths, SURFACE.steps, SURFACE.batch, SURFACE.low, SURFACE.high) == ((2, 3, 3, 1), 2048, 100, -3, 3)
    x, y = fixed(SINE)
    np.testing.assert_allclose(x[0].numpy(), np.linspace(-2 * np.pi, 2 * np.pi, 50), rtol=1e-6)
    np.testing.assert_allclose(y[0].numpy(), np.sin(np.linspace(-2 * np.pi, 2 * np.pi, 50)), atol=1e-6)


def test_targets():
    t = np.array([[0.0, math.pi / 2, 1.0]])
    curve = TARGETS["curve"](t)
    np.testing.assert_allclose(curve[:, 1], [1, -1], atol=1e-12)
    np.testing.assert_allclose(curve[0, 2], (math.cos(1) - math.cos(2)) ** 3)
    np.testing.assert_allclose(curve[1, 2], (math.sin(2) - math.sin(1)) ** 3)
    np.testing.assert_allclose(TARGETS["saddle"](np.array([[3.0], [2.0]])), [[5.0]])


@pytest.mark.parametrize("name", ["sine", "surface"])
def test_chunks_of_seeds_give_the_same_networks(name):
    whole = fit.compute(cell(name, "plu", 0, 5))
    parts = [fit.compute(cell(name, "plu", *ends)) for ends in ((0, 2), (2, 5))]
    for key, array in whole.items():
        np.testing.assert_array_equal(array, np.concatenate([part[key] for part in parts], axis=-1))


@pytest.mark.parametrize("activation", ["relu", "plu", "plu_learned"])
def test_seeds_are_paired(activation):
    """At a step size of 0 nothing moves: weights and batch losses show what each activation was given."""
    ours, tanh = (fit.compute(cell("surface", name, lr=0.0)) for name in (activation, "tanh"))
    np.testing.assert_array_equal(ours["theta"][:22], tanh["theta"][:22])
    batches = []
    for name in (activation, "tanh"):
        generators = [np.random.default_rng(seed) for seed in range(3)]
        initial(Network(SURFACE.widths, name), generators)
        batches.append(stream(SURFACE, generators)(4))
    assert torch.equal(batches[0][0], batches[1][0])


def test_batches_are_uniform_fresh_and_each_seed_s_own():
    x, y = stream(SURFACE, [np.random.default_rng(seed) for seed in range(40)])(50)
    assert x.shape == (50, 2, 100, 40)
    assert y.shape == (50, 1, 100, 40)
    assert -3 <= x.min() < -2.99
    assert 2.99 < x.max() < 3
    assert abs(x.mean()) < 0.02
    assert abs(x.var() - 3) < 0.02
    assert len(torch.unique(x[:, 0, 0, :])) > 1990
    torch.testing.assert_close(y[:, 0], x[:, 0] ** 2 - x[:, 1] ** 2)


def test_the_final_loss_is_that_of_a_network_written_by_hand():
    arrays = fit.compute(cell("surface", "tanh", 0, 2))
    axis = np.linspace(-3, 3, 41)
    points = np.array([(a, b) for a in axis for b in axis])
    for member in range(2):
        w1, b1, w2, b2, w3, b3 = np.split(arrays["theta"][:, member].astype(float), np.cumsum([6, 3, 9, 3, 3]))
        h = np.tanh(points @ w1.reshape(3, 2).T + b1)
        h = np.tanh(h @ w2.reshape(3, 3).T + b2)
        error = h @ w3 + b3 - (points[:, 0] ** 2 - points[:, 1] ** 2)
        assert arrays["final_loss"][member] == pytest.approx((error**2).mean(), rel=1e-9)


def test_dead_units_are_counted():
    theta = torch.zeros(22, 2)
    theta[2] = 1  # first layer: unit 0 is always negative, unit 2 for half of the points
    theta[3:6, :] = torch.tensor([-1.0, 1.0, 0.0])[:, None]
    theta[15:18, 0] = torch.tensor([1.0, 1.0, 1.0])  # second layer: alive in member 0, all at 0 in member 1
    assert dead_units(SINE, Network(SINE.widths, "relu"), theta).tolist() == [1, 4]
    assert dead_units(SINE, Network(SINE.widths, "plu"), theta).tolist() == [0, 0]


def test_stored_weights_and_histories_have_their_places():
    arrays = fit.compute(cell("sine", "plu_learned"))
    shapes = {name: array.shape for name, array in arrays.items()}
    assert shapes == {
        "seed": (3,),
        "theta": (26, 3),
        "checkpoints": (1, 26, 3),
        "history": (4, 3),
        "final_loss": (3,),
        "dead": (3,),
        "alpha": (2, 3),
        "c": (2, 3),
    }


def test_the_grid_has_every_point_of_the_square():
    points = grid(SURFACE)
    assert points.shape == (2, 41 * 41)
    assert len(np.unique(points, axis=1).T) == 41 * 41


def results(**losses):
    n = len(next(iter(losses.values())))
    zeros = np.zeros(n, dtype=int)
    return Results({("sine", name): {"final_loss": np.array(loss), "dead": zeros} for name, loss in losses.items()})


def test_verdicts_follow_the_losses():
    base = np.random.default_rng(0).lognormal(size=100)
    ordered = {c.sentence: c.verdict for c in fit.claims(results(tanh=base, relu=200 * base, plu=1.1 * base))}
    assert set(ordered.values()) == {"holds", "does not hold"}
    assert [s for s, verdict in ordered.items() if verdict == "does not hold"] == [
        "ReLU networks trained on the sine have dead units."
    ]
    turned = {c.sentence: c.verdict for c in fit.claims(results(tanh=base, relu=base, plu=10 * base))}
    assert turned["On the sine, PLU and tanh reach similar losses."] == "does not hold"
    assert turned["On the sine, ReLU's loss is two orders of magnitude above PLU's."] == "does not hold"


def test_final_loss_takes_shapes_of_each_member():
    network = Network(SINE.widths, "plu")
    theta = initial(network, [np.random.default_rng(1)] * 1).repeat(1, 2)
    alpha, c = torch.tensor([0.1, 0.5]), torch.tensor([1.0, 2.0])
    both = final_loss(SINE, network, theta, alpha, c)
    for member in range(2):
        spec = dataclasses.replace(SINE, alpha=alpha[member].item(), c=c[member].item())
        torch.testing.assert_close(both[member], final_loss(spec, network, theta[:, :1])[0])
    assert both[0] != both[1]
