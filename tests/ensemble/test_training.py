"""Members of an ensemble against networks trained alone, in both engines."""

import functools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from lone_members import MODULES, PaperPLU, alone, columns, generators
from torch import nn

from plunit.ensemble import MLP, Rows, initial, train, training
from plunit.ensemble.adam import ADAMS

# Not symmetric about 0: on symmetric data an odd activation has bias gradients that are 0 but for rounding, which Adam
# scales up to whole steps, so that any two programs drift apart.
X = np.linspace(-5, 7, 50, dtype=np.float32)[None]
Y = np.sin(X)


@functools.cache
def sine_alone(name, seed):
    return alone((1, 3, 3, 1), MODULES[name], seed, lambda step: (X.T, Y.T), 120)


@pytest.mark.parametrize("name", MODULES)
def test_a_member_follows_the_network_trained_alone(engine, name):
    network = MLP((1, 3, 3, 1), name)
    ours = train(network, initial(network, generators([3, 8])), (X, Y), steps=120, stride=1, engine=engine)
    losses, theta = columns(sine_alone(name, seed) for seed in [3, 8])
    np.testing.assert_allclose(ours.history, losses, rtol=2e-3, atol=2e-5)
    np.testing.assert_allclose(ours.theta[: len(theta)], theta, rtol=5e-3, atol=5e-3)


def test_streams_and_several_inputs_and_outputs(engine):
    widths, seeds, steps = (2, 4, 3, 2), [0, 5], 100
    x = np.stack([np.random.default_rng(100 + s).uniform(-3, 3, (steps, 2, 10)) for s in seeds], -1).astype(np.float32)
    y = np.stack([x[:, 0] ** 2 - x[:, 1] ** 2, x[:, 0]], axis=1)
    rest = [x, y]

    def stream(n):
        taken, rest[:] = [part[:n] for part in rest], [part[n:] for part in rest]
        return taken

    network = MLP(widths, "tanh")
    ours = train(network, initial(network, generators(seeds)), stream, steps=steps, stride=1, engine=engine)
    losses, theta = columns(
        alone(widths, nn.Tanh, seed, lambda step, i=i: (x[step, ..., i].T, y[step, ..., i].T), steps)
        for i, seed in enumerate(seeds)
    )
    np.testing.assert_allclose(ours.history, losses, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(ours.theta, theta, rtol=1e-3, atol=1e-3)


def test_alpha_and_c_of_each_member_are_its_own(engine):
    alpha, c = np.array([0.0, 0.3, 0.9]), np.array([0.5, 2.0, 1.0])
    network = MLP((1, 3, 3, 1), "plu")
    start = initial(network, generators([1, 1, 1]))
    ours = train(network, start, (X, Y), steps=120, stride=1, alpha=alpha, c=c, engine=engine)
    modules = [functools.partial(PaperPLU, *shape) for shape in zip(alpha.tolist(), c.tolist(), strict=True)]
    losses, _ = columns(alone((1, 3, 3, 1), module, 1, lambda step: (X.T, Y.T), 120) for module in modules)
    np.testing.assert_allclose(ours.history, losses, rtol=2e-3, atol=2e-5)


@pytest.mark.parametrize("name", ["plu", "tanh", "gelu"])
def test_a_member_is_the_same_to_the_bit_in_any_company(engine, name):
    network = MLP((1, 3, 3, 1), name)
    whole = train(network, initial(network, generators(range(37))), (X, Y), steps=60, engine=engine)
    for chunk in ([0], [*range(3, 20)], [*range(20, 37)]):
        part = train(network, initial(network, generators(chunk)), (X, Y), steps=60, engine=engine)
        assert np.array_equal(part.theta, whole.theta[:, chunk])
        assert np.array_equal(part.history, whole.history[:, chunk])


@pytest.mark.parametrize("poison", [math.nan, math.inf, 3e38])
@pytest.mark.parametrize("name", ["plu", "tanh", "relu", "plu_learned"])
def test_a_diverged_member_touches_no_other(engine, poison, name):
    network = MLP((1, 3, 3, 1), name)
    start = initial(network, generators(range(20)))
    clean = train(network, start, (X, Y), steps=50, engine=engine)
    sick = start.copy()
    sick[:, 7] = poison
    ours = train(network, sick, (X, Y), steps=50, engine=engine)
    others = np.arange(20) != 7
    assert not np.isfinite(ours.history[:, 7]).any()
    assert np.array_equal(ours.theta[:, others], clean.theta[:, others])
    assert np.array_equal(ours.history[:, others], clean.history[:, others])


def test_checkpoints_and_strides_change_nothing(engine):
    network = MLP((1, 3, 3, 1), "plu")
    start = initial(network, generators(range(64)))
    before = start.copy()
    plain = train(network, start, (X, Y), steps=50, stride=1, engine=engine)
    marked = train(network, start, (X, Y), steps=50, stride=7, checkpoints=[0, 13, 50], engine=engine)
    early = train(network, start, (X, Y), steps=13, engine=engine)
    assert np.array_equal(marked.theta, plain.theta)
    assert np.array_equal(marked.history, plain.history[::7])
    assert np.array_equal(marked.checkpoints, np.stack([before, early.theta, plain.theta]))
    assert np.array_equal(start, before)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 1.0, 2.0])
