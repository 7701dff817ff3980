"""The compiled program: outputs in float32 against NumPy, and threads."""

import threading

import numpy as np
import pytest

from plunit.ensemble import ACTIVATIONS, MLP, forward, initial, native_steps, train
from plunit.ensemble.native_steps import values

pytestmark = pytest.mark.usefixtures("compiler")


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("widths", [(1, 3, 3, 1), (2, 5, 2), (1, 1)])
def test_values_are_those_of_forward(activation, widths):
    network = MLP(widths, activation)
    theta = initial(network, [np.random.default_rng(seed) for seed in range(7)], alpha=0.3, c=0.5)
    theta += np.random.default_rng(9).normal(0, 0.3, theta.shape).astype(np.float32)  # biases start as 0
    x = np.random.default_rng(0).uniform(-4, 4, (widths[0], 137)).astype(np.float32)
    found = values(network, theta, x, 0.3, 0.5)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, forward(network, theta.astype(np.float64), x, 0.3, 0.5), rtol=2e-4, atol=2e-5)


def test_a_member_that_diverged_is_nan_and_the_others_are_not():
    network = MLP((1, 2, 1), "relu")
    theta = initial(network, [np.random.default_rng(seed) for seed in range(3)])
    theta[:, 1] = np.nan
    found = values(network, theta, np.linspace(-1, 1, 20, dtype=np.float32)[None])
    assert np.isnan(found).all(axis=(0, 1)).tolist() == [False, True, False]
    assert np.isfinite(found[..., [0, 2]]).all()


@pytest.mark.parametrize("threads", [1, 3, 50])
def test_the_bits_do_not_depend_on_threads_even_if_the_system_has_no_more(threads, monkeypatch):
    network, x = MLP((1, 3, 1)), np.linspace(-3, 3, 20, dtype=np.float32)
    start = initial(network, [np.random.default_rng(seed) for seed in range(100)])
    alone = train(network, start, (x[None], np.sin(x)[None]), steps=4).theta  # so few are one part
    monkeypatch.setattr(native_steps, "processors", lambda: threads)
    begun, begin = [], threading.Thread.start

    def some(thread):
        if len(begun) == 4:
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", some)
    np.testing.assert_array_equal(train(network, start, (x[None], np.sin(x)[None]), steps=4).theta, alone)
    assert len(begun) == min(threads - 1, 4)
    assert not any(thread.is_alive() for thread in begun)
