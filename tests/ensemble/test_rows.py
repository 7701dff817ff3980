"""Rows of a table: which of them a member draws, and what is done with them."""

import itertools

import numpy as np
import pytest
from lone_members import generators

from plunit.ensemble import ENGINES, MLP, Rows, initial, train
from plunit.ensemble.training_data import points
from plunit.ensemble.training_state import Steps, initial_state

SIZES = [(7, 3), (7, 7), (7, 20), (64, 16), (70, 100), (1, 1), (1, 5), (2, 3), (130, 129)]


def table(n, batch=0, seeds=()):
    """One row for each unit of input, which is 1 there alone."""
    return Rows(np.eye(n), -np.ones((n, 1)), None, batch, seeds)


@pytest.mark.parametrize("n", [1, 2, 7, 50, 64, 1000])
@pytest.mark.parametrize("number", [0, 1, 5])
def test_a_pass_meets_each_row_once(n, number):
    met = table(n, 1, [3]).draw(0, number * n, n)
    np.testing.assert_array_equal(np.sort(met), np.arange(n))


def test_members_and_passes_have_orders_of_their_own():
    rows = table(1009, 1, range(20))
    orders = {tuple(rows.draw(member, number * 1009, 1009)) for member in range(20) for number in range(20)}
    assert len(orders) > 395  # of 400; there are a million, so that two may meet


def test_batches_continue_each_other():
    rows = table(50, 1, [4])
    parts = [rows.draw(0, first, 9) for first in range(0, 180, 9)]
    np.testing.assert_array_equal(np.concatenate(parts), rows.draw(0, 0, 180))


def met(engine, rows, steps=1, members=1):
    """Return how often each member met each row at each step, [steps, rows, members].

    With weights of 0 the residual is 1 at every row, and the gradient of a weight is 2 / batch times the number of
    meetings.
    """
    n = len(rows.x)
    network = MLP((n, 1))
    theta = np.zeros((n + 1, members), dtype=np.float32)
    state = initial_state(network, theta, lr=0.0, stride=1, steps=steps)
    means = [state.mean[:n].copy()]
    for step in range(steps):
        ENGINES[engine]([(state, Steps(step, np.ones(1), points(rows, 1, network, theta)))])
        means.append(state.mean[:n].copy())
    gradients = np.stack([(after - 0.9 * before) / 0.1 for before, after in itertools.pairwise(means)])
    return np.rint(gradients * rows.batch / 2)


@pytest.mark.parametrize(("n", "batch"), SIZES)
def test_an_engine_meets_the_rows_that_are_drawn(engine, n, batch):
    """A seed is any integer."""
    seeds = [5, 8, 0, 2**63, 2**64 - 1, -1]
    rows = table(n, batch, seeds)
    expected = [
        [np.bincount(rows.draw(member, step * batch, batch), minlength=n) for member in range(len(seeds))]
        for step in range(6)
    ]
    np.testing.assert_array_equal(met(engine, rows, 6, len(seeds)), np.swapaxes(expected, 1, 2))


@pytest.mark.parametrize(("n", "batch"), SIZES)
def test_members_of_many_vectors_draw_by_their_own_seeds_in_one_call_or_several(engine, n, batch):
    network, some = MLP((n, 2, 1), "plu"), [33, 4, 17]
    start = initial(network, generators(range(35)))
    whole = train(network, start, table(n, batch, range(35)), steps=9, engine=engine)
    part = train(network, start[:, some], table(n, batch, some), steps=9, checkpoints=[1, 2, 7], engine=engine)
    assert np.array_equal(whole.theta[:, some], part.theta)
    assert np.array_equal(whole.history[:, some], part.history)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("name", ["tanh", "plu_learned"])
def test_engines_agree_on_rows_drawn(name):
    rng = np.random.default_rng(0)
    network = MLP((3, 8, 2), name)
    rows = Rows(rng.normal(size=(100, 3)), rng.normal(size=(100, 2)), rng.random(100), 32, range(5))
    start = initial(network, generators(range(5)))
    native, numpy = (train(network, start, rows, steps=30, stride=1, engine=engine) for engine in ENGINES)
    np.testing.assert_allclose(native.history, numpy.history, rtol=1e-4)
    np.testing.assert_allclose(native.theta, numpy.theta, rtol=1e-3, atol=1e-4)


def test_all_rows_are_one_batch(engine):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(90, 3)), rng.normal(size=(90, 2))
    network = MLP((3, 8, 2), "plu")
    start = initial(network, generators(range(5)))
    rows, batch = (train(network, start, data, steps=20, engine=engine) for data in (Rows(x, y), (x.T, y.T)))
    assert np.array_equal(rows.theta, batch.theta)


def test_a_stream_may_repeat_its_inputs(engine):
    """As a view that has no memory of its own for the steps; the targets change."""
    x, y = np.linspace(-1, 1, 9, dtype=np.float32), np.random.default_rng(0).normal(size=(20, 1, 9, 1))
    network = MLP((1, 2, 1), "tanh")
    start = initial(network, generators(range(3)))
    shared = np.broadcast_to(x[None, None, :, None], (20, 1, 9, 1))
    view, whole = (
        train(network, start, lambda n, x=x: (x, y), steps=20, engine=engine) for x in (shared, shared.copy())
    )
    assert np.array_equal(view.theta, whole.theta)


@pytest.mark.parametrize("members", [5, 15, 16])
def test_the_order_of_axes_in_memory_does_not_matter(engine, members):
    rng = np.random.default_rng(0)
    network = MLP((2, 3, 3, 1), "plu")
    start = initial(network, generators(range(members)))
    x, y = rng.normal(size=(2, 9, members)).astype(np.float32), rng.normal(size=(1, 9, members))
    alpha = rng.uniform(0, 1, (2, members))
    plain = train(network, start, (x, y), steps=20, alpha=alpha, engine=engine)
    start, x, y, alpha = (np.array(part, order="F") for part in (start, x, y, alpha))
    other = train(network, start, (x, y), steps=20, alpha=alpha, engine=engine)
    assert np.array_equal(plain.theta, other.theta)
    single = train(network, start[:, 3:4], (x[..., 3:4], y[..., 3:4]), steps=20, alpha=alpha[:, 3:4], engine=engine)
    assert np.array_equal(plain.theta[:, 3:4], single.theta)


@pytest.mark.usefixtures("compiler")
def test_numbers_at_odd_addresses_are_read_rightly():
    packed = np.zeros(50, np.dtype([("a", "u1"), ("b", "<f4", (2,))]))
    packed["b"] = np.random.default_rng(0).normal(size=(50, 2))
    network = MLP((2, 3, 1), "plu")
    start = initial(network, [np.random.default_rng(0)])
    y = packed["b"][:, :1] * 2
    odd, plain = (
        train(network, start, Rows(x, y), steps=40, engine="native") for x in (packed["b"], packed["b"].copy())
    )
    np.testing.assert_array_equal(odd.theta, plain.theta)
