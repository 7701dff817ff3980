"""The best parameters, and when a member ends."""

import functools
import math

import numpy as np
import pytest
from lone_members import generators, looks_of

from plunit.ensemble import ENGINES, MLP, Rows, Validation, forward, initial, train
from plunit.ensemble.training_data import points
from plunit.ensemble.training_state import Steps, initial_state

RNG = np.random.default_rng(0)
X = RNG.uniform(-3, 3, (60, 1)).astype(np.float32)
Y = (np.sin(2 * X) + 0.3 * RNG.normal(size=X.shape)).astype(np.float32)
TRAINING, TESTS = (X[:40], Y[:40]), (X[40:], Y[40:])
NETWORK = MLP((1, 6, 6, 1), "tanh")
START = initial(NETWORK, generators(range(21)))
EVERYONE = np.arange(21)
STEPS = 80
CARRIED = ("theta", "history", "best", "best_loss", "best_step")


def run(engine, start=START, *, network=NETWORK, rows=None, checkpoints=(), steps=STEPS, **looks):
    """Train with a step size at which losses go up and down."""
    looks = Validation(*TESTS, **{"every": 4, **looks})
    options = {"lr": 0.05, "stride": 1, "checkpoints": checkpoints, "engine": engine}
    return train(network, start, rows or Rows(*TRAINING), steps=steps, validation=looks, **options)


def losses(thetas, weight=1.0, network=NETWORK):
    """Return the loss on the rows of validation for each theta and member, in float64."""
    x, y = (part.astype(np.float64).T for part in TESTS)
    outputs = np.stack([forward(network, theta.astype(np.float64), x) for theta in thetas])
    return ((outputs - y[..., None]) ** 2 * np.reshape(weight, (1, -1, 1))).mean((1, 2))


@functools.cache
def course(engine, average=0.0):
    """Return a run without patience, the parameters it looks at after each step, and its losses at each look."""
    whole = run(engine, checkpoints=range(STEPS + 1), average=average)
    means = [whole.checkpoints[0].astype(np.float64)]
    for t, theta in enumerate(whole.checkpoints[1:].astype(np.float64), start=1):
        means.append(means[-1] + (theta - means[-1]) / (1 + average * (t - 1)))
    thetas = np.stack(means) if average else whole.checkpoints
    return whole, thetas, losses(thetas[4::4])


def equal(one, other, some=slice(None)):
    """Compare a run with some members of another."""
    np.testing.assert_equal(
        [getattr(one, name) for name in CARRIED], [getattr(other, name)[..., some] for name in CARRIED]
    )


