"""The compiled program: outputs in float32 and float64 against NumPy and other builds, and threads."""

import threading

import numpy as np
import pytest
from compilers import TARGETS, narrow_program, needs_fma

from plunit.ensemble import ACTIVATIONS, MLP, forward, initial, native_steps, train
from plunit.ensemble.mlp import PIECEWISE
from plunit.ensemble.native_steps import values
from plunit.programs import libraries

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


SHAPES = [(5, 16, 16, 1), (3, 7, 2), (2, 3), (1, 9, 5, 6, 3)]


def drawn(widths, activation, members=5, rows=333):
    network, rng = MLP(widths, activation), np.random.default_rng(len(widths))
    x = rng.normal(size=(rows, widths[0])) * 3
    x[0], x[1] = 0.0, -0.0
    return network, rng.normal(size=(network.parameters, members)), x


def whole(network, theta, x):
    return np.concatenate([values for _, values in native_steps.output_blocks(network, theta, x, 0.3, 0.5)], axis=1)


@pytest.mark.parametrize("widths", SHAPES)
@pytest.mark.parametrize("activation", PIECEWISE)
def test_the_program_computes_what_numpy_does(activation, widths):
    network, theta, x = drawn(widths, activation)
    expected = np.moveaxis(forward(network, theta, x.T, 0.3, 0.5), (0, 1, 2), (2, 1, 0))
    found = native_steps.native_outputs(libraries.library(), network, theta, x, 0.3, 0.5)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@needs_fma
@pytest.mark.parametrize("target", TARGETS, ids=" ".join)
def test_every_processor_computes_the_same_bits(target):
    network, theta, x = drawn((5, 16, 13, 3), "plu")
    one = native_steps.native_outputs(narrow_program(target, "train"), network, theta, x, 0.3, 0.5)
    np.testing.assert_array_equal(one, native_steps.native_outputs(libraries.library(), network, theta, x, 0.3, 0.5))


@pytest.mark.parametrize("activation", PIECEWISE)
def test_kinks_belong_to_the_same_pieces(activation):
    network = MLP((1, 1, 1), activation)
    theta = np.array([[1.0], [0.0], [1.0], [0.0], *([[0.0]] * (network.parameters - 4))])
    x = np.array([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])[:, None]
    expected = forward(network, theta, x.T, 0.3, 0.5)[0]
    np.testing.assert_array_equal(whole(network, theta, x)[0], expected)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_of_any_layout(order, dtype):
    network, theta, x = drawn((5, 16, 16, 1), "plu")
    given = np.repeat(x.astype(dtype), 2, axis=0)[::2].copy(order=order)
    np.testing.assert_array_equal(whole(network, theta, given), whole(network, theta, x.astype(dtype).astype(float)))


@pytest.mark.parametrize("rows", [1, 63, 64, 65])
def test_a_row_has_the_same_bits_beside_any_others(rows):
    network, theta, x = drawn((5, 16, 16, 3), "plu")
    np.testing.assert_array_equal(whole(network, theta, x[:rows]), whole(network, theta, x)[:, :rows])


def test_smooth_networks_are_evaluated_too():
    network, theta, x = drawn((3, 7, 2), "tanh")
    np.testing.assert_allclose(
        whole(network, theta, x), np.moveaxis(forward(network, theta, x.T), (0, 1, 2), (2, 1, 0))
    )


def test_arrays_that_do_not_belong_together_are_refused():
    network, theta, x = drawn((3, 7, 2), "plu")
    for wrong in ((theta[1:], x), (theta, x[:, 1:])):
        with pytest.raises(ValueError, match="do not belong to"):
            native_steps.native_outputs(libraries.library(), network, *wrong, 0.1, 1.0)
