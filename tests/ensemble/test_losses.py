"""Losses, weights of rows, step sizes and decay, against PyTorch."""

import numpy as np
import pytest
import torch
from lone_members import alone, columns, generators
from torch import nn
from torch.nn import functional as F

from plunit.ensemble import LOSSES, MLP, Rows, initial, train

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2)).astype(np.float32)
TARGETS = {
    "square": RNG.normal(size=(30, 3)).astype(np.float32),
    "logistic": RNG.random((30, 3), dtype=np.float32),
    "softmax": RNG.dirichlet([1, 1, 1], 30).astype(np.float32),
}
ORACLES = {"square": F.mse_loss, "logistic": F.binary_cross_entropy_with_logits, "softmax": F.cross_entropy}
LR, DECAY, SCHEDULE = [0.01, 0.03], [0.0, 0.3], np.linspace(1, 0.1, 80)


def test_every_loss_has_its_oracle():
    assert LOSSES.keys() == ORACLES.keys() == TARGETS.keys()


@pytest.mark.parametrize("loss", LOSSES)
def test_a_member_follows_the_network_trained_alone_by_adamw(engine, loss):
    """With its own step size and decay, on one schedule."""
    network, y = MLP((2, 4, 3), "tanh"), TARGETS[loss]
    start = initial(network, generators([3, 8]))
    options = {"loss": loss, "lr": LR, "decay": DECAY, "schedule": SCHEDULE}
    ours = train(network, start, (X.T, y.T), steps=80, stride=1, engine=engine, **options)
    theirs = {"schedule": SCHEDULE, "loss": ORACLES[loss]}
    losses, theta = columns(
        alone((2, 4, 3), nn.Tanh, seed, lambda step: (X, y), 80, lr=lr, decay=decay, **theirs)
        for seed, lr, decay in zip([3, 8], LR, DECAY, strict=True)
    )
    np.testing.assert_allclose(ours.history, losses, rtol=1e-4)
    np.testing.assert_allclose(ours.theta, theta, rtol=1e-3, atol=1e-3)


EXTREMES = np.array([-100.0, -88.0, -20.0, -1.0, -0.0, 0.5, 20.0, 88.0, 100.0])


@pytest.mark.parametrize("loss", LOSSES)
def test_values_and_gradients_at_extreme_outputs(first_step, loss):
    """One member for each output z: the biases, because the input is 0."""
    z = np.stack(np.meshgrid(EXTREMES, EXTREMES, EXTREMES)).reshape(3, -1).astype(np.float32)
    y = np.eye(3, dtype=np.float32)[:, RNG.integers(3, size=z.shape[1])]
    theta = np.concatenate([np.zeros_like(z), z])
    ours = first_step(MLP((1, 3)), theta, (np.zeros((1, 1)), y[:, None]), loss=loss)
    exact = torch.from_numpy(z.T.astype(np.float64)).requires_grad_()
    values = ORACLES[loss](exact, torch.from_numpy(y.T.astype(np.float64)), reduction="none")
    values = values if loss == "softmax" else values.mean(1)
    (slopes,) = torch.autograd.grad(values.sum(), exact)
    np.testing.assert_allclose(ours[0], values.detach(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ours[1][3:], slopes.T, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("times", [0, 1, 2, 5])
def test_a_weight_is_a_number_of_repetitions(first_step, loss, times):
    """Up to the number of rows, by which the sum of losses is divided."""
    network, y = MLP((2, 4, 3), "plu"), TARGETS[loss]
    repeats = np.where(np.arange(30) % 7 == 3, times, 1)
    given = Rows(X, y, repeats * (30 / repeats.sum())), Rows(X.repeat(repeats, axis=0), y.repeat(repeats, axis=0))
    ours, expected = (first_step(network, initial(network, generators(range(5))), rows, loss=loss) for rows in given)
    np.testing.assert_allclose(ours[0], expected[0], rtol=1e-5)
    np.testing.assert_allclose(ours[1], expected[1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["plu", "plu_learned"])
def test_decay_pulls_weights_alone(engine, name):
    """Rows of weight 0 have no gradient: what moves is moved by decay."""
    network = MLP((2, 4, 3, 3), name)
    start = initial(network, generators(range(3))) + np.float32(0.5)
    decay = np.array([0.0, 0.5, 2.0])
    rows = Rows(X, TARGETS["square"], np.zeros(30))
    ours = train(network, start, rows, steps=10, lr=0.1, decay=decay, engine=engine).theta
    expected = start.astype(np.float64)
    for weight, _ in network.layers(expected):
        weight *= (1 - 0.1 * decay) ** 10
    np.testing.assert_allclose(ours, expected, rtol=1e-5)