def test_the_best_parameters_are_those_of_the_least_loss(engine):
    """A look every 4 steps, in calls of 1 step."""
    whole, thetas, seen = course(engine)
    assert set(whole.best_step % 4) == {0}
    assert len(set(whole.best_step)) > 1
    assert (whole.best_step < STEPS).any()
    np.testing.assert_allclose(whole.best_loss, seen.min(0), rtol=1e-5)
    np.testing.assert_allclose(seen[whole.best_step // 4 - 1, EVERYONE], seen.min(0), rtol=1e-5)
    assert np.array_equal(whole.best, thetas[whole.best_step, :, EVERYONE].T)


@pytest.mark.parametrize("average", [0.1, 1.0])
def test_a_running_mean_is_looked_at_and_kept(engine, average):
    """A mean of 1 is that of all steps; of 0.1 it is the recursion m += (theta - m) / (1 + 0.1 (t - 1)) in float64."""
    (whole, means, seen), (plain, thetas, _) = course(engine, average), course(engine)
    if average == 1:
        np.testing.assert_allclose(means[50], thetas[1:51].mean(0, dtype=np.float64), rtol=1e-6, atol=1e-6)
    assert np.array_equal(whole.theta, plain.theta)
    np.testing.assert_allclose(whole.best_loss, seen.min(0), rtol=1e-4)
    np.testing.assert_allclose(whole.best, means[whole.best_step, :, EVERYONE].T, rtol=1e-4, atol=1e-5)
    assert not np.allclose(whole.best, thetas[whole.best_step, :, EVERYONE].T, rtol=1e-3, atol=1e-3)


def test_a_running_mean_has_learned_shapes(engine):
    """The loss is that of the kept parameters, with their own alpha and c."""
    network = MLP((1, 6, 6, 1), "plu_learned")
    found = run(engine, initial(network, generators(range(21))), network=network, average=0.2)
    np.testing.assert_allclose(found.best_loss, losses([found.best], network=network)[0], rtol=1e-4)


def test_calls_and_looks_change_nothing(engine):
    whole, _, _ = course(engine)
    equal(run(engine), whole)
    plain = train(NETWORK, START, Rows(*TRAINING), steps=STEPS, lr=0.05, stride=1, engine=engine)
    assert np.array_equal(plain.theta, whole.theta)
    assert np.array_equal(plain.history, whole.history)


def test_weights_of_validation(engine):
    weight = RNG.random(20)
    whole = run(engine, checkpoints=range(0, STEPS + 1, 4), weight=weight)
    np.testing.assert_allclose(whole.best_loss, losses(whole.checkpoints[1:], weight).min(0), rtol=1e-5)


@pytest.mark.parametrize(("patience", "tolerance"), [(1, 0.0), (3, 0.0), (3, 0.02), (2, 1e9)])
def test_patience_ends_a_member(engine, patience, tolerance):
    _, thetas, seen = course(engine)
    looks = np.array([looks_of(column, patience, tolerance) for column in seen.T])
    bests = [column[:count].argmin() + 1 for column, count in zip(seen.T, looks, strict=True)]
    ours = run(engine, patience=patience, tolerance=tolerance)
    assert looks.min() < STEPS // 4
    np.testing.assert_array_equal(ours.best_step, 4 * np.array(bests))
    np.testing.assert_array_equal(ours.theta, thetas[4 * looks, :, EVERYONE].T)
    np.testing.assert_array_equal(np.isnan(ours.history), np.arange(STEPS)[:, None] >= 4 * looks)


def test_the_running_mean_of_an_ended_member_is_not_looked_at(engine):
    """It goes on towards the last parameters, and may get better, while other members train."""
    _, _, seen = course(engine, 0.1)
    looks = [looks_of(column, 1, 0.0) for column in seen.T]
    ours = run(engine, average=0.1, patience=1)
    assert min(looks) < max(looks) == STEPS // 4
    bests = [column[:count].argmin() + 1 for column, count in zip(seen.T, looks, strict=True)]
    np.testing.assert_array_equal(ours.best_step, 4 * np.array(bests))


@pytest.mark.parametrize("batch", [0, 16])
def test_an_ended_member_stands_still_whatever_its_neighbours_do(engine, batch):
    whole = run(engine, rows=Rows(*TRAINING, None, batch, range(21) if batch else ()), patience=2)
    for member in (0, 7, 20):
        rows = Rows(*TRAINING, None, batch, [member] if batch else ())
        equal(run(engine, START[:, [member]], rows=rows, patience=2), whole, [member])


def test_what_comes_after_its_end_does_not_reach_a_member(engine):
    """The first member has a step size of 0: no progress. The inputs of later steps make its gradient infinite."""
    inputs = np.where(np.arange(30)[:, None, None, None] < 20, X.T[None, :, :, None], np.float32(1e38))
    targets = np.broadcast_to(Y.T[None, :, :, None], (30, 1, 60, 1))
    network = MLP((1, 6, 1), "relu")
    start = initial(network, generators([0, 1]))
    options = {"lr": [0.0, 1e-3], "validation": Validation(*TESTS, every=2, patience=1), "stride": 1}
    ours = train(network, start, lambda steps: (inputs, targets), steps=30, engine=engine, **options)
    assert np.array_equal(ours.theta[:, 0], start[:, 0])
    assert np.isnan(ours.history[4:, 0]).all()
    assert np.isfinite(ours.history[:20, 1]).all()
    assert not np.isfinite(ours.theta[:, 1]).all()
    assert ours.best_step.tolist() == [2, 20]


@pytest.mark.parametrize("poison", [math.nan, math.inf])
def test_a_member_that_is_not_finite_ends_and_touches_no_other(engine, poison):
    sick = START.copy()
    sick[:, 3] = poison
    ours, clean, others = run(engine, sick, patience=2), run(engine, patience=2), EVERYONE != 3
    for name in CARRIED:
        np.testing.assert_equal(getattr(ours, name)[..., others], getattr(clean, name)[..., others])
    assert (ours.best_step[3], ours.best_loss[3]) == (0, math.inf)
    assert np.isnan(ours.history[:, 3]).all()
    np.testing.assert_array_equal(ours.best[:, 3], sick[:, 3])


@pytest.mark.parametrize("some", [[2, 0], [20], slice(3, 17)])
def test_selected_members_are_whole(engine, some):
    tests, looks = points(Rows(*TESTS), 1, NETWORK, START), Validation(*TESTS, every=4, patience=3)
    factors = {"lr": np.linspace(0.01, 0.1, 21), "decay": np.linspace(0, 1, 21)}
    state = initial_state(NETWORK, START, stride=1, steps=60, every=4, **factors)

    def advance(state, first, members):
        given = points(Rows(*TRAINING, None, 16, list(EVERYONE[members])), 1, NETWORK, state.theta)
        ENGINES[engine]([(state, Steps(first, np.ones(30), given, tests, looks))])

    advance(state, 0, slice(None))
    part = state.select(some)
    before = {name: value.copy() for name, value in vars(part).items() if isinstance(value, np.ndarray)}
    advance(state, 30, slice(None))
    np.testing.assert_equal({name: getattr(part, name) for name in before}, before)
    advance(part, 30, some)
    for name in before.keys() - {"mean", "square", "running"}:  # of no use to a member that has ended
        np.testing.assert_array_equal(getattr(part, name), getattr(state, name)[..., some])


def test_whole_numbers_beyond_those_of_float32(engine):
    """Above 2^24 only every other whole number is one of float32."""
    last = 2**24 + 1
    state = initial_state(NETWORK, START, lr=0.1, stride=last, steps=last, every=last)
    state.best_loss[:3], state.mark[:3], state.waited[:] = -1, -1, last - 1  # three that are not better
    given, tests = (points(Rows(*part), 1, NETWORK, START) for part in (TRAINING, TESTS))
    looks = Validation(*TESTS, every=last, patience=last)
    ENGINES[engine]([(state, Steps(last - 1, np.ones(1), given, tests, looks))])
    assert state.best_step.tolist() == [0] * 3 + [last] * 18
    assert state.waited.tolist() == [last] * 3 + [0] * 18
    before = state.theta.copy()
    state.history, state.looks = np.zeros((2, 21), np.float32), np.zeros((1, 21), np.float32)
    ENGINES[engine]([(state, Steps(last, np.ones(1), given, tests, looks))])
    assert (state.theta == before).all(0).tolist() == [True] * 3 + [False] * 18


@pytest.mark.parametrize(("steps", "looks"), [(8, 2), (9, 0)])
def test_no_room_for_the_losses_is_an_error(engine, steps, looks):
    state = initial_state(NETWORK, START, stride=1, steps=8)
    given, tests = (points(Rows(*part), 1, NETWORK, START) for part in (TRAINING, TESTS))
    validation = Validation(*TESTS, every=4) if looks else None
    with pytest.raises(ValueError, match=rf"room for 8 steps and 0 validations, but these are {steps} and {looks}"):
        ENGINES[engine]([(state, Steps(0, np.ones(steps), given, tests, validation))])