@pytest.mark.parametrize("x", [0.0, -0.0, 0.5, 1.0, -1.0, 1.5, -3.0, math.inf, -math.inf, math.nan])
def test_plu_at_its_kinks_and_at_infinity(engine, x, alpha):
    """A unit with weight x, an input of 1 and a target of 0: the first loss is PLU(x) squared.

    The second member is there because some member must be finite.
    """
    network = MLP((1, 1, 1), "plu")
    theta = np.array([[x, 0.0], [0.0, 0.0], [1.0, 1.0], [0.0, 0.0]], dtype=np.float32)
    data = np.ones((1, 1)), np.zeros((1, 1))
    loss = train(network, theta, data, steps=1, alpha=alpha, engine=engine).history[0, 0]
    edge = math.copysign(1.0, x)
    expected = x if not abs(x) > 1 else edge if alpha == 0 else edge + alpha * (x - edge)
    np.testing.assert_allclose(loss, expected**2, rtol=1e-6)


def test_float64_runs_in_numpy_and_agrees_closely():
    network = MLP((1, 3, 3, 1), "plu")
    ours = train(network, initial(network, generators([2])).astype(np.float64), (X, Y), steps=300, stride=1)
    losses, _ = alone((1, 3, 3, 1), PaperPLU, 2, lambda step: (X.T, Y.T), 300, torch.float64)
    np.testing.assert_allclose(ours.history[:, 0], losses, rtol=1e-9, atol=1e-12)


SMALL = 1e-7  # the factor of the loss: gradients are as small as epsilon, and the forms of Adam differ
TINY = Rows(X.T, Y.T, np.full(X.size, SMALL))


def adam_as_tensorflow_writes_it(network, theta, steps):
    mean, square = np.zeros_like(theta), np.zeros_like(theta)
    for t in range(1, steps + 1):
        _, slopes = training.gradient(network, theta, (X, Y))
        mean += (SMALL * slopes - mean) * 0.1
        square += ((SMALL * slopes) ** 2 - square) * 0.001
        theta = theta - 0.01 * math.sqrt(1 - 0.999**t) / (1 - 0.9**t) * mean / (np.sqrt(square) + 1e-8)
    return theta


@pytest.mark.parametrize("name", ["tanh", "plu"])
def test_tensorflow_adds_epsilon_to_the_uncorrected_root(engine, name):
    network = MLP((1, 3, 3, 1), name)
    start = initial(network, generators([3, 8]))
    ours, other = (train(network, start, TINY, steps=120, adam=adam, engine=engine) for adam in ADAMS[::-1])
    expected = adam_as_tensorflow_writes_it(network, start.astype(np.float64), 120)
    np.testing.assert_allclose(ours.theta, expected, rtol=1e-3, atol=1e-3)
    assert np.abs(other.theta - expected).max() > 0.05
    # in PyTorch's notation epsilon falls: eps / sqrt(1 - beta2^t)
    options = {"loss": lambda *pair: SMALL * nn.functional.mse_loss(*pair)}
    options["epsilon"] = lambda step: 1e-8 / math.sqrt(1 - 0.999 ** (step + 1))
    lone = [alone(network.widths, MODULES[name], seed, lambda step: (X.T, Y.T), 120, **options) for seed in [3, 8]]
    np.testing.assert_allclose(ours.theta, columns(lone)[1], rtol=1e-3, atol=1e-3)


def test_the_form_of_adam_does_not_depend_on_parts_of_a_training(engine, monkeypatch):
    network = MLP((1, 3, 1))
    start, options = initial(network, generators(range(3))), {"steps": 50, "adam": "tensorflow", "engine": engine}
    whole = train(network, start, TINY, **options)
    monkeypatch.setattr(training, "Pace", lambda: SimpleNamespace(next=lambda first, most: min(first + 6, most)))
    np.testing.assert_array_equal(train(network, start, TINY, **options).theta, whole.theta)


def test_large_numbers_are_finite(engine):
    """Their sum is not."""
    network, x = MLP((1, 3, 1)), np.full((1, 50), 3e38)
    assert train(network, initial(network, generators([0])), (x, x), steps=1, engine=engine).history.shape == (1, 1)


def test_a_long_training_is_taken_in_parts(engine, monkeypatch):
    taken = []

    def spy(parts, advance=training.ENGINES[engine]):
        taken.extend((steps.first, steps.last) for _, steps in parts)
        advance(parts)

    network = MLP((1, 3, 1))
    start, options = initial(network, generators(range(3))), {"steps": 50, "stride": 7, "checkpoints": [20]}
    whole = train(network, start, (X, Y), engine=engine, **options)
    monkeypatch.setattr(training, "Pace", lambda: SimpleNamespace(next=lambda first, most: min(first + 6, most)))
    monkeypatch.setitem(training.ENGINES, engine, spy)
    parts = train(network, start, (X, Y), engine=engine, **options)
    assert taken == [(0, 6), (6, 12), (12, 18), (18, 20), (20, 26), (26, 32), (32, 38), (38, 44), (44, 50)]
    for name in ("theta", "history", "checkpoints"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
