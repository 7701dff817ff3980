"""The second-order finish: its slopes, its steps in both engines, and who gets it after a search."""

import math

import numpy as np
import pytest
import scipy.optimize
from lone_members import generators

from plunit.ensemble import (
    ACTIVATIONS,
    MLP,
    Rows,
    Validation,
    finish_members,
    forward,
    halving,
    initial,
    levenberg_marquardt,
    numpy_steps,
)
from plunit.ensemble.halving import MOST_FINISH, search_networks
from plunit.ensemble.training import gradient
from plunit.ensemble.training_state import initial_state

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (150, 2))
Y = np.stack([np.sin(X[:, 0]) * X[:, 1], np.cos(X[:, 1])], axis=1)
WEIGHT = RNG.uniform(0.2, 2, len(X))
ROWS = Rows(X, Y, WEIGHT)


def two_outputs(name, seeds=(0, 1, 2)):
    network = MLP((2, 5, 4, 2), name)
    start = initial(network, generators(seeds)).astype(np.float64)
    for _, bias in network.layers(start):  # away from kinks at 0
        bias += 0.1
    return network, start


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_jacobian_is_that_of_finite_differences_and_gives_the_gradient(name):
    network, theta = two_outputs(name)
    outputs, slopes = numpy_steps.jacobian(initial_state(network, theta, steps=0), X.T[None])
    np.testing.assert_allclose(outputs, np.moveaxis(forward(network, theta, X.T), -1, 0))
    numeric = np.empty_like(slopes)
    for i in range(network.parameters):
        away = np.zeros_like(theta)
        away[i] = 1e-6
        both = [forward(network, theta + sign * away, X.T) for sign in (1, -1)]
        numeric[:, i] = np.moveaxis((both[0] - both[1]) / 2e-6, -1, 1)
    near = np.isclose(slopes, numeric, rtol=1e-5, atol=1e-7)
    assert near.mean() > 0.999  # a kink may lie between the two points
    _, expected = gradient(network, theta, ROWS)
    residual = (outputs - Y.T) * WEIGHT / len(X)
    np.testing.assert_allclose(np.einsum("sun,upsn->ps", residual, slopes), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_compiled_steps_are_those_of_numpy(name):
    network, start = two_outputs(name)
    ours, theirs = (finish_members(network, start, ROWS, steps=6, engine=one) for one in ("native", "numpy"))
    np.testing.assert_allclose(ours.theta, theirs.theta, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(ours.steps, theirs.steps)
    away = forward(network, ours.theta, X.T) - Y.T[..., None]
    np.testing.assert_allclose(ours.loss, (away**2 * WEIGHT[:, None]).mean((0, 1)), rtol=1e-12)
    assert (ours.loss < 0.9 * finish_members(network, start, ROWS, steps=0).loss).all()


@pytest.mark.parametrize("name", ["tanh", "plu", "plu_learned"])
def test_the_optimum_is_that_of_scipy(engine, name):
    x = np.linspace(-3, 3, 40)
    y = np.sin(x) + 0.1 * np.cos(9 * x)
    network = MLP((1, 3, 1), name)
    start = initial(network, generators(range(4))).astype(np.float64)
    ours = finish_members(network, start, (x[None], y[None]), steps=300, engine=engine)

    def residual(theta):
        return forward(network, theta[:, None], x[None])[0, :, 0] - y

    for i in range(4):
        theirs = scipy.optimize.least_squares(residual, ours.theta[:, i], xtol=1e-14, ftol=1e-14, gtol=1e-14)
        assert ours.loss[i] < 2 * theirs.cost / len(x) * (1 + 1e-3) + 1e-12  # nothing is left to gain from there


@pytest.mark.parametrize("name", ["plu", "gelu"])
def test_bits_depend_neither_on_other_members_nor_on_threads_nor_on_pauses(monkeypatch, name):
    network, start = two_outputs(name, range(5))
    whole = finish_members(network, start, ROWS, steps=24)
    monkeypatch.setattr(levenberg_marquardt, "processors", lambda: 4)
    monkeypatch.setattr(levenberg_marquardt.Pace, "next", lambda self, first, most: min(first + 5, most))
    for other in (
        finish_members(network, start, ROWS, steps=24),
        finish_members(network, start[:, 3:], ROWS, steps=24),
    ):
        np.testing.assert_array_equal(other.theta, whole.theta[:, -other.theta.shape[1] :])


def test_members_may_have_points_of_their_own(engine):
    network, start = two_outputs("plu")
    x = np.stack([X.T, X.T[:, ::-1], 0.5 * X.T], axis=-1)
    both = finish_members(network, start, (x, Y.T), steps=5, engine=engine)
    for i in range(3):
        one = finish_members(network, start[:, [i]], (x[..., i], Y.T), steps=5, engine=engine)
        np.testing.assert_array_equal(both.theta[:, [i]], one.theta)


def test_no_loss_rises_and_who_stalls_or_diverges_ends(engine):
    network, start = two_outputs("plu")
    start[0, 1], seen = np.nan, []
    found = finish_members(network, start, ROWS, steps=400, engine=engine, progress=lambda *one: seen.append(one))
    assert found.steps[1] == 0
    assert np.isnan(found.loss[1])
    np.testing.assert_array_equal(found.theta[:, 1], start[:, 1])
    assert (found.steps[[0, 2]] > 5).all()
    done, best = np.transpose(seen)
    assert (np.diff(best) <= 0).all()
    assert (np.diff(done) > 0).all()
    identity, theta = MLP((2, 3, 2), "identity"), initial(MLP((2, 3, 2), "identity"), generators([0]))
    assert finish_members(identity, theta, ROWS, steps=10_000, engine=engine).steps < 30


def test_ctrl_c_and_the_progress_end_the_steps_and_keep_what_was_reached(monkeypatch):
    network, start = two_outputs("tanh")
    first = finish_members(network, start, ROWS, steps=0).loss

    def press(done, best):
        raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted by user after 4 of 80 steps"):
        kept = finish_members(network, start, ROWS, steps=80, progress=press)
    pressed = []
    finish_members(network, start, ROWS, steps=80, progress=press, interrupted=lambda: pressed.append(1))
    ended = finish_members(network, start, ROWS, steps=80, progress=lambda done, best: True)
    assert pressed == [1]
    assert (kept.loss < first).all()
    np.testing.assert_array_equal(kept.theta, ended.theta)


def searched(noise, **options):
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, (1500, 2))
    y = np.sin(x[:, :1]) * x[:, 1:] + noise * rng.normal(size=(1500, 1))
    rows, looked = Rows(x[300:], y[300:]), Validation(x[:300], y[:300], every=20)
    found = search_networks([MLP((2, 8, 1)), MLP((2, 8, 8, 1))], rows, looked, starts=16, steps=800, keep=4, **options)
    return found, looked


def test_a_search_finishes_the_best_of_each_shape_where_validation_gains():
    (before, looked), (after, _) = searched(0.0), searched(0.0, finish=30, finishers=2)
    assert [one.loss for one in after] == sorted(one.loss for one in after)
    old = {(one.network, one.start): one for one in before}
    changed = [one for one in after if one.loss != old[one.network, one.start].loss]
    ranks = [[one.network for one in before[:i]].count(before[i].network) for i in range(len(before))]
    best = {(one.network, one.start) for one, rank in zip(before, ranks, strict=True) if rank < 2}
    assert changed
    assert {(one.network, one.start) for one in changed} <= best
    for one in changed:
        assert one.loss < old[one.network, one.start].loss
        away = forward(one.network, one.theta[:, None], looked.x.T)[0, :, 0] - looked.y[:, 0]
        assert one.loss == pytest.approx((away**2).mean(), rel=1e-9)


def test_a_finished_member_that_is_worse_on_rows_of_validation_is_not_taken():
    (before, _), (after, _) = searched(0.5), searched(0.5, finish=100, finishers=4)
    old = {(one.network, one.start): one.loss for one in before}
    assert all(one.loss <= old[one.network, one.start] for one in after)


@pytest.mark.parametrize(("noise", "fall", "gains"), [(0.0, 0.98, True), (0.3, 0.98, False), (0.0, 0.01, False)])
def test_auto_finishes_where_there_is_no_noise_and_the_first_steps_gain(monkeypatch, noise, fall, gains):
    monkeypatch.setattr(halving, "FALL", fall)
    (before, _), (after, _) = searched(noise), searched(noise, finish="auto")
    assert (after[0].loss < 0.8 * before[0].loss) == gains
    assert ([one.loss for one in after] == [one.loss for one in before]) != gains


def test_a_search_that_is_stopped_is_not_finished_and_its_progress_never_falls():
    seen = []
    searched(0.0, finish=MOST_FINISH, progress=lambda done, best: seen.append(done))
    assert seen == sorted(seen)
    assert seen[-1] == 1
    (stopped, _), (plain, _) = (
        searched(0.0, finish=n, progress=lambda done, best: done > 0.1) for n in (MOST_FINISH, 0)
    )
    assert stopped[0].theta.dtype == np.float32
    assert math.isfinite(plain[0].loss)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"steps": -1}, "steps must be an integer of at least 0, got -1"),
        *(
            ({"damping": value}, "damping must be a positive number, got .*; try 0.1")
            for value in (0.0, -1, math.nan, "bold")
        ),
        ({"data": lambda n: None}, "data must be a pair .* got function; a finish needs all points"),
        ({"data": Rows(X, Y * np.nan)}, "targets must be finite in float64, got nan in row 0"),
        ({"data": Rows(X, Y, -WEIGHT)}, "weight must not be negative"),
        ({"engine": "gpu"}, "unknown engine 'gpu'; choose native or numpy"),
    ],
)
def test_messages(options, text):
    network, start = two_outputs("plu")
    with pytest.raises(ValueError, match=f"^{text}"):
        finish_members(network, start, **{"data": ROWS, "steps": 3, **options})


def test_ctrl_c_in_the_finish_of_a_search_keeps_the_best():
    pressed, (plain, _) = [], searched(0.0)

    def press(done, best):
        if 0.55 < done < 1:
            raise KeyboardInterrupt

    found, _ = searched(0.0, finish=100, progress=press, interrupted=lambda: pressed.append(1))
    assert pressed == [1]
    assert found[0].loss < plain[0].loss
